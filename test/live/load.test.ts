// A tenth of `npm run load`: many sessions at once behind one program, each of which counts its own evaluations.
// Nothing is lost, nothing is mixed up, nothing is left. How long it takes is not asserted here.

import { expect, it } from "vitest";
import { liveCrowd } from "../../bench/live-crowd.ts";
import { canSee } from "../support/processes.ts";
import { hasSbcl } from "../support/setup/sbcl.ts";

const EVALUATIONS = 100;
const LONG = { timeout: 90_000 };

async function holds(language: "js" | "lisp", sessions: number): Promise<void> {
  const tell = (): void => undefined;
  const figures = await liveCrowd({ language, sessions, evaluations: EVALUATIONS, longestMs: 80_000, tell });
  expect(figures).toMatchObject({ wrong: [], right: sessions * EVALUATIONS, left: [] });
  if (canSee) expect(figures.living).toBeGreaterThanOrEqual(sessions);
}

it.runIf(hasSbcl())("ten sessions in Lisp", LONG, async () => {
  await holds("lisp", 10);
});

it("five sessions in JavaScript", LONG, async () => {
  await holds("js", 5);
});
