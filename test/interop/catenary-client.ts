// Our own client. By default it probes the server and falls back to sessions; given a revision it speaks only that.

import { connect, type ConnectOptions, type Target } from "../../src/client/index.ts";
import type { Subscription } from "../../src/client/index.ts";
import { ANSWERS, EventLog, type Json, type TestClient } from "./test-client.ts";

export async function openCatenary(target: Target, options: ConnectOptions = {}): Promise<TestClient> {
  const events = new EventLog();
  const client = await connect(target, {
    elicit: (params) => {
      events.add({ kind: "elicit", params });
      return ANSWERS.elicit;
    },
    sample: (params) => {
      events.add({ kind: "sample", params });
      return ANSWERS.sample;
    },
    roots: ANSWERS.roots,
    onLog: (message) => events.add({ kind: "log", ...message }),
    ...options,
  });
  let subscription: Subscription | undefined;
  const all = async (items: AsyncIterable<object>): Promise<Json[]> => {
    const found: Json[] = [];
    for await (const item of items) found.push(item);
    return found;
  };
  return {
    revision: client.revision,
    server: client.server ?? {},
    instructions: client.instructions,
    capabilities: client.capabilities,
    events,
    tools: () => all(client.tools()),
    resources: () => all(client.resources()),
    page: (cursor) => client.request("resources/list", cursor === undefined ? {} : { cursor }),
    templates: () => all(client.resourceTemplates()),
    prompts: () => all(client.prompts()),
    call: (name, args, options) => client.callTool(name, args, options),
    read: (uri) => client.readResource(uri),
    prompt: (name, args) => client.getPrompt(name, args),
    complete: async (ref, name, value, chosen) => {
      const context = chosen === undefined ? undefined : { arguments: chosen };
      return [...(await client.complete(ref, { name, value }, context)).completion.values];
    },
    setLevel: (level) => client.setLogLevel(level),
    watch: async (uri) => {
      subscription = await client.listen(
        { toolsListChanged: true, resourceSubscriptions: [uri] },
        ({ method, params }) => {
          if (method === "notifications/tools/list_changed") events.add({ kind: "tools" });
          if (method === "notifications/resources/updated") events.add({ kind: "updated", uri: params.uri });
        },
      );
    },
    unwatch: async () => subscription?.close(),
    ping: async () => {
      await client.ping();
      return {};
    },
    close: () => client.close(),
  };
}
