// The server as a whole: its capabilities, its methods, and that all its results fit the official schema of the newest
// revision.

import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { z } from "zod";
import { itWithSpec, validateResult } from "../../test/support/spec/official-schema.ts";
import { fakeClient } from "../../test/support/handlers/fake-client.ts";
import { META } from "../protocol/model/base.ts";
import { NEWEST } from "../protocol/revisions/index.ts";
import { createServer, inputRequired, type Server, type ServerOptions } from "./index.ts";

const info = { name: "test", version: "1" };

const capabilities = async (server: Server): Promise<unknown> =>
  (await fakeClient(server).call("server/discover"))["capabilities"];

it("server/discover returns the server info and the capabilities", async () => {
  const who = {
    name: "notes",
    version: "1.0.0",
    title: "Notes",
    description: "Keeps notes",
    websiteUrl: "https://example.com",
    icons: [{ src: "https://example.com/i.png" }],
  };
  const server = createServer({ ...who, instructions: "Ask first." }).tool("t", {}, () => "x");
  expect(await fakeClient(server).call("server/discover")).toEqual({
    capabilities: { logging: {}, tools: { listChanged: true } },
    instructions: "Ask first.",
    ttlMs: 0,
    cacheScope: "private",
    resultType: "complete",
    _meta: { [META.serverInfo]: who },
  });
});

it("server/discover declares only what is registered", async () => {
  const server = createServer(info);
  expect(await capabilities(server)).toEqual({ logging: {} });
  server.tool("t", {}, () => "x");
  expect(await capabilities(server)).toEqual({ logging: {}, tools: { listChanged: true } });
  server.resource("a:b", {}, () => "x").prompt("p", {}, () => "x");
  expect(await capabilities(server)).toEqual({
    logging: {},
    tools: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    prompts: { listChanged: true },
  });
  const templates = createServer(info).template("t:{id}", {}, () => "x");
  expect(await capabilities(templates)).toEqual({ logging: {}, resources: { subscribe: true, listChanged: true } });
});

it("server/discover declares logging, unless it is switched off", async () => {
  expect(await capabilities(createServer(info))).toEqual({ logging: {} });
  const silent = createServer({ ...info, logging: false }).tool("t", {}, (_args, { log }) => log("info", "x"));
  expect(await capabilities(silent)).not.toHaveProperty("logging");
});

it("server/discover declares what was switched off as false", async () => {
  const off: Partial<ServerOptions> = { listChanged: false, subscribe: false };
  const server = createServer({ ...info, ...off })
    .tool("t", {}, () => "x")
    .resource("a:b", {}, () => "x")
    .prompt("p", {}, () => "x");
  expect(await capabilities(server)).toEqual({
    logging: {},
    tools: { listChanged: false },
    resources: { subscribe: false, listChanged: false },
    prompts: { listChanged: false },
  });
});

it("a server is a handler, and its registrations can be chained", () => {
  const server = createServer(info);
  expect(server).toBeTypeOf("function");
  expect(server.tool("t", {}, () => "x")).toBe(server);
  expect(server.resource("a:b", {}, () => "x")).toBe(server);
  expect(server.template("t:{id}", {}, () => "x")).toBe(server);
  expect(server.prompt("p", {}, () => "x")).toBe(server);
});

it("a server has no other methods", async () => {
  const caller = fakeClient(createServer(info).tool("t", {}, () => "x"));
  const methods = [
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "nope",
    "",
    "constructor",
    "tools/x",
  ];
  for (const method of methods) {
    const error = await caller.callError(method);
    expect(error.message).toBe(`Method not found: ${method}`);
    expect(error.data).toEqual({ kind: "method_not_found", method });
  }
});

it("a server has the methods of a group from its first registration on, even if the group is empty again", async () => {
  const server = createServer(info);
  const caller = fakeClient(server);
  const groups: readonly (readonly [string, string, () => unknown, () => unknown])[] = [
    ["tools/list", "tools", () => server.tool("t", {}, () => "x"), () => server.removeTool("t")],
    ["resources/list", "resources", () => server.resource("a:b", {}, () => "x"), () => server.removeResource("a:b")],
    ["prompts/list", "prompts", () => server.prompt("p", {}, () => "x"), () => server.removePrompt("p")],
  ];
  for (const [method, field, add, remove] of groups) {
    expect((await caller.callError(method)).kind).toBe("method_not_found");
    add();
    expect((await caller.call(method))[field]).toHaveLength(1);
    remove();
    expect((await caller.call(method))[field]).toEqual([]);
  }
  for (const method of ["tools/call", "prompts/get", "resources/read"]) {
    expect((await fakeClient(createServer(info)).callError(method)).kind).toBe("method_not_found");
  }
});

it("a server refuses an invalid page size", () => {
  for (const pageSize of [0, -1, 1.5, Number.NaN])
    expect(() => createServer({ ...info, pageSize })).toThrow(
      "createServer(): `pageSize` must be a whole number above 0",
    );
});

