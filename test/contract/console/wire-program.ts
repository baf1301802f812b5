// A server on stdio for wire.test.ts. Its argument is the only revision that it speaks.

import { serve } from "../../../src/serve.ts";
import { wireServer } from "./wire-server.ts";

await serve(wireServer, { revisions: [process.argv[2] ?? ""] });
