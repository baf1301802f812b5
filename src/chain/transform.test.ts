// transform(): metadata and request transformers in order, what may be left out, and servers that are objects.

import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { callRequest, fakeClient, fakeContext, textResult } from "../../test/support/handlers/fake-client.ts";
import { connectInMemory } from "../testing.ts";
import { connect } from "../client/connect.ts";
import type { Caller, Handler, Middleware, Request, Result } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import { META } from "../protocol/model/base.ts";
import type { Tool } from "../protocol/model/index.ts";
import { REVISIONS } from "../protocol/revisions/index.ts";
import { serve } from "../serve.ts";
import { createServer } from "../server/server.ts";
import { chain } from "./chain.ts";
import { filter } from "./middleware/index.ts";
import {
  type Metadata,
  type MetadataServer,
  transform,
  type TransformedItem,
  type TransformOptions,
} from "./transform.ts";

const tool = (name: string): Tool => ({ name, inputSchema: { type: "object" } });

const notes = () =>
  createServer({ name: "notes", version: "1", instructions: "Take notes." })
    .tool("add", { description: "Adds a note" }, ({ text }) => `added ${String(text)}`)
    .tool("erase", {}, () => "gone")
    .resource("note:1", { name: "one" }, () => "first")
    .template("note:{id}", { name: "note" }, ({ id }) => `note ${id}`)
    .prompt("review", {}, () => "Please review");

const ask = (handler: Handler, method: string, params = {}): Promise<Result> =>
  handler({ method, params }, fakeContext().context);

const named = (result: Result, field = "tools"): unknown[] =>
  (result[field] as { readonly name: string }[]).map(({ name }) => name);

/** Adds a word to the description of each tool, and to the text of each result. */
const signed = (word: string): Middleware =>
  transform({
    metadata: ({ tools = [], ...rest }) => ({
      ...rest,
      tools: tools.map((one) => ({ ...one, description: `${one.description ?? ""} ${word}` })),
    }),
    request: async (request, context, next) => {
      const result = await next(request, context);
      const [first] = result["content"] as { readonly text: string }[];
      return { ...result, content: [{ type: "text", text: `${first?.text} ${word}` }] };
    },
  });

it("transform() runs metadata and request transformers, the first outermost", async () => {
  const gateway = chain(signed("outer"), signed("inner")).to(notes());
  const { tools } = await ask(gateway, "tools/list");
  expect((tools as Tool[])[0]?.description).toBe("Adds a note inner outer");
  expect(await gateway(callRequest("erase"), fakeContext().context)).toMatchObject({
    content: [{ text: "gone inner outer" }],
  });
});

it.each<TransformOptions>([{}, { metadata: null, request: null }, { request: null }])(
  "transform() changes nothing if it is %j",
  async (options) => {
    const upstream = vi.fn(notes());
    const gateway = chain(transform(options)).to(upstream);
    const { context } = fakeContext();
    const request = callRequest("erase");
    expect(await gateway(request, context)).toMatchObject({ content: [{ text: "gone" }] });
    expect(upstream.mock.calls).toEqual([[request, { ...context, item: expect.objectContaining({ name: "erase" }) }]]);
    expect(named(await ask(gateway, "tools/list"))).toEqual(["add", "erase"]);
  },
);

it("transform() may have only one of the two", async () => {
  const meta = transform({ metadata: (found) => ({ ...found, tools: [] }) });
  const call = transform({ request: async () => textResult("short") });
  const gateway = chain(meta, call).to(notes());
  expect(named(await ask(gateway, "tools/list"))).toEqual([]);
  expect(await gateway(callRequest("erase"), fakeContext().context)).toEqual(textResult("short"));
  expect(named(await ask(gateway, "prompts/list"), "prompts")).toEqual(["review"]);
});

it("transform() takes null for a field that is left out", async () => {
  const bare = { info: null, instructions: null, tools: null };
  const gateway = chain(transform({ metadata: () => bare as unknown as Metadata })).to(notes());
  const result = await ask(gateway, "server/discover");
  expect(result).toMatchObject({ _meta: { [META.serverInfo]: { name: "notes", version: "1" } } });
  expect(result).not.toHaveProperty("instructions");
});

