// Lists of many upstreams as one: order, pages, cursors, and upstreams that fail.

import { expect, it } from "vitest";
import { ConnectionError, THE_SERVER } from "../../core/errors.ts";
import type { Result } from "../../core/handler.ts";
import { type FakeClient, fakeClient } from "../../../test/support/handlers/fake-client.ts";
import { scriptedServer, pages, toolList } from "../../../test/support/handlers/scripted-server.ts";
import { createServer } from "../../server/index.ts";
import { createRouter } from "./router.ts";

type Items = readonly Record<string, unknown>[];

const namesOf = (result: Result): unknown => (result["tools"] as Items).map(({ name }) => name);

const many = (front: string, count: number): Items =>
  Array.from({ length: count }, (_none, index) => ({ name: `${front}${index}` }));

async function allPages(caller: FakeClient, method: string, field: string): Promise<{ items: Items; sizes: number[] }> {
  const [items, sizes]: [Record<string, unknown>[], number[]] = [[], []];
  for (let cursor: unknown; ;) {
    const page = await caller.call(method, cursor === undefined ? {} : { cursor });
    const found = page[field] as Items;
    items.push(...found);
    sizes.push(found.length);
    cursor = page["nextCursor"];
    if (cursor === undefined) return { items, sizes };
  }
}

/** The `_meta` of a listed item. */
const of = (upstream: string, ...names: readonly string[]): object => ({
  "catenary/upstream": upstream,
  ...(names.length > 0 && { "catenary/names": names }),
});

it("lists of many upstreams read all pages, in the order of the upstreams", async () => {
  const a = scriptedServer({ "tools/list": pages("tools", many("a", 5), 2) });
  const b = scriptedServer({ "tools/list": pages("tools", many("b", 3), 1) });
  expect(namesOf(await fakeClient(createRouter({ b, a })).call("tools/list"))).toEqual([
    "b0",
    "b1",
    "b2",
    "a0",
    "a1",
    "a2",
    "a3",
    "a4",
  ]);
});

it("lists of many upstreams show the first of two items with one name, on the same page or on another", async () => {
  const [first, second] = [1, 2].map((nth) => ({ name: "a", title: `${nth}` }));
  for (const size of [1, 2]) {
    const a = scriptedServer({ "tools/list": pages("tools", [first!, second!], size) });
    const { tools } = await fakeClient(createRouter({ a, b: scriptedServer({}) })).call("tools/list");
    expect(tools).toEqual([{ ...first, _meta: of("a") }]);
  }
});

it("lists of many upstreams are the same value as long as no page of an upstream changes", async () => {
  const a = createServer({ name: "a", version: "1", pageSize: 2 });
  for (const name of ["a1", "a2", "a3"]) a.tool(name, {}, () => name);
  const caller = fakeClient(createRouter({ a, b: scriptedServer({ "tools/list": toolList("b") }) }));
  const first = await caller.call("tools/list");
  expect((await caller.call("tools/list"))["tools"]).toBe(first["tools"]);
  a.removeTool("a3");
  expect(namesOf(await caller.call("tools/list"))).toEqual(["a1", "a2", "b"]);
});

it("lists of many upstreams keep all fields of items, and add the upstream of each and its own name there", async () => {
  const plain = { name: "alone", more: { deep: [1] } };
  const shared = { name: "both", title: "Both", execution: { taskSupport: "required" }, _meta: { x: 1 } };
  const a = scriptedServer({ "tools/list": { tools: [plain, shared], futureField: 7, _meta: { note: "n" } } });
  const b = scriptedServer({ "tools/list": toolList("both") });
  const result = await fakeClient(createRouter({ a, b })).call("tools/list");
  const [first, second] = result["tools"] as Items;
  expect(first).toEqual({ ...plain, _meta: of("a") });
  expect(second).toEqual({ ...shared, name: "a_both", _meta: { x: 1, ...of("a", "both") } });
  expect(result).toMatchObject({ futureField: 7, _meta: { note: "n" }, resultType: "complete" });
});

it("lists of many upstreams rename prompts, addresses and templates like tools", async () => {
  const make = (): ReturnType<typeof scriptedServer> =>
    scriptedServer({
      "prompts/list": { prompts: [{ name: "p" }] },
      "resources/list": { resources: [{ uri: "file:///a", name: "a" }] },
      "resources/templates/list": { resourceTemplates: [{ uriTemplate: "file:///{+path}", name: "t" }] },
    });
  const caller = fakeClient(createRouter({ notes: make(), Mail: make() }));
  expect((await caller.call("prompts/list"))["prompts"]).toEqual([
    { name: "notes_p", _meta: of("notes", "p") },
    { name: "Mail_p", _meta: of("Mail", "p") },
  ]);
  expect((await caller.call("resources/list"))["resources"]).toEqual([
    { uri: "notes.file:///a", name: "a", _meta: of("notes", "file:///a") },
    { uri: "mail.file:///a", name: "a", _meta: of("Mail", "file:///a") },
  ]);
  expect((await caller.call("resources/templates/list"))["resourceTemplates"]).toEqual([
    { uriTemplate: "notes.file:///{+path}", name: "t", _meta: of("notes", "file:///{+path}") },
    { uriTemplate: "mail.file:///{+path}", name: "t", _meta: of("Mail", "file:///{+path}") },
  ]);
  const always = fakeClient(createRouter({ notes: make() }, { names: "always" }));
  expect((await always.call("prompts/list"))["prompts"]).toMatchObject([{ name: "notes_p" }]);
  expect((await always.call("resources/list"))["resources"]).toMatchObject([{ uri: "notes.file:///a", name: "a" }]);
});

