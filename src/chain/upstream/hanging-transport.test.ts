// Transports and servers of users that never open, start, connect or close: opening fails in time, closing returns, and
// what comes too late is closed.

import { afterEach, beforeAll, beforeEach, expect, it, vi } from "vitest";
import { connect } from "../../client/connect.ts";
import { deferred, type Deferred } from "../../core/async.ts";
import { serveTransport } from "../../dialogue/connection.ts";
import { createServer } from "../../server/server.ts";
import { memoryPair } from "../../transport/memory.ts";
import type { Transport } from "../../transport/transport.ts";
import { fromSdk, type SdkServer } from "./from-sdk.ts";
import { upstream } from "./upstream.ts";

const LIMIT_MS = 100;
/** How long closing waits for a transport that never closes. */
const CLOSE_MS = 10_000;
const OPTIONS = { name: "notes", startTimeoutMs: LIMIT_MS } as const;

const server = createServer({ name: "notes", version: "1.0.0" }).tool("echo", {}, () => "hi");

interface Gated {
  readonly gate: Deferred<void>;
  /** Resolves when the gate is reached. */
  readonly reached: Promise<void>;
  readonly closed: (number | undefined)[];
}

type Step = "open" | "start" | "close";

/** A transport to a server in memory. One of its steps waits for a gate. */
function gatedTransport(step: Step): Gated & { readonly transport: Transport; open(): Promise<Transport> } {
  const [ours, theirs] = memoryPair();
  const [gate, reached] = [deferred(), deferred()];
  const closed: (number | undefined)[] = [];
  const passGate = async (at: Step): Promise<void> => {
    if (at !== step) return;
    reached.resolve();
    await gate.promise;
  };
  const transport: Transport = {
    start: async (receive) => {
      await passGate("start");
      await serveTransport(server, theirs);
      await ours.start(receive);
    },
    send: (message) => ours.send(message),
    close: async (budgetMs) => {
      closed.push(budgetMs);
      await passGate("close");
      await ours.close();
    },
  };
  return { gate, reached: reached.promise, closed, transport, open: async () => (await passGate("open"), transport) };
}

/** A server with the interface of the SDK. One of its steps waits for a gate. */
function gatedServer(step: "connect" | "close"): Gated & { readonly server: SdkServer; connects: number } {
  const [gate, reached] = [deferred(), deferred()];
  const closed: undefined[] = [];
  const [ours, theirs] = memoryPair();
  const gated = {
    gate,
    reached: reached.promise,
    closed,
    connects: 0,
    server: {
      connect: async (side: Parameters<SdkServer["connect"]>[0]) => {
        gated.connects += 1;
        reached.resolve();
        if (step === "connect") await gate.promise;
        await serveTransport(server, theirs);
        await ours.start((inbound) => void (inbound.kind === "message" && side.send(inbound.message)));
        side.onmessage = (message) => void ours.send(message as never);
      },
      close: async () => {
        closed.push(undefined);
        if (step === "close") await gate.promise;
        await ours.close();
      },
    },
  };
  return gated;
}

const unhandled: unknown[] = [];
const onUnhandled = (error: unknown): void => void unhandled.push(error);

