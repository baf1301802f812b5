// The client of `@modelcontextprotocol/client` 2.x. By default it uses sessions (the first revision of
// `supportedProtocolVersions`). With negotiation it finds the stateless style by `server/discover`; for a program it
// starts a second process as the probe. In that style the log level travels with each call, and changes come by `listen`.

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
import {
  ANSWERS,
  EventLog,
  type CallOptions,
  type FixtureServer,
  type TestClient,
  type Reference,
  type Roots,
} from "./test-client.ts";

type Negotiation = Pick<ClientOptions, "versionNegotiation" | "supportedProtocolVersions">;

export function openSdk2({ command, args }: FixtureServer, negotiation: Negotiation): Promise<TestClient> {
  return openOver(new StdioClientTransport({ command, args, stderr: "inherit" }), negotiation);
}

export async function openSdk2Http(fixture: FixtureServer, negotiation: Negotiation): Promise<TestClient> {
  return openOver(new StreamableHTTPClientTransport(new URL(await fixture.listen())), negotiation);
}

export async function openSdk2Sse(fixture: FixtureServer, negotiation: Negotiation): Promise<TestClient> {
  return openOver(new SSEClientTransport(new URL("/sse", await fixture.listen())), negotiation);
}

export async function openOver(
  transport: Transport,
  negotiation: Negotiation,
  roots: Roots = ANSWERS.roots,
): Promise<TestClient> {
  const events = new EventLog();
  const client = new Client(
    { name: "interop", version: "2" },
    { capabilities: { elicitation: {}, sampling: {}, roots: {} }, ...negotiation },
  );
  client.setRequestHandler("elicitation/create", ({ params }) => {
    events.add({ kind: "elicit", params });
    return ANSWERS.elicit;
  });
  client.setRequestHandler("sampling/createMessage", ({ params }) => {
    events.add({ kind: "sample", params });
    return ANSWERS.sample;
  });
  client.setRequestHandler("roots/list", () => ({ roots: [...roots] }));
  client.setNotificationHandler("notifications/message", ({ params }) => events.add({ kind: "log", ...params }));
  client.setNotificationHandler("notifications/tools/list_changed", () => events.add({ kind: "tools" }));
  client.setNotificationHandler("notifications/resources/updated", ({ params }) =>
    events.add({ kind: "updated", uri: params.uri }),
  );
  await client.connect(transport);
  const isStateless = client.getProtocolEra() === "modern";
  let level: string | undefined;
  let subscription: McpSubscription | undefined;
  return {
    revision: client.getNegotiatedProtocolVersion() ?? "",
    server: client.getServerVersion() ?? {},
    instructions: client.getInstructions(),
    capabilities: client.getServerCapabilities() ?? {},
    events,
    tools: async () => (await client.listTools(undefined, { cacheMode: "refresh" })).tools,
    resources: async () => (await client.listResources(undefined, { cacheMode: "refresh" })).resources,
    // Without a cursor this client fetches all pages, so the first one needs a plain request.
    page: (cursor) =>
      cursor === undefined
        ? client.request({ method: "resources/list", params: {} })
        : client.listResources({ cursor }),
    templates: async () => (await client.listResourceTemplates()).resourceTemplates,
    prompts: async () => (await client.listPrompts()).prompts,
    call: (name, args = {}, options: CallOptions = {}) => {
      const { signal, onProgress } = options;
      const meta = isStateless && level !== undefined ? { _meta: { [LOG_LEVEL_META_KEY]: level } } : undefined;
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
    setLevel: async (newLevel) => {
      if (isStateless) level = newLevel;
      else await client.setLoggingLevel(newLevel);
    },
    watch: async (uri) => {
      if (isStateless) subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] });
      else await client.subscribeResource({ uri });
    },
    unwatch: async (uri) => {
      if (isStateless) await subscription?.close();
      else await client.unsubscribeResource({ uri });
    },
    ping: () => client.ping(),
    close: () => client.close(),
  };
}
