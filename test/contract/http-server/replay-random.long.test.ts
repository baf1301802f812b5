// Broken streams at random: several calls of one session make progress, break and resume in random order. Each client
// receives each step of its call once and in order, and then the answer.

import fc from "fast-check";
import { expect, it } from "vitest";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { SessionClient } from "../../support/http/mcp-clients.ts";
import type { Reply } from "../../support/http/http-peer.ts";
import { startServer, type StartedServer } from "./fixture.ts";

const CALLS = 3;

/** One call of the session, and everything received for it over several connections. */
class BreakableCall {
  readonly #started: StartedServer;
  readonly #client: SessionClient;
  readonly #key: string;
  readonly #replies: Reply[] = [];
  #open: Reply | undefined;
  #step = 0;
  #last: string | undefined;

  constructor(started: StartedServer, client: SessionClient, key: string) {
    this.#started = started;
    this.#client = client;
    this.#key = key;
  }

  async begin(): Promise<void> {
    const reply = this.#client.call(this.#key, "hold", { key: this.#key });
    await this.#started.fixture.holding(this.#key);
    await this.step();
    this.#add(await reply);
    await this.#open?.until(({ id }) => id !== undefined);
  }

  async step(): Promise<void> {
    const { progress } = await this.#started.fixture.holding(this.#key);
    progress((this.#step += 1));
  }

  /** Disconnects at the current position of the stream. */
  async break(): Promise<void> {
    if (this.#open === undefined) return;
    this.#last = this.#open.lastEventId ?? this.#last;
    this.#open.hangUp();
    await this.#open.ended;
    this.#last = this.#open.lastEventId ?? this.#last;
    this.#open = undefined;
  }

  async resume(): Promise<void> {
    if (this.#open !== undefined) return;
    const reply = await this.#client.resume(this.#last);
    expect(reply.status).toBe(200);
    this.#add(reply);
  }

  async finish(): Promise<{ received: unknown[]; expected: unknown[] }> {
    this.#started.fixture.release(this.#key);
    await this.resume();
    await this.#open?.ended;
    const received = this.#replies.flatMap(({ messages }) =>
      messages.map(({ params }) => params?.progress ?? "answer"),
    );
    return { received, expected: [...Array.from({ length: this.#step }, (_, n) => n + 1), "answer"] };
  }

  #add(reply: Reply): void {
    this.#open = reply;
    this.#replies.push(reply);
  }
}

it("random broken streams lose nothing and repeat nothing", async () => {
  const started = await startServer();
  const client = await SessionClient.open(started.peer, NEWEST_SESSION.name);
  let run = 0;
  const act = fc.record({
    call: fc.nat({ max: CALLS - 1 }),
    act: fc.constantFrom("step", "step", "step", "break", "resume"),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(act, { minLength: 5, maxLength: 40 }), async (acts) => {
      run += 1;
      const calls = Array.from({ length: CALLS }, (_, n) => new BreakableCall(started, client, `${run}-${n}`));
      await Promise.all(calls.map((call) => call.begin()));
      for (const { call, act: name } of acts) await calls[call]?.[name]();
      const outcomes = await Promise.all(calls.map((call) => call.finish()));
      for (const { received, expected } of outcomes) expect(received).toEqual(expected);
    }),
    // Failures depend on timing, so shrinking would not help.
    { numRuns: 40, endOnFailure: true },
  );
});
