// The servers of the matrix tests. `makeServer` has one of each feature that crosses between two revisions.
// `makeChainServer` adds tools for several callers at once: what they send, request or change carries the name they
// were called with.

import { createServer, type Server } from "../../src/server/index.ts";
import type { Handler } from "../../src/core/handler.ts";

const TEXT_SCHEMA = { type: "object", properties: { text: { type: "string" } }, required: ["text"] } as const;
const COUNT_SCHEMA = { type: "object", properties: { count: { type: "number" } }, required: ["count"] } as const;

export function makeServer(): Server {
  /** Calls of `wait` that were cancelled. */
  const aborted: string[] = [];
  let added = 0;
  const server = createServer({ name: "matrix", version: "1.0.0", title: "Matrix Server", instructions: "Ask away" });
  server
    .tool(
      "echo",
      { description: "Echo a text", title: "Echo", input: TEXT_SCHEMA, annotations: { readOnlyHint: true } },
      ({ text }) => text,
    )
    .tool("count", { description: "Counts characters", input: TEXT_SCHEMA, output: COUNT_SCHEMA }, ({ text }) => ({
      count: text.length,
    }))
    .tool("mixed", { description: "Returns one of each content type" }, () => [
      { type: "text", text: "plain" },
      { type: "image", data: "AAAA", mimeType: "image/png" },
      { type: "audio", data: "AAAA", mimeType: "audio/wav" },
      { type: "resource", resource: { uri: "test://note", text: "inside" } },
      { type: "resource_link", uri: "test://linked", name: "linked" },
    ])
    .tool("fail", { description: "Fails" }, () => {
      throw new Error("on purpose");
    })
    .tool("progress", { description: "Reports progress" }, (_args, context) => {
      for (const step of [1, 2, 3]) context.progress(step, 3, `step ${step}`);
      return "done";
    })
    .tool("wait", { description: "Waits until it is cancelled", input: TEXT_SCHEMA }, async ({ text }, context) => {
      context.progress(1);
      await new Promise<void>((_resolve, reject) => {
        context.signal.addEventListener("abort", () => {
          aborted.push(text);
          reject(new Error("aborted"));
        });
      });
    })
    .tool("aborted", { description: "Lists the cancelled calls" }, () => aborted.join(","))
    .tool("log", { description: "Logs" }, (_args, context) => {
      context.log("debug", "small");
      context.log("error", { big: true });
      return "logged";
    })
    .tool("grow", { description: "Adds a tool" }, () => {
      added += 1;
      server.tool(`added-${added}`, { description: "Added" }, () => "added");
      return "grown";
    })
    .tool("touch", { description: "Changes the note" }, () => {
      server.resourceUpdated("test://note");
      return "touched";
    })
    .tool("elicit", { description: "Asks the user by form" }, async (_args, context) => {
      const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] } as const;
      const answer = await context.ask.elicit({ mode: "form", message: "Your name?", requestedSchema });
      return `${answer.action} ${String(answer.content?.["name"])}`;
    })
    .tool("open-url", { description: "Asks the user to open a URL" }, async (_args, context) => {
      const answer = await context.ask.elicit({
        mode: "url",
        message: "Please open",
        url: "https://example.com/consent",
      });
      return answer.action;
    })
    .tool("sample", { description: "Asks the caller's model" }, async (_args, context) => {
      const question = { role: "user", content: { type: "text", text: "2+2?" } } as const;
      const answer = await context.ask.sample({ messages: [question], maxTokens: 10 });
      return JSON.stringify(answer.content);
    })
    .tool("roots", { description: "Asks for roots" }, async (_args, context) => {
      const { roots } = await context.ask.roots();
      return roots.map(({ uri }) => uri).join(",");
    })
    .tool("interview", { description: "Asks twice" }, async (_args, context) => {
      const first = await context.ask.roots();
      const second = await context.ask.sample({
        messages: [{ role: "user", content: { type: "text", text: "again" } }],
        maxTokens: 5,
      });
      return `${first.roots.length} ${second.model}`;
    })
    .resource("test://note", { name: "note", mimeType: "text/plain" }, () => "a note")
    .resource("test://bytes", { name: "bytes", mimeType: "application/octet-stream" }, () => new Uint8Array([1, 2, 3]))
    .template(
      "test://item/{id}",
      { name: "item", complete: { id: (value) => ["one", "two"].filter((id) => id.startsWith(value)) } },
      ({ id }) => ({ id }),
    )
    .prompt(
      "greet",
      {
        description: "Greets",
        arguments: {
          name: { required: true },
          style: { complete: (value, context) => [`${value}-${context.arguments?.["name"] ?? "unknown"}`] },
        },
      },
      ({ name }) => `Hello ${name}`,
    );
  return server;
}

const NAME = { type: "object", properties: { name: { type: "string" } }, required: ["name"] } as const;
const FORM = { type: "object", properties: { answer: { type: "string" } }, required: ["answer"] } as const;
const TASK = { support: "optional", pollIntervalMs: 50 } as const;

export type ChainServer = Handler & { close(): Promise<void> };

export function makeChainServer(): ChainServer {
  /** By name, the calls of `hold` that wait for `release`. */
  const held = new Map<string, (text: string) => void>();
  const aborted: string[] = [];
  /** URIs of the resources with a subscription. */
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
    .tool("cancelled", { description: "Lists the cancelled callers" }, () => aborted.join(" "))
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
      server.resourceUpdated(`test://item/${name}`);
      return name;
    })
    .tool("watched", { description: "Lists the subscribed resources" }, () => watched.join(" "));
  addClientRequests(server);
  server
    .tool("hold", { description: "Waits until it is released", input: NAME, task: TASK }, async ({ name }, context) => {
      return new Promise<string>((resolve, reject) => {
        held.set(name, resolve);
        context.signal.addEventListener("abort", () => {
          aborted.push(name);
          reject(context.signal.reason as Error);
        });
      });
    })
    .tool("brief", { description: "Returns at once", input: NAME, task: TASK }, ({ name }) => name)
    .tool("holding", { description: "Lists the calls that wait" }, () => [...held.keys()].join(" "))
    .tool("release", { description: "Ends a call that waits", input: NAME }, ({ name }) => {
      held.get(name)?.(`${name} held`);
      return held.delete(name) ? "released" : "not found";
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

/** Tools that send each kind of request to the client, and one that does it as a task. */
function addClientRequests(server: Server): void {
  server
    .tool("elicit-for", { description: "Asks the user by form", input: NAME }, async ({ name }, { ask }) => {
      const answer = await ask.elicit({ mode: "form", message: `Who is ${name}?`, requestedSchema: FORM });
      return `${name}: ${answer.action} ${String(answer.content?.["answer"])}`;
    })
    .tool("open-url-for", { description: "Asks the user to open a URL", input: NAME }, async ({ name }, { ask }) => {
      const answer = await ask.elicit({ mode: "url", message: "Please open", url: `https://example.com/${name}` });
      return `${name}: ${answer.action}`;
    })
    .tool("sample-for", { description: "Asks the caller's model", input: NAME }, async ({ name }, { ask }) => {
      const content = { type: "text", text: `Describe ${name}` } as const;
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
