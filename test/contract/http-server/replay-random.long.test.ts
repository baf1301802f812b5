// Broken streams in any order: calls that make progress, break, come back and end by chance, several in one session
// at once. Whatever happened, each caller has heard every step of its call once, in order, and then the answer.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { SessionClient } from "../../support/http/mcp-clients.ts";
import type { Reply } from "../../support/http/http-peer.ts";
import { startServer, type StartedServer } from "./fixture.ts";

const CALLS = 3;

/** One call of the session, and what its caller has heard by however many connections. */
class Broken {
  readonly #house: StartedServer;
  readonly #caller: SessionClient;
  readonly #key: string;
  readonly #pieces: Reply[] = [];
  #open: Reply | undefined;
  #step = 0;
  #last: string | undefined;

  constructor(started: StartedServer, client: SessionClient, key: string) {
    this.#house = started;
    this.#caller = client;
    this.#key = key;
  }

  async begin(): Promise<void> {
    const reply = this.#caller.call(this.#key, "hold", { key: this.#key });
    await this.#house.fixture.holding(this.#key);
    await this.step();
    this.#take(await reply);
    await this.#open?.until(({ id }) => id !== undefined);
  }

  async step(): Promise<void> {
    const { progress } = await this.#house.fixture.holding(this.#key);
    progress((this.#step += 1));
  }

  /** Hangs up, wherever the stream is just then. */
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
    const reply = await this.#caller.resume(this.#last);
    expect(reply.status).toBe(200);
    this.#take(reply);
  }

  async finish(): Promise<{ heard: unknown[]; expected: unknown[] }> {
    this.#house.fixture.release(this.#key);
    await this.resume();
    await this.#open?.ended;
    const heard = this.#pieces.flatMap(({ messages }) => messages.map(({ params }) => params?.progress ?? "answer"));
    return { heard, expected: [...Array.from({ length: this.#step }, (_, n) => n + 1), "answer"] };
  }

  #take(reply: Reply): void {
    this.#open = reply;
    this.#pieces.push(reply);
  }
}

describe("broken streams by chance", () => {
  it("lose nothing and bring nothing twice", async () => {
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
        const calls = Array.from({ length: CALLS }, (_, n) => new Broken(started, client, `${run}-${n}`));
        await Promise.all(calls.map((call) => call.begin()));
        for (const { call, act: name } of acts) await calls[call]?.[name]();
        const outcomes = await Promise.all(calls.map((call) => call.finish()));
        for (const { heard, expected } of outcomes) expect(heard).toEqual(expected);
      }),
      // What fails depends on the moment, so a smaller example would show nothing.
      { numRuns: 40, endOnFailure: true },
    );
  });
});
