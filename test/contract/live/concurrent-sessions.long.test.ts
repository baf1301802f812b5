// A tenth of `npm run load`: many sessions at once in one process, each counting its own evaluations. No result may be
// lost or mixed up, and no process may be left. Times are not asserted.

import { expect, it } from "vitest";
import { runLiveSessions } from "../../../bench/live-sessions.ts";
import { canListProcesses } from "../../support/processes.ts";
import { hasSbcl } from "../../support/setup/sbcl.ts";
import { PROGRAM_MS } from "../../support/waiting.ts";

const EVALUATIONS = 100;

async function holds(language: "js" | "lisp", sessions: number): Promise<void> {
  const onProgress = (): void => undefined;
  const figures = await runLiveSessions({
    language,
    sessions,
    evaluations: EVALUATIONS,
    timeoutMs: PROGRAM_MS,
    onProgress,
  });
  expect(figures).toMatchObject({ wrong: [], right: sessions * EVALUATIONS, remaining: [] });
  if (canListProcesses) expect(figures.running).toBeGreaterThanOrEqual(sessions);
}

it.runIf(hasSbcl())("ten sessions in Lisp", async () => {
  await holds("lisp", 10);
});

it("five sessions in JavaScript", async () => {
  await holds("js", 5);
});
