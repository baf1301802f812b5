// The bridge as a program: starts a server of the revision given as its argument, and serves it on stdio.

import { connect } from "../../src/client/index.ts";
import { serve } from "../../src/serve.ts";
import { ALL_CAPABILITIES, command } from "./bridge-setup.ts";

const [revision = ""] = process.argv.slice(2);
const inner = await connect(command("server-program.ts", revision), { revision, capabilities: ALL_CAPABILITIES });
await serve(Object.assign(inner.handler, { close: (budgetMs?: number) => inner.close(budgetMs) }));
