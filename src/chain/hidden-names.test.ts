// What is hidden stays hidden on every way: behind a part of a gateway, by call-tool of search(), and in subscriptions.

import { expect, it } from "vitest";
import { fakeClient, fakeContext } from "../../test/support/handlers/fake-client.ts";
import type { Context, Middleware } from "../core/handler.ts";
import { createServer } from "../server/server.ts";
import { chain } from "./chain.ts";
import { define } from "./define.ts";
import { filter, readOnly, rename, search } from "./middleware/index.ts";
import { transform } from "./transform.ts";
import { filterUpstream } from "./transforms/filter.ts";

const notes = () =>
  createServer({ name: "notes", version: "1" })
    .tool("erase", {}, () => "erased")
    .tool("read", {}, () => "read")
    .resource("note://open", { name: "open", description: "public" }, () => "1")
    .resource("note://shut", { name: "shut", description: "secret" }, () => "2");

it("a tool of a gateway behind a part is hidden by its own name there", async () => {
  const inner = chain(rename({ tools: { erase: "tidy" } })).to({
    notes: notes(),
    more: createServer({ name: "m", version: "1" }),
  });
  const gateway = chain(filter({ tools: { exclude: ["erase"] } })).to(
    { team: inner },
    {
      select: () => ({ key: "part", handlerOf: (_name, handler, labelled) => filterUpstream({}, handler, labelled) }),
    },
  );
  const { call, callError } = fakeClient(gateway);
  expect(await callError("tools/call", { name: "tidy" })).toMatchObject({ kind: "tool_not_found" });
  expect(await call("tools/call", { name: "read" })).toMatchObject({ content: [{ text: "read" }] });
  await gateway.close();
});

it("a tool that is hidden outside of search() cannot be called with call-tool, also by the name that search() sees", async () => {
  const hiding = filter({ tools: { exclude: ["tidy"] } });
  const gateway = chain(hiding, search(), rename({ tools: { erase: "tidy" } })).to(notes());
  const { call } = fakeClient(gateway);
  const named = (name: string) => call("tools/call", { name: "call-tool", arguments: { name, arguments: {} } });
  expect(await named("read")).toMatchObject({ content: [{ text: "read" }] });
  await expect(named("tidy")).rejects.toMatchObject({ kind: "tool_not_found" });
});

it("middleware outside of a transform knows that an item is hidden, and not what it was", async () => {
  const seen: unknown[] = [];
  const see = define({
    name: "see",
    summary: "Sees items.",
    options: {},
    keepsLists: true,
    middleware: (): Middleware => (request, context, next) => {
      if (request.method === "tools/call") seen.push([context.item?.isListed, context.item?.definition]);
      return next(request, context);
    },
  });
  const gateway = chain(see(), readOnly()).to(notes());
  await fakeClient(gateway).callError("tools/call", { name: "erase" });
  expect(seen).toEqual([[false, undefined]]);
  await gateway.close();
});

it("a middleware of define() may be a transform, also if it says that it keeps lists", async () => {
  const hide = define({
    name: "hide",
    summary: "Hides.",
    options: {},
    keepsLists: true,
    middleware: () => filter({ tools: { exclude: ["erase"] } }),
  });
  const gateway = chain(hide()).to(notes());
  expect(((await fakeClient(gateway).call("tools/list"))["tools"] as unknown[]).length).toBe(1);
  await gateway.close();
});

it("a hidden tool cannot be named in methods that the specification does not define", async () => {
  const more = notes().method("tools/acme", ({ name }) => ({ name }));
  const gateway = chain(filter({ tools: { exclude: ["more_erase"] } })).to({ notes: notes(), more });
  const { call, callError } = fakeClient(gateway);
  for (const name of ["more_erase", "erase"]) {
    expect(await callError("tools/acme", { name })).toMatchObject({ kind: "tool_not_found" });
  }
  expect(await call("tools/acme", { name: "more_read" })).toMatchObject({ name: "read" });
  await gateway.close();
});

it("a resource that a transform hides by its definition is left out of subscriptions", async () => {
  const gateway = chain(
    transform({ item: (item) => (item.definition?.["description"] === "secret" ? undefined : item) }),
  ).to(notes());
  const { context, notifications } = fakeContext();
  const stop = new AbortController();
  const listening = gateway(
    {
      method: "subscriptions/listen",
      params: { notifications: { resourceSubscriptions: ["note://open", "note://shut"] } },
    },
    { ...context, signal: stop.signal },
  );
  await expect
    .poll(() => notifications)
    .toMatchObject([{ params: { notifications: { resourceSubscriptions: ["note://open"] } } }]);
  stop.abort(new Error("over"));
  await listening.catch(() => undefined);
});

it("middleware gets the definition that the list of the same caller has", async () => {
  const seen: unknown[] = [];
  const watching: Middleware = (request, context, next) => {
    if (request.method === "tools/call") seen.push(context.item?.definition?.["title"]);
    return next(request, context);
  };
  const listing =
    (name: string) =>
    async ({ method }: { readonly method: string }, { caller }: Context) => {
      if (method === "server/discover") return { capabilities: { tools: {} } };
      return method === "tools/list" ? { tools: [{ name, title: caller.info?.name }] } : { content: [] };
    };
  const gateway = chain(watching).to({ a: listing("x"), b: listing("y") });
  const as = (name: string) => fakeContext({ name }).context;
  await gateway({ method: "tools/list", params: {} }, as("ada"));
  await gateway({ method: "tools/call", params: { name: "x" } }, as("bob"));
  await gateway({ method: "tools/call", params: { name: "x" } }, as("ada"));
  expect(seen).toEqual([undefined, "ada"]);
  await gateway.close();
});
