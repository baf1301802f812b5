// Through an empty chain that has one wire before it and another behind: some pairs of revisions, and the features in
// which wires differ most. (The same wire on both sides has tests of its own, with all pairs.)

import { describe } from "vitest";
import { REPRESENTATIVE_PAIRS } from "../support/depth.ts";
import type { Wire } from "./chain-arrange.ts";
import { testFlow } from "./chain-cells.ts";

const WIRES: readonly Wire[] = ["stdio", "http", "old sse"];
const CROSSINGS = WIRES.flatMap((front) => WIRES.filter((wire) => wire !== front).map((back) => ({ front, back })));
describe.each(CROSSINGS)("from $front to $back", ({ front, back }) => {
  describe.each(REPRESENTATIVE_PAIRS)("a caller of $caller and a server of $server", ({ caller, server }) => {
    testFlow(caller, { front, back, end: server }, ["call", "elicitation", "subscribe"]);
  });
});
