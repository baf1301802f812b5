// The scenarios of the official suite for servers, and what each of them has to meet, directly or through a gateway: no
// check fails, warns or is skipped, and the number of different checks is as expected. The number matters because the
// suite also passes a scenario in which it checked less than it could.

import { expect } from "vitest";
import {
  countMet,
  findFaults,
  isFor,
  printFaults,
  type Check,
  type Outcome,
  type Results,
  type Scenario,
  type Suite,
  type Prepare,
} from "./suite.ts";

export const NEWEST = "2026-07-28";
/** Revisions with a fixed set of requirements in the suite. */
export const WITH_REQUIREMENTS: readonly string[] = ["2025-11-25", NEWEST];
/** Revisions without one. The suite's client requests a newer revision, so the server must speak only this one. */
export const WITHOUT_REQUIREMENTS: readonly string[] = ["2025-03-26", "2025-06-18"];

/** An extension that belongs to no revision and that we do not support. */
export const EXCLUDED: readonly string[] = [
  "sep-2640-skills-directory",
  "sep-2640-skills-enumeration",
  "sep-2640-skills-manifest",
];
/** This release of the suite only has a placeholder for it. */
const WITHOUT_CHECKS = "tasks-status-notifications";
/** Checks whose status INFO is only information. In others INFO means that the suite could not check. */
const INFORMATIONAL = new Set([
  "outgoing-request",
  "incoming-response",
  "incoming-sse-event",
  "stream-closed",
  // Reports that responses are JSON where nothing else is sent.
  "server-sse-streams-functional",
]);

/** One for the feature, and one for the schema of all messages. */
const USUAL_COUNT = 2;
/** The number of different checks of the other scenarios, in the newest revision. */
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

export function isInformational({ status, id }: Check): boolean {
  return status === "INFO" && INFORMATIONAL.has(id);
}

/** The scenarios for a revision, without the excluded ones. */
export function scenariosAt(known: readonly Scenario[], revision: string): string[] {
  const names = known.filter((scenario) => isFor(scenario, revision, NEWEST)).map(({ name }) => name);
  return names.filter((name) => !EXCLUDED.includes(name));
}

/** Runs all given scenarios; those that are not among the requirements one by one. `prepare`: before each run. */
export async function runScenarios(
  suite: Suite,
  url: string,
  revision: string,
  scenarios: readonly string[],
  prepare?: Prepare,
): Promise<Results> {
  const hasRequirements = WITH_REQUIREMENTS.includes(revision);
  const results = await (hasRequirements
    ? suite.runRequired(url, revision, prepare)
    : suite.runAll(url, revision, prepare));
  for (const name of scenarios.filter((scenario) => !results.has(scenario))) {
    for (const [, outcome] of await suite.runScenario(url, name, revision)) results.set(name, outcome);
  }
  return results;
}

export function expectConformance(scenario: string, revision: string, outcome: Outcome | undefined): void {
  if (outcome === undefined) expect.fail(`The suite did not run ${scenario}`);
  const { checks } = outcome;
  if (scenario === WITHOUT_CHECKS) {
    expect(checks.map(({ id, status }) => `${status} ${id}`)).toEqual([`SKIPPED ${WITHOUT_CHECKS}`]);
    return;
  }
  expect(findFaults(checks, isInformational)).toEqual([]);
  expect(countMet(checks)).toBe(EARLIER_COUNTS[`${scenario} ${revision}`] ?? COUNTS[scenario] ?? USUAL_COUNT);
}

/** Prints a summary of the scenarios with faults. */
export function reportFaults(title: string, results: Results): void {
  const checked = [...results].filter(([name]) => name !== WITHOUT_CHECKS);
  printFaults(
    title,
    checked.map(([name, { checks }]) => ({ name, checks, isInformational })),
  );
}
