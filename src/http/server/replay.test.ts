// ReplyTimers that outlive their connections: what a caller that comes back gets, and what is let go of.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Outlet, readEventId, ReplayStore, ReplayStream } from "./replay.ts";

class Connection implements Outlet {
  text = "";
  ended = false;
  send(text: string): void {
    this.text += text;
  }
  end(): void {
    this.ended = true;
  }
  get data(): string[] {
    return [...this.text.matchAll(/^data: (.+)$/gm)].map(([, data]) => data as string);
  }
  get lastId(): string {
    return [...this.text.matchAll(/^id: (.+)$/gm)].at(-1)?.[1] ?? "";
  }
}

const place = (id: string): number => readEventId(id)?.number ?? Number.NaN;

describe("a stream that can be resumed", () => {
  it("gives a caller that comes back what it missed, once and in order", () => {
    const store = new ReplayStore(10_000, 100);
    const cases = fc.array(fc.oneof(fc.constant("send"), fc.constant("break"), fc.constant("lose")), { maxLength: 60 });
    fc.assert(
      fc.property(cases, (steps) => {
        const stream = new ReplayStream("a", store);
        const seen: string[] = [];
        let connection = new Connection();
        stream.attach(connection);
        stream.prime(10);
        let last = connection.lastId;
        const read = (): void => {
          seen.push(...connection.data);
          last = connection.lastId || last;
          connection.text = "";
        };
        let sent = 0;
        for (const step of steps) {
          if (step === "send") stream.send(String((sent += 1)));
          else {
            // What was under way when the connection was lost was never read.
            if (step === "break") read();
            stream.detach(connection);
            stream.send(String((sent += 1)));
            connection = new Connection();
            expect(stream.reaches(place(last))).toBe(true);
            stream.attach(connection, place(last));
          }
        }
        stream.send("end", true);
        read();
        expect(seen).toEqual([...Array.from({ length: sent }, (_, index) => String(index + 1)), "end"]);
        expect(connection.ended).toBe(true);
        stream.forget();
      }),
    );
  });

  it("keeps what was sent while nobody was there, and gives it to the first who comes", () => {
    const stream = new ReplayStream("0", new ReplayStore(1_000, 10));
    stream.send("one");
    const first = new Connection();
    stream.attach(first);
    expect(first.data).toEqual(["one"]);
    stream.detach(first);
    stream.send("two");
    const second = new Connection();
    stream.attach(second);
    expect(second.data).toEqual(["two"]);
  });

  it("has one connection: who comes later takes the place of who was there", () => {
    const stream = new ReplayStream("0", new ReplayStore(1_000, 10));
    const [first, second] = [new Connection(), new Connection()];
    stream.attach(first);
    stream.attach(second);
    expect(first.ended).toBe(true);
    // The end of the first is noticed late, and is no longer anybody's business.
    stream.detach(first);
    stream.send("one");
    expect([first.data, second.data]).toEqual([[], ["one"]]);
  });

  it("hands over what nobody has taken, and counts on from what somebody has", () => {
    const stream = new ReplayStream("0", new ReplayStore(1_000, 10));
    const connection = new Connection();
    stream.attach(connection);
    stream.send("one");
    stream.detach(connection);
    stream.send("two");
    stream.send("three");
    expect(stream.handOver()).toEqual(["two", "three"]);
    expect(stream.handOver()).toEqual([]);
    const back = new Connection();
    stream.attach(back, 0);
    expect([back.data, back.lastId]).toEqual([["one"], "0-1"]);
    stream.send("four");
    expect([back.data, back.lastId]).toEqual([["one", "four"], "0-2"]);
  });

  it("knows where nothing more will come", () => {
    const stream = new ReplayStream("a", new ReplayStore(1_000, 10));
    stream.send("one");
    expect(stream.endsAt(1)).toBe(false);
    stream.finish();
    expect([stream.endsAt(0), stream.endsAt(1)]).toEqual([false, true]);
  });

  it("ends at once for who comes back after the last event", () => {
    const stream = new ReplayStream("a", new ReplayStore(1_000, 10));
    stream.send("answer", true);
    const connection = new Connection();
    stream.attach(connection, 0);
    expect([connection.data, connection.ended, stream.attached]).toEqual([["answer"], true, false]);
  });

  it("hangs up only on who can come back", () => {
    const stream = new ReplayStream("a", new ReplayStore(1_000, 10));
    const connection = new Connection();
    stream.attach(connection);
    stream.hangUp(50);
    expect(connection.ended).toBe(false);
    stream.prime(20);
    stream.hangUp(50);
    expect(connection.text).toBe("id: a-0\nretry: 20\ndata: \n\nretry: 50\n\n");
    expect([connection.ended, stream.finished, stream.reachable]).toEqual([true, false, true]);
  });
});

describe("what is kept", () => {
  it("is bounded for each stream, and what is lost is known to be", () => {
    const stream = new ReplayStream("a", new ReplayStore(1_000_000, 3));
    for (let number = 1; number <= 5; number += 1) stream.send(String(number));
    expect([0, 1, 2, 5, 6].map((after) => stream.reaches(after))).toEqual([false, false, true, true, false]);
  });

  it("is bounded in all: whoever has kept the longest lets go", () => {
    const store = new ReplayStore(80, 100);
    const [first, second] = [new ReplayStream("a", store), new ReplayStream("b", store)];
    first.send("x".repeat(40));
    second.send("y".repeat(30));
    expect([first.reaches(0), second.reaches(0)]).toEqual([true, true]);
    second.send("z".repeat(30));
    expect([first.reaches(0), second.reaches(0)]).toEqual([false, true]);
    // One that is longer than all that may be kept still goes out to who is there.
    const connection = new Connection();
    second.attach(connection);
    second.send("w".repeat(500));
    expect(connection.data.at(-1)).toHaveLength(500);
    expect(second.reaches(0)).toBe(false);
  });
});

it("reads only ids that it wrote", () => {
  expect(readEventId("1z-12")).toEqual({ stream: "1z", number: 12 });
  for (const id of ["", "-", "a-", "-1", "a-1-2", "A-1", "a-1\n", "a-1e3", "a- 1", `a-${"9".repeat(16)}`]) {
    expect(readEventId(id)).toBeUndefined();
  }
});
