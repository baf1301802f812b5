// The client that the official suite starts once for each scenario, with the URL of its server as the argument and the
// scenario in the environment. The suite does not record how a client ended or which revision it used, so the client
// prints both, in the one line of stdout that client.test.ts checks.

import { ConnectionError } from "catenary/client";
import { runScenario, type ScenarioInput } from "./client/scenarios.ts";

const [, , url = ""] = process.argv;
const {
  MCP_CONFORMANCE_SCENARIO: scenario = "",
  MCP_CONFORMANCE_PROTOCOL_VERSION: revision = "",
  MCP_CONFORMANCE_CONTEXT: context = "{}",
} = process.env;

const input: ScenarioInput = { url, scenario, revision, context: JSON.parse(context) as ScenarioInput["context"] };

try {
  process.stdout.write(`done in ${await runScenario(input)}\n`);
} catch (error) {
  // Some scenarios expect the client to fail.
  if (error instanceof ConnectionError) process.stdout.write(`${error.kind}: ${error.message}\n`);
  else console.error(error);
  process.exitCode = 1;
}
