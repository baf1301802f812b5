// Resources, completion, prompts, subscriptions, and tools that depend on what is loaded, at a live server whose guest is
// a few lines of Node. Callers have principals, so that each test can show that nobody sees the sessions of another.

import { afterEach, beforeEach, expect, it } from "vitest";
import { connect, type Client } from "../../../src/client/index.ts";
import type { Handler } from "../../../src/core/handler.ts";
import { createLiveServer } from "../../../src/live/server.ts";
import type { Live } from "../../../src/live/index.ts";
import type { Runtime } from "../../../src/live/runtime.ts";
import { text, type GuestTool } from "../../../src/live/tool.ts";
import { textOf } from "./live-fixture.ts";

const GUEST = `
const channel = new (require("node:net").Socket)({ fd: 3 });
const send = (message) => {
  const text = JSON.stringify(message);
  channel.write(Buffer.byteLength(text) + "\\n" + text);
};
const done = { status: "ok", values: ["1"], warnings: [], timing: { realMs: 1 }, defined: [] };
const answers = {
  eval: ({ code }) => ({ ...done, ...new Function("return " + code)() }),
  complete: ({ code, position }) => ({ start: 0, values: [code + "-" + position] }),
  "complete-argument": ({ argument, value, others }) => ({ values: [argument, value, JSON.stringify(others)], total: 3 }),
  "read-resource": ({ template, arguments: { name } }) =>
    name === "none" ? { text: "there is no none", isError: true } : { text: template + " of " + name, mimeType: "text/x" },
  "list-definitions": () => {
    send({ event: "background", text: "tick\\n", stream: "stdout" });
    return { text: "FOO" };
  },
  "run-tests": () => ({ tests: { passed: 1, failed: 1, failures: [{ name: "adds", reason: "2 is not 3" }] } }),
};
let rest = "";
channel.setEncoding("utf8").on("end", () => process.exit()).on("data", (text) => {
  rest += text;
  for (let at; (at = rest.indexOf("\\n")) >= 0 && rest.length - at - 1 >= Number(rest.slice(0, at)); ) {
    const end = at + 1 + Number(rest.slice(0, at));
    const request = JSON.parse(rest.slice(at + 1, end));
    rest = rest.slice(end);
    const answer = answers[request.op];
    if (answer === undefined) send({ id: request.id, error: "no " + request.op });
    else send({ id: request.id, result: answer(request) });
  }
});
send({ event: "ready", version: "none" });`;

const runtime: Runtime = {
  language: "none",
  stopSteps: [],
  start: async () => ({ command: process.execPath, args: ["-e", GUEST] }),
};

const tool = (name: string, more: Partial<GuestTool> = {}): GuestTool => ({
  name,
  title: name,
  description: name,
  arguments: { code: text("Code") },
  ...more,
});

/** The handler as a caller with this principal sees it. */
function as(principal: string, live: Live): Handler {
  return (request, context) => live(request, { ...context, caller: { ...context.caller, principal } });
}

let live: Live;
let ada: Client;
let bob: Client;
beforeEach(async () => {
  live = createLiveServer(
    {
      runtime,
      title: "None",
      instructions: "",
      evaluate: tool("evaluate"),
      tools: [tool("run-tests"), tool("weave", { library: "loom" })],
      resources: [
        { uriTemplate: "none://version", name: "Version", mimeType: "text/plain" },
        { uriTemplate: "none://thing/{name}", name: "Thing" },
      ],
      prompts: [
        {
          name: "review",
          description: "Review a thing",
          arguments: { name: { description: "Which", required: true } },
          text: ({ name }) => `Review ${name}.`,
        },
      ],
    },
    {},
  );
  [ada, bob] = await Promise.all([connect(as("ada", live)), connect(as("bob", live))]);
});
afterEach(async () => {
  await Promise.all([ada.close(), bob.close()]);
  await live.close();
});

const evaluate = async (client: Client, fields: object): Promise<string> =>
  textOf(await client.callTool("evaluate", { code: `(${JSON.stringify(fields)})` }));

async function read(client: Client, uri: string): Promise<string> {
  const { contents } = await client.readResource(uri);
  return contents.map((one) => ("text" in one ? one.text : "")).join("");
}

it("the resources of a session have what was too long for a result, for its owner alone", async () => {
  const [uri = ""] = /live:\S+\d/.exec(await evaluate(ada, { values: ["x".repeat(5_000)] })) ?? [];
  expect(await read(ada, uri)).toBe("x".repeat(5_000));
  await evaluate(bob, {});
  await expect(read(bob, uri)).rejects.toThrow("Resource not found");
});