it("lists of many upstreams are requested only of upstreams that have them, and are empty if the method is not found", async () => {
  const without = scriptedServer({}, { prompts: {} });
  const silent = scriptedServer({}, { resources: {} });
  const some = scriptedServer({ "tools/list": toolList("x") });
  const caller = fakeClient(createRouter({ without, silent, some }));
  expect(await caller.call("tools/list")).not.toHaveProperty(["_meta", "catenary/unavailable"]);
  expect(without.requests.map(({ method }) => method)).toEqual(["server/discover"]);
  expect((await caller.call("resources/templates/list"))["resourceTemplates"]).toEqual([]);
});

it("lists of many upstreams include tools of an upstream that had none before", async () => {
  let capabilities: object = {};
  const late = scriptedServer({ "server/discover": () => ({ capabilities }), "tools/list": toolList("new") });
  const caller = fakeClient(createRouter({ late, other: scriptedServer({ "tools/list": toolList("x") }) }));
  expect(namesOf(await caller.call("tools/list"))).toEqual(["x"]);
  capabilities = { tools: {} };
  expect(namesOf(await caller.call("tools/list"))).toEqual(["new", "x"]);
});

it("lists of many upstreams combine the cache hints", async () => {
  const kept = (ttlMs: number): ReturnType<typeof scriptedServer> =>
    scriptedServer({ "tools/list": { tools: [], ttlMs, cacheScope: "public" } });
  const two = await fakeClient(createRouter({ a: kept(70), b: kept(30) })).call("tools/list");
  expect([two["ttlMs"], two["cacheScope"]]).toEqual([30, "public"]);
  const three = await fakeClient(
    createRouter({ a: kept(70), b: scriptedServer({ "tools/list": toolList("x") }) }),
  ).call("tools/list");
  expect([three["ttlMs"], three["cacheScope"]]).toEqual([0, "private"]);
});

it("cursors lead through all items of all upstreams once", async () => {
  const a = scriptedServer({ "tools/list": pages("tools", many("a", 1_500), 400) });
  const b = scriptedServer({ "tools/list": pages("tools", [...many("b", 1_200), { name: "a7" }], 1_000) });
  const { items, sizes } = await allPages(fakeClient(createRouter({ a, b })), "tools/list", "tools");
  expect(sizes).toEqual([1_000, 1_000, 701]);
  const names = items.map(({ name }) => name);
  expect(new Set(names).size).toBe(2_701);
  expect([names[7], names.at(-1)]).toEqual(["a_a7", "b_a7"]);
});

it("cursors limit the length of a page, so that it fits into a message", async () => {
  const long = many("x", 10).map((tool) => ({ ...tool, description: "d".repeat(300_000) }));
  const { items, sizes } = await allPages(
    fakeClient(createRouter({ a: scriptedServer({ "tools/list": { tools: long } }) })),
    "tools/list",
    "tools",
  );
  expect(sizes).toEqual([3, 3, 3, 1]);
  expect(items).toEqual(long.map((tool) => ({ ...tool, _meta: of("a") })));
});

it("cursors continue after an item that is gone, and in a view that has listed nothing yet", async () => {
  let list = many("a", 1_500);
  const a = scriptedServer({ "tools/list": () => ({ tools: list }) });
  const b = scriptedServer({ "tools/list": toolList("a3") });
  const router = createRouter({ b, a });
  const first = await fakeClient(router).call("tools/list");
  list = list.filter(({ name }) => name !== "a998");
  const stranger = fakeClient(router, { caller: { principal: "another" } });
  const second = await stranger.call("tools/list", { cursor: first["nextCursor"] });
  expect((second["tools"] as Items)[0]).toMatchObject({ name: "a1000" });
  list = many("a", 1_500);
  const third = await fakeClient(router).call("tools/list", { cursor: first["nextCursor"] });
  expect((third["tools"] as Items)[0]).toMatchObject({ name: "a999" });
});

