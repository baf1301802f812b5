// How a call ends: by its result, an abort, a limit on silence or on the whole, without a wire and over a wire
// of either style. Time is the test's own.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { stage, text, type Stage } from "../../test/support/stage.ts";
import type { Handler } from "../core/handler.ts";
import { NEWEST, NEWEST_SESSION } from "../protocol/revisions/index.ts";
import { connectAt } from "../testing.ts";
import type { Client } from "./client.ts";
import { connect, type ConnectOptions } from "./connect.ts";

const closers: (() => Promise<void>)[] = [];
beforeEach(() => void vi.useFakeTimers());
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
  const left = vi.getTimerCount();
  vi.useRealTimers();
  expect(left).toBe(0);
});

const WAYS = [
  ["a handler", undefined],
  ["a session", NEWEST_SESSION.name],
  ["an exchange", NEWEST.name],
] as const;

/** Resolves when the work of the held call is aborted. */
async function abortOf(there: Stage): Promise<{ aborted: Promise<void> }> {
  const { signal } = await there.holding("k");
  return { aborted: new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })) };
}

const form = { message: "Name?", requestedSchema: { type: "object", properties: {} } };

describe.each(WAYS)("toward %s", (_, revision) => {
  const join = async (handler: Handler, options: ConnectOptions = {}): Promise<Client> => {
    if (revision !== undefined) {
      const { client, close } = await connectAt(handler, { ...options, revision });
      closers.push(close);
      return client;
    }
    const client = await connect(handler, options);
    closers.push(() => client.close());
    return client;
  };

  it("cancels: the caller hears it at once, and the end too", async () => {
    const there = stage();
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

  it("gives up a call after its silence, and tells the end", async () => {
    const there = stage();
    const client = await join(there.handler, { timeout: 5_000 });
    const call = client.callTool("hold", { key: "k" });
    const failed = expect(call).rejects.toMatchObject({ name: "ConnectionError", kind: "timeout" });
    const { aborted } = await abortOf(there);
    await vi.advanceTimersByTimeAsync(4_900);
    expect(there.held.size).toBe(1);
    await vi.advanceTimersByTimeAsync(200);
    await failed;
    await aborted;
  });

  it("lets a call say its own limit on silence, which progress starts anew", async () => {
    const there = stage();
    const client = await join(there.handler, { timeout: 1_000 });
    const heard: number[] = [];
    const call = client.callTool(
      "hold",
      { key: "k" },
      { timeout: 3_000, onProgress: ({ progress }) => heard.push(progress) },
    );
    const { notify } = await there.holding("k");
    for (const progress of [1, 2, 3]) {
      await vi.advanceTimersByTimeAsync(2_000);
      notify({ method: "notifications/progress", params: { progress } });
    }
    await vi.advanceTimersByTimeAsync(2_000);
    there.release("k");
    expect(await call).toMatchObject({ content: [{ text: "k" }] });
    expect(heard).toEqual([1, 2, 3]);
  });

  it("holds the whole call to its longest time, whatever progress it reports", async () => {
    const there = stage();
    const client = await join(there.handler);
    const call = client.callTool(
      "hold",
      { key: "k" },
      { timeout: 3_000, maxTimeout: 7_000, onProgress: () => undefined },
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

  it("does not count silence while we ourselves are being asked, but the whole time", async () => {
    let answer: (() => void) | undefined;
    const elicit = (): Promise<{ action: "decline" }> =>
      new Promise((resolve) => (answer = () => resolve({ action: "decline" })));
    const asking = (client: Client, maxTimeout: number): Promise<unknown> =>
      client.callTool("ask", { method: "elicitation/create", params: form }, { timeout: 1_000, maxTimeout });
    const client = await join(stage().handler, { elicit });
    const answered = asking(client, 60_000);
    await vi.advanceTimersByTimeAsync(30_000);
    answer?.();
    await vi.advanceTimersByTimeAsync(100);
    expect(await answered).toMatchObject({ content: [{ text: '{"action":"decline"}' }] });

    const failed = expect(asking(client, 5_000)).rejects.toMatchObject({ kind: "timeout" });
    await vi.advanceTimersByTimeAsync(6_000);
    await failed;
    // What is parked for an exchange-style caller is swept by the server's own clock.
    answer?.();
  });

  it("waits for the last of several answers", async () => {
    const { handler } = stage();
    const asking: Handler = async (request, context) => {
      if (request.method !== "tools/call") return handler(request, context);
      const asked = [
        { method: "roots/list", params: {} },
        { method: "elicitation/create", params: form },
      ];
      const answers = await Promise.all(asked.map((question) => context.ask(question)));
      return text(JSON.stringify(answers));
    };
    let answer: (() => void) | undefined;
    const client = await join(asking, {
      roots: [],
      elicit: () => new Promise((resolve) => (answer = () => resolve({ action: "cancel" }))),
    });
    const call = client.callTool("both", {}, { timeout: 1_000 });
    await vi.advanceTimersByTimeAsync(10_000);
    answer?.();
    await vi.advanceTimersByTimeAsync(100);
    expect(await call).toMatchObject({ content: [{ text: '[{"roots":[]},{"action":"cancel"}]' }] });
  });

  it("ends a call that waits for our own answer, though the handler never looks up", async () => {
    const signals: AbortSignal[] = [];
    const client = await join(stage().handler, {
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

  it("keeps the dialogue alive when a listener of the program's throws", async () => {
    const faults: unknown[] = [];
    const late = vi.spyOn(globalThis, "queueMicrotask").mockImplementation((task) => {
      void Promise.resolve()
        .then(task)
        .catch((error: unknown) => faults.push(error));
    });
    const client = await join(stage().handler);
    const options = {
      onProgress: () => {
        throw new Error("listener");
      },
    };
    expect(await client.callTool("notes", {}, options)).toMatchObject({ content: [{ text: "noted" }] });
    expect(await client.callTool("echo", { text: "alive" })).toMatchObject({ content: [{ text: "alive" }] });
    late.mockRestore();
    expect(faults).toEqual([new Error("listener")]);
  });

  it("sends what a caller puts into `meta`, and no token where no progress is wanted", async () => {
    const there = stage();
    const client = await join(there.handler);
    await client.callTool("echo", { text: "a" }, { meta: { "example.com/trace": "t1" } });
    expect(there.requests.at(-1)?.params._meta).toMatchObject({ "example.com/trace": "t1" });
    expect(there.requests.at(-1)?.params._meta).not.toHaveProperty("progressToken");
    await client.callTool("echo", { text: "a" }, { onProgress: () => undefined });
    expect(there.requests.at(-1)?.params._meta).toHaveProperty("progressToken");
  });
});

describe("a handler without a wire", () => {
  it("must return a result", async () => {
    const { handler } = stage();
    const client = await connect((request, context) =>
      request.method === "tools/call" ? Promise.resolve("no" as never) : handler(request, context),
    );
    closers.push(() => client.close());
    await expect(client.callTool("echo")).rejects.toMatchObject({ name: "ConnectionError", kind: "protocol" });
  });

  it("hears nothing after its call is over", async () => {
    const there = stage();
    const client = await connect(there.handler);
    closers.push(() => client.close());
    const heard: unknown[] = [];
    const call = client.callTool("hold", { key: "k" }, { onProgress: (progress) => heard.push(progress) });
    const { notify } = await there.holding("k");
    there.release("k");
    await call;
    notify({ method: "notifications/progress", params: { progress: 1 } });
    expect(heard).toEqual([]);
  });
});
