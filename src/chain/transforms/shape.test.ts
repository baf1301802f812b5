// Huge results: what stays of them, that the whole can be read by its caller and by no other, and for how long.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { callRequest, fakeClient, textResult } from "../../../test/support/handlers/fake-client.ts";
import type { Caller, Handler, Params, Result } from "../../core/handler.ts";
import { McpError, methodNotFound } from "../../protocol/errors.ts";
import { createServer } from "../../server/server.ts";
import { connectInMemory, REVISION_NAMES } from "../../testing.ts";
import { chain } from "../chain.ts";
import type { Gateway } from "../gateway.ts";
import { shape, type ShapeOptions } from "./shape.ts";

let gateway: Gateway | undefined;
beforeEach(() => void vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] }));
afterEach(async () => {
  vi.useRealTimers();
  await gateway?.close();
});

interface Block {
  readonly type: string;
  readonly text?: string;
  readonly uri?: string;
  readonly [field: string]: unknown;
}

/** Calls a tool that has this result. */
async function call(result: Result, options: ShapeOptions, caller: Partial<Caller> = {}): Promise<Result> {
  await gateway?.close();
  gateway = chain(shape(options)).to(async ({ method, params }) => {
    if (method === "tools/call" && params["name"] === "a") return result;
    if (method.startsWith("tools/")) throw McpError.of("tool_not_found", "no such tool");
    throw methodNotFound(method);
  });
  return gateway(callRequest("a"), fakeClient(gateway, { caller }).context);
}

const blocks = ({ content }: Result): Block[] => content as Block[];
const uriOf = (result: Result): string => String(blocks(result).at(-1)?.uri);
const texts = (...all: string[]): Result => ({ content: all.map((text) => ({ type: "text", text })) });

async function read(uri: string, caller: Partial<Caller> = {}): Promise<unknown> {
  const { context } = fakeClient(gateway as Gateway, { caller });
  const result = await (gateway as Gateway)({ method: "resources/read", params: { uri } }, context);
  return (result["contents"] as Block[])[0]?.text;
}

it("passes on what is within the limit, and what is not a finished result", async () => {
  const short = texts("a".repeat(5), "b".repeat(5));
  expect(await call(short, { maxChars: 10 })).toBe(short);
  const question = { ...textResult("a".repeat(11)), resultType: "input_required" };
  expect(await call(question, { maxChars: 10 })).toBe(question);
});

it("keeps the beginning and the end of a text, and links the whole", async () => {
  const whole = "a".repeat(100) + "b".repeat(100);
  const result = await call({ ...texts(whole), isError: true, _meta: { x: 1 } }, { maxChars: 30 });
  expect(result).toMatchObject({ isError: true, _meta: { x: 1 } });
  const id = uriOf(result).slice("catenary://results/".length);
  const how = `to read more, call the tool read-result with {"id":"${id}","from":20}`;
  expect(blocks(result)[0]?.text).toBe(
    `${"a".repeat(20)}\n[… 170 of 200 characters left out; ${how} …]\n${"b".repeat(10)}`,
  );
  expect(blocks(result)[1]).toMatchObject({ type: "resource_link", name: "whole-result", mimeType: "text/plain" });
  expect(uriOf(result)).toMatch(/^catenary:\/\/results\/[\w-]{22}$/);
  expect(await read(uriOf(result))).toBe(whole);
});

it("cuts several blocks as one text, and leaves others alone", async () => {
  const image = { type: "image", data: "x".repeat(1_000), mimeType: "image/png" };
  const resource = { type: "resource", resource: { uri: "file:///a", text: "c".repeat(20) } };
  const { content } = texts("a".repeat(20), "b".repeat(20));
  const result = await call(
    { content: [...(content as Block[]), image, resource, ...blocks(texts("d"))] },
    { maxChars: 15 },
  );
  const [first, kept, last, end] = blocks(result);
  expect(first?.text).toMatch(/^a{10}\n\[… 46 of 61 .*"from":10\}/);
  expect(kept).toEqual(image);
  expect(last).toMatchObject({ type: "resource", resource: { uri: "file:///a", text: "cccc" } });
  expect(end?.text).toBe("d");
  expect(await read(uriOf(result))).toBe(`${"a".repeat(20)}\n${"b".repeat(20)}\n${"c".repeat(20)}\nd`);
});

it("never cuts a character in two", async () => {
  const result = await call(texts("😀".repeat(20)), { maxChars: 9 });
  expect(blocks(result)[0]?.text).toMatch(/^(?:😀)+\n\[.*\]\n(?:😀)+$/u);
  expect(await read(`${uriOf(result)}?from=1&to=5`)).toBe("😀😀");
});

