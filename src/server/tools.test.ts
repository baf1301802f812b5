// Tool calls from arguments to result, with every kind of schema, and the types of arguments. List and registration are
// in tools-list.test.ts.

import { type } from "arktype";
import * as v from "valibot";
import { expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { fakeClient, withParamsCheck } from "../../test/support/handlers/fake-client.ts";
import type { Handler, Result } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import { REVISIONS } from "../protocol/revisions/index.ts";
import { META } from "../protocol/model/base.ts";
import type { ToolContext } from "./call-context.ts";
import { createServer, type Server } from "./server.ts";
import { TrustedResult } from "./tool-result.ts";

const info = { name: "test", version: "1" };
const serverMeta = { [META.serverInfo]: info };

const call = (server: Server, name: string, args?: Record<string, unknown>): Promise<Record<string, unknown>> =>
  fakeClient(server).call("tools/call", args === undefined ? { name } : { name, arguments: args });

const textResult = (text: string, isError = false): object => ({
  content: [{ type: "text", text }],
  isError,
  resultType: "complete",
  _meta: serverMeta,
});

const plain = { type: "object", properties: { text: { type: "string" } }, required: ["text"] } as const;
const server = createServer(info)
  .tool("zod", { input: z.object({ text: z.string() }) }, ({ text }) => text)
  .tool("valibot", { input: v.object({ text: v.string() }), inputSchema: plain }, ({ text }) => text)
  .tool("arktype", { input: type({ text: "string" }) }, ({ text }) => text)
  .tool("plain", { input: plain }, ({ text }) => text)
  .tool("beside", { inputSchema: plain }, (args) => String(args["text"]));
const names = ["zod", "valibot", "arktype", "plain", "beside"];
const person = { type: "object", properties: { age: { minimum: 0 } }, required: ["name"] } as const;

it.each(names)("calling a tool passes valid arguments: %s", async (name) => {
  expect(await call(server, name, { text: "hi" })).toEqual(textResult("hi"));
});

it.each(names)("calling a tool returns the issues of invalid arguments to the model: %s", async (name) => {
  const result = await call(server, name, { text: 1 });
  expect(result).toMatchObject({ isError: true, resultType: "complete" });
  const [{ text }] = result["content"] as [{ text: string }];
  expect(text).toMatch(new RegExp(`^Invalid arguments for the tool ${name}:\n- text`));
  expect((await call(server, name))["isError"]).toBe(true);
});

const older = REVISIONS.find(({ argumentErrors }) => argumentErrors)?.name ?? "none";
const callFromOlder = (of: Handler, name: string, args: object): Promise<Result> =>
  of({ method: "tools/call", params: { name, arguments: args } }, { ...fakeClient(of).context, revision: older });

it.each(names)("calling a tool refuses invalid arguments with an error in older revisions: %s", async (name) => {
  const error = await callFromOlder(server, name, { text: 1 }).catch((thrown: unknown) => thrown);
  const { code, message, data } = (error as McpError).toBody();
  expect([code, message]).toEqual([-32602, expect.stringMatching(`^Invalid params for the tool ${name}: text`)]);
  expect(data).toEqual({ kind: "invalid_params", toolName: name, details: expect.stringMatching(/^text/) });
  expect(await callFromOlder(server, name, { text: "hi" })).toEqual(textResult("hi"));
});

it("calling a tool does not check a trusted result", async () => {
  const structuredContent = { age: -1 };
  const trusting = createServer(info).tool(
    "made",
    { output: person },
    () => new TrustedResult([{ type: "text", text: "old" }], structuredContent, true) as never,
  );
  const result = await call(trusting, "made");
  expect(result).toEqual({ ...textResult("old", true), structuredContent: { age: -1 } });
  expect(result["structuredContent"]).toBe(structuredContent);
});

it("calling a tool names all issues of the arguments in the error", async () => {
  const two = createServer(info).tool("two", { input: person }, () => "x");
  await expect(callFromOlder(two, "two", { age: -1 })).rejects.toMatchObject({
    data: { toolName: "two", details: "name is required; age must be >= 0" },
  });
});

it("calling a tool returns other failures as results in all revisions", async () => {
  const fails = createServer(info).tool("t", {}, () => Promise.reject(new Error("no")));
  expect((await call(fails, "t"))["isError"]).toBe(true);
  expect((await callFromOlder(fails, "t", {}))["isError"]).toBe(true);
});

it("calling a tool passes the value that the schema returns, and {} without arguments", async () => {
  const server = createServer(info)
    .tool("defaults", { input: z.object({ n: z.number().default(7) }) }, ({ n }) => n)
    .tool("none", {}, (args) => args);
  expect((await call(server, "defaults"))["structuredContent"]).toBe(7);
  expect((await call(server, "none"))["structuredContent"]).toEqual({});
  expect((await call(server, "none", { a: 1 }))["structuredContent"]).toEqual({ a: 1 });
});

it("calling a tool refuses malformed params and unknown tools", async () => {
  const caller = fakeClient(withParamsCheck(server));
  for (const params of [{}, { name: 1 }, { name: "zod", arguments: [] }, { name: "zod", arguments: "x" }]) {
    expect((await caller.callError("tools/call", params)).kind).toBe("invalid_params");
  }
  const unknown = await caller.callError("tools/call", { name: "nope" });
  expect(unknown.message).toBe("Tool not found: nope");
  expect(unknown.data).toEqual({ kind: "tool_not_found", toolName: "nope" });
});

it("calling a tool turns a thrown error into a result without a stack", async () => {
  const server = createServer(info)
    .tool("error", {}, () => {
      throw new RangeError("too far");
    })
    .tool("empty", {}, () => {
      throw new RangeError();
    })
    .tool("late", {}, () => Promise.reject(new Error("too late")))
    .tool("text", {}, () => {
      // eslint-disable-next-line typescript/only-throw-error -- programs do
      throw "just text";
    })
    .tool("circle", {}, () => {
      const circle: { self?: unknown } = {};
      circle.self = circle;
      return circle;
    });
  expect(await call(server, "error")).toEqual(textResult("too far", true));
  expect(await call(server, "empty")).toEqual(textResult("RangeError", true));
  expect(await call(server, "late")).toEqual(textResult("too late", true));
  expect(await call(server, "text")).toEqual(textResult("just text", true));
  expect((await call(server, "circle"))["isError"]).toBe(true);
});

it("calling a tool rethrows an McpError, and any error after an abort", async () => {
  const error = McpError.of("access_denied", "not you");
  const gone = new Error("gone");
  const server = createServer(info)
    .tool("denied", {}, () => Promise.reject(error))
    .tool("aborted", {}, (_args, { signal }) => Promise.reject(signal.reason as Error));
  await expect(call(server, "denied")).rejects.toBe(error);
  const caller = fakeClient(server);
  caller.abort(gone);
  await expect(caller.call("tools/call", { name: "aborted" })).rejects.toBe(gone);
});

it("calling a tool adds the server info to the `_meta` of a result", async () => {
  const server = createServer(info).tool("t", {}, () => ({ content: [], _meta: { mine: 1 }, other: 2 }));
  expect(await call(server, "t")).toEqual({
    content: [],
    isError: false,
    other: 2,
    resultType: "complete",
    _meta: { mine: 1, ...serverMeta },
  });
});

it("calling a tool shares one frozen `_meta` otherwise", async () => {
  const first = await call(server, "zod", { text: "a" });
  const second = await call(server, "plain", { text: "a" });
  expect(second["_meta"]).toBe(first["_meta"]);
  expect(Object.isFrozen(first["_meta"])).toBe(true);
});

it("an output schema is checked, for every library", async () => {
  const sum = { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] } as const;
  const given: unknown = JSON.parse('{"sum":"3"}');
  const wrong = given as { sum: number };
  const server = createServer(info)
    .tool("zod", { output: z.object({ sum: z.number() }) }, () => wrong)
    .tool("valibot", { output: v.object({ sum: v.number() }), outputSchema: sum }, () => wrong)
    .tool("arktype", { output: type({ sum: "number" }) }, () => wrong)
    .tool("plain", { output: sum }, () => wrong)
    .tool("beside", { outputSchema: sum }, () => wrong)
    .tool("good", { output: sum }, () => ({ sum: 3 }));
  for (const name of ["zod", "valibot", "arktype", "plain", "beside"]) {
    const result = await call(server, name);
    expect(result, name).not.toHaveProperty("structuredContent");
    const [{ text }] = result["content"] as [{ text: string }];
    expect(text).toMatch(new RegExp(`^The output of the tool ${name} does not fit its schema:\n- sum`));
    expect(result["isError"]).toBe(true);
  }
  expect(await call(server, "good")).toEqual({ ...textResult('{"sum":3}'), structuredContent: { sum: 3 } });
});

