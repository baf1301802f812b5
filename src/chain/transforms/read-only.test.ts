// Only tools that declare themselves read-only are listed and can be called, judged by the caller's own list.

import { afterEach, expect, it, vi } from "vitest";
import { callRequest, fakeClient, fakeContext, textResult } from "../../../test/support/handlers/fake-client.ts";
import { connect } from "../../client/connect.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context, Handler, Notification } from "../../core/handler.ts";
import { createServer } from "../../server/server.ts";
import { chain } from "../chain.ts";
import { readOnly } from "./read-only.ts";

afterEach(() => void vi.useRealTimers());

const tool = (name: string, annotations?: object) => ({ name, inputSchema: { type: "object" }, annotations });

/** A server that shows these tools to a caller, and runs all tools. */
function upstream(toolsOf: (context: Context) => readonly object[]) {
  const methods: string[] = [];
  const handler: Handler = async ({ method }, context) => {
    methods.push(method);
    return method === "tools/list" ? { tools: toolsOf(context) } : textResult("ran");
  };
  return { methods, handler };
}

it("shows and runs only tools that say they are read-only", async () => {
  const server = createServer({ name: "notes", version: "1" })
    .tool("read", { annotations: { readOnlyHint: true } }, () => "read")
    .tool("write", { annotations: { readOnlyHint: false, destructiveHint: false } }, () => "written")
    .tool("odd", { annotations: { readOnlyHint: true, destructiveHint: true } }, () => "odd")
    .tool("silent", {}, () => "silent")
    .prompt("write", {}, () => "prompt")
    .resource("note://1", { name: "one" }, () => "1");
  const client = await connect(chain(readOnly()).to(server));
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["read"]);
  expect(await client.callTool("read")).toMatchObject({ content: [{ text: "read" }] });
  for (const name of ["write", "odd", "silent", "none"]) {
    await expect(client.callTool(name)).rejects.toMatchObject({
      kind: "tool_not_found",
      message: `Tool not found: ${name}`,
    });
  }
  expect((await client.listPrompts()).prompts).toHaveLength(1);
  expect((await client.readResource("note://1")).contents).toHaveLength(1);
  await client.close();
});

it("lets the tools of `include` pass", async () => {
  const { handler, methods } = upstream(() => [tool("add_note"), tool("add", { destructiveHint: true }), tool("move")]);
  const { call, callError } = fakeClient(chain(readOnly({ include: ["add*"] })).to(handler));
  expect(await call("tools/call", { name: "add" })).toEqual(textResult("ran"));
  expect(methods).toEqual(["tools/call"]);
  expect(await call("tools/list")).toMatchObject({ tools: [{ name: "add_note" }, { name: "add" }] });
  expect((await callError("tools/call", { name: "move" })).kind).toBe("tool_not_found");
});

it("reads all pages for a tool that it does not know, once", async () => {
  const cursors: unknown[] = [];
  const gateway = chain(readOnly()).to(async ({ method, params }) => {
    if (method !== "tools/list") return textResult("ran");
    cursors.push(params["cursor"]);
    return params["cursor"] === undefined
      ? { tools: [tool("first")], nextCursor: "2" }
      : { tools: [tool("second", { readOnlyHint: true })] };
  });
  const { call, callError } = fakeClient(gateway);
  for (let count = 0; count < 2; count += 1) {
    expect(await call("tools/call", { name: "second" })).toEqual(textResult("ran"));
    expect((await callError("tools/call", { name: "first" })).kind).toBe("tool_not_found");
  }
  expect(cursors).toEqual([undefined, "2"]);
  expect(await call("tools/list")).toEqual({ tools: [], nextCursor: "2" });
});

it("judges a tool by the list of the caller, and not by that of another", async () => {
  const { handler } = upstream(({ caller }) => [tool("look", { readOnlyHint: caller.principal === "ada" })]);
  const gateway = chain(readOnly()).to(handler);
  const [ada, bea] = [fakeContext({ principal: "ada" }), fakeContext({ principal: "bea" })];
  expect(await gateway(callRequest("look"), ada.context)).toEqual(textResult("ran"));
  await expect(gateway(callRequest("look"), bea.context)).rejects.toMatchObject({ kind: "tool_not_found" });
  expect(await gateway(callRequest("look"), ada.context)).toEqual(textResult("ran"));
  const elsewhere: Context = { ...bea.context, caller: { ...ada.context.caller, principal: "bea", endpoint: "/x" } };
  await expect(gateway(callRequest("look"), elsewhere)).rejects.toMatchObject({ kind: "tool_not_found" });
});

it("reads the list again when it has changed, and after a minute", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  let isReadOnly = true;
  let notify: ((notification: Notification) => void) | undefined;
  const { handler, methods } = upstream(() => [tool("look", { readOnlyHint: isReadOnly })]);
  const gateway = chain(readOnly()).to((request, context) => {
    if (request.method !== "subscriptions/listen") return handler(request, context);
    notify = context.notify;
    return new Promise(() => undefined);
  });
  const { call, callError, notifications } = fakeClient(gateway);
  void call("subscriptions/listen", { notifications: { toolsListChanged: true } });
  await call("tools/call", { name: "look" });
  isReadOnly = false;
  notify?.({ method: "notifications/tools/list_changed" });
  expect(notifications).toHaveLength(1);
  expect((await callError("tools/call", { name: "look" })).kind).toBe("tool_not_found");
  isReadOnly = true;
  expect((await callError("tools/call", { name: "look" })).kind).toBe("tool_not_found");
  vi.advanceTimersByTime(60_000);
  expect(await call("tools/call", { name: "look" })).toEqual(textResult("ran"));
  expect(methods.filter((method) => method === "tools/list")).toHaveLength(3);
});

it("says why the list could not be read, and runs nothing", async () => {
  let ran = false;
  const gateway = chain(readOnly()).to(async ({ method }) => {
    if (method === "tools/list") throw new ConnectionError("closed", "The upstream is gone");
    ran = true;
    return textResult("ran");
  });
  await expect(gateway(callRequest("look"), fakeContext().context)).rejects.toThrow("The upstream is gone");
  expect(ran).toBe(false);
});

it("judges the tools of each gateway by the lists of that gateway", async () => {
  const shared = readOnly();
  const [reads, writes] = [true, false].map((readOnlyHint) =>
    fakeClient(chain(shared).to(upstream(() => [tool("look", { readOnlyHint })]).handler)),
  );
  expect(await reads?.call("tools/call", { name: "look" })).toEqual(textResult("ran"));
  expect((await writes?.callError("tools/call", { name: "look" }))?.kind).toBe("tool_not_found");
  expect(await reads?.call("tools/call", { name: "look" })).toEqual(textResult("ran"));
});

it.each([1, 3])("knows every tool of a long list in %i pages", async (pages) => {
  const size = 10_500 / pages;
  let lists = 0;
  const gateway = chain(readOnly()).to(async ({ method, params }) => {
    if (method !== "tools/list") return textResult("ran");
    lists += 1;
    const at = Number(params["cursor"] ?? 0);
    const tools = Array.from({ length: size }, (_, n) => tool(`t${at * size + n}`, { readOnlyHint: true }));
    return at + 1 < pages ? { tools, nextCursor: String(at + 1) } : { tools };
  });
  const { call } = fakeClient(gateway);
  for (const name of ["t0", "t5000", "t10499"]) expect(await call("tools/call", { name })).toEqual(textResult("ran"));
  expect(lists).toBe(pages);
});
