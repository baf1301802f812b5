// The client of `@modelcontextprotocol/sdk` 1.x, over stdio, Streamable HTTP and legacy HTTP+SSE. It offers the newest
// session revision and accepts an older one in the response. Only its transport learns which one was negotiated.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import {
  ANSWERS,
  EventLog,
  type CallOptions,
  type FixtureServer,
  type Json,
  type TestClient,
  type Reference,
  type Roots,
} from "./test-client.ts";

export function openSdk1({ command, args }: FixtureServer): Promise<TestClient> {
  return openOver(new StdioClientTransport({ command, args, stderr: "inherit" }));
}

export async function openSdk1Http(fixture: FixtureServer): Promise<TestClient> {
  return openOver(new StreamableHTTPClientTransport(new URL(await fixture.listen())));
}

export async function openSdk1Sse(fixture: FixtureServer): Promise<TestClient> {
  return openOver(new SSEClientTransport(new URL("/sse", await fixture.listen())));
}

export async function openOver(transport: Transport, roots: Roots = ANSWERS.roots): Promise<TestClient> {
  const events = new EventLog();
  const client = new Client(
    { name: "interop", version: "1" },
    { capabilities: { elicitation: {}, sampling: {}, roots: {} } },
  );
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    events.add({ kind: "elicit", params });
    return ANSWERS.elicit;
  });
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
    events.add({ kind: "sample", params });
    return ANSWERS.sample;
  });
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [...roots] }));
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) =>
    events.add({ kind: "log", ...params }),
  );
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => events.add({ kind: "tools" }));
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) =>
    events.add({ kind: "updated", uri: params.uri }),
  );
  let revision = "";
  const setProtocolVersion = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (name) => {
    revision = name;
    setProtocolVersion?.(name);
  };
  await client.connect(transport);
  return {
    revision,
    server: client.getServerVersion() ?? {},
    instructions: client.getInstructions(),
    capabilities: client.getServerCapabilities() ?? {},
    events,
    tools: () => pages("tools", (params) => client.listTools(params)),
    resources: () => pages("resources", (params) => client.listResources(params)),
    page: (cursor) => client.listResources(cursor === undefined ? {} : { cursor }),
    templates: () => pages("resourceTemplates", (params) => client.listResourceTemplates(params)),
    prompts: () => pages("prompts", (params) => client.listPrompts(params)),
    call: (name, args = {}, options: CallOptions = {}) => {
      const { signal, onProgress } = options;
      return client.callTool({ name, arguments: args }, undefined, {
        ...(signal && { signal }),
        ...(onProgress && { onprogress: onProgress }),
      });
    },
    read: (uri) => client.readResource({ uri }),
    prompt: (name, args) => client.getPrompt({ name, arguments: args }),
    complete: async (ref: Reference, name, value, chosen) => {
      const context = chosen === undefined ? undefined : { context: { arguments: chosen } };
      return (await client.complete({ ref, argument: { name, value }, ...context })).completion.values;
    },
    setLevel: async (level) => void (await client.setLoggingLevel(level)),
    watch: async (uri) => void (await client.subscribeResource({ uri })),
    unwatch: async (uri) => void (await client.unsubscribeResource({ uri })),
    ping: () => client.ping(),
    close: () => client.close(),
  };
}

/** This client leaves pagination to its user. */
async function pages(field: string, list: (params: { cursor?: string }) => Promise<Json>): Promise<Json[]> {
  const found: Json[] = [];
  let cursor: string | undefined;
  do {
    const page = await list(cursor === undefined ? {} : { cursor });
    found.push(...page[field]);
    cursor = page["nextCursor"];
  } while (cursor !== undefined);
  return found;
}
