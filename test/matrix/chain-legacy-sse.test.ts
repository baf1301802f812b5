// Every feature through an empty chain with legacy SSE on both sides, for every pair of revisions.

import { describeRevisionPairs } from "./chain-features.ts";

describeRevisionPairs("legacy sse");
