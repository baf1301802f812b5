// How thorough a run of the tests is. `npm test` runs in minutes: properties with 60 cases, matrices with
// representative pairs. `npm run test:long` sets CATENARY_LONG and runs everything in full.

import { NEWEST, NEWEST_SESSION, REVISIONS } from "../../src/protocol/revisions/index.ts";

export const IS_LONG: boolean = process.env["CATENARY_LONG"] === "1";

/** The number of cases in a short run of a property. */
const SHORT_RUNS = 60;

/** The number of cases for a property test that has `full` in the long run. */
export function runs(full: number): number {
  return IS_LONG ? full : Math.min(full, SHORT_RUNS);
}

/** The rows of a table that this run covers: all of them, or the first `count` in the short run. */
export function sampleOf<const Row>(count: number, rows: readonly Row[]): readonly Row[] {
  return IS_LONG ? rows : rows.slice(0, count);
}

export interface RevisionPair {
  readonly caller: string;
  readonly server: string;
}

const NAMES = REVISIONS.map(({ name }) => name);
const [FIRST = "", , THIRD = ""] = NAMES;

/** Each kind of pair once: old with older, newest sessions, both crossings of the styles, newest with newest. */
export const REPRESENTATIVE_PAIRS: readonly RevisionPair[] = [
  { caller: FIRST, server: THIRD },
  { caller: NEWEST_SESSION.name, server: NEWEST_SESSION.name },
  { caller: NEWEST_SESSION.name, server: NEWEST.name },
  { caller: NEWEST.name, server: NEWEST_SESSION.name },
  { caller: NEWEST.name, server: NEWEST.name },
];

/** The pairs of revisions that a matrix covers in this run: all of them, or the representative ones. */
export const PAIRS: readonly RevisionPair[] = IS_LONG
  ? NAMES.flatMap((caller) => NAMES.map((server) => ({ caller, server })))
  : REPRESENTATIVE_PAIRS;
