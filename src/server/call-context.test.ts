// The context of a handler: progress and requests to the client. Their transport is tested in dialogue/, log messages
// in logging.test.ts.

import * as v from "valibot";
import { expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { fakeClient } from "../../test/support/handlers/fake-client.ts";
import type { Params, Request, Result } from "../core/handler.ts";
import type { ElicitQuestion, ToolContext } from "./call-context.ts";
import { createServer } from "./server.ts";

/** A server with one tool. */
const tool = (work: (context: ToolContext) => unknown) =>
  createServer({ name: "test", version: "1" }).tool("t", {}, (_args, context) => work(context));

const call = (more: Params = {}): Params => ({ name: "t", ...more });

const report = (context: ToolContext): void => {
  context.progress(0, 10);
  context.progress(5, 10, "half");
  context.progress(5, 10, "still half");
  context.progress(3);
  context.progress(Number.NaN);
  context.progress(6);
};

it("progress is sent with the token of the caller if it has increased", async () => {
  const caller = fakeClient(tool(report));
  await caller.call("tools/call", call({ _meta: { progressToken: "p1" } }));
  const method = "notifications/progress";
  expect(caller.notifications).toEqual([
    { method, params: { progressToken: "p1", progress: 0, total: 10 } },
    { method, params: { progressToken: "p1", progress: 5, total: 10, message: "half" } },
    { method, params: { progressToken: "p1", progress: 6 } },
  ]);
});

it("progress starts again for each call", async () => {
  const server = tool(({ progress }) => progress(1));
  const caller = fakeClient(server);
  await caller.call("tools/call", call({ _meta: { progressToken: 1 } }));
  await caller.call("tools/call", call({ _meta: { progressToken: 2 } }));
  expect(caller.notifications.map(({ params }) => params?.["progressToken"])).toEqual([1, 2]);
});

const form = { message: "Who?", requestedSchema: { type: "object", properties: {} } } as const;
const capabilities = { elicitation: {}, sampling: {}, roots: {} };

it("ask sends requests to the client, with the given key", async () => {
  const server = tool(async ({ ask }) => [
    await ask.elicit(form, { key: "who" }),
    await ask.sample({ messages: [], maxTokens: 5 }),
    await ask.roots({ key: "roots" }),
    await ask({ method: "roots/list", params: {} }),
  ]);
  const methods = ["elicitation/create", "sampling/createMessage", "roots/list", "roots/list"] as const;
  const answers = {
    "elicitation/create": { action: "accept", content: { name: "Ann" } },
    "sampling/createMessage": { role: "assistant", model: "m", content: { type: "text", text: "hi" } },
    "roots/list": { roots: [{ uri: "file:///a" }], more: 1 },
  };
  const answer = ({ method }: Request): Result => answers[method as keyof typeof answers];
  const caller = fakeClient(server, { caller: { capabilities }, answer });
  const { structuredContent } = await caller.call("tools/call", call());
  expect(structuredContent).toEqual(methods.map((method) => answers[method]));
  expect(caller.clientRequests).toEqual([
    { request: { method: methods[0], params: form }, options: { key: "who" } },
    { request: { method: methods[1], params: { messages: [], maxTokens: 5 } }, options: undefined },
    { request: { method: "roots/list", params: {} }, options: { key: "roots" } },
    { request: { method: "roots/list", params: {} }, options: undefined },
  ]);
});

it("ask sends no request that the client has not declared", async () => {
  const works: readonly [(context: ToolContext) => unknown, object][] = [
    [({ ask }) => ask.elicit(form), { elicitation: {} }],
    [({ ask }) => ask.elicit({ mode: "url", message: "?", url: "x:y" }), { elicitation: { url: {} } }],
    [({ ask }) => ask.sample({ messages: [], maxTokens: 1, tools: [] }), { sampling: { tools: {} } }],
    [({ ask }) => ask.roots(), { roots: {} }],
  ];
  for (const [work, requiredCapabilities] of works) {
    const caller = fakeClient(tool(work));
    const error = await caller.callError("tools/call", call());
    expect(error.data).toEqual({ kind: "missing_capability", requiredCapabilities });
    expect(caller.clientRequests).toEqual([]);
  }
});

it("ask turns a Standard Schema into a form", async () => {
  const requestedSchema = z.object({ name: z.string().meta({ title: "Name" }), age: z.number().optional() });
  const server = tool(({ ask }) => ask.elicit({ message: "Who?", requestedSchema }));
  const caller = fakeClient(server, { caller: { capabilities }, answer: () => ({ action: "decline" }) });
  expect(await caller.call("tools/call", call())).toMatchObject({ isError: false });
  const form = {
    type: "object",
    properties: { name: { type: "string", title: "Name" }, age: { type: "number" } },
    required: ["name"],
  };
  expect(caller.clientRequests.map(({ request }) => request.params)).toEqual([
    { message: "Who?", requestedSchema: form },
  ]);
});

it("ask returns what the schema of the form makes of the answer, with its type", async () => {
  const requestedSchema = z.object({ n: z.coerce.number(), unit: z.enum(["C", "F"]).default("C") });
  const server = tool(async ({ ask }) => {
    const answer = await ask.elicit({ message: "How warm?", requestedSchema });
    expectTypeOf(answer.content).toEqualTypeOf<{ n: number; unit: "C" | "F" } | undefined>();
    if (answer.action !== "accept") return answer.action;
    expectTypeOf(answer.content).toEqualTypeOf<{ n: number; unit: "C" | "F" }>();
    return `${answer.content.n + 1} ${answer.content.unit}`;
  });
  const answers: readonly (readonly [Result, string])[] = [
    [{ action: "accept", content: { n: "20" } }, "21 C"],
    [{ action: "decline" }, "decline"],
    [{ action: "cancel", content: { n: "not looked at" } }, "cancel"],
  ];
  for (const [answer, text] of answers) {
    const caller = fakeClient(server, { caller: { capabilities }, answer: () => answer });
    expect(await caller.call("tools/call", call())).toMatchObject({ content: [{ text }] });
  }
});

it("ask refuses an answer that does not fit the form", async () => {
  const forms: readonly ElicitQuestion[] = [
    { message: "?", requestedSchema: z.object({ n: z.number() }) },
    { message: "?", requestedSchema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] } },
  ];
  for (const form of forms) {
    for (const content of [{ n: "20" }, {}, undefined]) {
      const answer = { action: "accept", ...(content && { content }) };
      const caller = fakeClient(
        tool(({ ask }) => ask.elicit(form)),
        { caller: { capabilities }, answer: () => answer },
      );
      const error = await caller.callError("tools/call", call());
      expect(error.kind).toBe("invalid_params");
      expect(error.message).toMatch(/^The caller's answer does not fit the form: n: /);
    }
  }
});

