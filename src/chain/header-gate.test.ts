// Headers that repeat arguments: which calls a gateway refuses, which lists it reads for that, and that nothing behind it
// checks the headers again.

import { expect, it } from "vitest";
import type { Context, Handler, Request, Result } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import { META } from "../protocol/model/base.ts";
import { NEWEST, NEWEST_SESSION } from "../protocol/revisions/index.ts";
import { createServer } from "../server/server.ts";
import { copying } from "../../test/support/handlers/copying.ts";
import { fakeCaller } from "../../test/support/handlers/fake-client.ts";
import { chain } from "./chain.ts";

const property = (header: string) => ({ type: "string", "x-mcp-header": header });

/** An upstream with these pages of tools; `received` are the requests that reached it. */
function tools(...pages: readonly Readonly<Record<string, object>>[]) {
  const received: string[] = [];
  const state = { pages };
  const handler: Handler = async ({ method, params }) => {
    const at = Number(params["cursor"] ?? 0);
    received.push(method === "tools/call" ? `call ${String(params["name"])}` : `list ${at}`);
    if (method === "tools/call") return { content: [], isError: false };
    const listed = Object.entries(state.pages[at] ?? {}).map(([name, properties]) => ({
      name,
      inputSchema: { type: "object", properties },
    }));
    return { tools: listed, ...(at + 1 < state.pages.length ? { nextCursor: String(at + 1) } : undefined) };
  };
  return { handler, received, state };
}

function context(headers?: Record<string, string>, more: Partial<Context> = {}): Context {
  return {
    revision: NEWEST.name,
    caller: fakeCaller(headers && { headers }),
    signal: new AbortController().signal,
    notify: () => undefined,
    ask: () => Promise.reject(new Error("Unexpected request to the client")),
    ...more,
  };
}

const call = (name: string, args: object = {}): Request => ({
  method: "tools/call",
  params: { name, arguments: args, _meta: { [META.revision]: NEWEST.name } },
});

const refused = (outcome: Promise<Result>): Promise<unknown> =>
  outcome.then(
    () => "not refused",
    (error: unknown) => (error instanceof McpError ? error.message : error),
  );

it("a call over HTTP is refused if a header differs from its argument, on whichever page the tool is", async () => {
  const upstream = tools({ plain: {} }, { look: { region: property("Region") } });
  const gateway = chain().to(upstream.handler);
  expect(await refused(gateway(call("look", { region: "north" }), context({})))).toBe(
    "Header mismatch: mcp-param-region is missing for the argument region",
  );
  expect(upstream.received).not.toContain("call look");
  await gateway(call("look", { region: "north" }), context({ "mcp-param-region": "north" }));
  await gateway(call("look"), context({}));
  expect(upstream.received.filter((one) => one === "call look")).toHaveLength(2);
});

it("a call over HTTP reads the list only for a tool it has not seen, and once for tools that do not exist", async () => {
  const upstream = tools({ plain: {} });
  const gateway = chain().to(upstream.handler);
  await gateway({ method: "tools/list", params: {} }, context({}));
  await gateway(call("plain"), context({}));
  expect(upstream.received).toEqual(["list 0", "call plain"]);
  await Promise.all(["none", "none", "nothing"].map((name) => gateway(call(name), context({}))));
  await gateway(call("none"), context({}));
  expect(upstream.received.slice(2)).toEqual(["list 0", "call none", "call none", "call nothing", "call none"]);
});

it("a call over HTTP is not refused by an outdated schema", async () => {
  const upstream = tools({ look: { region: property("Region") } });
  const gateway = chain().to(upstream.handler);
  await gateway({ method: "tools/list", params: {} }, context({}));
  upstream.state.pages = [{ look: { region: { type: "string" } } }];
  expect(await gateway(call("look", { region: "north" }), context({}))).toMatchObject({ isError: false });
});

it("a call over HTTP tells a caller nothing about tools that only other callers see", async () => {
  const seen: string[] = [];
  const gateway = chain().to(async ({ method, params }, { caller }) => {
    const isShown = caller.principal === "ada" && caller.endpoint === undefined;
    seen.push(`${method} of ${caller.principal} at ${caller.endpoint ?? "/mcp"}`);
    const schema = { type: "object", properties: { region: property("Region") } };
    if (method === "tools/list") return { tools: isShown ? [{ name: "look", inputSchema: schema }] : [] };
    if (!isShown) throw McpError.of("tool_not_found", `There is no tool ${String(params["name"])}`);
    return { content: [], isError: false };
  });
  const as = (caller: object): Promise<unknown> =>
    refused(
      gateway(call("look", { region: "north" }), context({}, { caller: fakeCaller({ headers: {}, ...caller }) })),
    );
  expect(await as({ principal: "ada" })).toContain("mcp-param-region is missing");
  expect(await as({ principal: "bob" })).toBe("There is no tool look");
  expect(await as({ principal: "ada", endpoint: "/mcp/work" })).toBe("There is no tool look");
  expect(seen.filter((one) => one.startsWith("tools/list of ada at /mcp"))).toHaveLength(2);
});

it("a call over HTTP is passed on if there is no list", async () => {
  const upstream: Handler = async ({ method }) => {
    if (method === "tools/list") throw McpError.of("method_not_found", "No lists here");
    return { content: [], isError: false };
  };
  expect(await chain().to(upstream)(call("look"), context({}))).toMatchObject({ isError: false });
});

it("a call over HTTP stops waiting for the list when its caller leaves, while others wait on", async () => {
  let answer: (listed: Result) => void = () => undefined;
  const listed = new Promise<Result>((resolve) => {
    answer = resolve;
  });
  const gateway = chain().to(({ method }) =>
    method === "tools/list" ? listed : Promise.resolve({ content: [], isError: false }),
  );
  const leaving = new AbortController();
  const left = gateway(call("look"), context({}, { signal: leaving.signal }));
  const stays = gateway(call("look", { region: "north" }), context({}));
  leaving.abort(new Error("gone"));
  await expect(left).rejects.toThrow("gone");
  answer({ tools: [{ name: "look", inputSchema: { properties: { region: property("Region") } } }] });
  expect(await refused(stays)).toContain("mcp-param-region is missing");
});

it("ignores callers with a session, and callers without headers", async () => {
  const upstream = tools({ look: { region: property("Region") } });
  const gateway = chain().to(upstream.handler);
  await gateway(call("look", { region: "north" }), context());
  await gateway(call("look", { region: "north" }), {
    ...context({}),
    revision: NEWEST_SESSION.name,
    caller: fakeCaller({ style: "session", headers: {} }),
  });
  expect(upstream.received).toEqual(["call look", "call look"]);
});

it("lets middleware change arguments without a second check", async () => {
  const server = createServer({ name: "maps", version: "1" }).tool(
    "look",
    { input: { type: "object", properties: { region: property("Region") } } },
    ({ region }) => `Looked in ${String(region)}`,
  );
  const translate = chain(copying, ({ method, params }, given, next) =>
    next({ method, params: method === "tools/call" ? { ...params, arguments: { region: "nord" } } : params }, given),
  );
  const gateway = chain().to(translate.to(server));
  const right = { "mcp-param-region": "north" };
  const { content } = await gateway(call("look", { region: "north" }), context(right));
  expect(content).toEqual([{ type: "text", text: "Looked in nord" }]);
  expect(await refused(gateway(call("look", { region: "south" }), context({ ...right })))).toContain("does not equal");
});
