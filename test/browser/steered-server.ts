// A server whose calls end when a test lets them: it waits for files in its folder. It also asks, reports progress, writes
// to stderr, and returns every kind of content.

import { existsSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { serve } from "../../src/serve.ts";
import { createServer } from "../../src/server/server.ts";
import { NEWEST } from "../../src/protocol/revisions/index.ts";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/** A sound without samples. */
const SOUND = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

const text = { type: "string" } as const;

const server = createServer({ name: "steered", version: "1.0.0" })
  .tool(
    "greet",
    {
      title: "Greet",
      description: "Greets somebody",
      input: {
        type: "object",
        properties: {
          name: { ...text, description: "Whom" },
          times: { type: "integer", minimum: 1, maximum: 3 },
          style: { type: "string", enum: ["plain", "loud"] },
          polite: { type: "boolean" },
        },
        required: ["name"],
      },
    },
    ({ name, times = 1, style, polite }) => {
      const words = `${polite === true ? "Dear" : "Hello"} ${name}`;
      return Array.from({ length: times }, () => (style === "loud" ? words.toUpperCase() : words)).join(", ");
    },
  )
  .tool(
    "hold",
    { description: "Waits for a file", input: { type: "object", properties: { label: text }, required: ["label"] } },
    async ({ label }, { progress, signal }) => {
      process.stderr.write(`holding ${label}\n`);
      progress(1, 4, "holding on");
      while (!existsSync(`${label}.release`)) await wait(20, undefined, { signal });
      progress(4, 4, "let go");
      return `released ${label}`;
    },
  )
  .tool("ask", { description: "Asks with a form" }, async (_input, { ask }) => {
    const { action, content } = await ask.elicit({
      message: "Who are you?",
      requestedSchema: {
        type: "object",
        properties: {
          nick: { type: "string", title: "Nickname" },
          age: { type: "integer", title: "Age", minimum: 1 },
          agree: { type: "boolean", title: "I agree", default: false },
          color: { type: "string", title: "Colour", enum: ["red", "green"] },
        },
        required: ["nick", "age"],
      },
    });
    return `${action}: ${JSON.stringify(content ?? null)}`;
  })
  .tool("visit", { description: "Asks for a visit of a page" }, async (_input, { ask }) => {
    const { action } = await ask.elicit({
      mode: "url",
      message: "Sign in over there",
      url: "https://example.invalid/sign-in?state=1",
      elicitationId: "visit-1",
    });
    return `visit: ${action}`;
  })
  .tool("media", { description: "Returns every kind of content" }, () => ({
    content: [
      { type: "text" as const, text: "plain text" },
      { type: "image" as const, data: PIXEL, mimeType: "image/png" },
      { type: "audio" as const, data: SOUND, mimeType: "audio/wav" },
      { type: "resource" as const, resource: { uri: "note://one", mimeType: "text/plain", text: "text of a note" } },
      { type: "resource_link" as const, uri: "note://two", name: "second note" },
    ],
    structuredContent: { answer: 42 },
  }))
  .tool(
    "keep",
    { description: "Keeps a secret", input: { type: "object", properties: { password: text, note: text } } },
    (input) => ({ kept: input, password: "hunter2-out" }),
  )
  .tool("fail", { description: "Fails" }, () => ({
    content: [{ type: "text" as const, text: "it went wrong" }],
    isError: true,
  }))
  .resource("note://one", { name: "one", mimeType: "text/plain" }, () => "text of a note")
  .prompt(
    "review",
    { description: "Reviews", arguments: { what: { required: true } } },
    ({ what }) => `Review ${what}`,
  );

await serve(server, { revisions: [NEWEST.name] });
