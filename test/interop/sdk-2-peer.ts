// The client of `@modelcontextprotocol/client` 2.x. Left alone it speaks the session style (the first
// revision of `supportedProtocolVersions`); asked to negotiate it finds the exchange style by
// `server/discover`, with a sibling process for the probe where the end is a process. In that style the log level
// travels with each call, and changes come by `listen`.

import {
  Client,
  LOG_LEVEL_META_KEY,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  type ClientOptions,
  type McpSubscription,
  type Transport,
} from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { ANSWERS, Ear, type CallOptions, type Fixture, type Peer, type Reference, type Roots } from "./peer.ts";

type Negotiation = Pick<ClientOptions, "versionNegotiation" | "supportedProtocolVersions">;

export function openSdk2({ command, args }: Fixture, negotiation: Negotiation): Promise<Peer> {
  return speakBy(new StdioClientTransport({ command, args, stderr: "inherit" }), negotiation);
}

export async function openSdk2Http(fixture: Fixture, negotiation: Negotiation): Promise<Peer> {
  return speakBy(new StreamableHTTPClientTransport(new URL(await fixture.listen())), negotiation);
}

export async function openSdk2Sse(fixture: Fixture, negotiation: Negotiation): Promise<Peer> {
  return speakBy(new SSEClientTransport(new URL("/sse", await fixture.listen())), negotiation);
}

export async function speakBy(
  transport: Transport,
  negotiation: Negotiation,
  roots: Roots = ANSWERS.roots,
): Promise<Peer> {
  const ear = new Ear();
  const client = new Client(
    { name: "interop", version: "2" },
    { capabilities: { elicitation: {}, sampling: {}, roots: {} }, ...negotiation },
  );
  client.setRequestHandler("elicitation/create", ({ params }) => {
    ear.hear({ kind: "elicit", params });
    return ANSWERS.elicit;
  });
  client.setRequestHandler("sampling/createMessage", ({ params }) => {
    ear.hear({ kind: "sample", params });
    return ANSWERS.sample;
  });
  client.setRequestHandler("roots/list", () => ({ roots: [...roots] }));
  client.setNotificationHandler("notifications/message", ({ params }) => ear.hear({ kind: "log", ...params }));
  client.setNotificationHandler("notifications/tools/list_changed", () => ear.hear({ kind: "tools" }));
  client.setNotificationHandler("notifications/resources/updated", ({ params }) =>
    ear.hear({ kind: "updated", uri: params.uri }),
  );
  await client.connect(transport);
  const exchange = client.getProtocolEra() === "modern";
  let level: string | undefined;
  let listening: McpSubscription | undefined;
  return {
    revision: client.getNegotiatedProtocolVersion() ?? "",
    server: client.getServerVersion() ?? {},
    instructions: client.getInstructions(),
    capabilities: client.getServerCapabilities() ?? {},
    ear,
    tools: async () => (await client.listTools(undefined, { cacheMode: "refresh" })).tools,
    resources: async () => (await client.listResources(undefined, { cacheMode: "refresh" })).resources,
    // Without a cursor this client walks all pages; the first one alone is only had by the bare request.
    page: (cursor) =>
      cursor === undefined
        ? client.request({ method: "resources/list", params: {} })
        : client.listResources({ cursor }),
    templates: async () => (await client.listResourceTemplates()).resourceTemplates,
    prompts: async () => (await client.listPrompts()).prompts,
    call: (name, args = {}, options: CallOptions = {}) => {
      const { signal, onProgress } = options;
      const meta = exchange && level !== undefined ? { _meta: { [LOG_LEVEL_META_KEY]: level } } : undefined;
      return client.callTool(
        { name, arguments: args, ...meta },
        { ...(signal && { signal }), ...(onProgress && { onprogress: onProgress }) },
      );
    },
    read: (uri) => client.readResource({ uri }),
    prompt: (name, args) => client.getPrompt({ name, arguments: args }),
    complete: async (ref: Reference, name, value, chosen) => {
      const context = chosen === undefined ? undefined : { context: { arguments: chosen } };
      return (await client.complete({ ref, argument: { name, value }, ...context })).completion.values;
    },
    setLevel: async (wanted) => {
      if (exchange) level = wanted;
      else await client.setLoggingLevel(wanted);
    },
    watch: async (uri) => {
      if (exchange) listening = await client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] });
      else await client.subscribeResource({ uri });
    },
    unwatch: async (uri) => {
      if (exchange) await listening?.close();
      else await client.unsubscribeResource({ uri });
    },
    ping: () => client.ping(),
    close: () => client.close(),
  };
}
