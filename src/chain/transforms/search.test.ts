// Three tools in place of many: what callers see, find and call, each in its own list.

import { afterEach, expect, it } from "vitest";
import { fakeContext, textResult } from "../../../test/support/handlers/fake-client.ts";
import type { Handler, Middleware, Result } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";
import { NEWEST, NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { createServer } from "../../server/server.ts";
import { connectInMemory } from "../../testing.ts";
import { chain } from "../chain.ts";
import type { Gateway } from "../gateway.ts";
import { filter } from "./filter.ts";
import { search, type SearchOptions } from "./search.ts";

/** Two pages of tools. `_meta` of a call is echoed. */
const upstream: Handler = async ({ method, params }) => {
  if (method === "server/discover") return { capabilities: { tools: {} }, instructions: "Be brief." };
  if (method !== "tools/list") return { ...textResult(JSON.stringify(params)), isError: params["name"] === "fails" };
  const tool = (name: string, description: string): object => ({
    name,
    description,
    inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  });
  return params["cursor"] === undefined
    ? { tools: [tool("notes_add", "Adds a note."), tool("notes_find", "Finds notes.")], nextCursor: "2", ttlMs: 5 }
    : { tools: [tool("mail_send", "Sends a mail."), tool("search-tools", "Another tool of this name.")] };
};

let gateway: Gateway | undefined;
afterEach(() => gateway?.close());

function start(options?: SearchOptions, ...more: readonly Middleware[]) {
  const opened = chain(search(options), ...more).to(upstream);
  gateway = opened;
  return (name: string, args: object): Promise<Result> =>
    opened({ method: "tools/call", params: { name, arguments: args } }, fakeContext().context);
}

async function listed(options?: SearchOptions): Promise<Result> {
  start(options);
  return (gateway as Gateway)({ method: "tools/list", params: {} }, fakeContext().context);
}

const names = ({ tools }: Result): string[] => (tools as { name: string }[]).map(({ name }) => name);
const text = ({ content }: Result): string[] => (content as { text: string }[]).map((block) => block.text);

it("shows three tools, and those that are included", async () => {
  const plain = await listed();
  expect(names(plain)).toEqual(["search-tools", "describe-tools", "call-tool"]);
  expect(plain).toMatchObject({ ttlMs: 5 });
  expect(plain["nextCursor"]).toBeUndefined();
  const some = await listed({ include: ["mail_*", "search-tools"] });
  expect(names(some)).toEqual(["search-tools", "describe-tools", "call-tool", "mail_send"]);
});

it("tells in the instructions how tools are found", async () => {
  start();
  const discovered = await (gateway as Gateway)({ method: "server/discover", params: {} }, fakeContext().context);
  expect(discovered["instructions"]).toMatch(/^Most tools .* search-tools.*\n\nBe brief\.$/);
});

it("finds tools of all pages, with signatures", async () => {
  const call = start();
  const found = await call("search-tools", { query: "send mail" });
  expect(text(found)).toEqual(["mail_send(text: string) - Sends a mail."]);
  expect(found["structuredContent"]).toEqual({
    tools: [{ name: "mail_send", signature: "mail_send(text: string)", description: "Sends a mail." }],
    total: 1,
  });
  expect(text(await call("search-tools", { query: "", limit: 1 }))).toEqual([
    "notes_add(text: string) - Adds a note.\n(3 more; the next with offset 1)",
  ]);
  const next = await call("search-tools", { query: "", limit: 2, offset: 2 });
  expect(next["structuredContent"]).toMatchObject({ tools: [{}, {}], total: 4 });
  expect(text(next)[0]).not.toContain("more");
  const beyond = text(await call("search-tools", { query: "", offset: 4 }));
  expect(beyond).toEqual(["Only 4 match, so that there is none with offset 4."]);
  expect(text(await call("search-tools", { query: "", offset: -1 }))[0]).toContain("`offset` must be");
  expect(text(await call("search-tools", { query: "zebra" }))[0]).toMatch(/^No tool matches; there are 4 tools/);
});

it("describes tools whole, and says which ones there are not", async () => {
  const call = start();
  const described = await call("describe-tools", { names: ["notes_find", "notes_fnd"] });
  expect(described["structuredContent"]).toMatchObject({ tools: [{ name: "notes_find", inputSchema: {} }] });
  expect(text(described)[1]).toBe('There is no tool "notes_fnd"; did you mean notes_find?');
  expect(described["isError"]).toBeUndefined();
  expect(await call("describe-tools", { names: ["zebra"] })).toMatchObject({ isError: true });
});

it("calls a tool as if the caller had, with its `_meta` and its answers", async () => {
  start();
  const params = {
    name: "call-tool",
    arguments: { name: "notes_add", arguments: { text: "hi" } },
    _meta: { progressToken: 7 },
    requestState: "s",
  };
  const result = await (gateway as Gateway)({ method: "tools/call", params }, fakeContext().context);
  expect(JSON.parse(text(result)[0] ?? "")).toEqual({ ...params, name: "notes_add", arguments: { text: "hi" } });
  const call = start();
  expect(await call("call-tool", { name: "fails" })).toMatchObject({ isError: true });
  // Tools that are not listed can still be called, and the tool of the upstream with our name too.
  expect(text(await call("mail_send", {}))[0]).toContain("mail_send");
  expect(text(await call("call-tool", { name: "search-tools" }))[0]).toContain('"name":"search-tools"');
});

it.each([
  ["search-tools", {}, "`query` must be a string: words about what the tool should do"],
  ["search-tools", { query: "a", limit: 0 }, "`limit` must be a whole number above 0"],
  ["describe-tools", { names: [] }, "`names` must be an array of names of tools"],
  ["describe-tools", { names: Array.from({ length: 21 }, String) }, "`names` must have at most 20 names"],
  ["call-tool", {}, "`name` must be the name of a tool"],
  ["call-tool", { name: "a", arguments: "b" }, "`arguments` must be an object"],
])("answers %s with %j as a mistake of the model", async (name, args, message) => {
  expect(await start()(name, args)).toMatchObject({ isError: true, content: [{ text: message }] });
});

it("suggests another name if there is no such tool, and passes on other errors", async () => {
  const call = start({}, async (request, context, next) => {
    const { name } = request.params;
    if (request.method === "tools/call" && !["notes_add", "mail_send"].includes(String(name))) {
      throw McpError.of("tool_not_found", `Tool not found: ${String(name)}`);
    }
    if (request.method === "tools/call") throw McpError.of("internal_error", "no");
    return next(request, context);
  });
  expect(await call("call-tool", { name: "mail_sent" })).toMatchObject({
    isError: true,
    content: [{ text: 'There is no tool "mail_sent"; did you mean mail_send?' }],
  });
  expect(text(await call("call-tool", { name: "zebra" }))).toEqual([
    'There is no tool "zebra"; find tools with search-tools',
  ]);
  await expect(call("call-tool", { name: "mail_send" })).rejects.toMatchObject({ kind: "internal_error" });
});

it("refuses a limit that no search has", () => {
  expect(() => search({ limit: 51 })).toThrow("search: `limit` must be at most 50, not 51");
});

it("finds only what the list of the caller has", async () => {
  const call = start({}, filter({ tools: { exclude: ["mail_*"] } }));
  expect(text(await call("search-tools", { query: "mail" }))[0]).toMatch(/^No tool matches; there are 3 tools/);
  expect(await call("describe-tools", { names: ["mail_send"] })).toMatchObject({ isError: true });
  expect(await call("call-tool", { name: "mail_send" })).toMatchObject({
    isError: true,
    content: [{ text: 'There is no tool "mail_send"; find tools with search-tools' }],
  });
});

it.each([NEWEST.name, NEWEST_SESSION.name])("passes questions and progress on, in %s", async (revision) => {
  const server = createServer({ name: "s", version: "1" }).tool("greet", {}, async (_args, context) => {
    context.progress(1, 2);
    const answer = await context.ask.elicit({
      message: "Your name?",
      requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    });
    return answer.action === "accept" ? `Hello ${answer.content?.["name"]}` : "declined";
  });
  gateway = chain(search()).to(server);
  await using connection = await connectInMemory(gateway, {
    revision,
    elicit: () => ({ action: "accept", content: { name: "Ada" } }),
  });
  const progress: number[] = [];
  const result = await connection.client.callTool(
    "call-tool",
    { name: "greet" },
    { onProgress: (one) => void progress.push(one.progress) },
  );
  expect(result.content).toMatchObject([{ text: "Hello Ada" }]);
  expect(progress).toEqual([1]);
});
