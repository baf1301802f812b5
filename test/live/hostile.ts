// How hostile code is tried: in a session in which something was defined before, while a second session of the same
// server is asked again and again. Each row says how its evaluation ends, by which step, and what is left of the
// session; how long the second one had to wait is counted, and told, never judged: the aim is 100 ms at most.

import { expect } from "vitest";
import type { Evaluation } from "../../src/live/index.ts";
import type { Stage } from "./stage.ts";

export interface Row {
  readonly name: string;
  /** Evaluated before it, under the same limit; the state is kept. */
  readonly first?: string;
  readonly code: string;
  /** Seconds; 0.3. */
  readonly timeout?: number;
  readonly status: Evaluation["status"];
  /** None where it is left out; where the process was ended, the state is lost, and else it is kept. */
  readonly step?: Evaluation["step"];
  /** What else the record has. */
  readonly shows?: object;
  /** The session is not used any more. */
  readonly last?: true;
}

/** The same in each language: something is defined, and asked for. */
export interface Words {
  define(number: number): string;
  readonly recall: string;
  /** How an evaluation fails that asks for what was lost. */
  readonly unknown: string;
}

const TIMEOUT = 0.3;
/** For what is not hostile: only a session that hangs takes so long. */
const PATIENCE = 10;
/** Between two questions of the neighbour. */
const PAUSE_MS = 4;
const AIM_MS = 100;

export class Ground {
  readonly #stage: Stage;
  readonly #words: Words;
  readonly #waits: { readonly ms: number; readonly beside: string }[] = [];
  #sessions = 0;
  #numbers = 0;
  #session = "";

  constructor(stage: Stage, words: Words) {
    this.#stage = stage;
    this.#words = words;
  }

  /** The neighbour is there before anybody is hostile. */
  async open(): Promise<void> {
    await this.#greet();
    this.#renew();
  }

  async play(row: Row): Promise<void> {
    const session = this.#session;
    try {
      await this.#play(row, session);
    } catch (error) {
      this.#renew();
      throw error;
    }
    if (row.last !== true) return;
    this.#renew();
    expect(await this.#stage.call("close-session", { session })).toBe(`Closed ${session}.`);
  }

  /** The same loop in so many sessions at once; each is stopped and keeps what it has. */
  async playTogether(loop: string, count: number): Promise<void> {
    const stage = this.#stage;
    const sessions = Array.from({ length: count }, (_, index) => `together-${index}`);
    const each = <T>(act: (session: string, index: number) => Promise<T>): Promise<T[]> =>
      Promise.all(sessions.map(act));
    await each((session, index) => stage.evaluate(this.#words.define(index), { session, timeout: PATIENCE }));
    const loops = each((session) => stage.evaluate(loop, { session, timeout: TIMEOUT }));
    await this.#meanwhile(`${count} loops at once`, loops);
    for (const ended of await loops) expect(ended).toMatchObject({ status: "timeout", step: "interrupt" });
    const kept = await each((session) => stage.evaluate(this.#words.recall, { session, timeout: PATIENCE }));
    expect(kept.map(({ values }) => values)).toEqual(sessions.map((_, index) => [String(index)]));
  }

  /** For people: how long the neighbour waited. */
  report(language: string): string {
    const sorted = this.#waits.toSorted((a, b) => a.ms - b.ms);
    const longest = sorted.at(-1);
    const late = sorted.filter(({ ms }) => ms > AIM_MS).length;
    const middle = sorted[Math.floor(sorted.length / 2)]?.ms ?? Number.NaN;
    return (
      `${language}, a session beside hostile ones: ${sorted.length} evaluations, p50 ${middle.toFixed(1)} ms, ` +
      `longest ${longest?.ms.toFixed(0)} ms (beside: ${longest?.beside}), ${late} over ${AIM_MS} ms`
    );
  }

  async #play(row: Row, session: string): Promise<void> {
    const stage = this.#stage;
    const number = (this.#numbers += 1);
    const defined = await stage.evaluate(this.#words.define(number), { session, timeout: PATIENCE });
    expect(defined).toMatchObject({ status: "ok", state: "kept" });
    const said = { session, timeout: row.timeout ?? TIMEOUT };
    if (row.first !== undefined) expect(await stage.evaluate(row.first, said)).toMatchObject({ state: "kept" });
    const evaluation = stage.evaluate(row.code, said);
    await this.#meanwhile(row.name, evaluation);
    const ended = await evaluation;
    const state = row.step === "restart" ? "lost" : "kept";
    expect(ended).toMatchObject({ session, status: row.status, state, ...row.shows });
    expect(ended.step).toBe(row.step);
    // What was lost is said here, and not once more.
    if (state === "lost") expect(ended.notice).toContain(`The state of the session ${session} is lost`);
    const after = await stage.evaluate(this.#words.recall, { session, timeout: PATIENCE });
    expect(after.notice).toBeUndefined();
    if (state === "kept") expect(after).toMatchObject({ status: "ok", values: [String(number)] });
    else expect(after).toMatchObject({ status: "error", condition: { type: this.#words.unknown } });
  }

  #renew(): void {
    this.#session = `hostile-${(this.#sessions += 1)}`;
  }

  async #greet(): Promise<void> {
    const { status, values } = await this.#stage.evaluate("42", { session: "neighbour", timeout: PATIENCE });
    expect({ status, values }).toEqual({ status: "ok", values: ["42"] });
  }

  /** The neighbour is answered, whatever goes on beside it. */
  async #meanwhile(beside: string, evaluation: Promise<unknown>): Promise<void> {
    let isOver = false;
    const over = (): void => void (isOver = true);
    evaluation.then(over, over);
    do {
      const begun = performance.now();
      await this.#greet();
      this.#waits.push({ ms: performance.now() - begun, beside });
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    } while (!isOver);
  }
}
