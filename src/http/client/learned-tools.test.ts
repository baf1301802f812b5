// Valid and invalid header declarations of tools, the headers of calls, and idempotent tools.

import { expect, test } from "vitest";
import type { Context, Handler, Request } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { ToolFacts } from "../../tools/facts.ts";
import { learning } from "./learned-tools.ts";

const context = { signal: new AbortController().signal } as unknown as Context;

function tool(name: string, header?: string, annotations?: object) {
  const text = header === undefined ? { type: "string" } : { type: "string", "x-mcp-header": header };
  return { name, inputSchema: { type: "object", properties: { text } }, ...(annotations && { annotations }) };
}

function listing(...tools: object[]): Handler {
  return async () => ({ resultType: "complete", tools, ttlMs: 0 });
}

function call(name: string, args: object = { text: "a" }): Request & { jsonrpc: "2.0"; id: number } {
  return { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } };
}

test("a tool with an invalid header declaration is omitted with a warning; the others are unchanged", async () => {
  const said: string[] = [];
  const book = new ToolFacts(true);
  const good = tool("good", "Text");
  const result = await learning(listing(tool("bad", "two words"), good), book, NEWEST, (text) => said.push(text))(
    { method: "tools/list", params: {} },
    context,
  );
  expect(result["tools"]).toEqual([good]);
  expect((result["tools"] as unknown[])[0]).toBe(good);
  expect(said).toHaveLength(1);
  expect(said[0]).toContain('"bad"');
});

test("arguments are mirrored into the declared headers", async () => {
  const book = new ToolFacts(true);
  await learning(
    listing(tool("echo", "Text"), tool("plain")),
    book,
    NEWEST,
    () => undefined,
  )({ method: "tools/list", params: {} }, context);
  expect(book.headersFor(call("echo"))).toEqual({ "mcp-param-text": "a" });
  expect(book.headersFor(call("echo", { text: null }))).toEqual({});
  expect(book.headersFor(call("plain"))).toEqual({});
  expect(book.headersFor(call("unknown"))).toEqual({});
});

test("a server that does not read mirrored headers keeps all its tools", async () => {
  const book = new ToolFacts();
  const result = await learning(
    listing(tool("bad", "two words")),
    book,
    NEWEST,
    () => undefined,
  )({ method: "tools/list", params: {} }, context);
  expect(result["tools"]).toHaveLength(1);
  expect(book.headersFor(call("bad"))).toEqual({});
});

test("after a header mismatch the call is repeated only if the list has other headers", async () => {
  const book = new ToolFacts(true);
  let calls = 0;
  const end: Handler = async (request, given) => {
    if (request.method === "tools/list") {
      const first = request.params["cursor"] === undefined;
      return first ? { tools: [tool("other")], nextCursor: "2" } : listing(tool("echo", "Text"))(request, given);
    }
    calls += 1;
    if (book.headersFor({ ...call("echo"), ...request })["mcp-param-text"] !== undefined) return { content: [] };
    throw McpError.of("header_mismatch", "Header mismatch");
  };
  const over = learning(end, book, NEWEST, () => undefined);
  // Known, but outdated.
  await learning(
    listing(tool("echo"), tool("other")),
    book,
    NEWEST,
    () => undefined,
  )({ method: "tools/list", params: {} }, context);
  expect(await over(call("echo"), context)).toEqual({ content: [] });
  expect(calls).toBe(2);
  await expect(over(call("other"), context)).rejects.toThrow("Header mismatch");
  expect(calls).toBe(3);
});

test("a tool is idempotent if it says so", async () => {
  const book = new ToolFacts();
  const tools = [
    tool("reads", undefined, { readOnlyHint: true }),
    tool("same", undefined, { idempotentHint: true }),
    tool("writes", undefined, { readOnlyHint: false }),
    tool("silent"),
  ];
  await learning(listing(...tools), book, NEWEST, () => undefined)({ method: "tools/list", params: {} }, context);
  expect(["reads", "same", "writes", "silent", "unknown"].map((name) => book.get(name)?.isIdempotent === true)).toEqual(
    [true, true, false, false, false],
  );
});

test("the list is read once before calls of unlisted tools, and again after a change", async () => {
  const book = new ToolFacts(true);
  const asked: string[] = [];
  const end: Handler = async (request, given) => {
    asked.push(request.method);
    return request.method === "tools/list" ? listing(tool("echo", "Text"))(request, given) : { content: [] };
  };
  const over = learning(end, book, NEWEST, () => undefined);
  await Promise.all([over(call("echo"), context), over(call("echo"), context), over(call("unknown"), context)]);
  await over(call("unknown"), context);
  expect(asked.filter((method) => method === "tools/list")).toHaveLength(1);
  expect(asked[0]).toBe("tools/list");
  expect(book.headersFor(call("echo"))).toEqual({ "mcp-param-text": "a" });
  book.forget();
  await over(call("echo"), context);
  expect(asked.filter((method) => method === "tools/list")).toHaveLength(2);
});
