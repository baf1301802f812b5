// How a call ends: by its result, an abort or a timeout, in process and over a connection of either style. With fake
// timers.

import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { sampleServer, textResult, type SampleServer } from "../../test/support/handlers/sample-server.ts";
import type { Handler } from "../core/handler.ts";
import { NEWEST, NEWEST_SESSION } from "../protocol/revisions/index.ts";
import { connectInMemory } from "../testing.ts";
import type { Client } from "./client.ts";
import { connect, type ConnectOptions } from "./connect.ts";

const closers: (() => Promise<void>)[] = [];
// Before the timers are fake, since a call that asks for the first time waits for these files.
beforeAll(() =>
  Promise.all([import("../dialogue/stateless/parked-call.ts"), import("../dialogue/calls/client-requests.ts")]),
);
beforeEach(() => void vi.useFakeTimers());
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
  const left = vi.getTimerCount();
  vi.useRealTimers();
  expect(left).toBe(0);
});

const TARGETS = [
  ["a handler", undefined],
  ["a session", NEWEST_SESSION.name],
  ["a stateless connection", NEWEST.name],
] as const;

/** `aborted` resolves when the handler of the held call is aborted. */
async function abortOf(there: SampleServer): Promise<{ aborted: Promise<void> }> {
  const { signal } = await there.holding("k");
  return { aborted: new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })) };
}

const form = { message: "Name?", requestedSchema: { type: "object", properties: {} } };

