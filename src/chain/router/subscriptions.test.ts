// A subscription at many upstreams: one acknowledgement, and notifications in the caller's names.

import { expect, it, vi } from "vitest";
import { McpError } from "../../protocol/errors.ts";
import { NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { createServer } from "../../server/index.ts";
import { fakeCaller, fakeClient } from "../../../test/support/handlers/fake-client.ts";
import {
  acknowledged,
  CHANGED,
  subscribe,
  scriptedSubscriptions,
  settle,
  useFakeClock,
  UPDATED,
} from "../../../test/support/handlers/scripted-subscriptions.ts";
import { scriptedServer } from "../../../test/support/handlers/scripted-server.ts";
import { createRouter } from "./router.ts";

useFakeClock();

it("a subscription at many upstreams is acknowledged once, with all grants combined, before any notification", async () => {
  const [a, b] = [scriptedSubscriptions(), scriptedSubscriptions()];
  const caller = fakeClient(createRouter({ a: a.server, b: b.server }));
  const listening = subscribe(caller, { toolsListChanged: true, resourcesListChanged: true });
  await settle();
  a.subscriptions[0]?.acknowledge({ toolsListChanged: true });
  a.subscriptions[0]?.context.notify({ method: CHANGED });
  a.subscriptions[0]?.context.notify({ method: CHANGED });
  await settle();
  expect(caller.notifications).toEqual([]);
  b.subscriptions[0]?.acknowledge({ resourcesListChanged: true });
  await settle();
  expect(caller.notifications).toEqual([
    acknowledged({ toolsListChanged: true, resourcesListChanged: true }),
    { method: CHANGED },
  ]);
  b.subscriptions[0]?.context.notify({ method: "notifications/resources/list_changed" });
  expect(caller.notifications).toHaveLength(3);
  caller.abort();
  expect(await listening).toEqual({ resultType: "complete" });
  expect([a.subscriptions[0]?.context.signal.aborted, b.subscriptions[0]?.context.signal.aborted]).toEqual([
    true,
    true,
  ]);
  expect(vi.getTimerCount()).toBe(0);
});

it("a subscription at many upstreams concerns only upstreams that can notify", async () => {
  const a = scriptedSubscriptions();
  const without = scriptedServer({ "tools/list": { tools: [] } }, { tools: {} });
  const caller = fakeClient(createRouter({ a: a.server, without }));
  await caller.call("server/discover");
  void subscribe(caller, { toolsListChanged: true });
  await settle();
  a.subscriptions[0]?.acknowledge();
  await settle();
  expect(caller.notifications).toEqual([acknowledged({ toolsListChanged: true })]);
  expect(without.requests.map(({ method }) => method)).not.toContain("subscriptions/listen");
  caller.abort();
});

it("a subscription at many upstreams passes on unknown fields of the filter, and their grants", async () => {
  const a = scriptedSubscriptions([], { tools: {}, resources: {} });
  const caller = fakeClient(createRouter({ a: a.server, b: scriptedServer({}) }));
  await caller.call("server/discover");
  void subscribe(caller, { weather: ["rain"] });
  await settle();
  expect(a.subscriptions[0]?.filter).toEqual({ weather: ["rain"] });
  a.subscriptions[0]?.acknowledge();
  await settle();
  expect(caller.notifications).toEqual([acknowledged({ weather: ["rain"] })]);
  caller.abort();
});

it("a subscription at many upstreams ends at once if there is nothing to notify of", async () => {
  const caller = fakeClient(createRouter({ a: scriptedServer({}), b: createServer({ name: "b", version: "1" }) }));
  expect(await subscribe(caller, { toolsListChanged: true })).toEqual({ resultType: "complete" });
  expect(caller.notifications).toEqual([acknowledged({})]);
});

it("a subscription at many upstreams carries what belongs to no call, for a session and every upstream", async () => {
  const [a, b] = [scriptedSubscriptions(), scriptedSubscriptions()];
  const { context, notifications } = fakeClient(createRouter({ a: a.server, b: b.server }));
  const router = createRouter({ a: a.server, b: b.server });
  const stop = new AbortController();
  const request = { method: "subscriptions/listen", params: { notifications: {} } };
  const listening = router(request, {
    ...context,
    signal: stop.signal,
    revision: NEWEST_SESSION.name,
    caller: fakeCaller({ style: "session" }),
  });
  await settle();
  const log = { method: "notifications/message", params: { level: "info", data: "b" } };
  b.subscriptions[0]?.context.notify(log);
  expect(notifications).toEqual([log]);
  a.subscriptions[0]?.acknowledge({});
  b.subscriptions[0]?.acknowledge({});
  await settle();
  expect(notifications).toEqual([log, acknowledged({})]);
  stop.abort();
  await listening;
});

it("subscriptions to resources go to their upstreams, and notify with the caller's names", async () => {
  const a = scriptedSubscriptions(["file:///same", "file:///a"]);
  const b = scriptedSubscriptions(["file:///same"]);
  const caller = fakeClient(createRouter({ a: a.server, b: b.server }));
  const wanted = { resourceSubscriptions: ["b.file:///same", "file:///a"] };
  void subscribe(caller, wanted);
  await settle();
  expect(a.subscriptions[0]?.filter).toEqual({ resourceSubscriptions: ["file:///a"] });
  expect(b.subscriptions[0]?.filter).toEqual({ resourceSubscriptions: ["file:///same"] });
  a.subscriptions[0]?.acknowledge();
  b.subscriptions[0]?.acknowledge();
  await settle();
  b.subscriptions[0]?.context.notify({ method: UPDATED, params: { uri: "file:///same" } });
  b.subscriptions[0]?.context.notify({ method: UPDATED, params: { uri: "file:///same/part" } });
  a.subscriptions[0]?.context.notify({ method: UPDATED, params: { uri: "file:///a", more: 1 } });
  expect(caller.notifications).toEqual([
    acknowledged({
      resourceSubscriptions: expect.toSatisfy((uris: string[]) => new Set(uris).size === 2) as unknown,
    }),
    { method: UPDATED, params: { uri: "b.file:///same" } },
    { method: UPDATED, params: { uri: "b.file:///same/part" } },
    { method: UPDATED, params: { uri: "file:///a", more: 1 } },
  ]);
  caller.abort();
});

it("subscriptions to resources are refused if several upstreams have the address, or the only one refuses", async () => {
  const [a, b] = [scriptedSubscriptions(["file:///same"]), scriptedSubscriptions(["file:///same", "file:///b"])];
  const caller = fakeClient(createRouter({ a: a.server, b: b.server }));
  const ambiguous = await caller.callError("subscriptions/listen", {
    notifications: { resourceSubscriptions: ["file:///same"] },
  });
  expect(ambiguous.data).toMatchObject({ candidates: ["a.file:///same", "b.file:///same"] });
  const refused = caller.callError("subscriptions/listen", {
    notifications: { resourceSubscriptions: ["file:///b"] },
  });
  await settle();
  b.subscriptions[0]?.fail(McpError.of("access_denied", "You may not"));
  expect((await refused).message).toBe("You may not");
  expect(vi.getTimerCount()).toBe(0);
});

it("subscriptions to resources to unlisted addresses are granted by the first upstream that knows them", async () => {
  const [a, b] = [scriptedSubscriptions(), scriptedSubscriptions()];
  const caller = fakeClient(createRouter({ a: a.server, b: b.server, c: scriptedSubscriptions().server }));
  void subscribe(caller, { resourceSubscriptions: ["odd:1"] });
  await settle();
  a.subscriptions[0]?.acknowledge({});
  await settle();
  b.subscriptions[0]?.acknowledge();
  await settle();
  expect(caller.notifications).toEqual([acknowledged({ resourceSubscriptions: ["odd:1"] })]);
  expect([a.subscriptions[0]?.context.signal.aborted, b.subscriptions[0]?.context.signal.aborted]).toEqual([
    true,
    false,
  ]);
  caller.abort();
});

it("subscriptions to resources work with real servers", async () => {
  const make = (name: string): ReturnType<typeof createServer> =>
    createServer({ name, version: "1" }).resource("file:///x", { name: "x" }, () => name);
  const [a, b] = [make("a"), make("b")];
  const caller = fakeClient(createRouter({ a, b }));
  const listening = subscribe(caller, { resourceSubscriptions: ["b.file:///x"], resourcesListChanged: true });
  await settle();
  a.resourceUpdated("file:///x");
  b.resourceUpdated("file:///x");
  a.resource("file:///y", { name: "y" }, () => "y");
  await settle();
  expect(caller.notifications).toEqual([
    acknowledged({ resourcesListChanged: true, resourceSubscriptions: ["b.file:///x"] }),
    { method: UPDATED, params: { uri: "b.file:///x" } },
    { method: "notifications/resources/list_changed" },
  ]);
  caller.abort();
  await listening;
});
