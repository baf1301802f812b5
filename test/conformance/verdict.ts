// What the checks of a scenario come to: which of them are not as they should be, in words that tell where to look,
// and how many were met. A check is good or it is a fault; the few that only tell something are named by each side.

import type { Check } from "./suite.ts";

const MOST_DETAILS = 2_000;

/** All that is not a success, but for what the suite only tells. */
export function faultsOf(checks: readonly Check[], isTold: (check: Check) => boolean): string[] {
  const bad = checks.filter((check) => check.status !== "SUCCESS" && !isTold(check));
  return bad.map(({ status, id, name, description, errorMessage, details }) =>
    [`${status} ${id} (${name}): ${description}`, errorMessage, JSON.stringify(details)?.slice(0, MOST_DETAILS)].join(
      "\n  ",
    ),
  );
}

/** How many different checks were met: a scenario repeats some of them with every request. */
export function met(checks: readonly Check[]): number {
  return new Set(checks.filter(({ status }) => status === "SUCCESS").map(({ id, name }) => `${id} ${name}`)).size;
}

export interface Judged {
  readonly name: string;
  readonly checks: readonly Check[];
  readonly isTold: (check: Check) => boolean;
}

/** For the reader of a failure: which scenarios are in trouble, at one look. */
export function tell(title: string, all: readonly Judged[]): void {
  const counted = all.map(({ name, checks, isTold }) => ({ name, good: met(checks), bad: faultsOf(checks, isTold) }));
  const troubled = counted.filter(({ bad }) => bad.length > 0);
  if (troubled.length === 0) return;
  const rows = troubled.map(({ name, good, bad }) => `  ${name}: ${good} met, ${bad.length} not`);
  console.log(`${title}, ${troubled.length} of ${all.length} scenarios:\n${rows.join("\n")}`);
}
