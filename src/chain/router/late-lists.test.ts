// Lists with upstreams that are slow, still starting, or cannot be listed: no list waits long, the result names who is
// missing, and callers are notified when a list has become complete.

import { expect, it, vi } from "vitest";
import { deferred } from "../../core/async.ts";
import type { Result } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";
import { fakeClient, type FakeClient } from "../../../test/support/handlers/fake-client.ts";
import { scriptedServer, toolList, type ScriptedAnswer } from "../../../test/support/handlers/scripted-server.ts";
import { CHANGED, settle, subscribe, useFakeClock } from "../../../test/support/handlers/scripted-subscriptions.ts";
import { createRouter } from "./router.ts";

useFakeClock();

/** An upstream that acknowledges every subscription. */
function server(answers: Readonly<Record<string, ScriptedAnswer>>): ReturnType<typeof scriptedServer> {
  return scriptedServer({
    "subscriptions/listen": (params, context) => {
      context.notify({ method: "notifications/subscriptions/acknowledged", params });
      return new Promise(() => undefined);
    },
    ...answers,
  });
}

async function list(caller: FakeClient, ms = 0): Promise<Result & { names: string[]; missing: unknown }> {
  const listing = caller.call("tools/list");
  await vi.advanceTimersByTimeAsync(ms);
  const result = await listing;
  const names = (result["tools"] as { name: string }[]).map(({ name }) => name);
  return { ...result, names, missing: result._meta?.["catenary/unavailable"] };
}

const changes = ({ notifications }: FakeClient): number =>
  notifications.filter(({ method }) => method === CHANGED).length;

it("an upstream that does not list its tools in 2 s is left out until it does", async () => {
  let answer = deferred<Result>();
  const slow = server({ "tools/list": () => answer.promise });
  const caller = fakeClient(createRouter({ slow, a: server({ "tools/list": toolList("x") }) }));
  void subscribe(caller, { toolsListChanged: true });
  await settle();
  const message = "The upstream slow did not answer in 2000 ms";
  expect(await list(caller, 2_000)).toMatchObject({
    names: ["x"],
    missing: [{ upstream: "slow", message }],
    ttlMs: 0,
  });
  // The same list is awaited, and only for a moment.
  expect(await list(caller, 50)).toMatchObject({ names: ["x"] });
  expect(slow.requests.filter(({ method }) => method === "tools/list")).toHaveLength(1);
  expect(changes(caller)).toBe(0);
  answer.resolve(toolList("s"));
  await settle();
  expect(changes(caller)).toBe(1);
  // It is as slow as before, so what it listed last is shown. Callers are notified only if its next list differs.
  for (const [next, expected] of [
    ["s", 1],
    ["t", 2],
  ] as const) {
    answer = deferred();
    expect(await list(caller, 2_000)).toMatchObject({ names: ["s", "x"], missing: undefined, ttlMs: 0 });
    answer.resolve(toolList(next));
    await settle();
    expect(changes(caller)).toBe(expected);
  }
  expect(await list(caller)).toMatchObject({ names: ["t", "x"], missing: undefined });
  caller.abort();
});

it("an upstream that is still starting is waited for 15 s; callers are notified when it has started", async () => {
  const start = deferred<Result>();
  const starting = server({ "server/discover": () => start.promise, "tools/list": toolList("s") });
  const caller = fakeClient(createRouter({ starting, a: server({ "tools/list": toolList("x") }) }));
  void subscribe(caller, { toolsListChanged: true });
  await settle();
  const first = caller.call("tools/list");
  let isAnswered = false;
  void first.then(() => (isAnswered = true));
  await vi.advanceTimersByTimeAsync(14_999);
  expect(isAnswered).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  const missing = [{ upstream: "starting", message: "The upstream starting is still starting; ask again" }];
  expect(await first).toMatchObject({ ttlMs: 0, _meta: { "catenary/unavailable": missing } });
  expect(changes(caller)).toBe(0);
  start.resolve({ capabilities: { tools: { listChanged: true } } });
  await settle();
  expect(changes(caller)).toBe(1);
  expect(await list(caller)).toMatchObject({ names: ["s", "x"], missing: undefined });
  expect(changes(caller)).toBe(1);
  caller.abort();
});

it("a program that does not run is waited for longer than one that does", async () => {
  const answer = deferred<Result>();
  const program = server({ "tools/list": () => answer.promise });
  const idle = Object.defineProperty(program, "status", { value: () => ({ state: "idle" }) });
  const caller = fakeClient(createRouter({ idle, a: server({ "tools/list": toolList("x") }) }));
  const listing = caller.call("tools/list");
  await vi.advanceTimersByTimeAsync(14_000);
  answer.resolve(toolList("s"));
  expect((await listing)["tools"]).toMatchObject([{ name: "s" }, { name: "x" }]);
});

it.each([
  ["fails", new McpError(-32603, "the disk is full"), "the disk is full"],
  [
    "is an unknown method",
    new McpError(-32601, "Method not found"),
    "The upstream broken declares tools and does not know tools/list",
  ],
])("an upstream whose list %s is named, and callers are notified when it can be listed", async (_, error, message) => {
  let isBroken = true;
  const broken = server({
    "tools/list": () => {
      if (isBroken) throw error;
      return toolList("b");
    },
  });
  const caller = fakeClient(createRouter({ broken, a: server({ "tools/list": toolList("x") }) }));
  void subscribe(caller, { toolsListChanged: true });
  await settle();
  for (let times = 0; times < 2; times += 1) {
    expect(await list(caller)).toMatchObject({ names: ["x"], missing: [{ upstream: "broken", message }], ttlMs: 0 });
    await settle();
  }
  expect(changes(caller)).toBe(0);
  isBroken = false;
  expect(await list(caller)).toMatchObject({ names: ["b", "x"], missing: undefined });
  expect(changes(caller)).toBe(1);
  caller.abort();
});
