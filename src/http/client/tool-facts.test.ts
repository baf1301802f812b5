// Tools that declare headers, rightly and wrongly, the headers of their calls, and which calls may be made twice.

import { expect, test } from "vitest";
import type { Context } from "../../core/handler.ts";
import type { Handler, Request } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { ToolFacts } from "./tool-facts.ts";

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

test("a tool that declares a header wrongly is left out and told of; the others are as they came", async () => {
  const said: string[] = [];
  const book = new ToolFacts((text) => said.push(text));
  book.mirrors = true;
  const good = tool("good", "Text");
  const result = await book.over(listing(tool("bad", "two words"), good), NEWEST)(
    { method: "tools/list", params: {} },
    context,
  );
  expect(result["tools"]).toEqual([good]);
  expect((result["tools"] as unknown[])[0]).toBe(good);
  expect(said).toHaveLength(1);
  expect(said[0]).toContain('"bad"');
});

test("arguments are mirrored into the headers that the list named", async () => {
  const book = new ToolFacts(() => undefined);
  book.mirrors = true;
  await book.over(listing(tool("echo", "Text"), tool("plain")), NEWEST)({ method: "tools/list", params: {} }, context);
  expect(book.headersFor(call("echo"))).toEqual({ "mcp-param-text": "a" });
  expect(book.headersFor(call("echo", { text: null }))).toEqual({});
  expect(book.headersFor(call("plain"))).toEqual({});
  expect(book.headersFor(call("unknown"))).toEqual({});
});

test("an end that reads no headers keeps all its tools", async () => {
  const book = new ToolFacts(() => undefined);
  const result = await book.over(listing(tool("bad", "two words")), NEWEST)(
    { method: "tools/list", params: {} },
    context,
  );
  expect(result["tools"]).toHaveLength(1);
  expect(book.headersFor(call("bad"))).toEqual({});
});

test("a call that was refused for its headers is made again when the list says which are wanted, and not otherwise", async () => {
  const book = new ToolFacts(() => undefined);
  book.mirrors = true;
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
  const over = book.over(end, NEWEST);
  // Known, but not as it is now.
  await book.over(listing(tool("echo"), tool("other")), NEWEST)({ method: "tools/list", params: {} }, context);
  expect(await over(call("echo"), context)).toEqual({ content: [] });
  expect(calls).toBe(2);
  await expect(over(call("other"), context)).rejects.toThrow("Header mismatch");
  expect(calls).toBe(3);
});

test("a tool is safe to call twice where it says so", async () => {
  const book = new ToolFacts(() => undefined);
  const tools = [
    tool("reads", undefined, { readOnlyHint: true }),
    tool("same", undefined, { idempotentHint: true }),
    tool("writes", undefined, { readOnlyHint: false }),
    tool("silent"),
  ];
  await book.over(listing(...tools), NEWEST)({ method: "tools/list", params: {} }, context);
  expect(["reads", "same", "writes", "silent", "unknown"].map((name) => book.isSafe(name))).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
});

test("the list is read before the first call of a tool that nobody has listed, once for all, and again after a change", async () => {
  const book = new ToolFacts(() => undefined);
  book.mirrors = true;
  const asked: string[] = [];
  const end: Handler = async (request, given) => {
    asked.push(request.method);
    return request.method === "tools/list" ? listing(tool("echo", "Text"))(request, given) : { content: [] };
  };
  const over = book.over(end, NEWEST);
  await Promise.all([over(call("echo"), context), over(call("echo"), context), over(call("unknown"), context)]);
  await over(call("unknown"), context);
  expect(asked.filter((method) => method === "tools/list")).toHaveLength(1);
  expect(asked[0]).toBe("tools/list");
  expect(book.headersFor(call("echo"))).toEqual({ "mcp-param-text": "a" });
  book.forget();
  await over(call("echo"), context);
  expect(asked.filter((method) => method === "tools/list")).toHaveLength(2);
});
