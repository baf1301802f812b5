// Starts the everything server: `--port N` over HTTP (0: any free port; the address is said on stderr), `--stdio`
// on the process's own streams, `--revisions a,b` to speak only those.

import { parseArgs } from "node:util";
import { serve, createServer, type Server } from "../../src/index.ts";
import { addAsks, addRounds } from "./everything/client-requests.ts";
import { addChanges, addTools } from "./everything/tools.ts";
import { addPrompts, addResources } from "./everything/resources-and-prompts.ts";
import { addTasks } from "./everything/tasks.ts";

const { values } = parseArgs({
  options: {
    port: { type: "string", default: "3000" },
    stdio: { type: "boolean", default: false },
    revisions: { type: "string" },
  },
});
const spoken = values.revisions === undefined ? {} : { revisions: values.revisions.split(",") };

if (values.stdio) await serve(everythingServer(), spoken);
else {
  const front = await serve(everythingServer(), { ...spoken, http: { port: Number(values.port) } });
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => void front.close());
  process.stderr.write(`everything-server listens on ${front.url}\n`);
}

// The whole server that the official suite is run against: every tool, resource and prompt that its scenarios name.
// It is written as a user of the library would write it; how it is started is everything-server.ts's business.


export function everythingServer(): Server {
  const server = createServer({
    name: "everything",
    version: "1.0.0",
    instructions: "A server with everything that the conformance suite looks for.",
  });
  addTools(server);
  addAsks(server);
  addRounds(server);
  addTasks(server);
  addChanges(server);
  addResources(server);
  addPrompts(server);
  return server;
}