it("transform() answers itself, or calls downstream several times, also other methods", async () => {
  const upstream = vi.fn(notes());
  const gateway = chain(
    transform({
      request: async (request, context, next) => {
        if (request.params["name"] === "nothing") return textResult("not asked");
        if (request.params["name"] !== "everything") return next(request, context);
        const { tools } = await next({ method: "tools/list", params: {} }, context);
        const { contents } = await next({ method: "resources/read", params: { uri: "note:1" } }, context);
        const first = await next(callRequest("add", { text: "a" }), context);
        await next(callRequest("erase"), context);
        return { ...first, structuredContent: { tools: (tools as Tool[]).length, contents } };
      },
    }),
  ).to(upstream);
  expect(await gateway(callRequest("nothing"), fakeContext().context)).toEqual(textResult("not asked"));
  expect(upstream).not.toHaveBeenCalled();
  expect(await gateway(callRequest("everything"), fakeContext().context)).toMatchObject({
    content: [{ text: "added a" }],
    structuredContent: { tools: 2, contents: [{ text: "first" }] },
  });
  expect(upstream.mock.calls.map(([{ method }]) => method)).toEqual([
    "tools/list",
    "resources/read",
    "tools/call",
    "tools/call",
  ]);
});

it("transform(): adds, changes and removes items of every list, for each request anew", async () => {
  let count = 0;
  const gateway = chain(
    transform({
      metadata: async ({ info, instructions, tools, resources, resourceTemplates, prompts }, { caller }) => {
        count += 1;
        return {
          info: { ...(info ?? { version: "0" }), name: `${info?.name} (${caller.principal})` },
          instructions: `${instructions} Kindly.`,
          tools: [...(tools ?? []).filter(({ name }) => name !== "erase"), tool(`extra-${count}`)],
          resources: [...(resources ?? []), { uri: "note:2", name: "two" }],
          resourceTemplates: (resourceTemplates ?? []).map((one) => ({ ...one, title: "A note" })),
          prompts: prompts?.map((one) => ({ ...one, name: `my-${one.name}` })) ?? [],
        };
      },
      request: async (request, context, next) =>
        String(request.params["name"]).startsWith("extra-") ? textResult("extra") : next(request, context),
    }),
  ).to(notes());
  const { client, close } = await connectInMemory(gateway, { caller: { principal: "ada" } });
  onTestFinished(close);
  expect(client.server).toMatchObject({ name: "notes (ada)", version: "1" });
  expect(client.instructions).toBe("Take notes. Kindly.");
  const first = (await client.listTools()).tools.map(({ name }) => name);
  const second = (await client.listTools()).tools.map(({ name }) => name);
  expect([first[0], second[0]]).toEqual(["add", "add"]);
  expect(first[1]).not.toBe(second[1]);
  expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(["note:1", "note:2"]);
  expect((await client.listResourceTemplates()).resourceTemplates).toMatchObject([{ name: "note", title: "A note" }]);
  expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(["my-review"]);
  expect(await client.callTool(String(second[1]))).toMatchObject({ content: [{ text: "extra" }] });
  expect(await client.callTool("add", { text: "b" })).toMatchObject({ content: [{ text: "added b" }] });
});

it.each(REVISIONS.map(({ name }) => name))(
  "transform() gives tools to a server that has none, for a client of %s",
  async (revision) => {
    const bare = createServer({ name: "bare", version: "1" }).prompt("hello", {}, () => "Hello");
    const gateway = chain(
      transform({
        metadata: ({ tools = [], ...rest }) => ({ ...rest, tools: [...tools, tool("mine")] }),
        request: async (request, context, next) =>
          request.method === "tools/call" ? textResult("here") : next(request, context),
      }),
    ).to(bare);
    const { client, close } = await connectInMemory(gateway, { revision });
    onTestFinished(close);
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["mine"]);
    expect(await client.callTool("mine")).toMatchObject({ content: [{ text: "here" }] });
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(["hello"]);
    expect(client.capabilities.resources).toBeUndefined();
    await expect(client.request("resources/list")).rejects.toMatchObject({ code: -32601 });
  },
);

