// What the documents change in results and errors. test/contract/messages/seeds.test.ts plays their messages to servers.

import { describe, expect, it } from "vitest";
import type { Context, Handler, Request, Result } from "../core/handler.ts";
import type { ErrorBody } from "../jsonrpc/message.ts";
import { compatRules, type DocumentName, DOCUMENTS } from "./compat-documents.ts";
import { McpError } from "./errors.ts";
import { FAILED_EVALUATION } from "./failed-evaluation.ts";
import { META } from "./model/base.ts";

const rules = (name: DocumentName): ReturnType<typeof compatRules> => compatRules(DOCUMENTS[name]);

/** The result of a method, as the document has it. */
function resultOf(name: DocumentName, method: string, result: Result): Promise<Result> {
  const handler: Handler = () => Promise.resolve(result);
  const request: Request = { method, params: {} };
  return rules(name).handler(handler)(request, {} as Context);
}

const text = (value: string): readonly object[] => [{ type: "text", text: value }];

const infoOf = async (name: string): Promise<unknown> => {
  const given = { capabilities: {}, _meta: { [META.serverInfo]: { name, version: "2.0.0" } } };
  return (await resultOf("chain", "server/discover", given))._meta?.[META.serverInfo];
};

it.each(["catenary", "catenary-lisp"])("a name that no author gave is replaced: %s", async (name) => {
  expect(await infoOf(name)).toEqual({ name: "mcp-chain-server", version: "1.0.0" });
});

it.each(["weather", "catenary2"])("a name of an author stays: %s", async (name) => {
  expect(await infoOf(name)).toEqual({ name, version: "2.0.0" });
});

it("a name is the document's if the server sent none", async () => {
  const result = await resultOf("reference", "server/discover", { capabilities: {} });
  expect(result._meta).toEqual({ [META.serverInfo]: { name: "my-mcp-server", version: "1.0.0" } });
});

it("declares only what the server and the document have, without instructions", async () => {
  const lists = { listChanged: true };
  const given = { capabilities: { tools: lists, logging: {} }, instructions: "Hi" };
  const capabilities = async (name: DocumentName): Promise<Result> => {
    const { _meta, ...rest } = await resultOf(name, "server/discover", given);
    return rest;
  };
  expect(await capabilities("cl-mcp")).toEqual({ capabilities: { tools: {} } });
  expect(await capabilities("llm-pharo")).toEqual({ capabilities: { tools: { listChanged: false } } });
  expect(await capabilities("chain")).toEqual({ capabilities: { tools: {} } });
  expect(await capabilities("reference")).toEqual({ capabilities: { tools: lists } });
});

it.each([
  ["cl-mcp", "resources/list"],
  ["cl-mcp", "resources/read"],
  ["cl-mcp", "prompts/list"],
  ["llm-pharo", "completion/complete"],
] as const)("%s has no method %s, since it does not know its capability", async (name, method) => {
  await expect(resultOf(name, method, {})).rejects.toMatchObject({ kind: "method_not_found", data: { method } });
});

it("a list has the items of the document that the server has, and no others", async () => {
  const prompts = [{ name: "review-class" }, { name: "explain-method" }];
  expect(await resultOf("llm-pharo", "prompts/list", { prompts })).toEqual({
    prompts: DOCUMENTS["llm-pharo"].items?.["prompts"],
  });
});

it("a list stays if the server has no item of the document", async () => {
  const tools = { tools: [{ name: "search" }] };
  expect(await resultOf("cl-mcp", "tools/list", tools)).toBe(tools);
  const resources = { resources: [{ uri: "a:b", name: "b" }] };
  expect(await resultOf("chain", "resources/list", resources)).toBe(resources);
});

/** Sends a request to a server whose tools fill several pages. Also returns the cursors of the requests it gets. */
async function listPages(pages: readonly (readonly string[])[], params: object = {}): Promise<[Result, unknown[]]> {
  const cursors: unknown[] = [];
  const handler: Handler = async ({ params: { cursor } }) => {
    cursors.push(cursor);
    const page = Number(cursor ?? 0);
    const tools = (pages[page] ?? []).map((name) => ({ name }));
    return page + 1 < pages.length ? { tools, nextCursor: String(page + 1) } : { tools };
  };
  const request: Request = { method: "tools/list", params: { ...params } };
  return [await rules("cl-mcp").handler(handler)(request, {} as Context), cursors];
}
const tools = DOCUMENTS["cl-mcp"].items?.["tools"];

it("a list of several pages is one page with the items of the document, wherever they are", async () => {
  expect(await listPages([["a", "b"], ["c"], ["evaluate-lisp", "d"]])).toEqual([{ tools }, [undefined, "1", "2"]]);
  expect(await listPages([["evaluate-lisp"], ["a"]])).toEqual([{ tools }, [undefined]]);
});

it("a list of several pages stays if no page has an item of the document", async () => {
  const pages = [["a", "b"], ["c"]];
  const [first, cursors] = await listPages(pages);
  expect(first).toEqual({ tools: [{ name: "a" }, { name: "b" }], nextCursor: "1" });
  expect(cursors).toEqual([undefined, "1"]);
  expect(await listPages(pages, { cursor: "1" })).toEqual([{ tools: [{ name: "c" }] }, ["1"]]);
});