it("an output schema may describe any JSON value", async () => {
  const server = createServer(info)
    .tool("list", { output: z.array(z.string()) }, () => ["a"])
    .tool("word", { output: z.string() }, () => "a");
  expect(await call(server, "list")).toMatchObject({ structuredContent: ["a"], isError: false });
  expect(await call(server, "word")).toMatchObject({ structuredContent: "a", content: [{ text: '"a"' }] });
});

it("types of tools: arguments are inferred from the schema", () => {
  const server = createServer(info);
  const literal = {
    type: "object",
    properties: { a: { type: "string" }, b: { type: "number" } },
    required: ["a"],
  } as const;
  server
    .tool("zod", { input: z.object({ text: z.string(), n: z.number().optional() }) }, (args, context) => {
      expectTypeOf(args).toEqualTypeOf<{ text: string; n?: number | undefined }>();
      expectTypeOf(context).toEqualTypeOf<ToolContext>();
    })
    .tool("valibot", { input: v.object({ text: v.string() }), inputSchema: literal }, (args) => {
      expectTypeOf(args).toEqualTypeOf<{ text: string }>();
    })
    .tool("arktype", { input: type({ text: "string" }) }, (args) => {
      expectTypeOf(args).toEqualTypeOf<{ text: string }>();
    })
    .tool("literal", { input: literal }, (args) => {
      expectTypeOf(args).toEqualTypeOf<{ a: string; b?: number }>();
    })
    .tool("in-place", { input: { type: "object", properties: { on: { type: "boolean" } } } }, (args) => {
      expectTypeOf(args).toEqualTypeOf<{ on?: boolean }>();
    })
    .tool("none", {}, (args) => {
      expectTypeOf(args).toEqualTypeOf<Record<string, unknown>>();
    })
    // @ts-expect-error: the value does not fit the output
    .tool("output", { output: z.object({ sum: z.number() }) }, () => ({ sum: "3" }));
  expect(server).toBeTypeOf("function");
});
