// A subscription at many upstreams: one acknowledgement, and notifications in the caller's names.

import { describe, expect, it, vi } from "vitest";
import { McpError } from "../../protocol/errors.ts";
import { NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { createServer } from "../../server/index.ts";
import { desk } from "../../../test/support/handlers/fake-client.ts";
import {
  acknowledged,
  CHANGED,
  listen,
  listenable,
  soon,
  stillClock,
  UPDATED,
} from "../../../test/support/handlers/scripted-subscriptions.ts";
import { madeServer } from "../../../test/support/handlers/scripted-server.ts";
import { createRouter } from "./router.ts";

stillClock();

describe("a subscription at many upstreams", () => {
  it("is acknowledged once, with all grants combined, before any notification", async () => {
    const [a, b] = [listenable(), listenable()];
    const caller = desk(createRouter({ a: a.end, b: b.end }));
    const listening = listen(caller, { toolsListChanged: true, resourcesListChanged: true });
    await soon();
    a.listens[0]?.acknowledge({ toolsListChanged: true });
    a.listens[0]?.context.notify({ method: CHANGED });
    a.listens[0]?.context.notify({ method: CHANGED });
    await soon();
    expect(caller.told).toEqual([]);
    b.listens[0]?.acknowledge({ resourcesListChanged: true });
    await soon();
    expect(caller.told).toEqual([
      acknowledged({ toolsListChanged: true, resourcesListChanged: true }),
      { method: CHANGED },
    ]);
    b.listens[0]?.context.notify({ method: "notifications/resources/list_changed" });
    expect(caller.told).toHaveLength(3);
    caller.abort();
    expect(await listening).toEqual({ resultType: "complete" });
    expect([a.listens[0]?.context.signal.aborted, b.listens[0]?.context.signal.aborted]).toEqual([true, true]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("concerns only upstreams that can notify", async () => {
    const a = listenable();
    const without = madeServer({ "tools/list": { tools: [] } }, { tools: {} });
    const caller = desk(createRouter({ a: a.end, without }));
    await caller.call("server/discover");
    void listen(caller, { toolsListChanged: true });
    await soon();
    a.listens[0]?.acknowledge();
    await soon();
    expect(caller.told).toEqual([acknowledged({ toolsListChanged: true })]);
    expect(without.asked.map(({ method }) => method)).not.toContain("subscriptions/listen");
    caller.abort();
  });

  it("passes on unknown fields of the filter, and their grants", async () => {
    const a = listenable([], { tools: {}, resources: {} });
    const caller = desk(createRouter({ a: a.end, b: madeServer({}) }));
    await caller.call("server/discover");
    void listen(caller, { weather: ["rain"] });
    await soon();
    expect(a.listens[0]?.filter).toEqual({ weather: ["rain"] });
    a.listens[0]?.acknowledge();
    await soon();
    expect(caller.told).toEqual([acknowledged({ weather: ["rain"] })]);
    caller.abort();
  });

  it("ends at once if there is nothing to notify of", async () => {
    const caller = desk(createRouter({ a: madeServer({}), b: createServer({ name: "b", version: "1" }) }));
    expect(await listen(caller, { toolsListChanged: true })).toEqual({ resultType: "complete" });
    expect(caller.told).toEqual([acknowledged({})]);
  });

  it("carries what belongs to no call, for a session and every upstream", async () => {
    const [a, b] = [listenable(), listenable()];
    const { context, told } = desk(createRouter({ a: a.end, b: b.end }));
    const router = createRouter({ a: a.end, b: b.end });
    const stop = new AbortController();
    const request = { method: "subscriptions/listen", params: { notifications: {} } };
    const listening = router(request, { ...context, signal: stop.signal, revision: NEWEST_SESSION.name });
    await soon();
    const log = { method: "notifications/message", params: { level: "info", data: "b" } };
    b.listens[0]?.context.notify(log);
    expect(told).toEqual([log]);
    a.listens[0]?.acknowledge({});
    b.listens[0]?.acknowledge({});
    await soon();
    expect(told).toEqual([log, acknowledged({})]);
    stop.abort();
    await listening;
  });
});

describe("subscriptions to resources", () => {
  it("go to their upstreams, and notify with the caller's names", async () => {
    const a = listenable(["file:///same", "file:///a"]);
    const b = listenable(["file:///same"]);
    const caller = desk(createRouter({ a: a.end, b: b.end }));
    const wanted = { resourceSubscriptions: ["b.file:///same", "file:///a"] };
    void listen(caller, wanted);
    await soon();
    expect(a.listens[0]?.filter).toEqual({ resourceSubscriptions: ["file:///a"] });
    expect(b.listens[0]?.filter).toEqual({ resourceSubscriptions: ["file:///same"] });
    a.listens[0]?.acknowledge();
    b.listens[0]?.acknowledge();
    await soon();
    b.listens[0]?.context.notify({ method: UPDATED, params: { uri: "file:///same" } });
    b.listens[0]?.context.notify({ method: UPDATED, params: { uri: "file:///same/part" } });
    a.listens[0]?.context.notify({ method: UPDATED, params: { uri: "file:///a", more: 1 } });
    expect(caller.told).toEqual([
      acknowledged({
        resourceSubscriptions: expect.toSatisfy((uris: string[]) => new Set(uris).size === 2) as unknown,
      }),
      { method: UPDATED, params: { uri: "b.file:///same" } },
      { method: UPDATED, params: { uri: "b.file:///same/part" } },
      { method: UPDATED, params: { uri: "file:///a", more: 1 } },
    ]);
    caller.abort();
  });

  it("are refused if several upstreams have the address, or the only one refuses", async () => {
    const [a, b] = [listenable(["file:///same"]), listenable(["file:///same", "file:///b"])];
    const caller = desk(createRouter({ a: a.end, b: b.end }));
    const ambiguous = await caller.refused("subscriptions/listen", {
      notifications: { resourceSubscriptions: ["file:///same"] },
    });
    expect(ambiguous.data).toMatchObject({ candidates: ["a.file:///same", "b.file:///same"] });
    const refused = caller.refused("subscriptions/listen", { notifications: { resourceSubscriptions: ["file:///b"] } });
    await soon();
    b.listens[0]?.fail(McpError.of("access_denied", "You may not"));
    expect((await refused).message).toBe("You may not");
    expect(vi.getTimerCount()).toBe(0);
  });

  it("to unlisted addresses are granted by the first upstream that knows them", async () => {
    const [a, b] = [listenable(), listenable()];
    const caller = desk(createRouter({ a: a.end, b: b.end, c: listenable().end }));
    void listen(caller, { resourceSubscriptions: ["odd:1"] });
    await soon();
    a.listens[0]?.acknowledge({});
    await soon();
    b.listens[0]?.acknowledge();
    await soon();
    expect(caller.told).toEqual([acknowledged({ resourceSubscriptions: ["odd:1"] })]);
    expect([a.listens[0]?.context.signal.aborted, b.listens[0]?.context.signal.aborted]).toEqual([true, false]);
    caller.abort();
  });

  it("work with real servers", async () => {
    const make = (name: string): ReturnType<typeof createServer> =>
      createServer({ name, version: "1" }).resource("file:///x", { name: "x" }, () => name);
    const [a, b] = [make("a"), make("b")];
    const caller = desk(createRouter({ a, b }));
    const listening = listen(caller, { resourceSubscriptions: ["b.file:///x"], resourcesListChanged: true });
    await soon();
    a.resourceUpdated("file:///x");
    b.resourceUpdated("file:///x");
    a.resource("file:///y", { name: "y" }, () => "y");
    await soon();
    expect(caller.told).toEqual([
      acknowledged({ resourcesListChanged: true, resourceSubscriptions: ["b.file:///x"] }),
      { method: UPDATED, params: { uri: "b.file:///x" } },
      { method: "notifications/resources/list_changed" },
    ]);
    caller.abort();
    await listening;
  });
});
