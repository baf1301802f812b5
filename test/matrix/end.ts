// The end as a process: speaks the one revision that it is told.

import { serve } from "../../src/serve.ts";
import { makeServer } from "./end-server.ts";

await serve(makeServer(), { revisions: process.argv.slice(2) });