it("transform() may sort and shorten lists in place, which concerns no other caller and no other gateway", async () => {
  const server = notes();
  const gateway = chain(
    transform({
      metadata: (metadata, { caller }) => {
        const tools = metadata.tools as Tool[] | undefined;
        tools?.reverse();
        if (caller.principal === "admin") tools?.push(tool("all"));
        return metadata;
      },
    }),
  ).to(server);
  const listed = async (principal: string) =>
    named(await gateway({ method: "tools/list", params: {} }, fakeContext({ principal }).context));
  expect(await listed("bob")).toEqual(["erase", "add"]);
  expect(await listed("admin")).toEqual(["erase", "add", "all"]);
  expect(await listed("bob")).toEqual(["erase", "add"]);
  expect(
    named(await ask(chain().to({ a: server, b: createServer({ name: "b", version: "1" }) }), "tools/list")),
  ).toEqual(["add", "erase"]);
});

it("transform() reads the pages of a list to the end, and has pages of its own", async () => {
  const pages: Handler = async ({ params }) => {
    const start = Number(params["cursor"] ?? 0);
    const items = Array.from({ length: 800 }, (_, index) => tool(`t${start + index}`));
    return { tools: items, ...(start < 1_600 && { nextCursor: String(start + 800) }) };
  };
  const gateway = chain(transform({ metadata: (found) => found })).to(pages);
  const first = await ask(gateway, "tools/list");
  expect(named(first)).toHaveLength(1_000);
  const second = await ask(gateway, "tools/list", { cursor: first["nextCursor"] });
  const third = await ask(gateway, "tools/list", { cursor: second["nextCursor"] });
  expect(new Set([first, second, third].flatMap((one) => named(one))).size).toBe(2_400);
  expect(third["nextCursor"]).toBeUndefined();
  await expect(ask(gateway, "tools/list", { cursor: "800" })).rejects.toMatchObject({ code: -32602 });
});

it("transform() asks the upstream once for each request, however many transformers there are", async () => {
  const upstream = vi.fn(notes());
  const same = signed("same");
  await ask(chain(same, same, same, signed("other")).to(upstream), "tools/list");
  await ask(chain(same, same).to(upstream), "server/discover");
  expect(upstream.mock.calls.map(([{ method }]) => method)).toEqual(["tools/list", "server/discover"]);
});

it("transform() keeps the schemas of tools, errors, and results that are errors", async () => {
  const input = { type: "object", properties: { n: { type: "number" } }, required: ["n"] } as const;
  const server = createServer({ name: "s", version: "1" }).tool("fail", { input }, () => {
    throw new Error("broken");
  });
  const gateway = chain(
    transform({ metadata: (found) => found, request: (request, context, next) => next(request, context) }),
  ).to(server);
  expect((await ask(gateway, "tools/list"))["tools"]).toEqual([{ name: "fail", inputSchema: input }]);
  expect(await gateway(callRequest("fail", { n: 1 }), fakeContext().context)).toMatchObject({
    isError: true,
    content: [{ text: expect.stringContaining("broken") as string }],
  });
  await expect(gateway(callRequest("none"), fakeContext().context)).rejects.toMatchObject({
    code: -32602,
    kind: "tool_not_found",
  });
});

it("transform() passes subscriptions on, and what others put into a result", async () => {
  const upstream = vi.fn(async ({ method }: Request): Promise<Result> =>
    method === "tools/list" ? { tools: [], _meta: { "my/key": 1 }, ttlMs: 60_000 } : {},
  );
  const request = vi.fn(async () => textResult("wrong"));
  const gateway = chain(transform({ metadata: (found) => found, request })).to(upstream);
  expect(await ask(gateway, "tools/list")).toMatchObject({ _meta: { "my/key": 1 }, ttlMs: 0, cacheScope: "private" });
  await ask(gateway, "subscriptions/listen", { notifications: {} });
  expect(request).not.toHaveBeenCalled();
  expect(upstream).toHaveBeenCalledTimes(2);
});

