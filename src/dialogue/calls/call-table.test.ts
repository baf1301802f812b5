// The limit on calls in flight, and what is abandoned half-way: requests to the client without a waiting call, calls that
// never began, sessions closed during the handshake. None of it may go on, hold a slot, or crash the process.

import { expect, it } from "vitest";
import { servePeer } from "../../../test/support/dialogue/served-connection.ts";
import { RawPeer, statelessMeta } from "../../../test/support/dialogue/raw-peer.ts";
import type { Context, Handler, Request, Result } from "../../core/handler.ts";
import { NEWEST, NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { memoryPair } from "../../transport/memory.ts";
import { serveTransport } from "../connection.ts";
import { TaskWatch } from "../../tasks/watch.ts";

const ROOTS = { method: "roots/list" } as Request;
const never = new Promise<never>(() => undefined);

function serverWith(call: (context: Context, name: string) => Promise<Result>): Handler {
  return async ({ method, params }, context) => {
    if (method === "server/discover") return { capabilities: { tools: {} } };
    if (method === "subscriptions/listen") return {};
    return call(context, String(params["name"]));
  };
}

const statelessCall = (id: number, more = {}): Record<string, unknown> => {
  const params = { name: "x", arguments: {}, ...more, _meta: statelessMeta(NEWEST.name, { roots: {} }) };
  return { id, method: "tools/call", params };
};

const cancel = (peer: RawPeer, requestId: number): void =>
  peer.send({ method: "notifications/cancelled", params: { requestId } });

it("runs up to maxInFlight calls at once, and the rest in the order of arrival", async () => {
  const running: string[] = [];
  const doors: (() => void)[] = [];
  const peer = await servePeer(
    async ({ method, params }) => {
      if (method === "server/discover") return { capabilities: { tools: {} } };
      if (method === "subscriptions/listen") return {};
      running.push(String(params["name"]));
      await new Promise<void>((resolve) => doors.push(resolve));
      return { content: [] };
    },
    { maxInFlight: 2 },
  );
  await peer.handshake(NEWEST_SESSION.name);
  for (const id of [1, 2, 3, 4]) peer.send({ id, method: "tools/call", params: { name: String(id) } });
  await expect.poll(() => running).toEqual(["1", "2"]);
  // A ping never waits.
  expect(await peer.request({ id: "alive", method: "ping" })).toMatchObject({ result: {} });
  peer.send({ method: "notifications/cancelled", params: { requestId: 3 } });
  doors.shift()?.();
  await peer.answerTo(1);
  await expect.poll(() => running).toEqual(["1", "2", "4"]);
  for (const door of doors) door();
  await peer.answerTo(2);
  await peer.answerTo(4);
  expect(peer.received.some(({ id }) => id === 3)).toBe(false);
});

it("a request to the client may have no params", async () => {
  const peer = await servePeer(serverWith(async (context) => context.ask(ROOTS)));
  await peer.handshake(NEWEST_SESSION.name, { roots: {} });
  peer.send({ id: 1, method: "tools/call", params: { name: "x" } });
  const { id } = await peer.until(({ method }) => method === "roots/list");
  peer.send({ id, result: { roots: [] } });
  expect(await peer.answerTo(1)).toMatchObject({ result: { roots: [] } });
  const asked = { result: { inputRequests: { 1: { method: "roots/list", params: {} } } } };
  expect(
    await (await servePeer(serverWith(async (context) => context.ask(ROOTS)))).request(statelessCall(1)),
  ).toMatchObject(asked);
});

it("a request to the client without a JSON form is not sent", async () => {
  const handler = serverWith(async (context) => {
    const failed = await context.ask({ ...ROOTS, params: { _meta: { x: 1n } } }).catch(String);
    return { content: [], failed };
  });
  const peer = await servePeer(handler);
  await peer.handshake(NEWEST_SESSION.name, { roots: {} });
  const failed: unknown = expect.stringContaining("The request roots/list cannot be sent");
  expect(await peer.request({ id: 1, method: "tools/call", params: { name: "x" } })).toMatchObject({
    result: { failed },
  });
  expect(peer.received.some(({ method }) => method === "roots/list")).toBe(false);
  expect(await (await servePeer(handler)).request(statelessCall(1))).toMatchObject({ result: { failed } });
});

it("a request to the client is cancelled before the response of a call that no longer waits for it", async () => {
  let asked: Promise<unknown> = never;
  const peer = await servePeer(
    serverWith(async (context) => {
      asked = context.ask(ROOTS);
      await peer.until(({ method }) => method === "roots/list");
      return { content: [] };
    }),
  );
  await peer.handshake(NEWEST_SESSION.name, { roots: {} });
  await peer.request({ id: "c", method: "tools/call", params: { name: "x" } });
  const { id } = await peer.until(({ method }) => method === "roots/list");
  expect(peer.received.at(-2)).toMatchObject({ method: "notifications/cancelled", params: { requestId: id } });
  await expect(asked).rejects.toThrow("The call has been answered");
});

it("a handler that throws synchronously on subscribe counts as one without subscriptions", () => {
  const watch = new TaskWatch(
    () => {
      throw new Error("no subscriptions here");
    },
    { revision: NEWEST.name, caller: { capabilities: {} }, signal: new AbortController().signal } as unknown as Context,
    { taskId: "task-1", status: "working" },
  );
  expect(() => watch.subscribe()).not.toThrow();
  expect(watch.isSubscribed).toBe(false);
});

it("a parked call goes on while one of its retries waits, and is cancelled with the last", async () => {
  let finish: () => void = () => undefined;
  const contexts: Context[] = [];
  const peer = await servePeer(
    serverWith(async (context) => {
      await context.ask(ROOTS);
      contexts.push(context);
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      return { content: [], isDone: true };
    }),
  );
  const retry = async (first: number): Promise<void> => {
    const { result } = await peer.request(statelessCall(first));
    const { requestState } = result as { requestState: string };
    const more = { requestState, inputResponses: { 1: { roots: [] } } };
    const { length } = contexts;
    peer.send(statelessCall(first + 1, more), statelessCall(first + 2, more));
    await expect.poll(() => contexts.length).toBe(length + 1);
    cancel(peer, first + 1);
    await peer.request({ id: `p${first}`, method: "ping" });
  };
  await retry(10);
  expect(contexts[0]?.signal.aborted).toBe(false);
  finish();
  expect(await peer.answerTo(12)).toMatchObject({ result: { isDone: true } });
  await retry(20);
  cancel(peer, 22);
  await expect.poll(() => contexts[1]?.signal.aborted).toBe(true);
});

it.each([{ maxInFlight: 1 }, { ordering: "sequential" as const }])(
  "a queued call never begins once the connection is closed: %j",
  async (options) => {
    const begun: string[] = [];
    let finish: () => void = () => undefined;
    const handler = serverWith(async (_context, name) => {
      begun.push(name);
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      return { content: [] };
    });
    const [ours, theirs] = memoryPair();
    const served = await serveTransport(handler, ours, options);
    const peer = await new RawPeer(theirs).start();
    await peer.handshake(NEWEST_SESSION.name);
    for (const id of [1, 2]) peer.send({ id, method: "tools/call", params: { name: String(id) } });
    await expect.poll(() => begun).toEqual(["1"]);
    const closed = served.close();
    finish();
    await closed;
    expect(begun).toEqual(["1"]);
    expect(await peer.answerTo(2)).toMatchObject({ error: { data: { kind: "shutting_down" } } });
  },
);

it("a session closed during its handshake does not wait for it, and begins nothing", async () => {
  const methods: string[] = [];
  let discovered: (result: Result) => void = () => undefined;
  let signal: AbortSignal | undefined;
  const [ours, theirs] = memoryPair();
  const served = await serveTransport(async ({ method }, context) => {
    methods.push(method);
    if (method !== "server/discover") return {};
    signal = context.signal;
    return new Promise<Result>((resolve) => {
      discovered = resolve;
    });
  }, ours);
  const peer = await new RawPeer(theirs).start();
  peer.send({ id: 1, method: "initialize", params: { protocolVersion: NEWEST_SESSION.name } });
  peer.send({ method: "notifications/initialized" });
  await expect.poll(() => methods).toEqual(["server/discover"]);
  await served.close();
  expect(signal?.aborted).toBe(true);
  discovered({ capabilities: { tools: { listChanged: true } } });
  await new Promise((resolve) => setImmediate(resolve));
  expect(methods).toEqual(["server/discover"]);
});

it("a cancelled call that goes on frees its slot", async () => {
  const peer = await servePeer(
    serverWith(async (_context, name) => (name === "stuck" ? never : { content: [] })),
    { maxInFlight: 1 },
  );
  await peer.handshake(NEWEST_SESSION.name);
  peer.send({ id: 1, method: "tools/call", params: { name: "stuck" } });
  await peer.request({ id: 2, method: "ping" });
  cancel(peer, 1);
  expect(await peer.request({ id: 3, method: "tools/call", params: { name: "x" } })).toMatchObject({ result: {} });
});

it("a cancelled call that goes on keeps its slot if already as many cancelled calls as slots go on", async () => {
  const finish: (() => void)[] = [];
  const begun: string[] = [];
  const handler = serverWith(async (_context, name) => {
    begun.push(name);
    if (name === "stuck") await new Promise<void>((resolve) => finish.push(resolve));
    return { content: [] };
  });
  const peer = await servePeer(handler, { maxInFlight: 1 });
  await peer.handshake(NEWEST_SESSION.name);
  for (const id of [1, 2]) {
    peer.send({ id, method: "tools/call", params: { name: "stuck" } });
    await expect.poll(() => begun.length).toBe(id);
    cancel(peer, id);
  }
  peer.send({ id: 3, method: "tools/call", params: { name: "third" } });
  await peer.request({ id: 4, method: "ping" });
  expect(begun).toEqual(["stuck", "stuck"]);
  finish.pop()?.();
  expect(await peer.answerTo(3)).toMatchObject({ result: {} });
  finish.pop()?.();
  expect(await peer.request({ id: 5, method: "tools/call", params: { name: "x" } })).toMatchObject({ result: {} });
});
