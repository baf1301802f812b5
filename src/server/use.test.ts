// Middleware of a server, and clients that are typed by a server.

import { expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { connect } from "../client/connect.ts";
import type { Middleware } from "../core/handler.ts";
import type { CallToolResult } from "../protocol/model/index.ts";
import { connectInMemory, REVISION_NAMES } from "../testing.ts";
import { createServer } from "./server.ts";

const info = { name: "test", version: "1" };

it.each(REVISION_NAMES)(
  "server.use puts middleware in front of the server, the first outermost: %s",
  async (revision) => {
    const seen: string[] = [];
    const noting = (name: string): Middleware =>
      ({
        async [name](
          request: Parameters<Middleware>[0],
          context: Parameters<Middleware>[1],
          next: Parameters<Middleware>[2],
        ) {
          if (request.method === "tools/call") seen.push(name);
          return next(request, context);
        },
      })[name] as Middleware;
    const server = createServer(info)
      .tool("t", {}, () => "x")
      .use(noting("a"), noting("b"))
      .use(noting("c"))
      .tool("later", {}, () => "y");
    await using connection = await connectInMemory(server, { revision });
    expect((await connection.client.callTool("later")).content).toEqual([{ type: "text", text: "y" }]);
    expect(seen).toEqual(["a", "b", "c"]);
  },
);

it("server.use may answer itself, and errors name it", async () => {
  const server = createServer(info)
    .tool("t", {}, () => "x")
    .use(async function broken({ params }, context, next) {
      if (params["name"] === "t") throw new Error("no");
      return params["name"] === "mine" ? { content: [] } : next({ method: "tools/list", params: {} }, context);
    });
  const client = await connect(server);
  await expect(client.callTool("t")).rejects.toThrow("The middleware broken failed: no");
  expect((await client.callTool("mine")).content).toEqual([]);
  await client.close();
});

it("server.use cannot change the lists of other callers: code that tries fails, and is named", async () => {
  const server = createServer(info)
    .tool("t", { description: "first" }, () => "x")
    .use(async function marking(request, context, next) {
      const result = await next(request, context);
      if (request.params["mark"] !== true) return result;
      const [tool] = result["tools"] as [{ description: string }];
      tool.description += " (marked)";
      return result;
    });
  const client = await connect(server);
  await expect(client.request("tools/list", { mark: true })).rejects.toThrow(
    "The middleware marking failed: Cannot assign to read only property 'description'",
  );
  const { tools } = await client.request("tools/list");
  expect(tools).toMatchObject([{ description: "first" }]);
  expect(() => (tools as unknown[]).push({})).toThrow(TypeError);
  await client.close();
});

it("server.use closes middleware with the server, and refuses what is not a function", async () => {
  const closed: string[] = [];
  const middleware: Middleware = Object.assign(((request, context, next) => next(request, context)) as Middleware, {
    close: () => void closed.push("closed"),
  });
  await createServer(info).use(middleware).close();
  expect(closed).toEqual(["closed"]);
  expect(() => createServer(info).use({} as never)).toThrow("use() takes functions (request, context, next)");
});

const server = createServer(info)
  .tool(
    "add",
    { input: z.object({ a: z.number(), b: z.number().default(1) }), output: z.object({ sum: z.number() }) },
    ({ a, b }) => ({ sum: a + b }),
  )
  .resource("a:b", {}, () => "x")
  .tool("plain", { input: { type: "object", properties: { n: { type: "number" } } } }, () => "x")
  .tool("none", {}, () => "x");

it("a client that is typed by a server knows the names, the arguments and the structured content of its tools", async () => {
  const client = await connect<typeof server>(server);
  const result = await client.callTool("add", { a: 1 });
  expectTypeOf(result.structuredContent).toEqualTypeOf<{ sum: number } | undefined>();
  expect(result.structuredContent?.sum).toBe(2);
  expectTypeOf(await client.callTool("none")).toEqualTypeOf<CallToolResult>();
  await client.callTool("plain", { n: 1 }, { timeoutMs: 100_000 });
  await client.callTool("plain");
  // @ts-expect-error: there is no such tool
  await expect(client.callTool("sub")).rejects.toThrow("Tool not found: sub");
  // @ts-expect-error: `a` is missing
  expect((await client.callTool("add", { b: 1 })).isError).toBe(true);
  // @ts-expect-error: the arguments are missing
  expect((await client.callTool("add")).isError).toBe(true);
  await client.close();
});

it("a client that is typed by a server may be typed by declarations, and is not typed otherwise", async () => {
  interface Tools {
    readonly add: { readonly input: { readonly a: number }; readonly output: { readonly sum: number } };
  }
  const declared = await connect<Tools>(server);
  const { structuredContent } = await declared.callTool("add", { a: 1 });
  expectTypeOf(structuredContent).toEqualTypeOf<{ readonly sum: number } | undefined>();
  // @ts-expect-error: there is no such tool
  await declared.callTool("none");
  await declared.close();
  const untyped = await connect(server);
  const name: string = "none";
  expectTypeOf(await untyped.callTool(name, { anything: 1 })).toEqualTypeOf<CallToolResult>();
  await untyped.close();
});
