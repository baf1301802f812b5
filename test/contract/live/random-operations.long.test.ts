// Random operations on three sessions at once: good and hostile code, interrupts, resets, closes, cancelled calls.
// Every call gets an answer, and afterwards every session works.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lisp } from "../../../src/live/index.ts";
import { createRandom } from "../../faults/random.ts";
import { hasSbcl } from "../../support/setup/sbcl.ts";
import { LiveFixture, textOf } from "./live-fixture.ts";

const STEPS = 150;
const SESSIONS = ["one", "two", "three"];
const GOOD = ["(+ 1 1)", "(print 1)", "(sleep 0.005)"];
const BAD = [
  "(loop)",
  "(sleep 100)",
  "(sb-ext:exit :abort t)",
  '(error "wrong")',
  "(labels ((deeper (x) (1+ (deeper x)))) (deeper 1))",
];
const SESSION_TOOLS = ["interrupt-session", "interrupt-session", "reset-session", "close-session"];

/** The possible first lines of a result. */
const RESULTS =
  /^(ok|error|timeout|interrupted|lost|Session \w+ was closed.*|Session reset .*|Closed .*|There is no .*|Interrupted .*|Nothing is running .*|left)$/;

describe.runIf(hasSbcl())("random operations on sessions", () => {
  let fixture: LiveFixture;
  beforeAll(async () => {
    fixture = await LiveFixture.open(lisp(), "lisp");
    await fixture.evaluate("1");
  });
  afterAll(() => fixture?.close());

  it.each([1, 2])("random operations on sessions with seed %i", async (seed) => {
    const random = createRandom(seed);
    const evaluate = async (code: string, session: string, signal?: AbortSignal): Promise<string> => {
      const result = await fixture.answer(code, { session, timeout: 0.1 }, { ...(signal && { signal }) });
      const { status } = (result.structuredContent ?? {}) as { status?: string };
      return status ?? textOf(result);
    };
    const leave = async (code: string, session: string): Promise<string> => {
      const left = new AbortController();
      setTimeout(() => left.abort(new Error("left")), random.next() * 30);
      return evaluate(code, session, left.signal).catch((error: Error) => /left$/.exec(error.message)?.[0] ?? "");
    };
    const step = (): Promise<string> => {
      const session = random.pick(SESSIONS);
      if (random.percent(45)) return evaluate(random.pick(GOOD), session);
      if (random.percent(40)) return evaluate(random.pick(BAD), session);
      if (random.percent(40)) return leave(random.pick([...GOOD, ...BAD]), session);
      return fixture.call(random.pick(SESSION_TOOLS), { session });
    };
    const answers: Promise<string>[] = [];
    for (let count = 0; count < STEPS; count += 1) {
      answers.push(step());
      if (random.percent(50)) await new Promise((resolve) => setTimeout(resolve, random.next() * 20));
    }
    for (const answer of await Promise.all(answers)) expect(answer.split("\n")[0]).toMatch(RESULTS);
    const after = await Promise.all(SESSIONS.map((session) => fixture.evaluate("(* 6 7)", { session })));
    for (const { status, values } of after) expect({ status, values }).toEqual({ status: "ok", values: ["42"] });
  });
});
