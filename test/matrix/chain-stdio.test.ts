// Every feature through an empty chain with stdio on both sides, for every pair of revisions.

import { describeRevisionPairs } from "./chain-features.ts";

describeRevisionPairs("stdio");
