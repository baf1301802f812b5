// What the everything client does in each scenario of the suite, with the public API only. It connects without naming a
// revision, so that each scenario also tests negotiation, except where the suite wants a revision that its server would
// not negotiate.

import { connect, type Client, type ConnectOptions } from "catenary/client";

/** What the suite passes to the client of a scenario in its environment. */
export interface ScenarioContext {
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: { readonly [name: string]: unknown } }[];
  readonly [name: string]: unknown;
}

export interface ScenarioInput {
  readonly url: string;
  readonly scenario: string;
  /** The revision of the run. */
  readonly revision: string;
  readonly context: ScenarioContext;
}

/** Resolves to the negotiated revision. */
type RunScenario = (input: ScenarioInput) => Promise<string>;

/** The revisions that the suite's servers negotiate. */
const NEGOTIATED = ["2025-11-25", "2026-07-28"];

/** Long, because the suite starts dozens of clients at once. */
const START_TIMEOUT_MS = 240_000;

/** Accepts every request of the server, and leaves every field to its default. */
const ANSWERS: ConnectOptions = {
  elicit: { form: () => ({ action: "accept", content: {} }), url: () => ({ action: "accept" }) },
  sample: () => ({ role: "assistant", content: { type: "text", text: "Yes." }, model: "none" }),
  roots: [{ uri: "file:///work", name: "work" }],
};

/** Runs a scenario and resolves to the negotiated revision. */
export function runScenario(input: ScenarioInput): Promise<string> {
  const { scenario } = input;
  const run = SCENARIOS[scenario] ?? (scenario.startsWith("auth/") ? withClient(callTestTool) : undefined);
  if (run === undefined) throw new Error(`The everything client does not know the scenario ${scenario}`);
  return run(input);
}

const SCENARIOS: { readonly [scenario: string]: RunScenario } = {
  initialize: withClient((client) => client.listTools()),
  tools_call: withClient(addNumbers),
  "elicitation-sep1034-client-defaults": withClient((client) => client.callTool("test_client_elicitation_defaults")),
  "sse-retry": withClient((client) => client.callTool("test_reconnection")),
  "request-metadata": withClient((client) => client.listTools()),
  "http-standard-headers": withClient(requestEverything),
  "http-custom-headers": withClient(callGivenTools),
  "http-invalid-tool-headers": withClient(callEveryTool),
  "json-schema-ref-no-deref": withClient((client) => client.listTools()),
  "json-schema-2020-12-preservation": withClient(echoSchema),
  "sep-2322-client-request-state": callDuringElicitation,
};

/** Connects, runs the function with the client, and closes it. */
function withClient(
  use: (client: Client, input: ScenarioInput) => Promise<unknown>,
  options: ConnectOptions = {},
): RunScenario {
  return async (input) => {
    // Loaded only where it is needed, because dozens of these processes start at once.
    const auth = input.scenario.startsWith("auth/")
      ? (await import("./authorizers.ts")).createAuthorizer(input)
      : undefined;
    const client = await connect(input.url, {
      ...ANSWERS,
      startTimeoutMs: START_TIMEOUT_MS,
      ...(auth === undefined ? undefined : { auth }),
      ...(NEGOTIATED.includes(input.revision) ? undefined : { revision: input.revision }),
      ...options,
    });
    try {
      await use(client, input);
      return client.revision;
    } finally {
      await client.close();
    }
  };
}

async function callTestTool(client: Client): Promise<void> {
  await client.listTools();
  await client.callTool("test-tool");
}

async function addNumbers(client: Client): Promise<void> {
  await client.listTools();
  await client.callTool("add_numbers", { a: 5, b: 3 });
}

async function requestEverything(client: Client): Promise<void> {
  const { tools } = await client.listTools();
  for (const { name } of tools) await client.callTool(name);
  const { resources } = await client.listResources();
  for (const { uri } of resources) await client.readResource(uri);
  const { prompts } = await client.listPrompts();
  for (const { name } of prompts) await client.getPrompt(name);
}

async function callGivenTools(client: Client, { context: { toolCalls = [] } }: ScenarioInput): Promise<void> {
  await client.listTools();
  for (const { name, arguments: args } of toolCalls) await client.callTool(name, args);
}

/** Every tool in the list must be callable. */
async function callEveryTool(client: Client): Promise<void> {
  const { tools } = await client.listTools();
  for (const { name } of tools) await client.callTool(name, { region: "us-west1" });
}

async function echoSchema(client: Client): Promise<void> {
  const { tools } = await client.listTools();
  const tool = tools.find(({ name }) => name === "json_schema_2020_12_tool");
  await client.callTool("json_schema_echo", { schema: tool?.inputSchema });
}

/** Calls another tool while an elicitation is open: the calls must not share any state. */
async function callDuringElicitation(input: ScenarioInput): Promise<string> {
  let connected: Client | undefined;
  const elicit: ConnectOptions["elicit"] = async () => {
    await connected?.callTool("test_mrtr_unrelated");
    return { action: "accept", content: { confirmed: true } };
  };
  const run = withClient(
    async (client) => {
      connected = client;
      for (const tool of ["test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_no_result_type"]) {
        await client.callTool(tool);
      }
    },
    { elicit },
  );
  return run(input);
}
