// The client of `@modelcontextprotocol/sdk` 1.x. It always offers the newest session-style revision and
// takes whichever older one the server answers with; which one that was it tells only to its transport. It has
// three of those: a program's stdio, the one endpoint of newer revisions, and the two of the first.

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
  Ear,
  type CallOptions,
  type Fixture,
  type Json,
  type Peer,
  type Reference,
  type Roots,
} from "./peer.ts";

export function openSdk1({ command, args }: Fixture): Promise<Peer> {
  return speakBy(new StdioClientTransport({ command, args, stderr: "inherit" }));
}

export async function openSdk1Http(fixture: Fixture): Promise<Peer> {
  return speakBy(new StreamableHTTPClientTransport(new URL(await fixture.listen())));
}

export async function openSdk1Sse(fixture: Fixture): Promise<Peer> {
  return speakBy(new SSEClientTransport(new URL("/sse", await fixture.listen())));
}

export async function speakBy(transport: Transport, roots: Roots = ANSWERS.roots): Promise<Peer> {
  const ear = new Ear();
  const client = new Client(
    { name: "interop", version: "1" },
    { capabilities: { elicitation: {}, sampling: {}, roots: {} } },
  );
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    ear.hear({ kind: "elicit", params });
    return ANSWERS.elicit;
  });
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
    ear.hear({ kind: "sample", params });
    return ANSWERS.sample;
  });
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [...roots] }));
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => ear.hear({ kind: "log", ...params }));
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => ear.hear({ kind: "tools" }));
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) =>
    ear.hear({ kind: "updated", uri: params.uri }),
  );
  let revision = "";
  const tell = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (name) => {
    revision = name;
    tell?.(name);
  };
  await client.connect(transport);
  return {
    revision,
    server: client.getServerVersion() ?? {},
    instructions: client.getInstructions(),
    capabilities: client.getServerCapabilities() ?? {},
    ear,
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

/** This client leaves the walk over the pages to its user. */
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