it.each([1, 2, 3, 11])("gives all characters in pages of %d", async (maxChars) => {
  const whole = "ab😀".repeat(10);
  const result = await call(texts(whole), { maxChars });
  const [, id] = uriOf(result).split("results/");
  const { context } = fakeClient(gateway as Gateway);
  const pages: string[] = [];
  for (let from: number | undefined = 0; from !== undefined && pages.length < 100;) {
    const page = await (gateway as Gateway)(callRequest("read-result", { id, from }), context);
    const [{ text = "" } = {}, { text: note = "" } = {}] = blocks(page) as Partial<Block>[];
    pages.push(text);
    const next = /"from":(\d+)/.exec(note)?.[1];
    from = next === undefined ? undefined : Number(next);
  }
  expect(pages.join("")).toBe(whole);
  let ranges = "";
  for (let at = 0; at < whole.length; at += maxChars) {
    ranges += String(await read(`${uriOf(result)}?from=${at}&to=${at + maxChars}`));
  }
  expect(ranges).toBe(whole);
});

it("makes structured content shorter, but keeps its shape", async () => {
  const structuredContent = {
    name: "report",
    total: 3,
    rows: Array.from({ length: 100 }, (_, at) => ({ id: at, text: "x".repeat(3_000) })),
  };
  const result = await call({ content: [], structuredContent }, { maxChars: 5_000 });
  const { name, total, rows } = result["structuredContent"] as typeof structuredContent;
  expect([name, total]).toEqual(["report", 3]);
  expect(rows.length).toBeGreaterThan(1);
  expect(rows[0]).toEqual({ id: 0, text: expect.stringMatching(/^x+…$/) as string });
  expect(JSON.stringify(result["structuredContent"]).length).toBeLessThanOrEqual(5_000);
  expect(JSON.parse(String(await read(uriOf(result))))).toEqual(structuredContent);
  const wide = Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`key${at}`, at]));
  expect(await call({ content: [], structuredContent: wide }, { maxChars: 100 })).not.toHaveProperty(
    "structuredContent",
  );
});

it("gives ranges of the whole, and the rest if they are wrong", async () => {
  const uri = uriOf(await call(texts("0123456789".repeat(10)), { maxChars: 10 }));
  expect(await read(`${uri}?from=95&to=200`)).toBe("56789");
  expect(await read(`${uri}?from=5&to=8`)).toBe("567");
  expect(await read(`${uri}?from=8&to=5`)).toBe("");
  expect(await read(`${uri}?from=-3&to=x`)).toHaveLength(100);
});

it("lets only its caller read it: the same identity, or the same client if it has none", async () => {
  const mine = uriOf(await call(texts("a".repeat(20)), { maxChars: 10 }, { principal: "ada", key: "1" }));
  expect(await read(mine, { principal: "ada", key: "2" })).toHaveLength(20);
  for (const caller of [{ principal: "bob", key: "1" }, { key: "1" }, { key: "ada" }]) {
    await expect(read(mine, caller)).rejects.toMatchObject({ kind: "resource_not_found" });
  }
  const anonymous = uriOf(await call(texts("a".repeat(20)), { maxChars: 10 }, { key: "1" }));
  expect(await read(anonymous, { key: "1" })).toHaveLength(20);
  await expect(read(anonymous, { key: "2" })).rejects.toMatchObject({ kind: "resource_not_found" });
  await expect(read(anonymous, { principal: "1", key: "1" })).rejects.toMatchObject({ kind: "resource_not_found" });
  await expect(read("catenary://results/none", { key: "1" })).rejects.toMatchObject({ kind: "resource_not_found" });
});

it("forgets results after a while, and the oldest if there are too many bytes", async () => {
  const result = texts("a".repeat(20));
  const uri = uriOf(await call(result, { maxChars: 10, keepMs: 1_000, keepBytes: 100 }));
  vi.advanceTimersByTime(999);
  expect(await read(uri)).toHaveLength(20);
  vi.advanceTimersByTime(1);
  await expect(read(uri)).rejects.toBeInstanceOf(McpError);
  expect(vi.getTimerCount()).toBe(0);
  const again = async (): Promise<string> =>
    uriOf(await (gateway as Gateway)(callRequest("a"), fakeClient(gateway as Gateway).context));
  const [first, second, third] = [await again(), await again(), await again()];
  await expect(read(first)).rejects.toBeInstanceOf(McpError);
  expect([await read(second), await read(third)]).toHaveLength(2);
  await gateway?.close();
  expect(vi.getTimerCount()).toBe(0);
});

