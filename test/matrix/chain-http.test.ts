// Every feature through an empty chain with Streamable HTTP on both sides, for every pair of revisions.

import { describeRevisionPairs } from "./chain-features.ts";

describeRevisionPairs("http");
