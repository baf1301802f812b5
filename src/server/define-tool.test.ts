// `defineTool` and `server.tools`, and the environment that handlers get from the host. The comments with
// `@ts-expect-error` are checked by the compiler.

import { expect, it } from "vitest";
import { connect } from "../client/connect.ts";
import { fetchHandler } from "../http.ts";
import { serve } from "../serve.ts";
import { connectInMemory, REVISION_NAMES } from "../testing.ts";
import { z } from "zod";
import { createServer, defineTool, type ToolContext } from "./index.ts";

const info = { name: "test", version: "1" };

interface Env {
  readonly db: { count(): number };
}

const echo = defineTool({
  name: "echo",
  description: "Echoes",
  input: z.object({ text: z.string() }),
  handler: ({ text }) => text.toUpperCase(),
});
const count = defineTool({
  name: "count",
  output: z.object({ n: z.number() }),
  handler: (_args, { env }: ToolContext<Env>) => ({ n: env.db.count() }),
});
const plain = defineTool({
  name: "plain",
  input: { type: "object", properties: { a: { type: "number" } }, required: ["a"] },
  handler: ({ a }) => a.toFixed(1),
});

const withCount = (n: number): Env => ({ db: { count: () => n } });
const createCounter = () =>
  createServer<Env>(info)
    .tools([echo, count, plain])
    .resource("a:b", {}, (_uri, { env }) => String(env.db.count()))
    .template("t:{id}", { list: ({ env }) => [{ uri: `t:${env.db.count()}`, name: "t" }] }, () => "x")
    .prompt("p", {}, (_args, { env }) => String(env.db.count()))
    .method("acme/count", (_params, { env }) => ({ n: env.db.count() }));

it("registers defined tools, whose types clients know", async () => {
  const server = createCounter();
  await using client = await connect<typeof server>(server, { env: withCount(3) });
  const { tools } = await client.listTools();
  expect(tools.map(({ name, description }) => [name, description])).toEqual([
    ["echo", "Echoes"],
    ["count", undefined],
    ["plain", undefined],
  ]);
  expect((await client.callTool("echo", { text: "hi" })).content).toEqual([{ type: "text", text: "HI" }]);
  const n: number | undefined = (await client.callTool("count")).structuredContent?.n;
  expect(n).toBe(3);
  // @ts-expect-error -- there is no such argument
  expect(await client.callTool("plain", { b: 1 })).toMatchObject({ isError: true });
  // @ts-expect-error -- there is no such tool
  await expect(client.callTool("nope", {})).rejects.toThrow("Tool not found");
});

it("refuses what is not a list of tools", () => {
  expect(() => createServer(info).tools(echo as never)).toThrow("tools() takes an array");
  expect(() => createServer(info).tools([{ ...echo, handlr: 1 } as never])).toThrow("no option `handlr`");
  expect(() => createServer(info).tools([{ name: "x" } as never])).toThrow("Tool x: the handler is missing");
  expect(() => createServer(info).tools([echo, echo])).toThrow("Tool echo is already registered");
  expect(() => createServer(info).tools([null as never])).toThrow(
    "tools(): item 0 must be defineTool({ ... }), not null",
  );
  expect(() => defineTool({ name: "x" } as never)).toThrow(/^Tool x: the handler is missing; usage/);
  expect(() => defineTool(echo.handler as never)).toThrow("defineTool() takes an object, not a function");
  expect(() => defineTool({ ...echo, inptu: {} } as never)).toThrow("did you mean `input`?");
  // @ts-expect-error -- the tool needs another environment
  createServer<{ other: number }>(info).tools([count]);
  // @ts-expect-error -- the tool needs an environment
  createServer(info).tools([count]);
});

it("registers all tools of a list or none", async () => {
  const server = createServer(info).tool("first", {}, () => "x");
  for (const wrong of [plain, null, { name: "x" }]) {
    expect(() => server.tools([echo, plain, wrong as never])).toThrow(TypeError);
  }
  await using client = await connect(server);
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["first"]);
  server.tools([echo, plain]);
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["first", "echo", "plain"]);
});

it("gives any name to a client of a server whose type knows no tools", async () => {
  const server = createServer(info);
  server.tool("later", {}, () => "x");
  await using client = await connect<typeof server>(server);
  expect((await client.callTool("later", { any: 1 })).content).toEqual([{ type: "text", text: "x" }]);
});

it.each(REVISION_NAMES)("passes the environment of the connection to all handlers: %s", async (revision) => {
  const server = createCounter();
  const { client, close } = await connectInMemory(server, {
    revision,
    env: withCount(4),
    caller: { principal: "ann" },
  });
  expect((await client.callTool("count")).content).toEqual([{ type: "text", text: '{"n":4}' }]);
  expect((await client.readResource("a:b")).contents).toMatchObject([{ text: "4" }]);
  expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(["a:b", "t:4"]);
  expect((await client.getPrompt("p")).messages).toMatchObject([{ content: { text: "4" } }]);
  expect(await client.request("acme/count")).toMatchObject({ n: 4 });
  await close();
});

it("says what to pass if the environment is missing", async () => {
  await using client = await connect(createCounter(), { onError: () => undefined });
  const { isError, content } = await client.callTool("count");
  expect([isError, JSON.stringify(content)]).toEqual([true, expect.stringContaining("pass `env` to serve()")]);
  await expect(connect({ command: "x" }, { env: {} })).rejects.toThrow("connect({ command, env })");
});

it("comes from the option, or from a single request, over HTTP", async () => {
  const server = createCounter();
  const mcp = fetchHandler(server, { env: withCount(1) });
  const open = (env: Env | undefined) =>
    connect("http://localhost/mcp", {
      fetch: async (input, init) => mcp(new Request(input, init), { env }),
    });
  const textOf = async (env: Env | undefined): Promise<unknown> => {
    await using client = await open(env);
    return (await client.callTool("count")).structuredContent;
  };
  expect(await textOf(undefined)).toEqual({ n: 1 });
  expect(await textOf(withCount(2))).toEqual({ n: 2 });
  // @ts-expect-error -- another environment
  await mcp(new Request("http://localhost/mcp"), { env: 1 });
  await mcp.close();

  // @ts-expect-error -- the environment is required
  const without = await serve(createCounter(), { http: { port: 0 } });
  await without.close();
  // @ts-expect-error -- the environment is required, so the options are
  const onStdio = (): Promise<unknown> => serve(createCounter());
  expect(onStdio).toBeTypeOf("function");
  const front = await serve(server, { http: { port: 0 }, env: withCount(5) });
  await using client = await connect(front.url);
  expect((await client.callTool("count")).structuredContent).toEqual({ n: 5 });
  await client.close();
  await front.close();
});
