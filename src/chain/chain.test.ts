// Chains: what may be put together, and what is refused in words.

import { expect, it, vi } from "vitest";
import { call, loneCaller, text } from "../../test/support/lone-caller.ts";
import { connect } from "../client/connect.ts";
import type { Handler, Link, Request } from "../core/handler.ts";
import { META } from "../protocol/model/index.ts";
import { createServer } from "../server/server.ts";
import { chain } from "./chain.ts";
import { upstream as reach } from "./upstream/upstream.ts";
import { filter } from "./middleware/index.ts";

const echo: Handler = async (request) => text(String(request.params["name"]));

const marking = (name: string): Link => ({
  name,
  run: async (request, context, next) => ({ ...(await next(request, context)), by: name }),
});

const server = (name = "notes") =>
  createServer({ name, version: "1" }).tool(`${name}-echo`, { description: "Says it again" }, () => "hi");

it("answers through its links, first outermost, and more by use", async () => {
  const { context } = loneCaller();
  const base = chain(marking("a"));
  const gateway = base.use(marking("b")).to(echo);
  expect(gateway.links.map(({ name }) => name)).toEqual(["a", "b"]);
  expect(await gateway(call("x"), context)).toEqual({ ...text("x"), by: "a" });
  expect(base.to(echo).links).toHaveLength(1);
});

it("gives each link a name of its own", () => {
  const bare = (): never => {
    throw new Error("not called");
  };
  const named = chain(marking("log"), marking("log"), bare, marking("log"), ...[(): never => bare()]).to(echo);
  expect(named.links.map(({ name }) => name)).toEqual(["log", "log-2", "bare", "log-3", "link"]);
});

it("calls a link of a class by its own object", async () => {
  class Counting implements Link {
    readonly name = "counting";
    count = 0;
    run: Link["run"] = (request, context, next) => next(request, context);
    async close(): Promise<void> {
      this.count = -1;
    }
  }
  const counting = new Counting();
  const through = vi.spyOn(counting, "run").mockImplementation(function (this: Counting, request, context, next) {
    this.count += 1;
    return next(request, context);
  });
  const gateway = chain(counting).to(echo);
  await gateway(call("x"), loneCaller().context);
  expect(through).toHaveBeenCalledTimes(1);
  expect(counting.count).toBe(1);
  await gateway.close();
  expect(counting.count).toBe(-1);
});

it("takes one end of a record as it is, and adds nothing to a call without links", async () => {
  const end = vi.fn(echo);
  const { context } = loneCaller();
  const request = call("x");
  for (const ends of [end, { notes: end }]) await chain().to(ends)(request, context);
  expect(end.mock.calls).toEqual([
    [request, context],
    [request, context],
  ]);
  expect(end.mock.calls[0]?.[1]).toBe(context);
});

it("makes one of several", async () => {
  const within = chain(filter({ tools: { not: ["secret"] } })).to(server("notes").tool("secret", {}, () => "none"));
  const client = await connect(chain(marking("a")).to({ notes: within, board: server("board") }));
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["notes-echo", "board-echo"]);
  expect(await client.callTool("board-echo")).toMatchObject({ content: [{ text: "hi" }], by: "a" });
  await client.close();
});

it("says what it was told to say of itself", async () => {
  const info = { name: "gate", version: "9" };
  const { context } = loneCaller();
  const discover: Request = { method: "server/discover", params: {} };
  const said = await chain().to(server(), { info, instructions: "Knock first" })(discover, context);
  expect(said).toMatchObject({ instructions: "Knock first", _meta: { [META.serverInfo]: info } });
  expect(await chain().to(server())(discover, context)).toMatchObject({
    _meta: { [META.serverInfo]: { name: "notes" } },
  });
});

it("refuses what is no link, no end and no option, in words", () => {
  const to = (ends: unknown, options?: unknown) => () => chain().to(ends as never, options as never);
  expect(() => chain({} as never)).toThrow(/chain\(\) takes links .* not an object/);
  expect(() => chain("log" as never)).toThrow('not "log"');
  expect(() => chain({ name: "", run: echo })).toThrow("must have a `name`");
  expect(() => chain({ name: "a", run: echo, close: 1 } as never)).toThrow("`close` of the link a");
  expect(to({})).toThrow("the record that it was given is empty");
  expect(to({ " ": echo })).toThrow("must not be empty");
  expect(to({ notes: 3 })).toThrow('to(): the end "notes" must be a URL, a command');
  expect(to({ notes: { deep: echo } })).toThrow("not an object");
  for (const nothing of [undefined, null, 1, "", []]) expect(to(nothing)).toThrow("to() must be a URL");
  expect(to({ command: 5 })).toThrow("to() must be");
  expect(to(echo, { nams: "always" })).toThrow("to() has no option `nams`; did you mean `names`?");
  for (const address of ["nope", "ftp://x", { notes: "ftp://x" }]) expect(to(address)).toThrow("begins with http://");
  expect(() => reach({ command: "x" }, { idel: 5 } as never)).toThrow(
    "upstream() has no option `idel`; did you mean `idle`?",
  );
  expect(() => reach({ command: "x" }, { unheard: 1 } as never)).toThrow("`unheard`; there are name, share, env");
  expect(() => reach({ command: "x" }, { revision: "2025" })).toThrow("YYYY-MM-DD");
  expect(to(echo, { names: "never" })).toThrow('`names` must be "when-needed" or "always", not "never"');
  expect(to(echo, { names: "always" })).toThrow("needs an end with a name");
  expect(to(echo, { info: {} })).toThrow("`info` must have");
  expect(to(echo, { instructions: 1 })).toThrow("`instructions` must be a text");
});

it("tells a command, an address and a transport from a record of ends", () => {
  const target = (ends: Parameters<ReturnType<typeof chain>["to"]>[0]): string[] =>
    Object.values(chain().to(ends).status()).map((status) => status.target);
  expect(target({ command: "notes-mcp", args: ["secret"] })).toEqual(["notes-mcp"]);
  expect(target("http://127.0.0.1:1/mcp?token=1")).toEqual(["http://127.0.0.1:1/mcp"]);
  expect(target(new URL("http://127.0.0.1:1/mcp"))).toEqual(["http://127.0.0.1:1/mcp"]);
  const nothing = async (): Promise<void> => undefined;
  expect(target({ start: nothing, send: nothing, close: nothing })).toEqual(["a transport"]);
  expect(target({ command: { command: "notes-mcp" } })).toEqual(["notes-mcp"]);
  expect(target({ command: echo })).toEqual(["in this process"]);
});
