// Serves the weather server on stdin and stdout.

import { serve } from "catenary";
import { server } from "./server.js";

await serve(server);