it.each([
  ["cl-mcp", false],
  ["llm-pharo", undefined],
  ["chain", false],
  ["reference", undefined],
] as const)("the result of a call of %s says isError: %j", async (name, isError) => {
  expect(await resultOf(name, "tools/call", { content: text("7") })).toEqual({ content: text("7"), isError });
  const explicit = await resultOf(name, "tools/call", { content: text("7"), isError: false });
  expect(explicit["isError"]).toBe(name === "reference" ? false : isError);
});

it.each([
  ["llm-pharo", "no", "Error: no"],
  ["llm-pharo", "Error: no", "Error: no"],
  ["cl-mcp", "no", "no"],
  ["chain", "no", "no"],
] as const)(
  "the result of a call of %s that fails with %j has the text of the document",
  async (name, given, expected) => {
    const result = await resultOf(name, "tools/call", { content: text(given), isError: true });
    expect(result).toEqual({ content: text(expected), isError: true });
  },
);

/** The text that a document makes of an evaluation. */
async function failedText(name: DocumentName, rest: string, error?: object, current = "ours"): Promise<unknown> {
  const block = { type: "text", text: current, [FAILED_EVALUATION]: { text: "ours", error, rest: () => rest } };
  const { content } = await resultOf(name, "tools/call", { content: [block], isError: true });
  return (content as [{ text: string }])[0].text;
}
const error = { type: "E", message: "no", frames: [] };
const frames = [
  { number: 0, text: "(F 1)", locals: [{ name: "X", value: "1" }] },
  { number: 1, text: "(G)" },
];

it.each([
  ["llm-pharo", "", { ...error, frames }, "Error: no"],
  ["llm-pharo", "out\n[Warning] W: w", { ...error, frames }, "Error: no"],
  ["llm-pharo", "[TIMEOUT] Late", undefined, "Error: [TIMEOUT] Late"],
  ["cl-mcp", "", error, "[ERROR] E\nno\n\n[Backtrace]\n(top level)"],
  ["cl-mcp", "", { ...error, frames }, "[ERROR] E\nno\n\n[Backtrace]\n0: (F 1)\n1: (G)"],
  ["cl-mcp", "out\n[Warning] W: w", error, "out\n[Warning] W: w\n[ERROR] E\nno\n\n[Backtrace]\n(top level)"],
  ["cl-mcp", "[Backtrace]", error, "[Backtrace]\n[ERROR] E\nno\n\n[Backtrace]\n(top level)"],
  ["cl-mcp", "[TIMEOUT] Late\n\nIt ended.", undefined, "[TIMEOUT] Late\n\nIt ended."],
  ["chain", "out", error, "ours"],
] as const)(
  "the result of a call of %s tells of an evaluation in the words of the document: %j %j",
  async (name, rest, given, expected) => {
    expect(await failedText(name, rest, given)).toBe(expected);
  },
);

it("the result of a call of an evaluation stays as middleware has changed it", async () => {
  expect(await failedText("cl-mcp", "the token", error, "***")).toBe("***");
});

it("the result of a call that has no content stays", async () => {
  const result = { resultType: "input_required" as const, inputRequests: {} };
  expect(await resultOf("chain", "tools/call", result)).toBe(result);
});

describe("an error", () => {
  const error = (name: DocumentName, given: McpError): ErrorBody => rules(name).error(given.toBody(), given.kind);

  it.each([
    ["cl-mcp", { code: -32603, message: "Internal error", data: "no" }],
    ["llm-pharo", { code: -32603, message: "Internal error: no" }],
    ["chain", { code: -32603, message: "Internal error", data: "no" }],
    ["reference", { code: -32603, message: "Internal error", data: { details: "no" } }],
  ] as const)("an error of %s says what is wrong once", (name, expected) => {
    expect(error(name, McpError.of("internal_error", "Internal error: no"))).toEqual(expected);
  });

  it("an error of llm-pharo for a missing resource has a code of its table, and names no tool that is not listed", () => {
    const missing = McpError.of("resource_not_found", "There is no class X; search-classes finds classes", {
      uri: "a:b",
      hint: "search-classes finds classes",
    });
    expect(error("llm-pharo", missing)).toEqual({ code: -32602, message: "There is no class X" });
  });

  it("an error keeps its text if it names nothing that is missing", () => {
    const asTask = McpError.of("method_not_found", "Tool x must be called as a task");
    expect(error("cl-mcp", asTask).data).toBe("Tool x must be called as a task");
  });

  it("an error stays if the document does not name its code, or it has no kind", () => {
    const rejected = McpError.of("user_rejected", "no", { a: 1 });
    expect(error("chain", rejected)).toEqual(rejected.toBody());
    expect(error("chain", new McpError(-32601, "mine"))).toEqual({ code: -32601, message: "mine" });
  });
});

it("answers what is not a message as the document shows it", () => {
  const fault = (code: number, message: string, data: unknown): unknown => ({
    jsonrpc: "2.0",
    id: null,
    error: { code, message, data },
  });
  const missing = fault(-32600, "Invalid Request", "Missing required field: jsonrpc");
  const broken = fault(-32700, "Parse error", { kind: "parse_error", details: "unexpected end" });
  const answer = (name: DocumentName, given: unknown): unknown => rules(name).fault(given as never);
  expect(answer("cl-mcp", missing)).toEqual(missing);
  expect(answer("cl-mcp", broken)).toEqual(fault(-32700, "Parse error", "unexpected end"));
  expect(answer("chain", broken)).toEqual(fault(-32700, "Parse error", undefined));
  expect(answer("llm-pharo", missing)).toEqual(
    fault(-32600, "Invalid Request: Missing required field: jsonrpc", undefined),
  );
});
