// Our own client. Left alone it asks the end what it speaks and falls back to the session style; given a
// revision it speaks that one and no other. Given a transport instead of a command it waits for the end to
// say that it is ready, so that a slow start is not taken for silence.

import { connect, type ConnectOptions, type Target } from "../../src/client/index.ts";
import type { Subscription } from "../../src/client/index.ts";
import { ANSWERS, Ear, type Json, type Peer } from "./peer.ts";

export async function openCatenary(target: Target, options: ConnectOptions = {}): Promise<Peer> {
  const ear = new Ear();
  const client = await connect(target, {
    elicit: (params) => {
      ear.hear({ kind: "elicit", params });
      return ANSWERS.elicit;
    },
    sample: (params) => {
      ear.hear({ kind: "sample", params });
      return ANSWERS.sample;
    },
    roots: ANSWERS.roots,
    onLog: (message) => ear.hear({ kind: "log", ...message }),
    ...options,
  });
  let listening: Subscription | undefined;
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
    ear,
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
      listening = await client.listen(
        { toolsListChanged: true, resourceSubscriptions: [uri] },
        ({ method, params }) => {
          if (method === "notifications/tools/list_changed") ear.hear({ kind: "tools" });
          if (method === "notifications/resources/updated") ear.hear({ kind: "updated", uri: params.uri });
        },
      );
    },
    unwatch: async () => listening?.close(),
    ping: async () => {
      await client.ping();
      return {};
    },
    close: () => client.close(),
  };
}
