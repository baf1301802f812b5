// Serves the failing server on stdio.

import { serve } from "../../../src/serve.ts";
import { createFailingServer } from "./failing-server.ts";

await serve(createFailingServer());
