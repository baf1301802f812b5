// Every method of a client, with a handler in this process and with the same handler in each revision; and the pages of
// lists.

import { afterEach, describe, expect, it } from "vitest";
import { sampleServer, type SampleServer } from "../../test/support/handlers/sample-server.ts";
import type { Result } from "../core/handler.ts";
import type { LogMessageParams } from "../protocol/model/index.ts";
import { REVISIONS } from "../protocol/revisions/index.ts";
import { connectInMemory } from "../testing.ts";
import { type Client, itemPages } from "./client.ts";
import { connect, type ConnectOptions } from "./connect.ts";
import type { Progress } from "./contexts.ts";

type Join = (stage: SampleServer, options?: ConnectOptions) => Promise<Client>;

const TARGETS: readonly (readonly [string, Join])[] = [
  ["a handler", ({ handler }, options) => connect(handler, options)],
  ...REVISIONS.map(({ name }): readonly [string, Join] => [
    name,
    async ({ handler }, options) => {
      const { client, close } = await connectInMemory(handler, { ...options, revision: name });
      closers.push(close);
      return client;
    },
  ]),
];

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

const NAMES = ["echo", "hold", "ask", "notes", "boom"];

it("keeps the `_meta` of a list, even of one that the server does not have", async () => {
  const client = await connect(async ({ method, params }) => {
    if (method === "server/discover") return { capabilities: { tools: {} }, _meta: { "x/away": ["b"] } };
    const cursor = params["cursor"];
    return { tools: [], _meta: { "x/away": [cursor ?? "a"] }, ...(cursor === undefined && { nextCursor: "2" }) };
  });
  expect((await client.listTools())._meta).toMatchObject({ "x/away": ["a"] });
  expect(await client.listPrompts()).toMatchObject({ prompts: [], _meta: { "x/away": ["b"] } });
});

describe.each(TARGETS)("a client of %s", (target, join) => {
  it("a client has the server's description of itself", async () => {
    const client = await join(sampleServer());
    expect(client.revision).toBe(REVISIONS.find(({ name }) => name === target)?.name ?? REVISIONS.at(-1)?.name);
    expect(client.server).toEqual({ name: "sample", version: "1" });
    expect(client.capabilities).toMatchObject({ tools: { listChanged: true }, logging: {} });
    expect(client.instructions).toBe("Ask away.");
  });

  it("a client: calls, reads, gets and completes", async () => {
    const client = await join(sampleServer());
    expect(await client.callTool("echo", { text: "hi" })).toMatchObject({ content: [{ type: "text", text: "hi" }] });
    expect(await client.readResource("test://a")).toMatchObject({ contents: [{ uri: "test://a" }] });
    expect(await client.getPrompt("p", { word: "yes" })).toMatchObject({
      messages: [{ content: { text: "Say yes" } }],
    });
    expect((await client.getPrompt("p")).messages).toHaveLength(1);
    const completed = await client.complete({ type: "ref/prompt", name: "p" }, { name: "word", value: "a" });
    expect(completed.completion.values).toEqual(["a1", "a2"]);
    await client.ping();
    expect(await client.request("tools/call", { name: "echo", arguments: { text: "again" } })).toMatchObject({
      content: [{ text: "again" }],
    });
  });

  it("a client lists all pages, one page, and single items", async () => {
    const there = sampleServer();
    const client = await join(there);
    const { requests } = there;
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(NAMES);
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(NAMES);
    expect((await client.listResources()).resources.map(({ name }) => name)).toEqual(NAMES);
    expect((await client.listResourceTemplates()).resourceTemplates.map(({ name }) => name)).toEqual(NAMES);
    expect(await client.listTools({ cursor: "2" })).toMatchObject({
      tools: [{ name: "ask" }, { name: "notes" }],
      nextCursor: "4",
    });
    const before = requests.length;
    const seen: string[] = [];
    for await (const { name } of client.tools()) {
      seen.push(name);
      if (name === "ask") break;
    }
    expect(seen).toEqual(["echo", "hold", "ask"]);
    expect(requests.length - before).toBe(2);
    for (const items of [client.resources(), client.resourceTemplates(), client.prompts()]) {
      expect(await items.next()).toMatchObject({ done: false, value: { name: "echo" } });
      await items.return();
    }
  });

  it("a client throws the errors of the server unchanged", async () => {
    const client = await join(sampleServer());
    await expect(client.callTool("none")).rejects.toMatchObject({ name: "McpError", kind: "tool_not_found" });
    await expect(client.callTool("boom")).rejects.toMatchObject({
      name: "McpError",
      message: "Internal error: it broke",
    });
    await expect(client.readResource("test://none")).rejects.toMatchObject({
      kind: "resource_not_found",
      code: -32602,
    });
    await expect(client.request("no/such")).rejects.toMatchObject({ kind: "method_not_found" });
    await expect(client.listTools({ cursor: "x" })).rejects.toMatchObject({ code: -32602 });
    await expect(client.request("tools/call", {} as never)).rejects.toMatchObject({ code: -32602 });
  });

  it("a client receives the progress and logs that a call asks for, and no others", async () => {
    const progress: Progress[] = [];
    const logs: unknown[] = [];
    const client = await join(sampleServer());
    await client.callTool(
      "notes",
      {},
      { logLevel: "info", onProgress: (p) => progress.push(p), onLog: ({ data }) => logs.push(data) },
    );
    expect(progress).toMatchObject([{ progress: 1, total: 2 }]);
    expect(progress[0]).not.toHaveProperty("progressToken");
    expect(logs).toEqual(["info note", "error note"]);
    await client.callTool("notes");
    expect(progress).toHaveLength(1);
    expect(logs).toHaveLength(2);
  });

  it("a client receives logs from level info, or from the level that was set", async () => {
    const logs: LogMessageParams[] = [];
    const all: string[] = [];
    const client = await join(sampleServer(), {
      onLog: (log) => logs.push(log),
      onNotification: ({ method }) => all.push(method),
    });
    await client.callTool("notes");
    expect(logs.map(({ level }) => level)).toEqual(["info", "error"]);
    await client.setLogLevel("error");
    await client.callTool("notes");
    expect(logs.slice(2).map(({ level }) => level)).toEqual(["error"]);
    await client.callTool("notes", {}, { logLevel: "debug" });
    expect(logs.slice(3).map(({ level }) => level)).toContain("error");
    expect(all).toContain("notifications/message");
  });

  it("a client is over when it is closed", async () => {
    const there = sampleServer();
    const client = await join(there, { timeoutMs: 0, maxTimeoutMs: 0 });
    const call = client.callTool("hold", { key: "a" });
    const failed = expect(call).rejects.toMatchObject({ name: "ConnectionError", kind: "closed" });
    const { signal } = await there.holding("a");
    const aborted = new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    await client.close();
    await failed;
    await aborted;
    expect(await client.closed).toBeUndefined();
    await expect(client.listTools()).rejects.toMatchObject({ kind: "closed" });
    await client.close();
    await client[Symbol.asyncDispose]();
  });
});

