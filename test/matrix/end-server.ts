// The server at the end of every flow: one of each thing that can cross between two revisions.

import { createServer, type Server } from "../../src/server/index.ts";

const TEXT_SCHEMA = { type: "object", properties: { text: { type: "string" } }, required: ["text"] } as const;
const COUNT_SCHEMA = { type: "object", properties: { count: { type: "number" } }, required: ["count"] } as const;

export function makeServer(): Server {
  /** What became of calls that waited. */
  const aborted: string[] = [];
  let added = 0;
  const server = createServer({ name: "end", version: "1.0.0", title: "The Upstream", instructions: "Ask away" });
  server
    .tool(
      "echo",
      { description: "Echo a text", title: "Echo", input: TEXT_SCHEMA, annotations: { readOnlyHint: true } },
      ({ text }) => text,
    )
    .tool("count", { description: "Counts letters", input: TEXT_SCHEMA, output: COUNT_SCHEMA }, ({ text }) => ({
      count: text.length,
    }))
    .tool("mixed", { description: "One of each content" }, () => [
      { type: "text", text: "plain" },
      { type: "image", data: "AAAA", mimeType: "image/png" },
      { type: "audio", data: "AAAA", mimeType: "audio/wav" },
      { type: "resource", resource: { uri: "flow://note", text: "inside" } },
      { type: "resource_link", uri: "flow://linked", name: "linked" },
    ])
    .tool("fail", { description: "Fails" }, () => {
      throw new Error("on purpose");
    })
    .tool("progress", { description: "Reports progress" }, (_args, context) => {
      for (const step of [1, 2, 3]) context.progress(step, 3, `step ${step}`);
      return "done";
    })
    .tool("wait", { description: "Waits for ever", input: TEXT_SCHEMA }, async ({ text }, context) => {
      context.progress(1);
      await new Promise<void>((_resolve, reject) => {
        context.signal.addEventListener("abort", () => {
          aborted.push(text);
          reject(new Error("aborted"));
        });
      });
    })
    .tool("aborted", { description: "Calls whose abort was seen" }, () => aborted.join(","))
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
      server.resourceUpdated("flow://note");
      return "touched";
    })
    .tool("elicit", { description: "Asks by form" }, async (_args, context) => {
      const requestedSchema = { type: "object", properties: { name: { type: "string" } }, required: ["name"] } as const;
      const answer = await context.ask.elicit({ mode: "form", message: "Your name?", requestedSchema });
      return `${answer.action} ${String(answer.content?.["name"])}`;
    })
    .tool("visit", { description: "Asks by address" }, async (_args, context) => {
      const answer = await context.ask.elicit({
        mode: "url",
        message: "Please visit",
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
    .resource("flow://note", { name: "note", mimeType: "text/plain" }, () => "a note")
    .resource("flow://bytes", { name: "bytes", mimeType: "application/octet-stream" }, () => new Uint8Array([1, 2, 3]))
    .template(
      "flow://item/{id}",
      { name: "item", complete: { id: (value) => ["one", "two"].filter((id) => id.startsWith(value)) } },
      ({ id }) => ({ id }),
    )
    .prompt(
      "greet",
      {
        description: "Greets",
        arguments: {
          name: { required: true },
          style: { complete: (value, context) => [`${value}-${context.arguments?.["name"] ?? "nobody"}`] },
        },
      },
      ({ name }) => `Hello ${name}`,
    );
  return server;
}
