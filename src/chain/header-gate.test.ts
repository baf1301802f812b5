// Headers that repeat arguments, at the front of a gateway: which calls are refused, what is read to know it, and that
// nobody behind holds the arguments against them again.

import { describe, expect, it } from "vitest";
import type { Context } from "../core/handler.ts";
import type { Handler, Request, Result } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import { META } from "../protocol/model/meta.ts";
import { NEWEST, NEWEST_SESSION } from "../protocol/revisions/index.ts";
import { createServer } from "../server/server.ts";
import { chain } from "./chain.ts";

const property = (header: string) => ({ type: "string", "x-mcp-header": header });

/** An end with these tools, a page for each; `asked` is what came to it. */
function tools(...pages: readonly Readonly<Record<string, object>>[]) {
  const asked: string[] = [];
  const state = { pages };
  const handler: Handler = async ({ method, params }) => {
    const at = Number(params["cursor"] ?? 0);
    asked.push(method === "tools/call" ? `call ${String(params["name"])}` : `list ${at}`);
    if (method === "tools/call") return { content: [], isError: false };
    const listed = Object.entries(state.pages[at] ?? {}).map(([name, properties]) => ({
      name,
      inputSchema: { type: "object", properties },
    }));
    return { tools: listed, ...(at + 1 < state.pages.length ? { nextCursor: String(at + 1) } : undefined) };
  };
  return { handler, asked, state };
}

function context(headers?: Record<string, string>, more: Partial<Context> = {}): Context {
  return {
    revision: NEWEST.name,
    caller: { capabilities: {}, ...(headers && { headers }) },
    signal: new AbortController().signal,
    notify: () => undefined,
    ask: () => Promise.reject(new Error("Nobody is asked here")),
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

describe("a call over HTTP", () => {
  it("is refused where a header and its argument differ, wherever the tool stands in the list", async () => {
    const end = tools({ plain: {} }, { look: { region: property("Region") } });
    const gateway = chain().to(end.handler);
    expect(await refused(gateway(call("look", { region: "north" }), context({})))).toBe(
      "Header mismatch: mcp-param-region is missing beside the argument region",
    );
    expect(end.asked).not.toContain("call look");
    await gateway(call("look", { region: "north" }), context({ "mcp-param-region": "north" }));
    await gateway(call("look"), context({}));
    expect(end.asked.filter((one) => one === "call look")).toHaveLength(2);
  });

  it("costs a list only where its tool is in none that went by, and not again for one that there is not", async () => {
    const end = tools({ plain: {} });
    const gateway = chain().to(end.handler);
    await gateway({ method: "tools/list", params: {} }, context({}));
    await gateway(call("plain"), context({}));
    expect(end.asked).toEqual(["list 0", "call plain"]);
    await Promise.all(["none", "none", "nothing"].map((name) => gateway(call(name), context({}))));
    await gateway(call("none"), context({}));
    expect(end.asked.slice(2)).toEqual(["list 0", "call none", "call none", "call nothing", "call none"]);
  });

  it("is not refused by what a tool no longer asks for", async () => {
    const end = tools({ look: { region: property("Region") } });
    const gateway = chain().to(end.handler);
    await gateway({ method: "tools/list", params: {} }, context({}));
    end.state.pages = [{ look: { region: { type: "string" } } }];
    expect(await gateway(call("look", { region: "north" }), context({}))).toMatchObject({ isError: false });
  });

  it("is left to the end where there is no list", async () => {
    const end: Handler = async ({ method }) => {
      if (method === "tools/list") throw McpError.of("method_not_found", "No lists here");
      return { content: [], isError: false };
    };
    expect(await chain().to(end)(call("look"), context({}))).toMatchObject({ isError: false });
  });

  it("waits for a list no longer than its caller does, and others may wait on", async () => {
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
});

it("asks nothing of callers in sessions, or without headers", async () => {
  const end = tools({ look: { region: property("Region") } });
  const gateway = chain().to(end.handler);
  await gateway(call("look", { region: "north" }), context());
  await gateway(call("look", { region: "north" }), context({}, { revision: NEWEST_SESSION.name }));
  expect(end.asked).toEqual(["call look", "call look"]);
});

it("lets links change arguments: nobody behind holds them against the headers again", async () => {
  const server = createServer({ name: "maps", version: "1" }).tool(
    "look",
    { input: { type: "object", properties: { region: property("Region") } } },
    ({ region }) => `Looked in ${String(region)}`,
  );
  const translate = chain(({ method, params }, given, next) =>
    next({ method, params: method === "tools/call" ? { ...params, arguments: { region: "nord" } } : params }, given),
  );
  const gateway = chain().to(translate.to(server));
  const right = { "mcp-param-region": "north" };
  const { content } = await gateway(call("look", { region: "north" }), context(right));
  expect(content).toEqual([{ type: "text", text: "Looked in nord" }]);
  expect(await refused(gateway(call("look", { region: "south" }), context({ ...right })))).toContain("does not equal");
});
