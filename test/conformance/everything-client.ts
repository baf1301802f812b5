// The client that the official suite starts, once for each scenario: it gives the address of its server as the only
// argument, and the scenario with what belongs to it in the environment. What is done stands in client/acts.ts. The
// suite writes down what it saw on its wire, but neither how a client of a parallel run ended nor which revision
// it spoke; so both are said here, in the one line of stdout that client.test.ts reads.

import { ConnectionError } from "catenary/client";
import { actOf, type Stage } from "./client/scenarios.ts";

const [, , url = ""] = process.argv;
const {
  MCP_CONFORMANCE_SCENARIO: scenario = "",
  MCP_CONFORMANCE_PROTOCOL_VERSION: revision = "",
  MCP_CONFORMANCE_CONTEXT: context = "{}",
} = process.env;

const stage: Stage = { url, scenario, revision, context: JSON.parse(context) as Stage["context"] };

try {
  process.stdout.write(`done in ${await actOf(scenario)(stage)}\n`);
} catch (error) {
  // Some scenarios ask for nothing else than a refusal.
  if (error instanceof ConnectionError) process.stdout.write(`${error.kind}: ${error.message}\n`);
  else console.error(error);
  process.exitCode = 1;
}