beforeAll(async () => {
  // Loaded on first use, which fake timers would delay.
  await import("./create-pool.ts");
});
beforeEach(() => {
  process.on("unhandledRejection", onUnhandled);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(async () => {
  const left = vi.getTimerCount();
  vi.useRealTimers();
  await new Promise((resolve) => setImmediate(resolve));
  process.off("unhandledRejection", onUnhandled);
  expect({ left, unhandled: unhandled.splice(0) }).toEqual({ left: 0, unhandled: [] });
});

/** The message of the error after this time. */
async function failsAfter(ms: number, call: Promise<unknown>): Promise<string> {
  const message = call.then(
    () => "no error",
    (error: unknown) => (error as Error).message,
  );
  await vi.advanceTimersByTimeAsync(ms);
  return message;
}

/** Whether it resolves after this time, and not before. */
async function resolvesAfter(ms: number, promise: Promise<unknown>): Promise<void> {
  let isDone = false;
  void promise.then(() => (isDone = true));
  await vi.advanceTimersByTimeAsync(ms - 1);
  expect(isDone).toBe(ms === 0);
  await vi.advanceTimersByTimeAsync(1);
  await promise;
}

const FUNCTION = "The function `transport` did not resolve";
const START = "`start` of the transport did not resolve";
const ADVICE = `in ${LIMIT_MS} ms; a slow one needs a longer \`startTimeoutMs\``;

it.each([
  ["opens", "open", FUNCTION],
  ["starts", "start", START],
] as const)(
  "connect() with a transport that never: %s fails in time, and closes what comes later",
  async (_name, step, part) => {
    const gated = gatedTransport(step);
    const opening = connect({ transport: gated.open }, { startTimeoutMs: LIMIT_MS });
    expect(await failsAfter(LIMIT_MS, opening)).toBe(`${part} ${ADVICE}`);
    expect(vi.getTimerCount()).toBe(0);
    const before = gated.closed.length;
    gated.gate.resolve();
    await vi.waitFor(() => expect(gated.closed.length).toBeGreaterThan(before));
  },
);

it("connect() with a transport that never starts can be cancelled", async () => {
  const gated = gatedTransport("start");
  const stop = new AbortController();
  const opening = connect(gated.transport, { signal: stop.signal });
  stop.abort(new Error("enough"));
  expect(await failsAfter(0, opening)).toBe("connect() was cancelled by its caller: enough");
  expect(gated.closed).toEqual([undefined]);
});

it("connect() with a transport that never closes is not waited for longer than the budget, or 10 s", async () => {
  for (const budgetMs of [50, undefined]) {
    const { transport } = gatedTransport("close");
    const client = await connect(transport);
    await resolvesAfter(budgetMs ?? CLOSE_MS, client.close(budgetMs));
  }
});

it("connect() with a transport that never starts has no limit with 0", async () => {
  const gated = gatedTransport("start");
  const opening = connect(gated.transport, { startTimeoutMs: 0 });
  await vi.advanceTimersByTimeAsync(24 * 60 * 60_000);
  gated.gate.resolve();
  const client = await opening;
  await client.close();
});

it("serveTransport() with a transport that never closes does not wait for longer than 10 s", async () => {
  const { transport } = gatedTransport("close");
  const { start: _start, ...others } = transport;
  const served = await serveTransport(server, { ...others, start: async () => undefined });
  await resolvesAfter(CLOSE_MS, served.close());
  await served.closed;
});

it.each([
  ["opens", "open", FUNCTION],
  ["starts", "start", START],
] as const)(
  "upstream() with a transport that never: %s fails in time, and closes what comes later",
  async (_name, step, part) => {
    const gated = gatedTransport(step);
    const notes = upstream({ transport: gated.open }, OPTIONS);
    expect(await failsAfter(LIMIT_MS, notes.start())).toBe(`${part} ${ADVICE}`);
    expect(notes.status()).toMatchObject({ problem: `${part} ${ADVICE}` });
    const before = gated.closed.length;
    gated.gate.resolve();
    await vi.waitFor(() => expect(gated.closed.length).toBeGreaterThan(before));
    await notes.close();
  },
);

it.each(["open", "start"] as const)(
  "upstream() with a transport that never gets past `%s` can be closed at once",
  async (step) => {
    const gated = gatedTransport(step);
    const notes = upstream({ transport: gated.open }, OPTIONS);
    const starting = failsAfter(0, notes.start());
    await gated.reached;
    await notes.close();
    expect(await starting).toBe("The upstream notes is closed");
    gated.gate.resolve();
    await vi.waitFor(() => expect(gated.closed.length).toBeGreaterThan(0));
  },
);

it("upstream() with a transport that never closes is not waited for longer than the budget, or 10 s", async () => {
  for (const budgetMs of [50, undefined]) {
    const gated = gatedTransport("close");
    const notes = upstream({ transport: gated.open }, OPTIONS);
    await notes.start();
    await resolvesAfter(budgetMs ?? CLOSE_MS, notes.close(budgetMs));
    expect(gated.closed).toEqual([budgetMs]);
  }
});

it("upstream() with a transport that never starts nor closes is not waited for longer than 10 s", async () => {
  const gated = gatedTransport("start");
  const transport: Transport = { ...gated.transport, close: () => new Promise(() => undefined) };
  const notes = upstream({ transport: () => transport }, OPTIONS);
  const starting = failsAfter(0, notes.start());
  await gated.reached;
  await resolvesAfter(CLOSE_MS, notes.close());
  expect(await starting).toBe("The upstream notes is closed");
});

it("upstream() with a transport that never opens is named in the error of a call", async () => {
  const notes = upstream({ transport: () => new Promise(() => undefined) }, OPTIONS);
  expect(await failsAfter(LIMIT_MS, connect(notes))).toBe(`The upstream notes failed: ${FUNCTION} ${ADVICE}`);
  await notes.close();
});

it("times that are longer than timers allow do not fire at once", async () => {
  for (const ms of [1e12, Infinity]) {
    const gated = gatedTransport("start");
    const notes = upstream({ transport: gated.open }, { startTimeoutMs: ms, idleMs: ms });
    const starting = notes.start();
    await gated.reached;
    await vi.advanceTimersByTimeAsync(60_000);
    gated.gate.resolve();
    await starting;
    const armed = vi.spyOn(globalThis, "setTimeout");
    await vi.advanceTimersByTimeAsync(1_000);
    expect(armed).not.toHaveBeenCalled();
    armed.mockRestore();
    await notes.close(ms);
  }
});

it("upstream() says what a transport lacks", async () => {
  const expected = new TypeError(
    "What the function `transport` returns must be a transport, with the methods start, send and close; missing: `start`, `send`, `close`",
  );
  for (const wrong of [{}, undefined]) {
    const notes = upstream({ transport: async () => wrong as never }, OPTIONS);
    await expect(notes.start()).rejects.toThrow(expected);
    expect(notes.status()).toMatchObject({ problem: expected.message });
    await notes.close();
  }
  expect(() => upstream({ start: async () => undefined } as never)).toThrow("missing: `send`, `close`");
});

it("fromSdk() with a server that never is made fails in time, and is closed if it comes later", async () => {
  const gated = gatedServer("connect");
  const made = deferred<SdkServer>();
  const notes = fromSdk(() => made.promise, { ...OPTIONS, share: "shared" });
  const part = "The function given to fromSdk() did not make a server";
  expect(await failsAfter(LIMIT_MS, notes.start())).toBe(`${part} ${ADVICE}`);
  made.resolve(gated.server);
  await notes.close();
  expect(gated.connects).toBe(0);
});

it("fromSdk() with a server that never connects fails in time, and is closed if it connects later", async () => {
  const gated = gatedServer("connect");
  const notes = fromSdk(() => gated.server, { ...OPTIONS, share: "shared" });
  expect(await failsAfter(LIMIT_MS, notes.start())).toBe(`\`connect\` of the server did not resolve ${ADVICE}`);
  await notes.close();
  expect(gated.closed).toHaveLength(0);
  gated.gate.resolve();
  await vi.waitFor(() => expect(gated.closed).toHaveLength(1));
});

it("fromSdk() with a server that never connects can be closed, within the budget or 10 s, and is closed if it connects later", async () => {
  for (const budgetMs of [50, undefined]) {
    const gated = gatedServer("connect");
    const notes = fromSdk(gated.server, OPTIONS);
    const starting = failsAfter(0, notes.start());
    await gated.reached;
    await resolvesAfter(budgetMs ?? CLOSE_MS, notes.close(budgetMs));
    await vi.advanceTimersByTimeAsync(CLOSE_MS);
    expect(await starting).toBe("The upstream notes is closed");
    gated.gate.resolve();
    await vi.waitFor(() => expect(gated.closed).toHaveLength(1));
  }
});

it("fromSdk() with a server that never connects is not connected again, and can be when the late connection is closed", async () => {
  const gated = gatedServer("connect");
  const notes = fromSdk(gated.server, OPTIONS);
  await failsAfter(LIMIT_MS, notes.start());
  const part = "`close` of the server did not end its last connection";
  expect(await failsAfter(LIMIT_MS, notes.start())).toBe(`${part} ${ADVICE}`);
  expect(gated.connects).toBe(1);
  await notes.close();
  gated.gate.resolve();
  await vi.waitFor(() => expect(gated.closed).toHaveLength(1));
});

it("fromSdk() with a server that never closes is not waited for longer than the budget, or 10 s", async () => {
  for (const budgetMs of [50, undefined]) {
    const gated = gatedServer("close");
    const notes = fromSdk(gated.server, OPTIONS);
    await notes.start();
    await resolvesAfter(budgetMs ?? CLOSE_MS, notes.close(budgetMs));
    expect(gated.closed).toHaveLength(1);
  }
});
