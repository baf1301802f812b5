// Listens through links that are replaced: one acknowledgement, nothing missed, and the lists told as changed.

import { expect, it, vi } from "vitest";
import { loneCaller } from "../../test/support/lone-caller.ts";
import type { Context } from "../core/handler.ts";
import type { Handler, Link, Notification, Request, Result } from "../core/handler.ts";
import { createServer } from "../server/server.ts";
import { connectAt, REVISION_NAMES } from "../testing.ts";
import { chain } from "./chain.ts";
import { provide } from "./gateway.ts";
import { Replaceable } from "./replaceable.ts";

// Loaded before the clocks of these tests are stopped.
provide(Replaceable);

const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
const through = (name: string, close?: () => Promise<void>): Link => ({
  name,
  run: (request, context, next) => next(request, context),
  ...(close === undefined ? undefined : { close }),
});

/** An end whose listens do what they are told. */
function stage() {
  const legs: {
    context: Context;
    grant: (granted?: object) => void;
    say: (method: string) => void;
    end: (result?: Result) => void;
    fail: (error: Error) => void;
  }[] = [];
  const end: Handler = (_request, context) =>
    new Promise((resolve, reject) => {
      const tell = (notification: Notification): void => context.notify(notification);
      legs.push({
        context,
        grant: (granted = { toolsListChanged: true }) =>
          tell({ method: ACKNOWLEDGED, params: { notifications: granted } }),
        say: (method) => tell({ method }),
        end: (result = { resultType: "complete" }) => resolve(result),
        fail: reject,
      });
      context.signal.addEventListener("abort", () => reject(context.signal.reason as Error));
    });
  const caller = loneCaller();
  const closed = vi.fn(async () => undefined);
  const gateway = chain(through("a", closed)).to(end);
  const request: Request = { method: "subscriptions/listen", params: { notifications: { toolsListChanged: true } } };
  const outcome = gateway(request, caller.context);
  outcome.catch(() => undefined);
  const said = (): string[] => caller.said.map(({ method }) => method);
  return { legs, caller, gateway, outcome, said, closed, leg: (at: number) => legs[at]! };
}

it("goes on through the new links, acknowledged once, and tells of changed lists", async () => {
  const { leg, legs, gateway, said, outcome, caller, closed } = stage();
  leg(0).grant({ toolsListChanged: true, resourcesListChanged: true, resourceSubscriptions: ["a://b"] });
  gateway.replace("a", through("b"));
  expect(legs).toHaveLength(2);
  // Until the new one is granted, the old one is heard.
  leg(0).say("notifications/prompts/list_changed");
  leg(1).say("notifications/nothing");
  expect(leg(0).context.signal.aborted).toBe(false);
  leg(1).grant({ toolsListChanged: true, promptsListChanged: true });
  leg(0).say("notifications/late");
  leg(1).grant();
  leg(1).say("notifications/message");
  expect(said()).toEqual([
    ACKNOWLEDGED,
    "notifications/prompts/list_changed",
    "notifications/tools/list_changed",
    "notifications/resources/list_changed",
    "notifications/message",
  ]);
  expect(leg(0).context.signal.aborted).toBe(true);
  await vi.waitFor(() => expect(closed).toHaveBeenCalledTimes(1));
  caller.leave("enough");
  await expect(outcome).rejects.toBe("enough");
  expect(leg(1).context.signal.aborted).toBe(true);
});

it("moves one that was not granted yet, and several times in a row", async () => {
  const { leg, gateway, said, outcome } = stage();
  gateway.replace("a", through("b"));
  expect(leg(0).context.signal.aborted).toBe(true);
  leg(0).grant();
  leg(1).grant();
  expect(said()).toEqual([ACKNOWLEDGED]);
  gateway.replace("a", through("c"));
  gateway.replace("a", through("d"));
  expect([1, 2, 3].map((at) => leg(at).context.signal.aborted)).toEqual([false, true, false]);
  leg(3).grant();
  expect(said()).toEqual([ACKNOWLEDGED, "notifications/tools/list_changed"]);
  leg(3).end({ resultType: "complete", _meta: { last: true } });
  expect(await outcome).toEqual({ resultType: "complete", _meta: { last: true } });
  expect(leg(1).context.signal.aborted).toBe(true);
});

it("ends as the listen through the present links ends", async () => {
  const first = stage();
  first.leg(0).grant();
  first.gateway.replace("a", through("b"));
  first.leg(0).fail(new Error("the old one is of no interest"));
  first.leg(1).fail(new Error("refused by the new links"));
  await expect(first.outcome).rejects.toThrow("refused by the new links");
  const second = stage();
  second.leg(0).grant();
  second.gateway.replace("a", through("b"));
  await second.gateway.close();
  expect(await second.outcome).toEqual({ resultType: "complete" });
  expect(second.legs.map(({ context }) => context.signal.aborted)).toEqual([true, true]);
});

it.each(REVISION_NAMES)("shows a caller of %s the changed list when links are replaced", async (revision) => {
  const server = createServer({ name: "notes", version: "1" }).tool("echo", { description: "Says it" }, () => "hi");
  const hiding: Link = {
    name: "hiding",
    run: async (request, context, next) =>
      request.method === "tools/list" ? { resultType: "complete", tools: [] } : next(request, context),
  };
  const gateway = chain(through("a")).to(server);
  const { client, close } = await connectAt(gateway, { revision, cache: false });
  const changes: string[] = [];
  const heard = async (times: number): Promise<void> =>
    vi.waitFor(() => expect(changes).toEqual(Array.from({ length: times }, () => "notifications/tools/list_changed")));
  await client.listen({ toolsListChanged: true }, ({ method }) => changes.push(method));
  // A session hears of changes from its first request on.
  expect((await client.listTools()).tools).toHaveLength(1);
  gateway.replace("a", hiding);
  await heard(1);
  expect((await client.listTools()).tools).toEqual([]);
  server.tool("more", { description: "More" }, () => "more");
  await heard(2);
  await close();
});