it("transform() leaves out items without a name and a second item of the same name, with a warning for each", async () => {
  const warnings = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
  onTestFinished(() => warnings.mockRestore());
  const gateway = chain(
    transform({
      metadata: () =>
        ({
          tools: [
            { ...tool("a"), title: "first" },
            { ...tool("a"), title: "second" },
            { title: "none" },
            null,
            { name: "b" },
          ],
          resources: [{ uri: "x:y" }],
        }) as never,
    }),
  ).to(notes());
  for (const _ of [1, 2]) {
    expect((await ask(gateway, "tools/list"))["tools"]).toEqual([
      { ...tool("a"), title: "first" },
      { name: "b", inputSchema: { type: "object" } },
    ]);
  }
  expect((await ask(gateway, "resources/list"))["resources"]).toEqual([{ uri: "x:y", name: "x:y" }]);
  expect(warnings.mock.calls.map(([message]) => message)).toEqual([
    'transform(): `metadata`: tools has two items with the name "a"; the second is left out',
    "transform(): `metadata`: tools[2] has no `name`; it is left out",
    "transform(): `metadata`: tools[3] has no `name`; it is left out",
  ]);
});

it("transform() fails with the error of the upstream, or with one that names it", async () => {
  const down: Handler = () => Promise.reject(McpError.of("rate_limited", "later"));
  await expect(ask(chain(signed("x")).to(down), "tools/list")).rejects.toMatchObject({ kind: "rate_limited" });
  const nothing = chain(transform({ metadata: () => undefined as never })).to(notes());
  await expect(ask(nothing, "tools/list")).rejects.toThrow(
    "The middleware transform failed: transform(): `metadata` must return metadata, such as { tools: [] }, not undefined",
  );
  const wrong = chain(transform({ metadata: () => ({ tools: "all" }) as never })).to(notes());
  await expect(ask(wrong, "tools/list")).rejects.toThrow("`tools` must be an array, not a string");
  expect(() => transform({ metadata: {} as never })).toThrow("`metadata` must be a function or null, not an object");
  expect(() => transform({ requests: () => undefined } as never)).toThrow("did you mean `request`?");
});

/** A server as a class, with methods on its prototype. */
class Counter implements MetadataServer {
  count = 0;
  isClosed = false;

  getMetadata() {
    return { info: { name: "counter", version: "2" }, tools: [tool("next")], resources: [] };
  }

  handleRequest({ method, params }: Request): Result {
    if (method !== "tools/call") throw McpError.of("method_not_found", `Method not found: ${method}`);
    if (params["name"] !== "next") throw McpError.of("tool_not_found", `Tool not found: ${String(params["name"])}`);
    this.count += 1;
    return textResult(String(this.count));
  }

  close(): void {
    this.isClosed = true;
  }
}

it.each(REVISIONS.map(({ name }) => name))(
  "a server that is an object is an upstream, for a client of %s",
  async (revision) => {
    const counter = new Counter();
    const gateway = chain(signed("counted")).to(counter);
    const { client, close } = await connectInMemory(gateway, { revision });
    expect(client.server).toMatchObject({ name: "counter", version: "2" });
    expect(Object.keys(client.capabilities).toSorted()).toEqual(["resources", "tools"]);
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["next"]);
    expect(await client.callTool("next")).toMatchObject({ content: [{ text: "1 counted" }] });
    await close();
    await gateway.close();
    expect([counter.count, counter.isClosed]).toEqual([1, true]);
  },
);

it("a server that is an object is one of several upstreams", async () => {
  const gateway = chain().to({ counter: new Counter(), notes: notes() });
  expect(named(await ask(gateway, "tools/list"))).toEqual(["next", "add", "erase"]);
  expect(await gateway(callRequest("next"), fakeContext().context)).toMatchObject({ content: [{ text: "1" }] });
  await gateway.close();
});

