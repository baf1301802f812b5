// The order of work on one connection, as seed 000 describes it under "Concurrency" and as everybody else expects
// it: with `ordering: "sequential"` the second request is not begun before the first is answered; without, the
// second need not wait.

import { PassThrough } from "node:stream";
import { createServer, serve } from "catenary";
import type { ServeOptions } from "catenary";
import { afterEach, describe, expect, it } from "vitest";

const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

const INITIALIZE = '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}';
const call = (id: number, name: string): string =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"${name}","arguments":{}}}`;

interface Stage {
  /** What began and ended, in order. */
  readonly diary: string[];
  /** The ids of the answers, in order. */
  readonly answered: unknown[];
  send(...lines: string[]): void;
  /** Resolves when so many answers are there. */
  answers(count: number): Promise<void>;
  letGo(): void;
}

async function stage(options: ServeOptions): Promise<Stage> {
  const diary: string[] = [];
  const answered: unknown[] = [];
  let letGo = (): void => undefined;
  const gate = new Promise<void>((resolve) => (letGo = resolve));
  const server = createServer({ name: "order", version: "1.0.0" })
    .tool("slow", {}, async () => {
      diary.push("slow begins");
      await gate;
      diary.push("slow ends");
    })
    .tool("quick", {}, () => void diary.push("quick"));
  const input = new PassThrough();
  const output = new PassThrough();
  const serving = await serve(server, { ...options, stdio: { input, output } });
  closers.push(() => serving.close());
  let rest = "";
  let heard = (): void => undefined;
  output.setEncoding("utf8").on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    answered.push(...lines.map((line) => (JSON.parse(line) as { id: unknown }).id));
    heard();
  });
  return {
    diary,
    answered,
    letGo,
    send: (...lines) => void input.write(lines.map((line) => `${line}\n`).join("")),
    answers: (count) =>
      new Promise((resolve) => {
        heard = () => void (answered.length >= count && resolve());
        heard();
      }),
  };
}

describe("ordering", () => {
  it("sequential: one request at a time, answers in order", async () => {
    const { send, answers, letGo, diary, answered } = await stage({ ordering: "sequential" });
    send(INITIALIZE, call(1, "slow"), call(2, "quick"), call(3, "quick"));
    // A ping that finds the queue stuck is let past after a moment, so that the connection shows itself alive.
    send('{"jsonrpc":"2.0","id":"ping","method":"ping"}');
    await answers(2);
    expect(diary).toEqual(["slow begins"]);
    expect(answered).toEqual([0, "ping"]);
    letGo();
    await answers(5);
    expect(diary).toEqual(["slow begins", "slow ends", "quick", "quick"]);
    expect(answered).toEqual([0, "ping", 1, 2, 3]);
  });

  it("sequential: a quick ping keeps its place", async () => {
    const { send, answers, letGo, answered } = await stage({ ordering: "sequential" });
    letGo();
    send(INITIALIZE, call(1, "slow"), '{"jsonrpc":"2.0","id":2,"method":"ping"}', call(3, "quick"));
    await answers(4);
    expect(answered).toEqual([0, 1, 2, 3]);
  });

  it("sequential: a cancellation reaches a call that waits for its turn", async () => {
    const { send, answers, letGo, diary, answered } = await stage({ ordering: "sequential" });
    send(INITIALIZE, call(1, "slow"), call(2, "quick"), call(3, "quick"));
    send('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}');
    letGo();
    await answers(3);
    expect(answered).toEqual([0, 1, 3]);
    expect(diary).toEqual(["slow begins", "slow ends", "quick"]);
  });

  it("concurrent: the second need not wait for the first", async () => {
    const { send, answers, letGo, diary, answered } = await stage({});
    send(INITIALIZE, call(1, "slow"), call(2, "quick"));
    await answers(2);
    expect(diary).toEqual(["slow begins", "quick"]);
    letGo();
    await answers(3);
    expect(answered).toEqual([0, 2, 1]);
  });
});
