// Through an empty chain with http on both sides: all pairs of revisions, all features.

import { describeCells } from "./chain-cells.ts";

describeCells("http");