it("a server that is an object need not say who it is", async () => {
  const bare = { getMetadata: () => ({}), handleRequest: () => ({}) };
  expect(await ask(chain().to(bare), "server/discover")).toMatchObject({
    capabilities: {},
    _meta: { [META.serverInfo]: { name: "server", version: "0.0.0" } },
  });
  await expect(ask(chain().to(bare), "tools/list")).rejects.toMatchObject({ code: -32601 });
  await expect(ask(chain().to(bare), "subscriptions/listen", { notifications: {} })).rejects.toMatchObject({
    code: -32601,
  });
});

describe("a chain without an upstream", () => {
  const unfinished = chain(signed("x")) as never;
  const TEXT = "the chain has no upstream: write chain(...).to(...)";

  afterEach(() => vi.restoreAllMocks());

  it("a chain without an upstream is refused where it is served, connected or used as an upstream", async () => {
    await expect(serve(unfinished)).rejects.toThrow(`serve(): ${TEXT}`);
    await expect(serve({} as never)).rejects.toThrow("serve() takes a server or a handler");
    await expect(connect(unfinished)).rejects.toThrow(`connect(): ${TEXT}`);
    expect(() => chain().to(unfinished)).toThrow(`to(): ${TEXT}`);
    expect(() => chain().to({ notes: unfinished })).toThrow(`to(): the upstream "notes": ${TEXT}`);
  });
});

it("composition uses a gateway as the upstream of another chain", async () => {
  const inner = chain(filter({ tools: { exclude: ["erase"] } })).to(notes());
  const gateway = chain(signed("outer")).to(inner);
  expect(named(await ask(gateway, "tools/list"))).toEqual(["add"]);
  expect(await gateway(callRequest("add", { text: "c" }), fakeContext().context)).toMatchObject({
    content: [{ text: "added c outer" }],
  });
});

it("composition does not change a chain that is built upon", async () => {
  const base = chain(signed("a"));
  const longer = base.use(signed("b"));
  expect([base.to(notes()), longer.to(notes())].map((gateway) => gateway.middleware.length)).toEqual([1, 2]);
  expect(await longer.to(notes())(callRequest("erase"), fakeContext().context)).toMatchObject({
    content: [{ text: "gone b a" }],
  });
  expect(await base.to(notes())(callRequest("erase"), fakeContext().context)).toMatchObject({
    content: [{ text: "gone a" }],
  });
});

const items = () =>
  transform({
    item: (item) => {
      if (item.kind === "tools" && item.ownName === "erase") return undefined;
      if (item.name === "add") return { ...item, name: "append", definition: { ...item.definition, title: "Append" } };
      return item;
    },
  });

it("transform({ item }): hides, renames and describes in lists, calls and completions alike", async () => {
  const gateway = chain(items()).to(notes());
  expect(await ask(gateway, "tools/list")).toMatchObject({ tools: [{ name: "append", title: "Append" }] });
  const { call, callError } = fakeClient(gateway);
  expect(await call("tools/call", { name: "append" })).toMatchObject({ content: [{ text: "added undefined" }] });
  for (const name of ["add", "erase", "none"]) {
    expect(await callError("tools/call", { name })).toMatchObject({ kind: "tool_not_found" });
  }
});

it("transform({ item }) works with a call that comes before any list, and outside of a gateway", async () => {
  const { call } = fakeClient(chain(items()).to(notes()));
  expect(await call("tools/call", { name: "append" })).toMatchObject({ content: [{ text: "added undefined" }] });
  const server = notes();
  const alone = items();
  const { context } = fakeContext();
  expect(await alone(callRequest("append"), context, server)).toMatchObject({
    content: [{ text: "added undefined" }],
  });
});

it("transform({ item }) shows the first of two items with one name, calls it, and warns of the second", async () => {
  const warnings = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
  try {
    const same = transform({ item: (item) => (item.kind === "tools" ? { ...item, name: "same" } : item) });
    const { call } = fakeClient(chain(same).to(notes()));
    const { tools } = await call("tools/list");
    expect((tools as { name: string }[]).map(({ name }) => name)).toEqual(["same"]);
    await call("tools/list");
    expect(warnings.mock.calls.map(([message]) => message)).toEqual([
      'transform(): `item`: tools has two items with the name "same"; the second is left out',
    ]);
  } finally {
    warnings.mockRestore();
  }
});

