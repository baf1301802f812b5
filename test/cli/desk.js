// A server for the tests of the command line: a tool for each thing that a person may meet. What a tool saw of its end
// is written to the file that CATENARY_TEST_LOG names, because its caller may be gone by then.

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

/** Moves the cursor, clears the screen, sets the title, hides what follows, turns the writing round. */
const HOSTILE = "safe\u001b[2J\u001b[1;1H\u001b]0;pwned\u0007\u009b31m\u202eevil\rover";

/** @param {Record<string, unknown>} properties @param {string[]} [required] */
const input = (properties, required = []) => ({ type: /** @type {const} */ ("object"), properties, required });

export const server = createServer({ name: "desk", version: "1.2.3" })
  .tool(
    "echo",
    {
      description: "Give the text back",
      input: input({ text: { type: "string", description: "What to say" }, times: { type: "integer" } }, ["text"]),
    },
    ({ text, times }) => Array.from({ length: Number(times ?? 1) }, () => text).join("\n"),
  )
  .tool(
    "arguments",
    {
      title: "Arguments",
      description: "Give the arguments back\nas they came",
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
  .tool("structured", { description: "Give structured content" }, () => ({ answer: 42 }))
  .tool("both", { description: "Give a text and something else structured" }, () => ({
    content: [{ type: "text", text: "in words" }],
    structuredContent: { answer: 42 },
  }))
  .tool("fail", { description: "Fail as a tool does" }, () => {
    throw new Error("out of order");
  })
  .tool("refuse", { description: "Fail as a request does" }, () => {
    throw McpError.of("execution_failed", "not today");
  })
  .tool("denied", { description: "Fail because one may not" }, () => {
    throw McpError.of("access_denied", "not you");
  })
  .tool("picture", { description: "Give a picture, a sound, a link and a text" }, () => [
    { type: "text", text: "a picture:" },
    { type: "image", data: PIXEL.toString("base64"), mimeType: "image/png" },
    { type: "audio", data: Buffer.from("RIFF").toString("base64"), mimeType: "audio/wav" },
    { type: "resource_link", uri: "desk://note", name: "note", mimeType: "text/plain", size: 12 },
    { type: "resource", resource: { uri: "desk://inner", mimeType: "text/plain", text: "embedded" } },
    {
      type: "resource",
      resource: { uri: "file:///../../etc/.passwd.sh?x=/../y", mimeType: "image/gif", blob: "R0lGOA==" },
    },
  ])
  .tool("hostile", { description: HOSTILE }, (_, context) => {
    context.log("warning", HOSTILE);
    return HOSTILE;
  })
  .tool("throws", { description: "Fail with hostile words" }, () => {
    throw McpError.of("execution_failed", HOSTILE);
  })
  .tool(
    "count",
    {
      description: "Count, a step at a time",
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
  .tool("logs", { description: "Say something at two levels" }, (_, { log }) => {
    log("debug", "a detail");
    log("warning", { low: "ink" });
    process.stderr.write("own stderr\nwithout an end");
    return "said";
  })
  .tool("hang", { description: "Never end by itself" }, async (_, { signal, progress }) => {
    progress(1, undefined, "hanging");
    log("hanging");
    await new Promise((_resolve, reject) => {
      signal.addEventListener("abort", () => {
        log("aborted");
        reject(new Error("aborted"));
      });
    });
  })
  .tool("deaf", { description: "Neither end nor listen" }, async (_, { progress }) => {
    process.on("SIGTERM", () => undefined);
    progress(1, undefined, "deaf");
    await wait(100);
    log("deaf");
    // Nothing is heard any more, not even the end of the input.
    for (;;);
  })
  .tool(
    "environment",
    { description: "Name a variable's value", input: input({ name: { type: "string" } }) },
    ({ name }) => String(process.env[String(name)]),
  )
  .tool("roots", { description: "Name the folders that the caller offers" }, async (_, { ask }) =>
    (await ask.roots()).roots.map(({ uri }) => uri).join("\n"),
  )
  .tool("form", { description: "Ask the person for something of each kind" }, async (_, { ask }) => {
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
  .tool("two", { description: "Ask two things at once" }, async (_, { ask }) => {
    const requestedSchema = (/** @type {string} */ name) => input({ [name]: { type: "string" } }, [name]);
    const answers = await Promise.all(
      ["first", "second"].map((name) =>
        ask.elicit({ message: `The ${name}?`, requestedSchema: /** @type {any} */ (requestedSchema(name)) }),
      ),
    );
    return JSON.stringify(answers.map(({ content }) => content));
  })
  .tool("agree", { description: "Ask for a yes" }, async (_, { ask }) => {
    const answer = await ask.elicit({ message: "Really?", requestedSchema: { type: "object", properties: {} } });
    return JSON.stringify(answer);
  })
  .tool("visit", { description: "Ask the person to visit a page" }, async (_, { ask }) => {
    const answer = await ask.elicit({ mode: "url", message: "Sign here", url: "https://sign.example/form?a=\u202eb" });
    return JSON.stringify(answer);
  })
  .resource(
    "desk://note",
    { name: "note", description: "A note", mimeType: "text/plain" },
    () => "no newline at its end",
  )
  .resource("desk://raw", { name: "raw" }, () => HOSTILE)
  .resource("desk://bytes", { name: "bytes", mimeType: "image/png", size: PIXEL.length }, () => PIXEL)
  .template("desk://day/{day}", { name: "day", description: "A day" }, ({ day }) => `day ${day}`)
  .prompt(
    "greet",
    { description: "Greet somebody", arguments: { name: { description: "Whom", required: true }, tone: {} } },
    ({ name, tone }) => `Greet ${name}${tone === undefined ? "" : ` in a ${tone} tone`}.`,
  )
  .prompt("talk", { description: "A talk" }, () => [
    { role: "user", content: { type: "text", text: "Hello" } },
    { role: "assistant", content: { type: "text", text: "Good day" } },
  ]);
