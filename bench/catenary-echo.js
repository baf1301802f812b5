// The same echo as a tool of a server of ours, on the process's own stdio.

import { serve } from "catenary";
import { reportCost } from "./cost.js";
import { createEcho } from "./echo-server.js";

reportCost();
await serve(createEcho());