it("forgets the results of the caller that has most first", async () => {
  const result = texts("a".repeat(20));
  await call(result, { maxChars: 10, keepBytes: 120 });
  const add = async (key: string): Promise<string | undefined> => {
    const { context } = fakeClient(gateway as Gateway, { caller: { key } });
    return blocks(await (gateway as Gateway)(callRequest("a"), context)).find(({ uri }) => uri !== undefined)?.uri;
  };
  const ada = (await add("ada")) ?? "";
  const bob = [await add("bob"), await add("bob"), await add("bob")];
  expect(await read(ada, { key: "ada" })).toHaveLength(20);
  expect(await read(bob[2] ?? "", { key: "bob" })).toHaveLength(20);
  await expect(read(bob[0] ?? "", { key: "bob" })).rejects.toBeInstanceOf(McpError);
});

it("says nothing of a whole that is too long to be kept", async () => {
  const result = await call(texts("a".repeat(2_000)), { maxChars: 10, keepBytes: 1_000 });
  expect(blocks(result)).toHaveLength(1);
  expect(blocks(result)[0]?.text).toContain("\n[… 1,990 of 2,000 characters left out …]\n");
});

it("shows a summary instead, unless it fails", async () => {
  const whole = texts("a".repeat(20));
  const summarize = async (text: string): Promise<string> => `${text.length} times a`;
  const summed = await call(whole, { maxChars: 12, summarize });
  expect(blocks(summed)[0]?.text).toMatch(
    /^20 times a\n\[… a summary of 20 characters; to read more, .*"from":0\} …\]$/,
  );
  expect(await read(uriOf(summed))).toHaveLength(20);
  const failing = await call(whole, { maxChars: 12, summarize: () => Promise.reject(new Error("no")) });
  expect(blocks(failing)[0]?.text).toMatch(/^a{8}\n/);
});

