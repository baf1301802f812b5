// The option `ordering` of one connection: with "sequential", a request starts after the one before it is answered (seed
// 000, "Concurrency"); by default, requests run concurrently.

import { PassThrough } from "node:stream";
import { createServer, serve } from "catenary";
import type { ServeOptions } from "catenary";
import { afterEach, expect, it } from "vitest";

const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

const INITIALIZE = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}';
const call = (id: number, name: string): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${name}","arguments":{}}}`;

interface Fixture {
  /** What the tools did, in order. */
  readonly events: string[];
  /** The ids of the answers, in order. */
  readonly answered: unknown[];
  send(...lines: string[]): void;
  /** Ends the input. */
  end(): void;
  /** Resolves after this many answers. */
  answers(count: number): Promise<void>;
  release(): void;
}

async function startFixture(options: ServeOptions): Promise<Fixture> {
  const events: string[] = [];
  const answered: unknown[] = [];
  let release = (): void => undefined;
  const gate = new Promise<void>((resolve) => (release = resolve));
  const server = createServer({ name: "order", version: "1.0.0" })
    .tool("slow", {}, async () => {
      events.push("slow begins");
      await gate;
      events.push("slow ends");
    })
    .tool("quick", {}, () => void events.push("quick"));
  const input = new PassThrough();
  const output = new PassThrough();
  const serving = await serve(server, { ...options, stdio: { input, output } });
  closers.push(() => serving.close());
  let rest = "";
  let onAnswer = (): void => undefined;
  output.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    answered.push(...lines.map((line) => (JSON.parse(line) as { id: unknown }).id));
    onAnswer();
  });
  return {
    events,
    answered,
    release,
    end: () => void input.end(),
    send: (...lines) => void input.write(lines.map((line) => `${line}\n`).join("")),
    answers: (count) =>
      new Promise((resolve) => {
        onAnswer = () => void (answered.length >= count && resolve());
        onAnswer();
      }),
  };
}

it("the order of answers, sequential: an id can be used again before its first answer", async () => {
  const { send, end, answers, release, events, answered } = await startFixture({ ordering: "sequential" });
  send(INITIALIZE, call(0, "slow"), call(0, "quick"));
  end();
  release();
  await answers(3);
  expect(events).toEqual(["slow begins", "slow ends", "quick"]);
  expect(answered).toEqual([0, 0, 0]);
});

it("the order of answers, sequential: one request at a time, answers in order, also of pings", async () => {
  const { send, answers, release, events, answered } = await startFixture({ ordering: "sequential" });
  send(
    INITIALIZE,
    call(1, "slow"),
    '{"jsonrpc":"2.0","id":"ping","method":"ping"}',
    call(2, "quick"),
    call(3, "quick"),
  );
  await expect.poll(() => events).toEqual(["slow begins"]);
  // As long as a ping once waited before it overtook.
  await new Promise((resolve) => setTimeout(resolve, 150));
  expect(answered).toEqual([0]);
  release();
  await answers(5);
  expect(events).toEqual(["slow begins", "slow ends", "quick", "quick"]);
  expect(answered).toEqual([0, 1, "ping", 2, 3]);
});

it("the order of answers, sequential: a queued call can be cancelled", async () => {
  const { send, answers, release, events, answered } = await startFixture({ ordering: "sequential" });
  send(INITIALIZE, call(1, "slow"), call(2, "quick"), call(3, "quick"));
  send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}');
  release();
  await answers(3);
  expect(answered).toEqual([0, 1, 3]);
  expect(events).toEqual(["slow begins", "slow ends", "quick"]);
});

it("the order of answers, sequential: queued calls are answered with an error at the end of the input, if the call before them goes on", async () => {
  const { send, end, answers, events, answered } = await startFixture({ ordering: "sequential", graceMs: 1 });
  send(INITIALIZE, call(1, "slow"), call(2, "quick"), call(3, "quick"));
  await answers(1);
  end();
  await answers(3);
  expect(new Set(answered)).toEqual(new Set([0, 2, 3]));
  expect(events).toEqual(["slow begins"]);
});

it("the order of answers, concurrent: the second call does not wait for the first", async () => {
  const { send, answers, release, events, answered } = await startFixture({});
  send(INITIALIZE, call(1, "slow"), call(2, "quick"));
  await answers(2);
  expect(events).toEqual(["slow begins", "quick"]);
  release();
  await answers(3);
  expect(answered).toEqual([0, 2, 1]);
});