it("the resources of a session have the transcript and the definitions", async () => {
  await evaluate(ada, { values: ["3"] });
  expect(await read(ada, "live://session/main/transcript")).toBe('> ({"values":["3"]})\n=> 3\n');
  expect(await read(ada, "live://session/main/definitions")).toBe("FOO");
  await expect(read(bob, "live://session/main/transcript")).rejects.toThrow("Resource not found");
  expect((await ada.listResources()).resources.map(({ uri }) => uri)).toEqual([
    "none://version",
    "live://session/main/transcript",
    "live://session/main/definitions",
  ]);
  expect((await bob.listResources()).resources).toHaveLength(1);
});

it("the resources of a session complete code from the living session", async () => {
  expect(await read(ada, "live://session/main/completions/fo%20o")).toBe("fo o-4");
  const ref = { type: "ref/resource", uri: "live://session/{name}/completions/{code}" } as const;
  const argument = { name: "code", value: "(fo" };
  const { completion } = await ada.complete(ref, argument, { arguments: { name: "main" } });
  expect(completion.values).toEqual(["(fo-3"]);
});

it("the resources of a session tell subscribers of background output once until they read it, and callers only of their own", async () => {
  const [seen, others]: [string[], string[]] = [[], []];
  const uri = "live://session/main/background";
  const filter = { resourceSubscriptions: [uri] };
  await ada.listen(filter, ({ method }) => seen.push(method));
  await bob.listen(filter, ({ method }) => others.push(method));
  await evaluate(ada, {});
  // The guest prints when it lists its definitions.
  for (const _time of [1, 2]) await read(ada, "live://session/main/definitions");
  await expect.poll(() => seen).toEqual(["notifications/resources/updated"]);
  for (const _time of [1, 2])
    expect((await ada.readResource(uri)).contents).toEqual([
      { uri, mimeType: "text/plain", text: "tick\ntick\n", _meta: { "catenary/printed": 10 } },
    ]);
  await expect(read(bob, uri)).rejects.toThrow("Resource not found");
  expect(await evaluate(ada, {})).toBe("[background] tick\ntick\n=> 1");
  expect(await read(ada, uri)).toBe("");
  await read(ada, "live://session/main/definitions");
  await expect.poll(() => seen).toHaveLength(2);
  expect((await ada.readResource(uri)).contents).toMatchObject([{ text: "tick\n", _meta: { "catenary/printed": 15 } }]);
  expect(others).toEqual([]);
});

it("the resources of a session tell subscribers of new definitions, and nobody of those of others", async () => {
  const [seen, others]: [string[], string[]] = [[], []];
  const filter = { resourceSubscriptions: ["live://session/main/definitions"] };
  await ada.listen(filter, ({ method }) => seen.push(method));
  await bob.listen(filter, ({ method }) => others.push(method));
  await evaluate(ada, {});
  await evaluate(ada, { defined: [{ type: "function", name: "f" }] });
  await expect.poll(() => seen).toEqual(["notifications/resources/updated"]);
  expect(others).toEqual([]);
});

it("the resources of a language are read by the guest", async () => {
  expect(await read(ada, "none://version")).toBe("none://version of undefined");
  expect((await ada.readResource("none://thing/a%2Fb")).contents).toEqual([
    { uri: "none://thing/a%2Fb", mimeType: "text/x", text: "none://thing/{name} of a/b" },
  ]);
  await expect(read(ada, "none://thing/none")).rejects.toThrow("there is no none");
});

it("the resources of a language and prompts complete their arguments", async () => {
  for (const ref of [
    { type: "ref/resource", uri: "none://thing/{name}" },
    { type: "ref/prompt", name: "review" },
  ] as const) {
    const { completion } = await ada.complete(ref, { name: "name", value: "x" });
    expect(completion.values).toEqual(["name", "x", "{}"]);
  }
  const { messages } = await ada.getPrompt("review", { name: "X" });
  expect(messages).toEqual([{ role: "user", content: { type: "text", text: "Review X." } }]);
});

const names = async (client: Client): Promise<string[]> => (await client.listTools()).tools.map(({ name }) => name);

it("a tool of a library is listed while the library is loaded, and can always be called", async () => {
  expect(await names(ada)).not.toContain("weave");
  expect(textOf(await ada.callTool("weave"))).toBe("no weave");
  await evaluate(ada, { loaded: ["loom"] });
  expect(await names(ada)).toContain("weave");
  expect(await names(bob)).not.toContain("weave");
  await ada.callTool("reset-session");
  expect(await names(ada)).not.toContain("weave");
});

it("a test run has counts and reasons, and is an error if a test failed", async () => {
  const result = await ada.callTool("run-tests");
  expect(textOf(result)).toBe("2 tests: 1 passed, 1 failed\n\n[FAILED] adds\n2 is not 3");
  expect(result).toMatchObject({ isError: true, structuredContent: { passed: 1, failed: 1, skipped: 0 } });
});
