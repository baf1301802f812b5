// The streams of one session: where messages are sent, and what happens to unsent ones.

import { expect, it } from "vitest";
import { type StreamOutput, ReplayStore } from "./replay-stream.ts";
import { SessionStreams } from "./session-streams.ts";

class Connection implements StreamOutput {
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
  const stream = session.openUnsolicited();
  const connection = new Connection();
  stream.attach(connection);
  return { stream, connection };
}

it("an unsolicited message waits for the first connection", () => {
  const session = streams();
  session.sendUnsolicited("early");
  const { connection } = listen(session);
  expect([connection.data, connection.lastId]).toEqual([["early"], "g0-1"]);
});

it("an unsolicited message goes to the newest attached stream only", () => {
  const session = streams();
  const first = listen(session);
  session.sendUnsolicited("one");
  const second = listen(session);
  session.sendUnsolicited("two");
  expect([first.connection.data, second.connection.data]).toEqual([["one"], ["two"]]);
  expect([first.connection.lastId, second.connection.lastId]).toEqual(["g0-1", "g1-1"]);
  second.stream.detach(second.connection);
  session.sendUnsolicited("three");
  expect(first.connection.data).toEqual(["one", "three"]);
});

it("an unsolicited message moves to the next stream if unsent, and stays in the log of its stream if sent", () => {
  const session = streams();
  const first = listen(session);
  session.sendUnsolicited("one");
  first.stream.detach(first.connection);
  session.sendUnsolicited("two");
  const second = listen(session);
  expect(second.connection.data).toEqual(["two"]);
  const found = session.find("g0-0");
  const back = new Connection();
  found?.stream.attach(back, found.after);
  expect(back.data).toEqual(["one"]);
});

it("an unsolicited message that waits on a detached stream moves to one that is resumed", () => {
  const session = streams();
  const first = listen(session);
  session.sendUnsolicited("one");
  const second = listen(session);
  second.stream.detach(second.connection);
  first.stream.detach(first.connection);
  session.sendUnsolicited("two");
  const back = new Connection();
  first.stream.attach(back, 1);
  session.collectUnsent(first.stream);
  session.sendUnsolicited("three");
  expect([back.data, second.connection.data]).toEqual([["two", "three"], []]);
  // The stream of a POST gets none of them.
  const post = session.open();
  post.attach(new Connection());
  back.end();
  first.stream.detach(back);
  session.sendUnsolicited("four");
  session.collectUnsent(post);
  expect(session.find("2-0")?.stream.canResumeAfter(1)).toBe(false);
});

it("an unsolicited message has a limited number of streams: detached ones are finished first", () => {
  const session = streams();
  const all = Array.from({ length: 8 }, () => listen(session));
  all[3]?.stream.detach(all[3].connection);
  const ninth = listen(session);
  expect(all.map(({ connection }) => connection.ended)).toEqual(Array.from({ length: 8 }, () => false));
  expect(all.map(({ stream }) => stream.isFinished)).toEqual(all.map((_, index) => index === 3));
  listen(session);
  expect(all[0]?.connection.ended).toBe(true);
  expect(ninth.connection.ended).toBe(false);
});

it("streams of POSTs are found by event id as long as all later events are in the log", () => {
  const session = streams();
  const post = session.open();
  post.attach(new Connection());
  post.send("one");
  expect(session.find("1-0")).toEqual({ stream: post, after: 0 });
  for (const id of ["1-2", "2-0", "x", "1-", ""]) expect(session.find(id)).toBeUndefined();
});

it("streams of POSTs are dropped after they finish, fully sent ones first", () => {
  const session = streams();
  const answered = (): void => {
    const stream = session.open();
    stream.attach(new Connection());
    stream.send("answer", true);
  };
  answered();
  session.open().send("missed", true);
  const running = session.open();
  for (let count = 0; count < 100; count += 1) answered();
  expect([session.find("1-0"), session.find("2-0") === undefined]).toEqual([undefined, false]);
  expect(session.find("3-0")?.stream).toBe(running);
  for (let count = 0; count < 600; count += 1) session.open().send("", true);
  expect([session.find("2-0"), session.find("3-0")?.stream]).toEqual([undefined, running]);
});
