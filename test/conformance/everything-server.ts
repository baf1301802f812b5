// The server that the official suite tests: every tool, resource and prompt that its scenarios name. Options: `--port N`
// listens over HTTP (0: any free port) and prints the URL on stderr, `--stdio` serves on stdio, `--revisions a,b` limits
// the revisions.

import { parseArgs } from "node:util";
import { createServer, serve } from "../../src/index.ts";
import { addClientRequests, addInputRequired } from "./everything/client-requests.ts";
import { addPrompts, addResources } from "./everything/resources-and-prompts.ts";
import { addTasks } from "./everything/tasks.ts";
import { addListChanges, addTools } from "./everything/tools.ts";

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "3000" },
    stdio: { type: "boolean", default: false },
    revisions: { type: "string" },
  },
});
const options = values.revisions === undefined ? {} : { revisions: values.revisions.split(",") };

const server = createServer({
  name: "everything",
  version: "1.0.0",
  instructions: "A server with everything that the conformance suite looks for.",
});
addTools(server);
addClientRequests(server);
addInputRequired(server);
addTasks(server);
addListChanges(server);
addResources(server);
addPrompts(server);

if (values.stdio) await serve(server, options);
else {
  const front = await serve(server, { ...options, http: { port: Number(values.port) } });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void front.close());
  process.stderr.write(`everything-server listens on ${front.url}\n`);
}
