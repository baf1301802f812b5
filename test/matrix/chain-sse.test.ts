// Through an empty chain with old sse on both sides: all pairs of revisions, all features.

import { describeCells } from "./chain-cells.ts";

describeCells("old sse");
