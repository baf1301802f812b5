// Resources and templates: lists, which of them answers a read, how return values become contents, and the types of
// template variables.

import { expect, expectTypeOf, it } from "vitest";
import { fakeClient, withParamsCheck } from "../../test/support/handlers/fake-client.ts";
import { McpError } from "../protocol/errors.ts";
import { META } from "../protocol/model/base.ts";
import { createServer, type Server } from "./server.ts";
import type { TemplateVariables } from "./resources.ts";

const info = { name: "test", version: "1" };
const common = { ttlMs: 0, cacheScope: "private", resultType: "complete", _meta: { [META.serverInfo]: info } };

const read = async (server: Server, uri: string): Promise<unknown> => {
  const { contents } = await fakeClient(server).call("resources/read", { uri });
  return contents;
};

it("lists of resources have all options, in order of registration", async () => {
  const annotations = { audience: ["user"], priority: 0.5 } as const;
  const server = createServer(info)
    .resource("a:b", {}, () => "x")
    .template("t:{id}", { name: "T", title: "Tee", mimeType: "text/plain", annotations }, ({ id }) => id)
    .resource("a:c", { name: "C", description: "d", mimeType: "text/html", size: 3, _meta: { k: 1 } }, () => "x");
  expect(await fakeClient(server).call("resources/list")).toEqual({
    resources: [
      { uri: "a:b", name: "a:b" },
      { uri: "a:c", name: "C", description: "d", mimeType: "text/html", size: 3, _meta: { k: 1 } },
    ],
    ...common,
  });
  expect(await fakeClient(server).call("resources/templates/list")).toEqual({
    resourceTemplates: [{ uriTemplate: "t:{id}", name: "T", title: "Tee", mimeType: "text/plain", annotations }],
    ...common,
  });
});

it("lists of resources are available together", async () => {
  const caller = fakeClient(createServer(info).resource("a:b", {}, () => "x"));
  expect(await caller.call("resources/templates/list")).toMatchObject({ resourceTemplates: [] });
  const other = fakeClient(createServer(info).template("t:{id}", {}, () => "x"));
  expect(await other.call("resources/list")).toMatchObject({ resources: [] });
});

it("lists of resources include the resources that templates list, at the position of the template, page by page", async () => {
  const listed = (...names: string[]) => names.map((name) => ({ uri: `t:${name}`, name }));
  const server = createServer({ ...info, pageSize: 2 })
    .resource("a:1", {}, () => "x")
    .template("t:{id}", { list: async () => listed("x", "y", "z") }, ({ id }) => id)
    .resource("a:2", {}, () => "x")
    .template("u:{id}", {}, ({ id }) => id);
  const caller = fakeClient(server);
  const uris: string[][] = [];
  for (let cursor: unknown; ;) {
    const page = await caller.call("resources/list", cursor === undefined ? {} : { cursor });
    uris.push((page["resources"] as { uri: string }[]).map(({ uri }) => uri));
    cursor = page["nextCursor"];
    if (cursor === undefined) break;
  }
  expect(uris).toEqual([["a:1", "t:x"], ["t:y", "t:z"], ["a:2"]]);
});

it("lists of resources refuse URIs without a scheme and invalid templates", () => {
  const server = createServer(info);
  expect(() => server.resource("notes/1", {}, () => "x")).toThrow("must start with a scheme");
  expect(() => server.resource("notes://{id}", {}, () => "x")).toThrow(
    'the URI has a variable; register it with template("notes://{id}", ...)',
  );
  expect(() => server.template("t:{id", {}, () => "x")).toThrow("never closed");
  // @ts-expect-error -- the template has no such variable
  expect(() => server.template("t:{id}", { complete: { other: () => [] } }, () => "x")).toThrow(
    "there is no variable other to complete",
  );
});

it("reading returns text, blobs and JSON with the URI and the media type", async () => {
  const bytes = new Uint8Array([0, 255, 1, 2]).subarray(1, 3);
  const server = createServer(info)
    .resource("a:text", {}, () => "hi")
    .resource("a:html", { mimeType: "text/html" }, async () => "<p>")
    .resource("a:bytes", { mimeType: "image/png" }, () => bytes)
    .resource("a:json", {}, () => ({ a: [1] }))
    .resource("a:null", { mimeType: "application/x+json" }, () => null)
    .resource("a:uri", {}, (uri) => uri);
  expect(await fakeClient(server).call("resources/read", { uri: "a:text" })).toEqual({
    contents: [{ uri: "a:text", text: "hi" }],
    ...common,
  });
  expect(await read(server, "a:html")).toEqual([{ uri: "a:html", mimeType: "text/html", text: "<p>" }]);
  expect(await read(server, "a:bytes")).toEqual([{ uri: "a:bytes", mimeType: "image/png", blob: "/wE=" }]);
  expect(await read(server, "a:json")).toEqual([{ uri: "a:json", mimeType: "application/json", text: '{"a":[1]}' }]);
  expect(await read(server, "a:null")).toEqual([{ uri: "a:null", mimeType: "application/x+json", text: "null" }]);
  expect(await read(server, "a:uri")).toEqual([{ uri: "a:uri", text: "a:uri" }]);
});

it("reading accepts whole results and adds a missing media type", async () => {
  const contents = [
    { uri: "a:b/1", text: "1" },
    { uri: "a:b/2", mimeType: "text/html", blob: "aGk=" },
  ];
  const server = createServer(info).resource("a:b", { mimeType: "text/plain" }, () => ({
    contents,
    _meta: { k: 1 },
  }));
  expect(await fakeClient(server).call("resources/read", { uri: "a:b" })).toEqual({
    ...common,
    contents: [{ uri: "a:b/1", mimeType: "text/plain", text: "1" }, contents[1]],
    _meta: { k: 1, [META.serverInfo]: info },
  });
});

