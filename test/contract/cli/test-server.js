// A server for the tests of the command line, with a tool for each kind of result. Tools log how they ended to the file in
// CATENARY_TEST_LOG, because the caller may be gone by then.

import { appendFileSync } from "node:fs";
import { setTimeout as wait } from "node:timers/promises";
import { createServer, McpError } from "catenary";

/** @param {string} text */
function log(text) {
  const file = process.env["CATENARY_TEST_LOG"];
  if (file !== undefined) appendFileSync(file, `${text}\n`);
}

log(`pid ${process.pid}`);

const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

/** Moves the cursor, clears the screen, sets the title, and reverses the writing direction. */
const HOSTILE = "safe\u001b[2J\u001b[1;1H\u001b]0;pwned\u0007\u009b31m\u202eevil\rover";

/** @param {Record<string, unknown>} properties @param {string[]} [required] */
const input = (properties, required = []) => ({ type: /** @type {const} */ ("object"), properties, required });

export const server = createServer({ name: "demo", version: "1.2.3" })
  .tool(
    "echo",
    {
      description: "Echo the text",
      input: input({ text: { type: "string", description: "What to say" }, times: { type: "integer" } }, ["text"]),
    },
    ({ text, times }) => Array.from({ length: Number(times ?? 1) }, () => text).join("\n"),
  )
  .tool(
    "arguments",
    {
      title: "Arguments",
      description: "Return the arguments\nunchanged",
      input: {
        $defs: { size: { type: "number", description: "How large" } },
        ...input({
          text: { type: "string" },
          count: { type: "integer", default: 3 },
          ratio: { type: "number" },
          flag: { type: "boolean" },
          tags: { type: "array", items: { type: "string" } },
          numbers: { type: "array", items: { type: "integer" } },
          filter: { type: "object" },
          mode: { enum: ["fast", "slow", 3] },
          maybe: { anyOf: [{ type: "integer" }, { type: "null" }] },
          named: { $ref: "#/$defs/size" },
        }),
      },
      annotations: { readOnlyHint: true, openWorldHint: false },
    },
    (args) => JSON.stringify(args),
  )
  .tool("structured", { description: "Return structured content" }, () => ({ answer: 42 }))
  .tool("both", { description: "Return text and structured content" }, () => ({
    content: [{ type: "text", text: "in words" }],
    structuredContent: { answer: 42 },
  }))
  .tool("fail", { description: "Throw an error" }, () => {
    throw new Error("out of order");
  })
  .tool("refuse", { description: "Throw an McpError" }, () => {
    throw McpError.of("execution_failed", "not today");
  })
  .tool("denied", { description: "Deny access" }, () => {
    throw McpError.of("access_denied", "not you");
  })
  .tool("picture", { description: "Return an image, audio, a link and text" }, () => [
    { type: "text", text: "a picture:" },
    { type: "image", data: PIXEL.toString("base64"), mimeType: "image/png" },
    { type: "audio", data: Buffer.from("RIFF").toString("base64"), mimeType: "audio/wav" },
    { type: "resource_link", uri: "demo://note", name: "note", mimeType: "text/plain", size: 12 },
    { type: "resource", resource: { uri: "demo://inner", mimeType: "text/plain", text: "embedded" } },
    {
      type: "resource",
      resource: { uri: "file:///../../etc/.passwd.sh?x=/../y", mimeType: "image/gif", blob: "R0lGOA==" },
    },
  ])
  .tool("hostile", { description: HOSTILE }, (_, context) => {
    context.log("warning", HOSTILE);
    return HOSTILE;
  })
  .tool("throws", { description: "Throw an error with control characters" }, () => {
    throw McpError.of("execution_failed", HOSTILE);
  })
  .tool(
    "count",
    {
      description: "Count with progress",
      input: input({ to: { type: "integer" }, ms: { type: "integer" }, total: { type: "boolean" } }),
    },
    async ({ to = 3, ms = 100, total = true }, { progress, signal }) => {
      for (let step = 1; step <= Number(to); step++) {
        progress(step, total === true ? Number(to) : undefined, `step ${step}`);
        await wait(Number(ms), undefined, { signal });
      }
      return `counted to ${String(to)}`;
    },
  )
  .tool("logs", { description: "Log at two levels" }, (_, { log }) => {
    log("debug", "a detail");
    log("warning", { low: "ink" });
    process.stderr.write("own stderr\nincomplete line");
    return "said";
  })
  .tool("hang", { description: "Run until cancelled" }, async (_, { signal, progress }) => {
    progress(1, undefined, "hanging");
    log("hanging");
    await new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        log("aborted");
        reject(new Error("aborted"));
      });
    });
  })
  .tool("block", { description: "Block the process" }, async (_, { progress }) => {
    process.on("SIGTERM", () => undefined);
    progress(1, undefined, "blocked");
    await wait(100);
    log("blocked");
    // Not even the end of stdin is noticed.
    for (;;);
  })
  .tool(
    "environment",
    { description: "Return an environment variable", input: input({ name: { type: "string" } }) },
    ({ name }) => String(process.env[String(name)]),
  )
  .tool("roots", { description: "Return the roots of the caller" }, async (_, { ask }) =>
    (await ask.roots()).roots.map(({ uri }) => uri).join("\n"),
  )
  .tool("form", { description: "Ask for a field of each kind" }, async (_, { ask }) => {
    const answer = await ask.elicit({
      message: "Who \u001b[31mare you?",
      requestedSchema: {
        type: "object",
        properties: {
          name: { type: "string", title: "Your name", minLength: 2 },
          mail: { type: "string", format: "email" },
          age: { type: "integer", minimum: 0, maximum: 150, default: 30 },
          glad: { type: "boolean", default: true },
          colour: { type: "string", enum: ["red", "green"] },
          size: {
            type: "string",
            oneOf: [
              { const: "s", title: "Small" },
              { const: "l", title: "Large" },
            ],
          },
          days: { type: "array", items: { type: "string", enum: ["mon", "tue", "wed"] }, minItems: 1 },
        },
        required: ["name", "colour", "days"],
      },
    });
    return JSON.stringify(answer);
  })
  .tool("two", { description: "Ask two questions at once" }, async (_, { ask }) => {
    const requestedSchema = (/** @type {string} */ name) => input({ [name]: { type: "string" } }, [name]);
    const answers = await Promise.all(
      ["first", "second"].map((name) =>
        ask.elicit({ message: `The ${name}?`, requestedSchema: /** @type {any} */ (requestedSchema(name)) }),
      ),
    );
    return JSON.stringify(answers.map(({ content }) => content));
  })
  .tool("agree", { description: "Ask for consent" }, async (_, { ask }) => {
    const answer = await ask.elicit({ message: "Really?", requestedSchema: { type: "object", properties: {} } });
    return JSON.stringify(answer);
  })
  .tool("visit", { description: "Ask the user to visit a page" }, async (_, { ask }) => {
    const answer = await ask.elicit({ mode: "url", message: "Sign here", url: "https://sign.example/form?a=\u202eb" });
    return JSON.stringify(answer);
  })
  .resource("demo://note", { name: "note", description: "A note", mimeType: "text/plain" }, () => "no final newline")
  .resource("demo://raw", { name: "raw" }, () => HOSTILE)
  .resource("demo://bytes", { name: "bytes", mimeType: "image/png", size: PIXEL.length }, () => PIXEL)
  .template("demo://day/{day}", { name: "day", description: "A day" }, ({ day }) => `day ${day}`)
  .prompt(
    "greet",
    { description: "Greet a person", arguments: { name: { description: "Who", required: true }, tone: {} } },
    ({ name, tone }) => `Greet ${name}${tone === undefined ? "" : ` in a ${tone} tone`}.`,
  )
  .prompt("talk", { description: "A talk" }, () => [
    { role: "user", content: { type: "text", text: "Hello" } },
    { role: "assistant", content: { type: "text", text: "Good day" } },
  ]);
