// Through an empty chain that has one wire before it and another behind: some pairs of revisions, and the features in
// which wires differ most. (The same wire on both sides has tests of its own, with all pairs.)

import { describe } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../src/protocol/revisions/index.ts";
import type { Wire } from "./chain-arrange.ts";
import { testFlow } from "./chain-cells.ts";
import { NAMES } from "./chain-features.ts";

const WIRES: readonly Wire[] = ["stdio", "http", "old sse"];
const CROSSINGS = WIRES.flatMap((front) => WIRES.filter((wire) => wire !== front).map((back) => ({ front, back })));
const [FIRST = "", , THIRD = ""] = NAMES;
const PAIRS = [
  { caller: FIRST, end: THIRD },
  { caller: NEWEST_SESSION.name, end: NEWEST_SESSION.name },
  { caller: NEWEST_SESSION.name, end: NEWEST.name },
  { caller: NEWEST.name, end: NEWEST_SESSION.name },
  { caller: NEWEST.name, end: NEWEST.name },
];

describe.each(CROSSINGS)("from $front to $back", ({ front, back }) => {
  describe.each(PAIRS)("a caller of $caller and an end of $end", ({ caller, end }) => {
    testFlow(caller, { front, back, end }, ["call", "elicitation", "subscribe"]);
  });
});
