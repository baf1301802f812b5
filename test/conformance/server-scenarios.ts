// What the official suite has for servers, and when a scenario is good, whoever stands between the suite and the
// server: no check failed, warned or was skipped, and as many different ones were met as it has. A scenario in which
// less was checked than there is to check shows a tick too, so the numbers are held.

import { expect } from "vitest";
import { isAt, type Check, type Outcome, type Results, type Scenario, type Suite, faultsOf, met, tell } from "./suite.ts";

export const NEWEST = "2026-07-28";
/** For these the suite has a frozen set of what a server must do. */
export const WITH_SET: readonly string[] = ["2025-11-25", NEWEST];
/** Its client asks for a newer revision, so the server must be one that speaks nothing else. */
export const ALONE: readonly string[] = ["2025-03-26", "2025-06-18"];

/** An extension that no revision has: in neither of the suite's sets, and nothing that we say we do. */
export const LEFT_OUT: readonly string[] = [
  "sep-2640-skills-directory",
  "sep-2640-skills-enumeration",
  "sep-2640-skills-manifest",
];
/** In this release the suite has only a place for it. */
const WITHOUT_CHECKS = "tasks-status-notifications";
/** What the suite only tells. Elsewhere the word INFO stands for a check that it could not make. */
const TOLD = new Set([
  "outgoing-request",
  "incoming-response",
  "incoming-sse-event",
  "stream-closed",
  // That answers are JSON where nothing but the answer is to be sent.
  "server-sse-streams-functional",
]);

/** One for what it is about, and one for the schema of all that was sent. */
const USUAL_COUNT = 2;
/** How many different checks the other scenarios have; in the last revision, where they differ by it. */
const COUNTS: Readonly<Record<string, number>> = {
  caching: 8,
  "elicitation-sep1034-defaults": 6,
  "elicitation-sep1330-enums": 6,
  "http-custom-header-server-validation": 10,
  "http-header-validation": 14,
  "input-required-result-basic-elicitation": 3,
  "input-required-result-basic-list-roots": 3,
  "input-required-result-basic-sampling": 3,
  "input-required-result-multi-round": 4,
  "input-required-result-multiple-input-requests": 3,
  "input-required-result-non-tool-request": 3,
  "input-required-result-request-state": 3,
  "input-required-result-validate-input": 3,
  "json-schema-2020-12": 8,
  "sep-2164-resource-not-found": 4,
  "server-initialize": 3,
  "server-session-lifecycle": 3,
  "server-sse-multiple-streams": 1,
  "server-sse-polling": 3,
  "server-stateless": 28,
  "tasks-capability-negotiation": 5,
  "tasks-dispatch-and-envelope": 9,
  "tasks-lifecycle": 9,
  "tasks-mrtr-input": 4,
  "tasks-request-headers": 5,
  "tasks-request-state-removal": 3,
  "tasks-required-task-error": 3,
  "tasks-wire-fields": 4,
  "tools-list": 4,
};
const EARLIER_COUNTS: Readonly<Record<string, number>> = { "tools-list 2025-06-18": 2, "tools-list 2025-11-25": 3 };

export function isTold({ status, id }: Check): boolean {
  return status === "INFO" && TOLD.has(id);
}

/** The scenarios for a revision, without those that are left out. */
export function heldAt(known: readonly Scenario[], revision: string): string[] {
  const wanted = known.filter((scenario) => isAt(scenario, revision, NEWEST)).map(({ name }) => name);
  return wanted.filter((name) => !LEFT_OUT.includes(name));
}

/** All of them, those that are in no set one by one. */
export async function runHeld(suite: Suite, url: string, revision: string, held: readonly string[]): Promise<Results> {
  const hasSet = WITH_SET.includes(revision);
  const results = await (hasSet ? suite.runRequired(url, revision) : suite.runAll(url, revision));
  for (const name of held.filter((scenario) => !results.has(scenario))) {
    for (const [, outcome] of await suite.runScenario(url, name, revision)) results.set(name, outcome);
  }
  return results;
}

export function judge(scenario: string, revision: string, outcome: Outcome | undefined): void {
  if (outcome === undefined) expect.fail(`The suite did not run ${scenario}`);
  const { checks } = outcome;
  if (scenario === WITHOUT_CHECKS) {
    expect(checks.map(({ id, status }) => `${status} ${id}`)).toEqual([`SKIPPED ${WITHOUT_CHECKS}`]);
    return;
  }
  expect(faultsOf(checks, isTold)).toEqual([]);
  expect(met(checks)).toBe(EARLIER_COUNTS[`${scenario} ${revision}`] ?? COUNTS[scenario] ?? USUAL_COUNT);
}

/** For the reader of a failure. */
export function tellOf(title: string, results: Results): void {
  const judged = [...results].filter(([name]) => name !== WITHOUT_CHECKS);
  tell(
    title,
    judged.map(([name, { checks }]) => ({ name, checks, isTold })),
  );
}