it("keeps long structured content of a result with a short text, and says so", async () => {
  const structuredContent = { rows: Array.from({ length: 100 }, (_, at) => at) };
  const result = await call({ ...texts("100 rows"), structuredContent }, { maxChars: 100 });
  expect(blocks(result).map(({ text }) => text)).toEqual([
    "100 rows",
    expect.stringMatching(
      /^\[… the structured content is a part of 300 characters of JSON; to read more, call the tool read-result with /,
    ),
    undefined,
  ]);
  expect(await read(uriOf(result))).toBe(JSON.stringify(structuredContent));
});

it("has a tool that reads the rest, as much as a result may have", async () => {
  const uri = uriOf(await call(texts("abcdefghij", "0123456789"), { maxChars: 9 }));
  const id = uri.slice("catenary://results/".length);
  const readRest = async (args: object, caller: Partial<Caller> = {}): Promise<Result> =>
    (gateway as Gateway)(callRequest("read-result", { ...args }), fakeClient(gateway as Gateway, { caller }).context);
  const textsOf = async (args: object): Promise<unknown[]> => blocks(await readRest(args)).map(({ text }) => text);
  expect(await textsOf({ id, from: 6 })).toEqual([
    "ghij\n0123",
    `[Characters 6 to 15 of 21; for the next, call read-result with {"id":"${id}","from":15}]`,
  ]);
  expect(await textsOf({ id, from: 15 })).toEqual(["456789", "[Characters 15 to 21 of 21]"]);
  expect((await textsOf({ id: uri, to: 3 }))[0]).toBe("abc");
  expect((await textsOf({ id, from: 30 }))[0]).toBe("");
  for (const wrong of [{}, { id: 5 }, { id, from: -1 }, { id, to: "x" }, { id: "none" }]) {
    expect(await readRest(wrong)).toMatchObject({ isError: true });
  }
  expect(await readRest({ id }, { principal: "eve" })).toMatchObject({
    isError: true,
    content: [{ text: `There is no result ${id}; results are kept for a while only, so call the tool again` }],
  });
});

it("leaves what it does not know to the upstream, which may be a gateway that keeps results too", async () => {
  const long = createServer({ name: "long", version: "1" }).tool("long", {}, () => "a".repeat(50));
  const inner = chain(shape({ maxChars: 10 })).to(long);
  const other = createServer({ name: "other", version: "1" }).tool("b", {}, () => "b");
  gateway = chain(shape({ maxChars: 1_000 })).to({ inner, other });
  const client = fakeClient(gateway, { caller: { key: "1" } });
  await client.call("tools/list");
  const uri = uriOf(await client.call("tools/call", { name: "long" }));
  expect(await read(uri, { key: "1" })).toHaveLength(50);
  const rest = await client.call("tools/call", { name: "read-result", arguments: { id: uri, from: 40 } });
  expect(blocks(rest)[0]?.text).toBe("a".repeat(10));
  await expect(read(uri, { key: "2" })).rejects.toMatchObject({ kind: "resource_not_found" });
  await inner.close();
});

it("lists its tool once, on the first page", async () => {
  const pages: Handler = async ({ method, params }) => {
    if (method !== "tools/list") throw McpError.of("method_not_found", "no");
    return params["cursor"] === undefined
      ? { tools: [{ name: "a" }, { name: "read-result" }], nextCursor: "2" }
      : { tools: [{ name: "b" }] };
  };
  gateway = chain(shape()).to(pages);
  const client = fakeClient(gateway);
  const names = async (params: Params): Promise<unknown> =>
    ((await client.call("tools/list", params))["tools"] as Block[]).map(({ name }) => name);
  expect(await names({})).toEqual(["a", "read-result"]);
  expect(await names({ cursor: "2" })).toEqual(["b"]);
});

it("cuts the results of tasks that clients are notified of", async () => {
  const task = { taskId: "1", status: "completed", result: texts("a".repeat(20)) };
  gateway = chain(shape({ maxChars: 9 })).to(async (_request, context) => {
    context.notify({ method: "notifications/tasks", params: task });
    context.notify({ method: "notifications/tasks", params: { taskId: "2", status: "working" } });
    return {};
  });
  const client = fakeClient(gateway);
  await client.call("subscriptions/listen", { notifications: { taskIds: ["1", "2"] } });
  const [done, working] = client.notifications.map(({ params }) => params as { result: Result });
  expect(done).toMatchObject({ taskId: "1", status: "completed" });
  expect(await read(uriOf((done as { result: Result }).result))).toHaveLength(20);
  expect(working).toEqual({ taskId: "2", status: "working" });
});

it("cuts the results of tasks", async () => {
  const task: Handler = async () => ({ taskId: "1", status: "completed", result: texts("a".repeat(20)) });
  gateway = chain(shape({ maxChars: 9 })).to(task);
  const { context } = fakeClient(gateway);
  const { taskId, result } = await gateway({ method: "tasks/get", params: { taskId: "1" } }, context);
  expect(taskId).toBe("1");
  expect(await read(uriOf(result as Result))).toHaveLength(20);
});

it("gives resources to a server that has none, and adds a template to those of others", async () => {
  const none: Handler = async ({ method }) => {
    if (method === "server/discover") return { capabilities: { tools: {} } };
    throw McpError.of("method_not_found", "no");
  };
  gateway = chain(shape()).to(none);
  const client = fakeClient(gateway);
  expect(await client.call("server/discover")).toMatchObject({ capabilities: { tools: {}, resources: {} } });
  expect(await client.call("resources/list")).toMatchObject({ resources: [] });
  const templates = await client.call("resources/templates/list");
  expect(templates).toMatchObject({ resourceTemplates: [{ uriTemplate: "catenary://results/{id}{?from,to}" }] });
  expect((await client.callError("prompts/list")).kind).toBe("method_not_found");
});

it.each(REVISION_NAMES)("works for clients of %s", async (revision) => {
  vi.useRealTimers();
  const server = createServer({ name: "s", version: "1" }).tool("long", {}, () => "a".repeat(1_000));
  gateway = chain(shape({ maxChars: 300 })).to(server);
  await using connection = await connectInMemory(gateway, { revision });
  const { content } = await connection.client.callTool("long");
  expect(content[0]).toMatchObject({ type: "text", text: expect.stringContaining("700 of 1,000") as string });
  const link = content.at(-1) as { uri?: string; text?: string };
  // Revisions without links get the URI in a text.
  const [uri = ""] = /catenary:\/\/results\/[\w-]+/.exec(link.uri ?? link.text ?? "") ?? [];
  const { contents } = await connection.client.readResource(uri);
  expect(contents[0]).toMatchObject({ text: "a".repeat(1_000) });
  expect((await connection.client.listTools()).tools.map(({ name }) => name)).toEqual(["long", "read-result"]);
  const rest = await connection.client.callTool("read-result", { id: uri, from: 900 });
  expect(rest.content[0]).toMatchObject({ text: "a".repeat(100) });
});