it("a server refuses an invalid cache hint", () => {
  const makers: readonly (readonly [string, (cache: never) => unknown])[] = [
    ["createServer()", (cache) => createServer({ ...info, cache })],
    ["Resource a:b", (cache) => createServer(info).resource("a:b", { cache }, () => "x")],
    ["Template t:{id}", (cache) => createServer(info).template("t:{id}", { cache }, () => "x")],
  ];
  for (const [owner, make] of makers) {
    const refuses = (cache: unknown, field: string) =>
      expect(() => make(cache as never)).toThrow(`${owner}: \`cache.${field}\` must be`);
    for (const ttlMs of [-1, 1.5, Number.NaN, Infinity, "5", undefined, null])
      refuses({ ttlMs, cacheScope: "private" }, "ttlMs");
    for (const cacheScope of ["shared", "", 1, undefined, null]) refuses({ ttlMs: 0, cacheScope }, "cacheScope");
    refuses(null, "ttlMs");
    for (const cacheScope of ["public", "private"]) {
      expect(() => make({ ttlMs: 0, cacheScope } as never)).not.toThrow();
    }
  }
});

it("a server handles concurrent requests", async () => {
  const server = createServer(info).tool("t", { input: z.object({ n: z.number() }) }, async ({ n }) => {
    await Promise.resolve();
    return n;
  });
  const calls = Array.from({ length: 100 }, (_, n) =>
    fakeClient(server).call("tools/call", { name: "t", arguments: { n } }),
  );
  const results = await Promise.all(calls);
  expect(results.map(({ structuredContent }) => structuredContent)).toEqual(Array.from({ length: 100 }, (_, n) => n));
});

const request = { method: "roots/list" } as const;
const server = createServer({ ...info, instructions: "x", pageSize: 1 })
  .tool("value", { input: z.object({ a: z.string() }), output: z.object({ a: z.string() }) }, (args) => args)
  .tool("text", { annotations: { readOnlyHint: true } }, () => "x")
  .tool("asks", {}, (_args, { answers }) => (answers["r"] ? "x" : inputRequired({ r: request })))
  .resource("a:b", { mimeType: "text/plain", size: 1 }, () => "x")
  .resource("a:c", {}, () => new Uint8Array(3))
  .template("t:{id}", { complete: { id: () => ["1"] } }, ({ id }) => ({ id }))
  .template("u:{id}", {}, () => "x")
  .prompt("p", { description: "d", arguments: { a: { required: true, complete: () => [] } } }, ({ a }) => a)
  .prompt("q", {}, () => []);

const requests: readonly (readonly [string, Record<string, unknown>])[] = [
  ["tools/list", {}],
  ["tools/call", { name: "value", arguments: { a: "x" } }],
  ["tools/call", { name: "value", arguments: {} }],
  ["tools/call", { name: "text" }],
  ["tools/call", { name: "asks" }],
  ["resources/list", {}],
  ["resources/templates/list", {}],
  ["resources/read", { uri: "a:b" }],
  ["resources/read", { uri: "a:c" }],
  ["resources/read", { uri: "t:1" }],
  ["prompts/list", {}],
  ["prompts/get", { name: "p", arguments: { a: "1" } }],
  ["prompts/get", { name: "q" }],
  ["completion/complete", { ref: { type: "ref/prompt", name: "p" }, argument: { name: "a", value: "" } }],
];

itWithSpec("every result fits the schema of the newest revision", async () => {
  const caller = fakeClient(server, { caller: { capabilities: { roots: {} } } });
  for (const [method, params] of requests) {
    const result = await caller.call(method, params);
    expect(validateResult(NEWEST.name, method, result, { closed: true }), method).toEqual([]);
    expect(result["_meta"]).toEqual({ [META.serverInfo]: info });
  }
  const discovered = { ...(await caller.call("server/discover")), supportedVersions: [NEWEST.name] };
  expect(validateResult(NEWEST.name, "server/discover", discovered, { closed: true })).toEqual([]);
});

it("the import graph has no package: only types, and what is imported lazily", () => {
  const folder = new URL("./", import.meta.url);
  const lazy = ["interpreted-schema.ts"];
  const isSource = (name: string): boolean => name.endsWith(".ts") && !name.endsWith(".test.ts");
  const sources = readdirSync(folder).filter((name) => isSource(name) && !lazy.includes(name));
  expect(sources.length).toBeGreaterThan(10);
  for (const name of sources) {
    const text = readFileSync(new URL(name, folder), "utf8");
    const outside = [...text.matchAll(/^(?:import|export)\b(?! type\b)[^;]*? from "((?!node:)[^."][^"]*)";/gms)];
    expect(
      outside.map((match) => match[1]),
      name,
    ).toEqual([]);
  }
});
