// The list of tools (fields, order, pages) and errors of registration. Calls are in tools.test.ts.

import * as v from "valibot";
import { expect, it } from "vitest";
import { z } from "zod";
import { fakeClient } from "../../test/support/handlers/fake-client.ts";
import { META } from "../protocol/model/base.ts";
import { createServer, type Server } from "./server.ts";

const info = { name: "test", version: "1" };
const serverMeta = { [META.serverInfo]: info };

it("the list of tools has all options of a tool, and no fields for those left out", async () => {
  const icons = [{ src: "data:image/png;base64,aGk=" }];
  const annotations = { readOnlyHint: true };
  const server = createServer(info)
    .tool("bare", {}, () => "x")
    .tool(
      "full",
      {
        title: "Full",
        description: "All of it",
        input: z.object({ a: z.string() }),
        output: z.object({ b: z.number() }),
        annotations,
        icons,
        _meta: { "x/y": 1 },
      },
      () => ({ b: 1 }),
    );
  expect(await fakeClient(server).call("tools/list")).toEqual({
    tools: [
      { name: "bare", inputSchema: { type: "object" } },
      {
        name: "full",
        title: "Full",
        description: "All of it",
        inputSchema: { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
        outputSchema: expect.objectContaining({ type: "object", required: ["b"] }),
        annotations,
        icons,
        _meta: { "x/y": 1 },
      },
    ],
    ttlMs: 0,
    cacheScope: "private",
    resultType: "complete",
    _meta: serverMeta,
  });
});

it("the list of tools is in order of registration", async () => {
  const names = async (server: Server): Promise<string[]> => {
    const { tools } = await fakeClient(server).call("tools/list");
    return (tools as { name: string; title?: string }[]).map(({ name, title }) => title ?? name);
  };
  const server = createServer(info);
  for (const name of ["c", "a", "b"]) server.tool(name, {}, () => name);
  expect(await names(server)).toEqual(["c", "a", "b"]);
  expect(server.removeTool("c")).toBe(true);
  expect(server.removeTool("c")).toBe(false);
  server.tool("c", {}, () => "c");
  expect(await names(server)).toEqual(["a", "b", "c"]);
});

it("the list of tools comes in pages that survive changes between them", async () => {
  const server = createServer({ ...info, pageSize: 2 });
  for (const name of ["a", "b", "c", "d", "e"]) server.tool(name, {}, () => name);
  const caller = fakeClient(server);
  const first = await caller.call("tools/list");
  expect(first["tools"]).toMatchObject([{ name: "a" }, { name: "b" }]);
  server.removeTool("b");
  server.removeTool("a");
  const second = await caller.call("tools/list", { cursor: first["nextCursor"] });
  expect(second["tools"]).toMatchObject([{ name: "c" }, { name: "d" }]);
  const third = await caller.call("tools/list", { cursor: second["nextCursor"] });
  expect(third["tools"]).toMatchObject([{ name: "e" }]);
  expect(third).not.toHaveProperty("nextCursor");
  expect((await caller.callError("tools/list", { cursor: "" })).kind).toBe("invalid_params");
  expect((await caller.callError("tools/list", { cursor: "forged" })).kind).toBe("invalid_params");
});

it("the list of tools has pages that are one frozen object each until something changes", async () => {
  const server = createServer({ ...info, pageSize: 1 });
  for (const name of ["a", "b", "c"]) server.tool(name, {}, () => name);
  const readPages = async (): Promise<readonly object[]> => {
    const first = await fakeClient(server).call("tools/list");
    const second = await fakeClient(server).call("tools/list", { cursor: first["nextCursor"] });
    return [first, second, await fakeClient(server).call("tools/list", { cursor: second["nextCursor"] })];
  };
  const before = await readPages();
  for (const [at, page] of (await readPages()).entries()) expect(page).toBe(before[at]);
  expect(before.every(Object.isFrozen)).toBe(true);
  server.tool("d", {}, () => "d");
  for (const [at, page] of (await readPages()).entries()) expect(page).not.toBe(before[at]);
  expect((await readPages())[2]).toHaveProperty("nextCursor");
});

it("registering a tool refuses schemas that cannot work", () => {
  const server = createServer(info);
  // @ts-expect-error -- not an object
  expect(() => server.tool("t", { input: z.string() }, () => 1)).toThrow("`input` must be an object schema");
  expect(() => server.tool("t", { input: v.object({ a: v.string() }) }, () => 1)).toThrow("as `inputSchema`");
  expect(() => server.tool("t", { output: v.string() }, () => "a")).toThrow("as `outputSchema`");
});

it("registering a tool leaves no trace if it fails", async () => {
  const server = createServer(info);
  // @ts-expect-error -- not an object
  expect(() => server.tool("t", { input: z.string() }, (_args, _context) => 1)).toThrow(TypeError);
  expect(await fakeClient(server).call("server/discover")).toMatchObject({ capabilities: {} });
  expect((await fakeClient(server).callError("tools/list")).kind).toBe("method_not_found");
});

it("registering a tool adds `type: object` to a union", async () => {
  const input = z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]);
  const server = createServer(info).tool("t", { input }, (args) => ("a" in args ? args.a : args.b));
  const { tools } = await fakeClient(server).call("tools/list");
  expect(tools).toMatchObject([{ inputSchema: { type: "object", anyOf: [{}, {}] } }]);
  const result = await fakeClient(server).call("tools/call", { name: "t", arguments: { b: "x" } });
  expect(result).toMatchObject({ content: [{ text: "x" }], isError: false });
});
