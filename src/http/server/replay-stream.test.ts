// Streams that outlive their connections: resuming, and dropping events.

import fc from "fast-check";
import { expect, it } from "vitest";
import { type StreamOutput, ReplayStore, ReplayStream } from "./replay-stream.ts";
import { parseEventId } from "./session-streams.ts";

class Connection implements StreamOutput {
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

const place = (id: string): number => parseEventId(id)?.number ?? Number.NaN;

it("a resumable stream sends a resuming client the missed events, once and in order", () => {
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
          // Events in transit when the connection broke were never read.
          if (step === "break") read();
          stream.detach(connection);
          stream.send(String((sent += 1)));
          connection = new Connection();
          expect(stream.canResumeAfter(place(last))).toBe(true);
          stream.attach(connection, place(last));
        }
      }
      stream.send("end", true);
      read();
      expect(seen).toEqual([...Array.from({ length: sent }, (_, index) => String(index + 1)), "end"]);
      expect(connection.ended).toBe(true);
      stream.dropLog();
    }),
  );
});

it("a resumable stream keeps events while detached, and sends them to the first connection", () => {
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

it("a resumable stream has one connection: a new one replaces the old one", () => {
  const stream = new ReplayStream("0", new ReplayStore(1_000, 10));
  const [first, second] = [new Connection(), new Connection()];
  stream.attach(first);
  stream.attach(second);
  expect(first.ended).toBe(true);
  // The close of the first connection is noticed late, and must be ignored.
  stream.detach(first);
  stream.send("one");
  expect([first.data, second.data]).toEqual([[], ["one"]]);
});

it("a resumable stream hands over unsent events, and continues numbering after the sent ones", () => {
  const stream = new ReplayStream("0", new ReplayStore(1_000, 10));
  const connection = new Connection();
  stream.attach(connection);
  stream.send("one");
  stream.detach(connection);
  stream.send("two");
  stream.send("three");
  expect(stream.takeUnsent()).toEqual(["two", "three"]);
  expect(stream.takeUnsent()).toEqual([]);
  const back = new Connection();
  stream.attach(back, 0);
  expect([back.data, back.lastId]).toEqual([["one"], "0-1"]);
  stream.send("four");
  expect([back.data, back.lastId]).toEqual([["one", "four"], "0-2"]);
});

it("a resumable stream knows its last event", () => {
  const stream = new ReplayStream("a", new ReplayStore(1_000, 10));
  stream.send("one");
  expect(stream.endsAt(1)).toBe(false);
  stream.finish();
  expect([stream.endsAt(0), stream.endsAt(1)]).toEqual([false, true]);
});

it("a resumable stream ends at once when resumed after the last event", () => {
  const stream = new ReplayStream("a", new ReplayStore(1_000, 10));
  stream.send("answer", true);
  const connection = new Connection();
  stream.attach(connection, 0);
  expect([connection.data, connection.ended, stream.isAttached]).toEqual([["answer"], true, false]);
});

it("a resumable stream hangs up only if the client can resume", () => {
  const stream = new ReplayStream("a", new ReplayStore(1_000, 10));
  const connection = new Connection();
  stream.attach(connection);
  stream.hangUp(50);
  expect(connection.ended).toBe(false);
  stream.prime(20);
  stream.hangUp(50);
  expect(connection.text).toBe("id: a-0\nretry: 20\ndata: \n\nretry: 50\n\n");
  expect([connection.ended, stream.isFinished, stream.isReachable]).toEqual([true, false, true]);
});

it("the log is bounded per stream, and reports dropped events", () => {
  const stream = new ReplayStream("a", new ReplayStore(1_000_000, 3));
  for (let number = 1; number <= 5; number += 1) stream.send(String(number));
  expect([0, 1, 2, 5, 6].map((after) => stream.canResumeAfter(after))).toEqual([false, false, true, true, false]);
});

it("the log is bounded in total: the stream that has kept events the longest drops its log", () => {
  const store = new ReplayStore(80, 100);
  const [first, second] = [new ReplayStream("a", store), new ReplayStream("b", store)];
  first.send("x".repeat(40));
  second.send("y".repeat(30));
  expect([first.canResumeAfter(0), second.canResumeAfter(0)]).toEqual([true, true]);
  second.send("z".repeat(30));
  expect([first.canResumeAfter(0), second.canResumeAfter(0)]).toEqual([false, true]);
  // An event longer than the whole log is still sent to a connected client.
  const connection = new Connection();
  second.attach(connection);
  second.send("w".repeat(500));
  expect(connection.data.at(-1)).toHaveLength(500);
  expect(second.canResumeAfter(0)).toBe(false);
});

it("parses only its own event ids", () => {
  expect(parseEventId("1z-12")).toEqual({ stream: "1z", number: 12 });
  for (const id of ["", "-", "a-", "-1", "a-1-2", "A-1", "a-1\n", "a-1e3", "a- 1", `a-${"9".repeat(16)}`]) {
    expect(parseEventId(id)).toBeUndefined();
  }
});
