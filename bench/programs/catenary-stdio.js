// Our echo server over stdio.

import { serve } from "catenary";
import { reportCostAtExit } from "./report-cost.js";
import { createEcho } from "./echo-server.js";

reportCostAtExit();
await serve(createEcho());
