// The bridge as a program: starts a server of the revision given as its argument, and serves it on stdio.

import { fileURLToPath } from "node:url";
import { connect } from "../../src/client/index.ts";
import { serve } from "../../src/serve.ts";
import { ALL_CAPABILITIES } from "./bridge-setup.ts";

const [revision = ""] = process.argv.slice(2);
const server = fileURLToPath(new URL("server-program.js", import.meta.url));
const target = { command: process.execPath, args: [server, revision] };
const inner = await connect(target, { revision, capabilities: ALL_CAPABILITIES });
await serve(Object.assign(inner.handler, { close: (budgetMs?: number) => inner.close(budgetMs) }));