it("ask refuses a nested form before anything is sent, and accepts choices", async () => {
  const run = async (requestedSchema: object): Promise<unknown> => {
    const work = ({ ask }: ToolContext): unknown =>
      ask.elicit({ message: "?", requestedSchema: requestedSchema as never }).catch(String);
    const caller = fakeClient(tool(work), { caller: { capabilities }, answer: () => ({ action: "decline" }) });
    const { content } = await caller.call("tools/call", call());
    return caller.clientRequests.length === 0 ? (content as [{ text: string }])[0].text : "sent";
  };
  const refused = /^TypeError: ask\.elicit\(\): `requestedSchema\.properties\.a` cannot be in a form; a form is flat/;
  for (const a of [z.object({ b: z.string() }), z.array(z.number()), z.array(z.string()), z.string().nullable()]) {
    expect(await run(z.object({ a }))).toMatch(refused);
  }
  expect(await run({ type: "object", properties: { a: { type: "object", properties: {} } } })).toMatch(refused);
  const choices = { type: "array", items: { type: "string", enum: ["x", "y"] } };
  const titled = { type: "string", oneOf: [{ const: "x", title: "X" }] };
  expect(await run({ type: "object", properties: { a: choices, b: titled, c: { type: "integer" } } })).toBe("sent");
  const flat = z.object({
    a: z.enum(["x", "y"]),
    b: z.array(z.enum(["x"])),
    c: z.email(),
    d: z.boolean(),
    e: z.int(),
  });
  expect(await run(flat)).toBe("sent");
});

