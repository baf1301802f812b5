// Ends that refuse a listen, fail in it, come late or come back: the others go on, and nothing that may have been missed
// is hidden.

import { describe, expect, it, vi } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import { McpError } from "../../protocol/errors.ts";
import { desk } from "../../../test/support/desk.ts";
import {
  acknowledged,
  CHANGED,
  listen,
  listenable,
  soon,
  stillClock,
  UPDATED,
} from "../../../test/support/listenable-end.ts";
import { merge } from "./merge.ts";

stillClock();

describe("ends that fail in a listen", () => {
  it("neither end it nor hide the others, and are told of when they are back", async () => {
    const [a, b] = [listenable(), listenable(["file:///b"])];
    const caller = desk(merge({ a: a.end, b: b.end }));
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

  it("are promised their lists, and told of them when they come late", async () => {
    const [a, late] = [listenable([], { prompts: { listChanged: true } }), listenable()];
    const caller = desk(merge({ a: a.end, late: late.end }));
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

  it("are let go of where they refuse, and opened again where they only ended it", async () => {
    const [never, ends] = [listenable(), listenable()];
    const caller = desk(merge({ never: never.end, ends: ends.end }));
    void listen(caller, { toolsListChanged: true });
    await soon();
    never.listens[0]?.fail(McpError.of("method_not_found", "No listens here"));
    ends.listens[0]?.acknowledge();
    await soon();
    expect(caller.told).toEqual([acknowledged({ toolsListChanged: true })]);
    ends.listens[0]?.end();
    await vi.advanceTimersByTimeAsync(1_000);
    ends.listens[1]?.acknowledge();
    expect(caller.told.slice(1)).toEqual([{ method: CHANGED }]);
    // One that does so again and again is waited for longer and longer.
    ends.listens[1]?.end();
    await vi.advanceTimersByTimeAsync(1_599);
    expect(ends.listens).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(1);
    expect([ends.listens.length, never.listens.length]).toEqual([3, 1]);
    caller.abort();
  });

  it("are the caller's failure where there is no other end", async () => {
    const a = listenable();
    const answer = listen(desk(merge({ a: a.end })), { toolsListChanged: true }).catch((error: unknown) => error);
    await soon();
    a.listens[0]?.fail(new ConnectionError("refused", "connection refused"));
    expect(await answer).toMatchObject({ kind: "refused", message: "The end a failed: connection refused" });
    await soon();
    expect(vi.getTimerCount()).toBe(0);
    expect(a.listens).toHaveLength(1);
  });
});
