// The overview is published once a second, only while someone follows it, and only if it has changed.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { UpstreamStatus } from "../chain/upstream/options.ts";
import type { Feed, FeedSource } from "./feed.ts";
import type { ConsoleHost } from "./host.ts";
import { healthOf, type Needs } from "./needs.ts";
import { OverviewSource } from "./overview.ts";
import type { Overview } from "./types.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const STATUS: UpstreamStatus = { state: "running", target: "node", sessions: 1, pids: [], restarts: 0 };

function start() {
  let calls = 0;
  let reads = 0;
  const running = {
    gateway: { status: () => ({ notes: STATUS, js: STATUS }) },
    config: { upstreams: new Map([["js", { settings: { live: "js" } }]]), disabled: ["old"] },
    signIns: { page: () => undefined },
  };
  const source = new OverviewSource({
    host: { running } as unknown as ConsoleHost,
    needs: { all: () => Promise.resolve([]) } as unknown as Needs,
    trafficOf: () => {
      reads += 1;
      return { calls, errors: 0, p50: 2 };
    },
    toolsOf: (server) => (server === "notes" ? { tools: 3, tokens: 200 } : undefined),
    clients: () => [],
    minutes: () => ({ last: 0, calls: {}, errors: {} }),
    calls: () => calls,
  });
  const published: Overview[] = [];
  let topic: FeedSource<"overview"> = {};
  source.publishTo({
    addSource: ((_topic: string, source: FeedSource<"overview">) => (topic = source)) as Feed["addSource"],
    publish: ((_topic: string, overview: Overview) => published.push(overview)) as Feed["publish"],
  });
  const call = (): void => void (calls += 1);
  return { source, published, watch: (isWatched: boolean) => topic.onWatched?.(isWatched), call, reads: () => reads };
}

it("has the servers of the gateway and those that are disabled, with what is known of each", async () => {
  const { servers } = await start().source.read();
  expect(servers).toEqual([
    { name: "notes", health: "running", status: STATUS, calls: 0, errors: 0, p50: 2, tools: 3, tokens: 200 },
    { name: "js", health: "running", status: STATUS, live: "js", calls: 0, errors: 0, p50: 2 },
    { name: "old", health: "disabled", calls: 0, errors: 0 },
  ]);
});

it("is published once a second while it is watched and changes", async () => {
  const { published, watch, call, reads } = start();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(reads()).toBe(0);
  watch(true);
  await vi.advanceTimersByTimeAsync(999);
  expect(published).toHaveLength(0);
  await vi.advanceTimersByTimeAsync(3_000);
  expect(published).toHaveLength(1);
  call();
  call();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(published).toHaveLength(2);
  watch(false);
  const before = reads();
  call();
  await vi.advanceTimersByTimeAsync(5_000);
  expect([published.length, reads()]).toEqual([2, before]);
});

it.each([
  [{ state: "running" }, "running"],
  [{ state: "starting" }, "starting"],
  [{ state: "idle" }, "idle"],
  [{ state: "idle", failing: true }, "failing"],
  [{ state: "starting", failing: true }, "failing"],
  [{ state: "restarting" }, "failing"],
  [{ state: "failed" }, "failing"],
  [{ state: "idle", failing: true, needsSignIn: true }, "sign-in"],
  [{ state: "incomplete", problem: "X is not set" }, "incomplete"],
  [{ state: "closed" }, "disabled"],
] as const)("%j is %s", (status, health) => {
  expect(healthOf({ ...STATUS, ...status }, false)).toBe(health);
});

it("a server whose user signs in now is not starting", () => {
  expect(healthOf({ ...STATUS, state: "starting" }, true)).toBe("sign-in");
});
