// The bridge as a process: starts an end of the revision that it is told, and serves it to its own caller.

import { connect } from "../../src/client/index.ts";
import { serve } from "../../src/serve.ts";
import { ALL_CAPABILITIES, command } from "./arrange.ts";

const [revision = ""] = process.argv.slice(2);
const inner = await connect(command("end.ts", revision), { revision, capabilities: ALL_CAPABILITIES });
await serve(Object.assign(inner.handler, { close: (budgetMs?: number) => inner.close(budgetMs) }));
