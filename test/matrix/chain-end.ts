// The end of a chain as a process: speaks the one revision that it is told, on stdio.

import { serve } from "../../src/serve.ts";
import { makeChainServer } from "./chain-end-server.ts";

await serve(makeChainServer(), { revisions: process.argv.slice(2) });
