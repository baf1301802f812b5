// Our echo server over stdio.

import { serve } from "catenary";
import { createEcho } from "./echo-server.js";

await serve(createEcho());
