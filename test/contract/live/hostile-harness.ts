// Runs hostile code in a session that has a definition, while a second session of the same server is used all the time.
// Each case says how its evaluation ends, by which step, and whether the definition survives. The second session's
// waiting times are reported but not asserted; the goal is at most 100 ms.

import { expect } from "vitest";
import type { Evaluation } from "../../../src/live/index.ts";
import type { LiveFixture } from "./live-fixture.ts";

export interface HostileCase {
  readonly name: string;
  /** What the code needs; evaluated first, and it must succeed. */
  readonly definition?: string;
  /** Evaluated before it, with the same timeout; the state is kept. */
  readonly first?: string;
  readonly code: string;
  /** Seconds; 0.3 by default. */
  readonly timeout?: number;
  readonly status: Evaluation["status"];
  /** The step that stops it, if any. With "restart" the state is lost, else it is kept. */
  readonly step?: Evaluation["step"];
  /** Other fields of the record. */
  readonly shows?: object;
  /** The session is not used for further cases. */
  readonly last?: true;
}

/** How to define a value and read it back in a language. */
export interface LanguageSnippets {
  define(number: number): string;
  readonly recall: string;
  /** The error type of reading a definition that was lost. */
  readonly unknown: string;
}

const TIMEOUT = 0.3;
/** For code that is not hostile: only a session that hangs takes this long. */
const NORMAL_TIMEOUT = 60;
/**
 * Which step stops an evaluation depends on how fast the guest is: each has 2 s. On a machine that stalls just then, a
 * later step stops it, so a case is tried again.
 */
export const RETRIES = { retry: 3 };
/** Between two evaluations of the neighbour session. */
const PAUSE_MS = 4;
const GOAL_MS = 100;

export class HostileHarness {
  readonly #fixture: LiveFixture;
  readonly #snippets: LanguageSnippets;
  readonly #waits: { readonly ms: number; readonly beside: string }[] = [];
  #sessions = 0;
  #numbers = 0;
  #session = "";

  constructor(fixture: LiveFixture, snippets: LanguageSnippets) {
    this.#fixture = fixture;
    this.#snippets = snippets;
  }

  /** Starts the neighbour session. */
  async open(): Promise<void> {
    await this.#pingNeighbour();
    this.#newSession();
  }

  async run(hostile: HostileCase): Promise<void> {
    const session = this.#session;
    try {
      await this.#run(hostile, session);
    } catch (error) {
      this.#newSession();
      throw error;
    }
    if (hostile.last !== true) return;
    this.#newSession();
    expect(await this.#fixture.call("close-session", { session })).toBe(`Closed session ${session}.`);
  }

  /** Runs the same loop in several sessions at once; each is stopped and keeps its state. */
  async runTogether(loop: string, count: number): Promise<void> {
    const fixture = this.#fixture;
    const sessions = Array.from({ length: count }, (_, index) => `together-${index}`);
    const each = <T>(act: (session: string, index: number) => Promise<T>): Promise<T[]> =>
      Promise.all(sessions.map(act));
    await each((session, index) =>
      fixture.evaluate(this.#snippets.define(index), { session, timeout: NORMAL_TIMEOUT }),
    );
    const loops = each((session) => fixture.evaluate(loop, { session, timeout: TIMEOUT }));
    await this.#useNeighbourDuring(`${count} loops at once`, loops);
    for (const ended of await loops) expect(ended).toMatchObject({ status: "timeout", step: "interrupt" });
    const kept = await each((session) => fixture.evaluate(this.#snippets.recall, { session, timeout: NORMAL_TIMEOUT }));
    expect(kept.map(({ values }) => values)).toEqual(sessions.map((_, index) => [String(index)]));
  }

  /** How long the neighbour waited, as text. */
  report(language: string): string {
    const sorted = this.#waits.toSorted((a, b) => a.ms - b.ms);
    const longest = sorted.at(-1);
    const late = sorted.filter(({ ms }) => ms > GOAL_MS).length;
    const middle = sorted[Math.floor(sorted.length / 2)]?.ms ?? Number.NaN;
    return (
      `${language}, a session beside hostile ones: ${sorted.length} evaluations, p50 ${middle.toFixed(1)} ms, ` +
      `longest ${longest?.ms.toFixed(0)} ms (beside: ${longest?.beside}), ${late} over ${GOAL_MS} ms`
    );
  }

  async #run(hostile: HostileCase, session: string): Promise<void> {
    const fixture = this.#fixture;
    const number = (this.#numbers += 1);
    const defined = await fixture.evaluate(this.#snippets.define(number), { session, timeout: NORMAL_TIMEOUT });
    expect(defined).toMatchObject({ status: "ok", state: "kept" });
    if (hostile.definition !== undefined) {
      const prepared = await fixture.evaluate(hostile.definition, { session, timeout: NORMAL_TIMEOUT });
      expect(prepared).toMatchObject({ status: "ok", state: "kept" });
    }
    const args = { session, timeout: hostile.timeout ?? TIMEOUT };
    if (hostile.first !== undefined)
      expect(await fixture.evaluate(hostile.first, args)).toMatchObject({ state: "kept" });
    const evaluation = fixture.evaluate(hostile.code, args);
    await this.#useNeighbourDuring(hostile.name, evaluation);
    const ended = await evaluation;
    const state = hostile.step === "restart" ? "lost" : "kept";
    expect(ended).toMatchObject({ session, status: hostile.status, state, ...hostile.shows });
    expect(ended.step).toBe(hostile.step);
    // The loss is reported here, and only here.
    if (state === "lost") expect(ended.notice).toContain(`The state of session ${session} was lost`);
    const after = await fixture.evaluate(this.#snippets.recall, { session, timeout: NORMAL_TIMEOUT });
    expect(after.notice).toBeUndefined();
    if (state === "kept") expect(after).toMatchObject({ status: "ok", values: [String(number)] });
    else expect(after).toMatchObject({ status: "error", condition: { type: this.#snippets.unknown } });
  }

  #newSession(): void {
    this.#session = `hostile-${(this.#sessions += 1)}`;
  }

  async #pingNeighbour(): Promise<void> {
    const { status, values } = await this.#fixture.evaluate("42", { session: "neighbour", timeout: NORMAL_TIMEOUT });
    expect({ status, values }).toEqual({ status: "ok", values: ["42"] });
  }

  /** Uses the neighbour session until the evaluation has ended. */
  async #useNeighbourDuring(beside: string, evaluation: Promise<unknown>): Promise<void> {
    let isOver = false;
    const over = (): void => void (isOver = true);
    evaluation.then(over, over);
    do {
      const begun = performance.now();
      await this.#pingNeighbour();
      this.#waits.push({ ms: performance.now() - begun, beside });
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    } while (!isOver);
  }
}
