// The whole server that the official suite is run against: every tool, resource and prompt that its scenarios name.
// It is written as a user of the library would write it; how it is started is everything-server.ts's business.

import { createServer, type Server } from "../../../src/index.ts";
import { addAsks } from "./asks.ts";
import { addChanges } from "./changes.ts";
import { addPrompts } from "./prompts.ts";
import { addResources } from "./resources.ts";
import { addRounds } from "./rounds.ts";
import { addTasks } from "./tasks.ts";
import { addTools } from "./tools.ts";

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