it("client.handler is a plain handler", async () => {
  const { handler, requests } = sampleServer();
  const client = await connect(handler);
  const other = await connect(client.handler);
  expect(await other.callTool("echo", { text: "through" })).toMatchObject({ content: [{ text: "through" }] });
  expect(requests.at(-1)).toMatchObject({ method: "tools/call", params: { name: "echo" } });
  await client.close();
  await expect(other.callTool("echo", { text: "late" })).rejects.toMatchObject({
    name: "ConnectionError",
    kind: "closed",
  });
  await other.close();
});

async function walk(fetch: (cursor: string | undefined) => Result): Promise<unknown[]> {
  const items: unknown[] = [];
  for await (const page of itemPages("tools/list", "tools", async (cursor) => fetch(cursor))) items.push(...page);
  return items;
}

it("itemPages passes each cursor unchanged, even an empty one", async () => {
  const cursors: (string | undefined)[] = [];
  const next = new Map<string | undefined, string>([
    [undefined, ""],
    ["", " a"],
  ]);
  const items = await walk((cursor) => {
    cursors.push(cursor);
    const nextCursor = next.get(cursor);
    return { tools: [cursor ?? "first"], ...(nextCursor === undefined ? undefined : { nextCursor }) };
  });
  expect(cursors).toEqual([undefined, "", " a"]);
  expect(items).toEqual(["first", "", " a"]);
});

it("itemPages takes null as the last page", async () => {
  expect(await walk(() => ({ tools: [1], nextCursor: null }))).toEqual([1]);
});

it("itemPages stops at a list that never ends", async () => {
  let count = 0;
  await expect(walk(() => ({ tools: [], nextCursor: String((count += 1)) }))).rejects.toThrow("more than 1000 pages");
  expect(count).toBe(1_000);
});

it("itemPages stops at an invalid result", async () => {
  await expect(walk(() => ({}))).rejects.toThrow("no array `tools`");
  await expect(walk(() => ({ tools: [], nextCursor: 7 }))).rejects.toThrow("its `nextCursor` is not a string");
  await expect(walk(() => ({ tools: [], nextCursor: "a" }))).rejects.toThrow("its pages repeat");
});