it("ask refuses a form that cannot be sent", async () => {
  const forms: readonly [unknown, string][] = [
    [{ name: z.string() }, "are schemas of zod; wrap them: z.object({ ... })"],
    [{ type: "object", properties: { a: z.string() } }, "are schemas of zod; wrap them: z.object({ ... })"],
    [z.string(), "must be an object schema, because form fields have names"],
    [z.object({ at: z.date() }), "cannot be converted to JSON Schema"],
    [v.object({ a: v.string() }), "cannot produce JSON Schema; pass a JSON Schema instead, or pass"],
    ["name", "must be a Standard Schema or a JSON Schema, an object"],
  ];
  for (const [requestedSchema, why] of forms) {
    const thrown: unknown[] = [];
    const work = ({ ask }: ToolContext): unknown =>
      ask.elicit({ message: "Who?", requestedSchema: requestedSchema as never }).catch((error) => thrown.push(error));
    const caller = fakeClient(tool(work), { caller: { capabilities } });
    await caller.call("tools/call", call());
    expect(caller.clientRequests).toEqual([]);
    expect(thrown).toEqual([expect.any(TypeError)]);
    expect(String(thrown[0])).toMatch(/^TypeError: ask\.elicit\(\): (the values of )?`requestedSchema` /);
    expect(String(thrown[0])).toContain(why);
  }
});

it("ask refuses an invalid answer", async () => {
  const works: readonly [(context: ToolContext) => unknown, string][] = [
    [({ ask }) => ask.elicit(form), "elicitation/create"],
    [({ ask }) => ask.sample({ messages: [], maxTokens: 1 }), "sampling/createMessage"],
    [({ ask }) => ask.roots(), "roots/list"],
    [({ ask }) => ask({ method: "roots/list", params: {} }), "roots/list"],
  ];
  for (const [work, method] of works) {
    const caller = fakeClient(tool(work), { caller: { capabilities }, answer: () => ({ answered: true }) });
    const error = await caller.callError("tools/call", call());
    expect(error.kind).toBe("invalid_params");
    expect(error.message).toMatch(new RegExp(`^The caller's answer to ${method} must have`));
  }
});

it("ask throws an error that the handler can catch", async () => {
  const server = tool(({ ask }) => ask.roots().catch(() => "no roots"));
  expect(await fakeClient(server).call("tools/call", call())).toMatchObject({ content: [{ text: "no roots" }] });
});

it("the rest of the context comes from the caller", async () => {
  const seen: ToolContext[] = [];
  const hungUp: number[] = [];
  const options = {
    caller: { principal: "ann", capabilities: { roots: {} } },
    logLevel: "info" as const,
    hangUp: (retryMs: number) => hungUp.push(retryMs),
  };
  const server = tool((context) => {
    seen.push(context);
    context.hangUp(50);
    context.notify({ method: "notifications/x" });
  });
  const caller = fakeClient(server, options);
  await caller.call("tools/call", call());
  const [context] = seen;
  expect(context?.signal).toBe(caller.context.signal);
  expect(context?.caller).toBe(caller.context.caller);
  expect(context?.revision).toBe(caller.context.revision);
  expect(context?.logLevel).toBe("info");
  expect(context?.answers).toEqual({});
  expect(context?.state).toBeUndefined();
  expect(hungUp).toEqual([50]);
  expect(caller.notifications).toEqual([{ method: "notifications/x" }]);
});

it("the rest of the context has a `hangUp` that does nothing without a stream", async () => {
  const result = await fakeClient(tool(({ hangUp }) => hangUp(1))).call("tools/call", call());
  expect(result["isError"]).toBe(false);
});

it("the rest of the context reads the signal only when the handler does", async () => {
  const server = tool(() => "x");
  const { context } = fakeClient(server);
  const guarded = Object.defineProperty({ ...context }, "signal", {
    get: () => {
      throw new Error("read");
    },
  });
  expect(await server({ method: "tools/call", params: call() }, guarded)).toMatchObject({ isError: false });
});

it("the rest of the context is passed to resources and prompts too", async () => {
  const server = createServer({ name: "test", version: "1" })
    .resource("a:b", {}, (_uri, { log }) => log("info", "resource") ?? "x")
    .template("t:{id}", {}, (_variables, { log }) => log("info", "template") ?? "x")
    .prompt("p", {}, (_args, { log }) => log("info", "prompt") ?? "x");
  const caller = fakeClient(server, { logLevel: "debug" });
  await caller.call("resources/read", { uri: "a:b" });
  await caller.call("resources/read", { uri: "t:1" });
  await caller.call("prompts/get", { name: "p" });
  expect(caller.notifications.map(({ params }) => params?.["data"])).toEqual(["resource", "template", "prompt"]);
});
