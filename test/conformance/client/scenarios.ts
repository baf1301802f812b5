// What the everything client does in each scenario of the suite: by the doors of the package alone, and no more than
// an ordinary program would do. Every act connects without naming a revision, so that each scenario also shows that
// the right one is found, but where the suite plays a revision that its server would not choose by itself.

import { connect, type Client, type ConnectOptions } from "catenary/client";

/** What the suite gives a scenario's client beside its address. */
export interface Facts {
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: { readonly [name: string]: unknown } }[];
  readonly [name: string]: unknown;
}

export interface Stage {
  readonly url: string;
  readonly scenario: string;
  /** What the suite plays. */
  readonly revision: string;
  readonly context: Facts;
}

/** Resolves to the revision that was spoken. */
export type Act = (stage: Stage) => Promise<string>;

/** The suite's servers speak these by themselves. */
const FOUND = ["2025-11-25", "2026-07-28"];

/** The suite starts dozens of us at once. */
const START_MS = 60_000;

/** Whoever is asked says yes, and leaves every field to its default. */
const ASKED: ConnectOptions = {
  elicit: { form: () => ({ action: "accept", content: {} }), url: () => ({ action: "accept" }) },
  sample: () => ({ role: "assistant", content: { type: "text", text: "Yes." }, model: "none" }),
  roots: [{ uri: "file:///work", name: "work" }],
};

/** The act of a scenario, by its name. */
export function actOf(scenario: string): Act {
  const act = ACTS[scenario];
  if (act !== undefined) return act;
  if (scenario.startsWith("auth/")) return playing(useTestTool);
  throw new Error(`The everything client has no act for ${scenario}`);
}

const ACTS: { readonly [scenario: string]: Act } = {
  initialize: playing((client) => client.listTools()),
  tools_call: playing(addNumbers),
  "elicitation-sep1034-client-defaults": playing((client) => client.callTool("test_client_elicitation_defaults")),
  "sse-retry": playing((client) => client.callTool("test_reconnection")),
  "request-metadata": playing((client) => client.listTools()),
  "http-standard-headers": playing(useEverything),
  "http-custom-headers": playing(makeCalls),
  "http-invalid-tool-headers": playing(useEveryTool),
  "json-schema-ref-no-deref": playing((client) => client.listTools()),
  "json-schema-2020-12-preservation": playing(echoSchema),
  "sep-2322-client-request-state": goRounds,
};

/** Connects, does something with the client, and closes it. */
function playing(use: (client: Client, stage: Stage) => Promise<unknown>, options: ConnectOptions = {}): Act {
  return async (stage) => {
    // Loaded where it is wanted: dozens of these processes start at once.
    const auth = stage.scenario.startsWith("auth/")
      ? (await import("./authorizers.ts")).authorizerOf(stage)
      : undefined;
    const client = await connect(stage.url, {
      ...ASKED,
      startTimeoutMs: START_MS,
      ...(auth === undefined ? undefined : { auth }),
      ...(FOUND.includes(stage.revision) ? undefined : { revision: stage.revision }),
      ...options,
    });
    try {
      await use(client, stage);
      return client.revision;
    } finally {
      await client.close();
    }
  };
}

async function useTestTool(client: Client): Promise<void> {
  await client.listTools();
  await client.callTool("test-tool");
}

async function addNumbers(client: Client): Promise<void> {
  await client.listTools();
  await client.callTool("add_numbers", { a: 5, b: 3 });
}

async function useEverything(client: Client): Promise<void> {
  const { tools } = await client.listTools();
  for (const { name } of tools) await client.callTool(name);
  const { resources } = await client.listResources();
  for (const { uri } of resources) await client.readResource(uri);
  const { prompts } = await client.listPrompts();
  for (const { name } of prompts) await client.getPrompt(name);
}

async function makeCalls(client: Client, { context: { toolCalls = [] } }: Stage): Promise<void> {
  await client.listTools();
  for (const { name, arguments: args } of toolCalls) await client.callTool(name, args);
}

/** Every tool that we are shown can be used. */
async function useEveryTool(client: Client): Promise<void> {
  const { tools } = await client.listTools();
  for (const { name } of tools) await client.callTool(name, { region: "us-west1" });
}

async function echoSchema(client: Client): Promise<void> {
  const { tools } = await client.listTools();
  const focal = tools.find(({ name }) => name === "json_schema_2020_12_tool");
  await client.callTool("json_schema_echo", { schema: focal?.inputSchema });
}

/** Another tool is called while a question is open: nothing of the one call may be found in the other. */
async function goRounds(stage: Stage): Promise<string> {
  let other: Client | undefined;
  const elicit: ConnectOptions["elicit"] = async () => {
    await other?.callTool("test_mrtr_unrelated");
    return { action: "accept", content: { confirmed: true } };
  };
  const go = playing(
    async (client) => {
      other = client;
      for (const tool of ["test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_no_result_type"]) {
        await client.callTool(tool);
      }
    },
    { elicit },
  );
  return go(stage);
}
