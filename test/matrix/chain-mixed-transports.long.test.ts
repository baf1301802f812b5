// The features in which transports differ most, through an empty chain with one transport in front and another behind,
// for representative pairs of revisions.

import { describe } from "vitest";
import { REPRESENTATIVE_PAIRS } from "../support/thoroughness.ts";
import { testFeatures } from "./chain-features.ts";
import type { TransportKind } from "./chain-setup.ts";

const KINDS: readonly TransportKind[] = ["stdio", "http", "legacy sse"];
const MIXED = KINDS.flatMap((front) => KINDS.filter((back) => back !== front).map((back) => ({ front, back })));
describe.each(MIXED)("from $front to $back", ({ front, back }) => {
  describe.each(REPRESENTATIVE_PAIRS)("a caller of $caller and a server of $server", ({ caller, server }) => {
    testFeatures(caller, { front, back, server }, ["call", "elicitation", "subscribe"]);
  });
});
