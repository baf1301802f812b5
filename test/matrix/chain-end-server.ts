// The server at the end of every chain: that of the flows, with more that one caller can tell from another's. Whatever
// its tools say, ask or change carries the name that they were called with, and it can be asked who listens to what.

import type { Handler } from "../../src/core/handler.ts";
import type { Server } from "../../src/server/index.ts";
import { makeServer } from "./end-server.ts";

const NAME = { type: "object", properties: { name: { type: "string" } }, required: ["name"] } as const;
const FORM = { type: "object", properties: { answer: { type: "string" } }, required: ["answer"] } as const;
const TASK = { support: "optional", pollIntervalMs: 50 } as const;

export type ChainServer = Handler & { close(): Promise<void> };

export function makeChainServer(): ChainServer {
  const doors = new Map<string, (text: string) => void>();
  const aborted: string[] = [];
  /** Addresses of resources that somebody listens to now. */
  const watched: string[] = [];
  const server = makeServer();
  server
    .tool("steps", { description: "Reports progress", input: NAME }, ({ name }, context) => {
      for (const step of [1, 2, 3]) context.progress(step, 3, `${name} ${step}`);
      return name;
    })
    .tool("stay", { description: "Waits until it is cancelled", input: NAME }, async ({ name }, context) => {
      context.progress(1);
      await new Promise<void>((_resolve, reject) => {
        context.signal.addEventListener("abort", () => {
          aborted.push(name);
          reject(new Error("aborted"));
        });
      });
    })
    .tool("left", { description: "Who was seen to leave" }, () => aborted.join(" "))
    .tool("say", { description: "Logs at two levels", input: NAME }, ({ name }, context) => {
      context.log("debug", `${name} whispers`);
      context.log("error", `${name} shouts`);
      return name;
    })
    .tool("plant", { description: "Adds a tool", input: NAME }, ({ name }) => {
      server.tool(`planted-${name}`, { description: "Planted" }, () => name);
      return name;
    })
    .tool("change", { description: "Changes an item", input: NAME }, ({ name }) => {
      server.resourceUpdated(`flow://item/${name}`);
      return name;
    })
    .tool("watched", { description: "What is listened to" }, () => watched.join(" "));
  addQuestions(server);
  server
    .tool("hold", { description: "Works until it is released", input: NAME, task: TASK }, async ({ name }, context) => {
      return new Promise<string>((resolve, reject) => {
        doors.set(name, resolve);
        context.signal.addEventListener("abort", () => {
          aborted.push(name);
          reject(context.signal.reason as Error);
        });
      });
    })
    .tool("brief", { description: "Works for a moment", input: NAME, task: TASK }, ({ name }) => name)
    .tool("holding", { description: "What works" }, () => [...doors.keys()].join(" "))
    .tool("release", { description: "Ends the work", input: NAME }, ({ name }) => {
      doors.get(name)?.(`${name} held`);
      return doors.delete(name) ? "released" : "nothing of that name";
    });
  const handler: ChainServer = async (request, context) => {
    if (request.method !== "subscriptions/listen") return server(request, context);
    const { resourceSubscriptions = [] } = request.params["notifications"] as { resourceSubscriptions?: string[] };
    watched.push(...resourceSubscriptions);
    try {
      return await server(request, context);
    } finally {
      for (const uri of resourceSubscriptions) watched.splice(watched.indexOf(uri), 1);
    }
  };
  handler.close = () => server.close();
  return handler;
}

/** All that a caller can be asked in mid-call, by tools and by one that is a task. */
function addQuestions(server: Server): void {
  server
    .tool("elicit-for", { description: "Asks by form", input: NAME }, async ({ name }, { ask }) => {
      const answer = await ask.elicit({ mode: "form", message: `Who is ${name}?`, requestedSchema: FORM });
      return `${name}: ${answer.action} ${String(answer.content?.["answer"])}`;
    })
    .tool("visit-for", { description: "Asks by address", input: NAME }, async ({ name }, { ask }) => {
      const answer = await ask.elicit({ mode: "url", message: "Please visit", url: `https://example.com/${name}` });
      return `${name}: ${answer.action}`;
    })
    .tool("sample-for", { description: "Asks the caller's model", input: NAME }, async ({ name }, { ask }) => {
      const content = { type: "text", text: `What of ${name}?` } as const;
      const answer = await ask.sample({ messages: [{ role: "user", content }], maxTokens: 10 });
      return `${name}: ${JSON.stringify(answer.content)} by ${answer.model}`;
    })
    .tool("roots-for", { description: "Asks for roots", input: NAME }, async ({ name }, { ask }) => {
      const { roots } = await ask.roots();
      return `${name}: ${roots.map(({ uri }) => uri).join(" ")}`;
    })
    .tool("task-ask", { description: "Asks as a task", input: NAME, task: TASK }, async ({ name }, { ask }) => {
      const answer = await ask.elicit({ mode: "form", message: `Who is ${name}?`, requestedSchema: FORM });
      return `${name}: ${answer.action} ${String(answer.content?.["answer"])}`;
    });
}