describe.each(TARGETS)("a call of %s", (_, revision) => {
  const join = async (handler: Handler, options: ConnectOptions = {}): Promise<Client> => {
    if (revision !== undefined) {
      const { client, close } = await connectInMemory(handler, { ...options, revision });
      closers.push(close);
      return client;
    }
    const client = await connect(handler, options);
    closers.push(() => client.close());
    return client;
  };

  it("a call is cancelled at once on both sides", async () => {
    const there = sampleServer();
    const client = await join(there.handler);
    const stop = new AbortController();
    const call = client.callTool("hold", { key: "k" }, { signal: stop.signal });
    const { aborted } = await abortOf(there);
    const cause = new Error("changed my mind");
    stop.abort(cause);
    await expect(call).rejects.toMatchObject({ name: "ConnectionError", kind: "cancelled", cause });
    await expect(call).rejects.toThrow("changed my mind");
    await aborted;
    const before = there.requests.length;
    await expect(client.callTool("echo", {}, { signal: stop.signal })).rejects.toMatchObject({ kind: "cancelled" });
    expect(there.requests).toHaveLength(before);
  });

  it("a call times out after silence, and the server is notified", async () => {
    const there = sampleServer();
    const client = await join(there.handler, { timeoutMs: 5_000 });
    const call = client.callTool("hold", { key: "k" });
    const failed = expect(call).rejects.toMatchObject({ name: "ConnectionError", kind: "timeout" });
    const { aborted } = await abortOf(there);
    await vi.advanceTimersByTimeAsync(4_900);
    expect(there.held.size).toBe(1);
    await vi.advanceTimersByTimeAsync(200);
    await failed;
    await aborted;
  });

  it("a call may have its own timeout, which progress restarts", async () => {
    const there = sampleServer();
    const client = await join(there.handler, { timeoutMs: 1_000 });
    const received: number[] = [];
    const call = client.callTool(
      "hold",
      { key: "k" },
      { timeoutMs: 3_000, onProgress: ({ progress }) => received.push(progress) },
    );
    const { notify } = await there.holding("k");
    for (const progress of [1, 2, 3]) {
      await vi.advanceTimersByTimeAsync(2_000);
      notify({ method: "notifications/progress", params: { progress } });
    }
    await vi.advanceTimersByTimeAsync(2_000);
    there.release("k");
    expect(await call).toMatchObject({ content: [{ text: "k" }] });
    expect(received).toEqual([1, 2, 3]);
  });

  it("a call is limited by its max timeout, whatever progress it reports", async () => {
    const there = sampleServer();
    const client = await join(there.handler);
    const call = client.callTool(
      "hold",
      { key: "k" },
      { timeoutMs: 3_000, maxTimeoutMs: 7_000, onProgress: () => undefined },
    );
    const failed = expect(call).rejects.toMatchObject({ kind: "timeout", message: expect.stringContaining("7000 ms") });
    const { notify } = await there.holding("k");
    const { aborted } = await abortOf(there);
    for (const progress of [1, 2, 3, 4]) {
      await vi.advanceTimersByTimeAsync(2_000);
      notify({ method: "notifications/progress", params: { progress } });
    }
    await failed;
    await aborted;
  });

  it("a call does not count our own answers as silence, but towards the max timeout", async () => {
    let answer: (() => void) | undefined;
    const elicit = (): Promise<{ action: "decline" }> =>
      new Promise((resolve) => (answer = () => resolve({ action: "decline" })));
    const asking = (client: Client, maxTimeoutMs: number): Promise<unknown> =>
      client.callTool("ask", { method: "elicitation/create", params: form }, { timeoutMs: 1_000, maxTimeoutMs });
    const client = await join(sampleServer().handler, { elicit });
    const answered = asking(client, 60_000);
    await vi.advanceTimersByTimeAsync(30_000);
    answer?.();
    await vi.advanceTimersByTimeAsync(100);
    expect(await answered).toMatchObject({ content: [{ text: '{"action":"decline"}' }] });

    const failed = expect(asking(client, 5_000)).rejects.toMatchObject({ kind: "timeout" });
    await vi.advanceTimersByTimeAsync(6_000);
    await failed;
    // The server drops a parked call of a stateless client by its own timer.
    answer?.();
  });

  it("a call waits for the last of several answers", async () => {
    const { handler } = sampleServer();
    const asking: Handler = async (request, context) => {
      if (request.method !== "tools/call") return handler(request, context);
      const requests = [
        { method: "roots/list", params: {} },
        { method: "elicitation/create", params: form },
      ];
      const answers = await Promise.all(requests.map((one) => context.ask(one)));
      return textResult(JSON.stringify(answers));
    };
    let answer: (() => void) | undefined;
    const client = await join(asking, {
      roots: [],
      elicit: () => new Promise((resolve) => (answer = () => resolve({ action: "cancel" }))),
    });
    const call = client.callTool("both", {}, { timeoutMs: 1_000 });
    await vi.advanceTimersByTimeAsync(10_000);
    answer?.();
    await vi.advanceTimersByTimeAsync(100);
    expect(await call).toMatchObject({ content: [{ text: '[{"roots":[]},{"action":"cancel"}]' }] });
  });

  it("a call ends while it waits for our own answer, even if the handler ignores its signal", async () => {
    const signals: AbortSignal[] = [];
    const client = await join(sampleServer().handler, {
      elicit: (_, { signal }) => {
        signals.push(signal);
        return new Promise(() => undefined);
      },
    });
    const stop = new AbortController();
    const call = client.callTool("ask", { method: "elicitation/create", params: form }, { signal: stop.signal });
    const failed = expect(call).rejects.toMatchObject({ kind: "cancelled" });
    await vi.advanceTimersByTimeAsync(50);
    expect(signals).toHaveLength(1);
    stop.abort();
    await failed;
    expect(signals[0]?.aborted).toBe(true);
  });

  it("a call survives a listener that throws", async () => {
    const print = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const client = await join(sampleServer().handler);
    const options = {
      onProgress: () => {
        throw new Error("listener");
      },
    };
    expect(await client.callTool("notes", {}, options)).toMatchObject({ content: [{ text: "noted" }] });
    expect(await client.callTool("echo", { text: "alive" })).toMatchObject({ content: [{ text: "alive" }] });
    expect(print.mock.calls).toEqual([["catenary: onProgress failed: listener"]]);
    print.mockRestore();
  });

  it("a call sends `meta`, and a progress token only if progress is wanted", async () => {
    const there = sampleServer();
    const client = await join(there.handler);
    await client.callTool("echo", { text: "a" }, { meta: { "example.com/trace": "t1" } });
    expect(there.requests.at(-1)?.params._meta).toMatchObject({ "example.com/trace": "t1" });
    expect(there.requests.at(-1)?.params._meta).not.toHaveProperty("progressToken");
    await client.callTool("echo", { text: "a" }, { onProgress: () => undefined });
    expect(there.requests.at(-1)?.params._meta).toHaveProperty("progressToken");
  });
});

it("a handler in this process must return an object", async () => {
  const { handler } = sampleServer();
  const client = await connect((request, context) =>
    request.method === "tools/call" ? Promise.resolve("no" as never) : handler(request, context),
  );
  closers.push(() => client.close());
  await expect(client.callTool("echo")).rejects.toMatchObject({ name: "ConnectionError", kind: "protocol" });
});

it("a handler in this process cannot notify after its call is over", async () => {
  const there = sampleServer();
  const client = await connect(there.handler);
  closers.push(() => client.close());
  const received: unknown[] = [];
  const call = client.callTool("hold", { key: "k" }, { onProgress: (progress) => received.push(progress) });
  const { notify } = await there.holding("k");
  there.release("k");
  await call;
  notify({ method: "notifications/progress", params: { progress: 1 } });
  expect(received).toEqual([]);
});
