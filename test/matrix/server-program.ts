// The matrix server as a program: serves it on stdio, in the revisions given as its arguments.

import { serve } from "../../src/serve.ts";
import { makeChainServer } from "./matrix-server.ts";

await serve(makeChainServer(), { revisions: process.argv.slice(2) });