it("cursors are refused if they are invalid or of another list", async () => {
  const upstream = scriptedServer({
    "tools/list": pages("tools", many("a", 1_001), 2_000),
    "prompts/list": { prompts: [] },
  });
  const caller = fakeClient(createRouter({ upstream }));
  const { nextCursor } = await caller.call("tools/list");
  const bad = [
    "",
    "abc",
    "1",
    Buffer.from('["tools/list","upstream","a1",5]').toString("base64url"),
    `${String(nextCursor)}=`,
  ];
  for (const cursor of bad) expect((await caller.callError("tools/list", { cursor })).kind).toBe("invalid_params");
  expect((await caller.callError("prompts/list", { cursor: nextCursor })).kind).toBe("invalid_params");
  const other = fakeClient(createRouter({ another: upstream }));
  expect((await other.callError("tools/list", { cursor: nextCursor })).kind).toBe("invalid_params");
});

const broken = async (): Promise<never> => {
  throw new ConnectionError("closed", "The server is gone", THE_SERVER);
};

it("upstreams that fail in a list are left out and reported, and their names still count", async () => {
  let isAway = false;
  const b = scriptedServer({
    "tools/list": () => {
      if (isAway) throw new ConnectionError("closed", "the process has exited");
      return toolList("x", "y");
    },
  });
  const caller = fakeClient(createRouter({ a: scriptedServer({ "tools/list": toolList("x") }), b }));
  expect(namesOf(await caller.call("tools/list"))).toEqual(["a_x", "b_x", "y"]);
  isAway = true;
  const result = await caller.call("tools/list");
  expect(namesOf(result)).toEqual(["a_x"]);
  expect(result).toMatchObject({ ttlMs: 0, cacheScope: "private" });
  expect(result._meta?.["catenary/unavailable"]).toEqual([
    { upstream: "b", message: "The upstream b failed: the process has exited" },
  ]);
});

it("upstreams that fail in a list are an error if there is no other upstream", async () => {
  const error = await fakeClient(createRouter({ broken, worse: broken })).callError("tools/list");
  expect(error.kind).toBe("unreachable");
  expect(error.message).toBe(
    "No upstream could answer tools/list: The upstream broken is gone; The upstream worse is gone",
  );
  const one = fakeClient(createRouter({ broken, fine: scriptedServer({}) }));
  expect((await one.call("tools/list"))["tools"]).toEqual([]);
});

it("upstreams that fail in a list are cut off if their pages never end, and the items so far count", async () => {
  const loop = scriptedServer({ "tools/list": { tools: [{ name: "x" }], nextCursor: "again" } });
  let count = 0;
  const endless = scriptedServer({
    "tools/list": () => ({ tools: [{ name: `t${count}` }], nextCursor: String(count++) }),
  });
  const odd = scriptedServer({
    "tools/list": { tools: [{ name: "o" }, null, { title: "nameless" }], nextCursor: 5 },
  });
  const wrong = scriptedServer({ "tools/list": { tools: "none" } });
  const result = await fakeClient(createRouter({ loop, odd, wrong, endless })).call("tools/list");
  expect(loop.requests.filter(({ method }) => method === "tools/list")).toHaveLength(2);
  expect((result["tools"] as Items).filter(({ name }) => !String(name).startsWith("t"))).toMatchObject([
    { name: "x" },
    { name: "o" },
  ]);
  const shown = result._meta?.["catenary/unavailable"] as readonly { message: string }[] | undefined;
  expect(shown?.map(({ message }) => message)).toEqual([
    "The upstream loop did not finish tools/list: its pages repeat",
    "The upstream odd did not finish tools/list: its `nextCursor` is not a string",
    "The upstream wrong answered tools/list without `tools`",
    "The upstream endless did not finish tools/list: it has more than 1000 pages",
  ]);
});

it("upstreams that fail in a list are limited in their items", async () => {
  const big = scriptedServer({
    "tools/list": ({ cursor }) => ({ tools: many(`p${String(cursor)}-`, 6_000), nextCursor: `${String(cursor)}+` }),
  });
  const { _meta } = await fakeClient(createRouter({ big })).call("tools/list");
  expect(_meta?.["catenary/unavailable"]).toEqual([
    { upstream: "big", message: "The upstream big did not finish tools/list: it has more than 10000 items" },
  ]);
  expect(big.requests.filter(({ method }) => method === "tools/list")).toHaveLength(2);
});

it("upstreams that fail in a list are limited in their length, and in the length of a cursor", async () => {
  let count = 0;
  const description = "d".repeat(3_000_000);
  const long = scriptedServer({
    "tools/list": () => ({ tools: [{ name: `t${count}`, description }], nextCursor: String(count++) }),
  });
  const { length } = description;
  const far = scriptedServer({ "tools/list": { tools: [{ name: "far" }], nextCursor: "c".repeat(length) } });
  const { _meta } = await fakeClient(createRouter({ long, far })).call("tools/list");
  expect(_meta?.["catenary/unavailable"]).toEqual([
    {
      upstream: "long",
      message: "The upstream long did not finish tools/list: it is longer than 16777216 characters",
    },
    {
      upstream: "far",
      message: "The upstream far did not finish tools/list: its `nextCursor` is longer than 65536 characters",
    },
  ]);
  expect(long.requests.filter(({ method }) => method === "tools/list")).toHaveLength(6);
  expect(far.requests.filter(({ method }) => method === "tools/list")).toHaveLength(1);
});
