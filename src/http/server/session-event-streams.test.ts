// The streams of one session: which of them a message goes out on, and what becomes of what nobody took.

import { describe, expect, it } from "vitest";
import { type Outlet, ReplayStore } from "./replay.ts";
import { SessionStreams } from "./replay.ts";

class Connection implements Outlet {
  readonly data: string[] = [];
  lastId = "";
  ended = false;
  send(text: string): void {
    for (const [, data] of text.matchAll(/^data: (.+)$/gm)) this.data.push(data as string);
    this.lastId = [...text.matchAll(/^id: (.+)$/gm)].at(-1)?.[1] ?? this.lastId;
  }
  end(): void {
    this.ended = true;
  }
}

const streams = (): SessionStreams => new SessionStreams(new ReplayStore(10_000, 100));

function listen(session: SessionStreams): { stream: ReturnType<SessionStreams["open"]>; connection: Connection } {
  const stream = session.openUnasked();
  const connection = new Connection();
  stream.attach(connection);
  return { stream, connection };
}

describe("what comes unasked", () => {
  it("waits for the first who listens", () => {
    const session = streams();
    session.sendUnasked("early");
    const { connection } = listen(session);
    expect([connection.data, connection.lastId]).toEqual([["early"], "0-1"]);
  });

  it("goes to whoever listens and came last, and to nobody twice", () => {
    const session = streams();
    const first = listen(session);
    session.sendUnasked("one");
    const second = listen(session);
    session.sendUnasked("two");
    expect([first.connection.data, second.connection.data]).toEqual([["one"], ["two"]]);
    expect([first.connection.lastId, second.connection.lastId]).toEqual(["0-1", "1-1"]);
    second.stream.detach(second.connection);
    session.sendUnasked("three");
    expect(first.connection.data).toEqual(["one", "three"]);
  });

  it("is handed to the next stream where no connection took it, and kept for who comes back where one did", () => {
    const session = streams();
    const first = listen(session);
    session.sendUnasked("one");
    first.stream.detach(first.connection);
    session.sendUnasked("two");
    const second = listen(session);
    expect(second.connection.data).toEqual(["two"]);
    const found = session.find("0-0");
    const back = new Connection();
    found?.stream.attach(back, found.after);
    expect(back.data).toEqual(["one"]);
  });

  it("that waits on a stream which nobody reads comes to the one that is taken up again", () => {
    const session = streams();
    const first = listen(session);
    session.sendUnasked("one");
    const second = listen(session);
    second.stream.detach(second.connection);
    first.stream.detach(first.connection);
    session.sendUnasked("two");
    const back = new Connection();
    first.stream.attach(back, 1);
    session.gather(first.stream);
    session.sendUnasked("three");
    expect([back.data, second.connection.data]).toEqual([["two", "three"], []]);
    // A stream of a POST is none of them.
    const post = session.open();
    post.attach(new Connection());
    back.end();
    first.stream.detach(back);
    session.sendUnasked("four");
    session.gather(post);
    expect(session.find("2-0")?.stream.reaches(1)).toBe(false);
  });

  it("has so many streams and no more: the one that nobody listens on is given up first", () => {
    const session = streams();
    const all = Array.from({ length: 8 }, () => listen(session));
    all[3]?.stream.detach(all[3].connection);
    const ninth = listen(session);
    expect(all.map(({ connection }) => connection.ended)).toEqual(Array.from({ length: 8 }, () => false));
    expect(all.map(({ stream }) => stream.finished)).toEqual(all.map((_, index) => index === 3));
    listen(session);
    expect(all[0]?.connection.ended).toBe(true);
    expect(ninth.connection.ended).toBe(false);
  });
});

describe("streams of POSTs", () => {
  it("are found by an id that they gave, as long as all that follows is kept", () => {
    const session = streams();
    const post = session.open();
    post.attach(new Connection());
    post.send("one");
    expect(session.find("1-0")).toEqual({ stream: post, after: 0 });
    for (const id of ["1-2", "2-0", "x", "1-", ""]) expect(session.find(id)).toBeUndefined();
  });

  it("are forgotten some while after their end, those first that went out", () => {
    const session = streams();
    const answered = (): void => {
      const stream = session.open();
      stream.attach(new Connection());
      stream.send("answer", true);
    };
    answered();
    session.open().send("nobody was there", true);
    const running = session.open();
    for (let count = 0; count < 100; count += 1) answered();
    expect([session.find("1-0"), session.find("2-0") === undefined]).toEqual([undefined, false]);
    expect(session.find("3-0")?.stream).toBe(running);
    for (let count = 0; count < 600; count += 1) session.open().send("", true);
    expect([session.find("2-0"), session.find("3-0")?.stream]).toEqual([undefined, running]);
  });
});
