// Upstreams that refuse a subscription, fail during it, come late or come back: the others go on, and the caller is notified
// of what may have been missed.

import { describe, expect, it, vi } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import { McpError } from "../../protocol/errors.ts";
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
import { createRouter } from "./router.ts";

stillClock();

describe("upstreams that fail during a subscription", () => {
  it("do not affect the others, and notify when they are back", async () => {
    const [a, b] = [listenable(), listenable(["file:///b"])];
    const caller = desk(createRouter({ a: a.end, b: b.end }));
    await caller.call("resources/list");
    void listen(caller, { toolsListChanged: true, resourceSubscriptions: ["file:///b"] });
    await soon();
    a.listens[0]?.acknowledge();
    b.listens[0]?.acknowledge();
    await soon();
    b.listens[0]?.fail(new ConnectionError("closed", "gone"));
    await soon();
    a.listens[0]?.context.notify({ method: CHANGED });
    expect(caller.told.slice(1)).toEqual([{ method: CHANGED }]);
    await vi.advanceTimersByTimeAsync(999);
    expect(b.listens).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    b.listens[1]?.fail(new ConnectionError("refused", "not yet"));
    await vi.advanceTimersByTimeAsync(1_600);
    b.listens[2]?.acknowledge();
    expect(caller.told.slice(2)).toEqual([{ method: CHANGED }, { method: UPDATED, params: { uri: "file:///b" } }]);
    caller.abort();
    await soon();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("are granted their lists, and notify when they come late", async () => {
    const [a, late] = [listenable([], { prompts: { listChanged: true } }), listenable()];
    const caller = desk(createRouter({ a: a.end, late: late.end }));
    void listen(caller, { toolsListChanged: true, promptsListChanged: true });
    await soon();
    a.listens[0]?.acknowledge({ promptsListChanged: true });
    await vi.advanceTimersByTimeAsync(4_999);
    expect(caller.told).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(caller.told).toEqual([acknowledged({ promptsListChanged: true, toolsListChanged: true })]);
    late.listens[0]?.acknowledge({ toolsListChanged: true });
    expect(caller.told.slice(1)).toEqual([{ method: CHANGED }]);
    caller.abort();
  });

  it("are dropped if they refuse, and opened again if they only ended it", async () => {
    const [never, ends] = [listenable(), listenable()];
    const caller = desk(createRouter({ never: never.end, ends: ends.end }));
    void listen(caller, { toolsListChanged: true });
    await soon();
    never.listens[0]?.fail(McpError.of("method_not_found", "No subscriptions here"));
    ends.listens[0]?.acknowledge();
    await soon();
    expect(caller.told).toEqual([acknowledged({ toolsListChanged: true })]);
    ends.listens[0]?.end();
    await vi.advanceTimersByTimeAsync(1_000);
    ends.listens[1]?.acknowledge();
    expect(caller.told.slice(1)).toEqual([{ method: CHANGED }]);
    // Each further pause is longer.
    ends.listens[1]?.end();
    await vi.advanceTimersByTimeAsync(1_599);
    expect(ends.listens).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(1);
    expect([ends.listens.length, never.listens.length]).toEqual([3, 1]);
    caller.abort();
  });

  it("fail the subscription if there is no other upstream", async () => {
    const a = listenable();
    const answer = listen(desk(createRouter({ a: a.end })), { toolsListChanged: true }).catch(
      (error: unknown) => error,
    );
    await soon();
    a.listens[0]?.fail(new ConnectionError("refused", "connection refused"));
    expect(await answer).toMatchObject({ kind: "refused", message: "The upstream a failed: connection refused" });
    await soon();
    expect(vi.getTimerCount()).toBe(0);
    expect(a.listens).toHaveLength(1);
  });
});