it("transform({ item }) knows the upstream of an item, and what a router calls it", async () => {
  const seen: unknown[] = [];
  const watching = transform({
    item: (item) => {
      if (item.kind === "tools") seen.push([item.name, item.upstream, item.ownName]);
      return item;
    },
  });
  await ask(chain(watching).to({ a: notes(), b: notes() }), "tools/list");
  expect(seen).toContainEqual(["a_erase", "a", "erase"]);
  expect(seen).toContainEqual(["b_erase", "b", "erase"]);
});

it("transform({ item }) can depend on the caller, and is then asked for each", async () => {
  const mine = transform({ item: (item, { caller }) => (caller.principal === "ada" ? item : undefined) });
  const gateway = chain(mine).to(notes());
  const of = async (principal: string) =>
    named(await gateway({ method: "tools/list", params: {} }, fakeContext({ principal }).context));
  expect(await of("ada")).toEqual(["add", "erase"]);
  expect(await of("bob")).toEqual([]);
  expect(await of("ada")).toEqual(["add", "erase"]);
});

it("transform({ item }) comes before `metadata` and `request` of the same transform", async () => {
  const gateway = chain(
    transform({
      item: (item) => (item.name === "add" ? { ...item, name: "append" } : item),
      metadata: ({ tools = [], ...rest }) => ({ ...rest, tools: tools.filter(({ name }) => name !== "erase") }),
      request: (request, context, next) => next(request, context),
    }),
  ).to(notes());
  expect(named(await ask(gateway, "tools/list"))).toEqual(["append"]);
  expect(await fakeClient(gateway).call("tools/call", { name: "append" })).toMatchObject({
    content: [{ text: "added undefined" }],
  });
});

it("transform({ item }) gets no caller if it seems to have no second parameter, since its answers are kept for all", async () => {
  const item = (one: TransformedItem, view: { readonly caller?: Caller } = {}) =>
    view.caller?.principal === "admin" ? one : undefined;
  const gateway = chain(transform({ item })).to(notes());
  for (const principal of ["admin", "bob"]) {
    const { context } = fakeContext({ principal });
    expect(named(await gateway({ method: "tools/list", params: {} }, context))).toEqual([]);
  }
});

it("transform({ item }) keeps the names of each place apart, also with `metadata`", async () => {
  const prefixed = transform({
    item: (item) => ({ ...item, name: `x_${item.name}` }),
    metadata: (metadata) => metadata,
  });
  const server = (name: string) => createServer({ name, version: "1" }).tool(name, {}, () => name);
  const twice = fakeClient(chain(prefixed, prefixed).to(server("a")));
  expect(named(await twice.call("tools/list"))).toEqual(["x_x_a"]);
  expect(await twice.call("tools/call", { name: "x_x_a" })).toMatchObject({ content: [{ text: "a" }] });
  for (const name of ["a", "b"]) {
    const { call } = fakeClient(chain(prefixed).to(server(name)));
    expect(await call("tools/call", { name: `x_${name}` })).toMatchObject({ content: [{ text: name }] });
  }
});

it("transform({ item }) fails with its name if it throws or returns something else, and may not change URIs", async () => {
  const failing = [
    [
      () => {
        throw new Error("no");
      },
      "The middleware transform failed: no",
    ],
    [() => 5, "The middleware transform failed: `item` must return an item with a `name`, or nothing to hide it"],
  ] as const;
  for (const [item, message] of failing) {
    const { callError } = fakeClient(chain(transform({ item: item as never })).to(notes()));
    expect((await callError("tools/list")).message).toBe(message);
    expect((await callError("tools/call", { name: "add" })).message).toBe(message);
  }
  const moving = transform({ item: (item) => ({ ...item, name: `x${item.name}` }) });
  const resources = createServer({ name: "r", version: "1" }).resource("note://1", { name: "one" }, () => "1");
  expect((await fakeClient(chain(moving).to(resources)).callError("resources/list")).message).toContain(
    "`item` must not change URIs; use rename() for that",
  );
  expect(() => transform({ item: "x" } as never)).toThrow("`item` must be a function or null, not a string");
});
