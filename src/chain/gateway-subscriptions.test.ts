// Subscriptions while middleware is replaced: one acknowledgement, no lost changes, and lists reported as changed.

import { expect, it, vi } from "vitest";
import { eventually } from "../../test/support/waiting.ts";
import { fakeContext } from "../../test/support/handlers/fake-client.ts";
import type { Context, Handler, Middleware, Notification, Request, Result } from "../core/handler.ts";
import { createServer } from "../server/server.ts";
import { connectInMemory, REVISION_NAMES } from "../testing.ts";
import { chain } from "./chain.ts";

const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
const through = (close?: () => Promise<void>): Middleware => {
  const a: Middleware = (request, context, next) => next(request, context);
  if (close !== undefined) a.close = close;
  return a;
};

/** A gateway with a subscription; the test controls each leg of it at the upstream. */
function subscribe() {
  const legs: {
    context: Context;
    grant: (granted?: object) => void;
    say: (method: string) => void;
    end: (result?: Result) => void;
    fail: (error: Error) => void;
  }[] = [];
  const upstream: Handler = (_request, context) =>
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
  const caller = fakeContext();
  const closed = vi.fn(async () => undefined);
  const gateway = chain(through(closed)).to(upstream);
  const request: Request = { method: "subscriptions/listen", params: { notifications: { toolsListChanged: true } } };
  const outcome = gateway(request, caller.context);
  outcome.catch(() => undefined);
  const said = (): string[] => caller.notifications.map(({ method }) => method);
  return { legs, caller, gateway, outcome, said, closed, leg: (at: number) => legs[at]! };
}

it("moves to the new middleware, with one acknowledgement and changed lists", async () => {
  const { leg, legs, gateway, said, outcome, caller, closed } = subscribe();
  leg(0).grant({ toolsListChanged: true, resourceSubscriptions: ["a://b"] });
  gateway.replace("a", through());
  await eventually(() => expect(legs).toHaveLength(2));
  leg(0).say("notifications/late");
  leg(1).grant({ toolsListChanged: true, promptsListChanged: true, resourceSubscriptions: ["a://b"] });
  leg(1).say("notifications/message");
  expect(said()).toEqual([
    ACKNOWLEDGED,
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/updated",
    "notifications/message",
  ]);
  expect(leg(0).context.signal.aborted).toBe(true);
  await eventually(() => expect(closed).toHaveBeenCalledTimes(1));
  caller.abort("enough");
  await expect(outcome).rejects.toBe("enough");
  expect(leg(1).context.signal.aborted).toBe(true);
});

it("moves before it is acknowledged, and several times in a row", async () => {
  const { leg, legs, gateway, said, outcome } = subscribe();
  gateway.replace("a", through());
  expect(leg(0).context.signal.aborted).toBe(true);
  await eventually(() => expect(legs).toHaveLength(2));
  leg(0).grant();
  leg(1).grant();
  expect(said()).toEqual([ACKNOWLEDGED]);
  gateway.replace("a", through());
  gateway.replace("a", through());
  await eventually(() => expect(legs.length).toBeGreaterThan(2));
  const last = legs.length - 1;
  leg(last).grant();
  expect(said()).toEqual([ACKNOWLEDGED, "notifications/tools/list_changed"]);
  leg(last).end({ resultType: "complete", _meta: { last: true } });
  expect(await outcome).toEqual({ resultType: "complete", _meta: { last: true } });
});

it("ends as its newest leg ends", async () => {
  const first = subscribe();
  first.leg(0).grant();
  first.gateway.replace("a", through());
  await eventually(() => expect(first.legs).toHaveLength(2));
  first.leg(1).fail(new Error("refused by the new middleware"));
  await expect(first.outcome).rejects.toThrow("refused by the new middleware");
  const second = subscribe();
  second.leg(0).grant();
  await second.gateway.close();
  expect(await second.outcome).toEqual({ resultType: "complete" });
  expect(second.leg(0).context.signal.aborted).toBe(true);
});

it("moves and ends although the upstream ignores its signal", async () => {
  let legs = 0;
  const ignoresSignal: Handler = (_request, context) => {
    legs += 1;
    context.notify({ method: ACKNOWLEDGED, params: { notifications: { toolsListChanged: true } } });
    return new Promise(() => undefined);
  };
  const gateway = chain(through()).to(ignoresSignal);
  const { context, notifications } = fakeContext();
  const request: Request = { method: "subscriptions/listen", params: { notifications: { toolsListChanged: true } } };
  const outcome = gateway(request, context);
  gateway.replace("a", through());
  await eventually(() => expect(legs).toBe(2));
  expect(notifications.map(({ method }) => method)).toEqual([ACKNOWLEDGED, "notifications/tools/list_changed"]);
  await gateway.close();
  expect(await outcome).toEqual({ resultType: "complete" });
});

it.each(REVISION_NAMES)("notifies a caller of %s of the changed list when middleware is replaced", async (revision) => {
  const server = createServer({ name: "notes", version: "1" }).tool("echo", { description: "Says it" }, () => "hi");
  const hiding: Middleware = async (request, context, next) =>
    request.method === "tools/list" ? { resultType: "complete", tools: [] } : next(request, context);
  const gateway = chain(through()).to(server);
  const { client, close } = await connectInMemory(gateway, { revision, cache: false });
  const changes: string[] = [];
  const notified = async (times: number): Promise<void> =>
    eventually(() => expect(changes).toEqual(Array.from({ length: times }, () => "notifications/tools/list_changed")));
  await client.listen({ toolsListChanged: true }, ({ method }) => changes.push(method));
  // A session gets change notifications from its first request on.
  expect((await client.listTools()).tools).toHaveLength(1);
  gateway.replace("a", hiding);
  await notified(1);
  expect((await client.listTools()).tools).toEqual([]);
  server.tool("more", { description: "More" }, () => "more");
  await notified(2);
  await close();
});

it.each(REVISION_NAMES)("notifies a caller of %s of an update, also if no upstream can notify", async (revision) => {
  const plain = (name: string): Handler =>
    createServer({ name, version: "1", listChanged: false }).tool(`tool-of-${name}`, {}, () => name);
  const gateway = chain().to({ one: plain("one") }, { changing: true });
  const { client, close } = await connectInMemory(gateway, { revision, cache: false });
  const names = async (): Promise<string[]> => (await client.listTools()).tools.map(({ name }) => name);
  const changes: string[] = [];
  await client.listen({ toolsListChanged: true }, ({ method }) => changes.push(method));
  expect(await names()).toEqual(["tool-of-one"]);
  for (const times of [1, 2]) {
    void gateway.update(chain().to({ one: plain("one"), [`more-${times}`]: plain(`more-${times}`) }));
    await eventually(() => expect(changes.length).toBeGreaterThanOrEqual(times));
    expect(new Set(changes)).toEqual(new Set(["notifications/tools/list_changed"]));
    expect(await names()).toEqual(["tool-of-one", `tool-of-more-${times}`]);
  }
  await close();
});