it("reading sends `_meta` of the options with what is read, unless the handler has its own", async () => {
  const _meta = { ui: { csp: "none" } };
  const server = createServer(info)
    .resource("a:text", { _meta }, () => "x")
    .resource("a:whole", { _meta }, () => ({
      contents: [
        { uri: "a:1", text: "x" },
        { uri: "a:2", text: "x", _meta: { own: 1 } },
      ],
    }));
  expect(await read(server, "a:text")).toEqual([{ uri: "a:text", text: "x", _meta }]);
  expect(await read(server, "a:whole")).toMatchObject([{ _meta }, { _meta: { own: 1 } }]);
});

it("reading refuses contents that the protocol does not allow, and values that JSON would lose", async () => {
  for (const [value, problem] of [
    [{ contents: [{ uri: "a:b", txt: "x" }] }, "contents[0], which must have a string `text`, or base64 as `blob`"],
    [{ rows: [Promise.resolve(1)] }, ", at rows[0], a promise, which cannot be sent"],
    [new Map(), "a Map, which cannot be sent"],
  ] as const) {
    const server = createServer(info).resource("a:b", {}, () => value);
    const { message } = await fakeClient(server).callError("resources/read", { uri: "a:b" });
    expect(message.replace(" ,", ",")).toContain(`Resource a:b returned ${problem}`.replace(" ,", ","));
  }
});

it("reading treats other objects with a field `contents` as data", async () => {
  const whole = { uri: "a:b", text: "x" };
  const values: readonly unknown[] = [
    [],
    ["only", "data"],
    [null],
    [{ text: "no URI" }],
    [{ uri: 1, text: "x" }],
    [{ uri: "a:b", name: "neither text nor blob" }],
    [whole, { text: "no URI" }],
    whole,
    "text",
  ];
  for (const contents of values) {
    const server = createServer(info).resource("a:data", {}, () => ({ contents, other: 1 }));
    const text = JSON.stringify({ contents, other: 1 });
    expect(await read(server, "a:data")).toEqual([{ uri: "a:data", mimeType: "application/json", text }]);
  }
});

it("reading looks up the URI first, then the templates in order", async () => {
  const server = createServer(info)
    .template("n:{id}", {}, ({ id }) => `first ${id}`)
    .template("n:{+path}", {}, ({ path }, _context, uri) => `second ${path} of ${uri}`)
    .resource("n:exact", {}, () => "exact");
  expect(await read(server, "n:exact")).toMatchObject([{ text: "exact" }]);
  expect(await read(server, "n:a%20b")).toMatchObject([{ uri: "n:a%20b", text: "first a b" }]);
  expect(await read(server, "n:a/b")).toMatchObject([{ text: "second a/b of n:a/b" }]);
  server.removeTemplate("n:{id}");
  expect(await read(server, "n:a")).toMatchObject([{ text: "second a of n:a" }]);
});

it("reading reports a resource that does not exist", async () => {
  const server = createServer(info)
    .resource("a:b", {}, () => "x")
    .template("t:{id}", {}, () => undefined);
  for (const uri of ["a:c", "t:1", "t:a/b", "t:%E0%A4%A", "", "a:b#"]) {
    const error = await fakeClient(server).callError("resources/read", { uri });
    expect(error.message).toBe(`Resource not found: ${uri}`);
    expect(error.data).toEqual({ kind: "resource_not_found", uri });
  }
  expect((await fakeClient(withParamsCheck(server)).callError("resources/read", {})).kind).toBe("invalid_params");
  expect(server.removeResource("a:b")).toBe(true);
  expect((await fakeClient(server).callError("resources/read", { uri: "a:b" })).kind).toBe("resource_not_found");
});

it("reading turns a thrown error into a protocol error", async () => {
  const denied = McpError.of("access_denied", "not you");
  const server = createServer(info)
    .resource("a:broken", {}, () => Promise.reject(new Error("disk on fire")))
    .resource("a:denied", {}, () => Promise.reject(denied));
  const error = await fakeClient(server).callError("resources/read", { uri: "a:broken" });
  expect(error.toBody()).toEqual({ code: -32603, message: "disk on fire", data: { kind: "internal_error" } });
  expect(await fakeClient(server).callError("resources/read", { uri: "a:denied" })).toBe(denied);
});

it("reading has the cache hint of the resource or of the server", async () => {
  const server = createServer({ ...info, cache: { ttlMs: 5000, cacheScope: "public" } })
    .resource("a:b", {}, () => "x")
    .resource("a:c", { cache: { ttlMs: 1, cacheScope: "private" } }, () => "x");
  const caller = fakeClient(server);
  for (const [method, params] of [
    ["server/discover"],
    ["resources/list"],
    ["resources/read", { uri: "a:b" }],
  ] as const) {
    expect(await caller.call(method, params)).toMatchObject({ ttlMs: 5000, cacheScope: "public" });
  }
  const own = await caller.call("resources/read", { uri: "a:c" });
  expect(own).toMatchObject({ ttlMs: 1, cacheScope: "private" });
});

it("types of templates variables are inferred from the template", () => {
  createServer(info)
    .template("a:{x}/{+y}{?q,list*}", {}, (variables) => {
      expectTypeOf(variables).toEqualTypeOf<{ x: string; y: string; q?: string; list?: string[] }>();
    })
    .template("a:{id:2}/{id}{/rest*}", {}, (variables) => {
      expectTypeOf(variables).toEqualTypeOf<{ id: string; rest?: string[] }>();
    });
  expectTypeOf<TemplateVariables<string>>().toEqualTypeOf<Record<string, string | string[]>>();
  expect(info.name).toBe("test");
});
