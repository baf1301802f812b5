// The connections behind one session: what closing waits for, what it ends, and what failures are reported.

import { expect, it, vi } from "vitest";
import { fakeCaller } from "../../../test/support/handlers/fake-client.ts";
import { eventually } from "../../../test/support/waiting.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context } from "../../core/handler.ts";
import type { ServerConnection } from "../../dialogue/connect.ts";
import { McpError } from "../../protocol/errors.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { ListsFile, ListsStore } from "./stored-lists.ts";
import { UpstreamSession } from "./session.ts";
import { Supervisor, type SupervisorOptions, type UpstreamConnection } from "./supervisor.ts";

const forever = new AbortController().signal;

function contextOf(signal: AbortSignal = forever): Context {
  const refuse = (): Promise<never> => Promise.reject(new Error("unexpected"));
  return { revision: NEWEST.name, caller: fakeCaller(), signal, notify: () => undefined, ask: refuse };
}

/** A connection that closes when the test says so, or when it is closed with a budget. */
function slowToClose(): { opened: UpstreamConnection; letGo(): void; budgets: (number | undefined)[] } {
  const budgets: (number | undefined)[] = [];
  let letGo = (): void => undefined;
  const gone = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const connection: ServerConnection = {
    handler: async () => ({ resultType: "complete" }),
    revision: NEWEST,
    discovered: { resultType: "complete" },
    attributesRequests: true,
    ended: () => new Promise(() => undefined),
    close: (budgetMs) => {
      budgets.push(budgetMs);
      if (budgetMs !== undefined) letGo();
      return gone;
    },
  };
  return { opened: { connection }, letGo: () => letGo(), budgets };
}

function supervise(options: Partial<SupervisorOptions> & Pick<SupervisorOptions, "open">): Supervisor {
  const send: SupervisorOptions["send"] = ({ connection }, request, context) => connection.handler(request, context);
  const defaults = { name: "it", idleMs: 0, startWaitMs: 60_000, restart: {}, isNeeded: () => false, send };
  return new Supervisor({ ...defaults, ...options });
}

function sessionOf(open: () => Promise<UpstreamConnection>, store?: ListsStore): UpstreamSession {
  return new UpstreamSession(
    { name: "it", idleMs: 0, startWaitMs: 60_000, restart: {}, open, onState: () => undefined },
    { client: fakeCaller(), isOwn: false, store, asks: () => false, onHandedOut: () => undefined },
  );
}

it("waits on close for an idle connection that is still closing", async () => {
  const { opened, budgets } = slowToClose();
  const supervisor = supervise({ open: async () => opened, idleMs: 1 });
  await supervisor.call({ method: "ping", params: {} }, contextOf());
  await eventually(() => expect(budgets).toEqual([undefined]));
  expect(supervisor.state).toBe("idle");
  await supervisor.close(700);
  expect(budgets).toEqual([undefined, 700]);
});

it("lets a slow start go on when the request has stopped waiting for it", async () => {
  let start = (_opened: UpstreamConnection): void => undefined;
  const open = vi.fn(() => new Promise<UpstreamConnection>((resolve) => (start = resolve)));
  const supervisor = supervise({ open, startWaitMs: 5 });
  const ping = (): Promise<unknown> => supervisor.call({ method: "ping", params: {} }, contextOf());
  await expect(ping()).rejects.toMatchObject({
    kind: "timeout",
    message: "The upstream it has not answered in 5 ms and is still starting; try again later",
    mayHaveRun: false,
  });
  expect(supervisor.state).toBe("starting");
  const { opened, letGo } = slowToClose();
  start(opened);
  await eventually(() => expect(supervisor.state).toBe("running"));
  await ping();
  expect(open).toHaveBeenCalledTimes(1);
  letGo();
  await supervisor.close();
});

it("ends a start within the budget, and reports that nothing ran", async () => {
  const supervisor = supervise({ open: () => new Promise(() => undefined) });
  const call = supervisor.call({ method: "tools/call", params: {} }, contextOf());
  call.catch(() => undefined);
  await supervisor.close(1);
  expect(supervisor.state).toBe("closed");
  await expect(supervisor.connect(forever)).rejects.toMatchObject({ kind: "closed", mayHaveRun: false });
});

it("reports to callers that wait for a start that it is closed", async () => {
  const open = (signal: AbortSignal): Promise<UpstreamConnection> =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(new Error("the start was aborted")));
    });
  const supervisor = supervise({ open });
  const call = supervisor.call({ method: "tools/call", params: {} }, contextOf());
  const refused = expect(call).rejects.toMatchObject({ kind: "closed", mayHaveRun: false, message: /it is closed/ });
  await supervisor.close();
  await refused;
});

it("ends subscriptions that wait for the next connection on close", async () => {
  const capabilities = { tools: { listChanged: true } };
  const store = new ListsStore(new ListsFile("it"));
  vi.spyOn(store, "known").mockResolvedValue({ discovered: { resultType: "complete", capabilities }, lists: {} });
  const session = sessionOf(() => new Promise(() => undefined), store);
  let notified = 0;
  const request = { method: "subscriptions/listen", params: { notifications: { toolsListChanged: true } } };
  const listen = session.handle(request, { ...contextOf(), notify: () => void (notified += 1) });
  await eventually(() => expect(notified).toBe(1));
  await session.close();
  expect(await listen).toEqual({ resultType: "complete" });
});

it("writes no file after a close", async () => {
  const file = new ListsFile("it");
  let write = (): void => undefined;
  vi.spyOn(file, "write").mockReturnValue(new Promise((resolve) => (write = resolve)));
  const store = new ListsStore(file);
  const session = sessionOf(() => new Promise(() => undefined), store);
  void store.set({ discovered: { resultType: "complete" }, lists: {} });
  void store.setAsks();
  let isClosed = false;
  const closing = session.close().then(() => (isClosed = true));
  await eventually(() => expect(file.write).toHaveBeenCalledTimes(1));
  expect(isClosed).toBe(false);
  write();
  await closing;
  expect(file.write).toHaveBeenCalledTimes(2);
});

it("ends the pause before the next start on close", async () => {
  const supervisor = supervise({ open: () => Promise.reject(new Error("never")) });
  const paused = expect(supervisor.pause(60_000, forever)).rejects.toMatchObject({ kind: "closed" });
  await supervisor.close();
  await paused;
});

it("learns from calls whether an address can be reached, and reports each change once", async () => {
  const { opened } = slowToClose();
  let isReachable = true;
  const refused = new ConnectionError("refused", "Nothing listens at it", { mayHaveRun: false });
  const answer = async (): Promise<{ resultType: string }> => {
    if (!isReachable) throw refused;
    return { resultType: "complete" };
  };
  const reported: (string | undefined)[] = [];
  const supervisor = supervise({
    open: async () => opened,
    send: answer,
    restart: undefined,
    onState: () => reported.push(supervisor.recovery.problem),
  });
  const call = (): Promise<unknown> => supervisor.call({ method: "tools/call", params: {} }, contextOf());
  await call();
  reported.length = 0;
  isReachable = false;
  for (let time = 0; time < 3; time += 1) {
    await expect(call()).rejects.toMatchObject({ message: "The upstream it failed: Nothing listens at it" });
  }
  isReachable = true;
  for (let time = 0; time < 3; time += 1) await call();
  expect(reported).toEqual(["Nothing listens at it", undefined]);
  expect(supervisor.state).toBe("running");
});

it("reports whether a call may have run, which it has not if the start failed", async () => {
  const gone = new ConnectionError("closed", "it exited");
  const { opened } = slowToClose();
  const call = (supervisor: Supervisor, method: string): Promise<unknown> =>
    supervisor.call({ method, params: {} }, contextOf());
  const send = (): Promise<never> => Promise.reject(gone);
  const unbegun = call(supervise({ open: () => Promise.reject(gone), send }), "tools/call");
  await expect(unbegun).rejects.toMatchObject({ mayHaveRun: false, message: "The upstream it failed: it exited" });
  const begun = supervise({ open: async () => opened, send });
  await expect(call(begun, "tools/call")).rejects.toMatchObject({
    mayHaveRun: true,
    message: "The upstream it failed and the call may have run: it exited",
  });
  await expect(call(begun, "tools/list")).rejects.toThrow("The upstream it failed: it exited");
});

it("pauses between attempts while a pipe is broken and the exit is not known", async () => {
  let attempts = 0;
  const connection: ServerConnection = {
    ...slowToClose().opened.connection,
    handler: async (_request, context) => {
      attempts += 1;
      if (attempts === 1)
        context.notify({
          method: "notifications/subscriptions/acknowledged",
          params: { notifications: { toolsListChanged: true } },
        });
      throw new ConnectionError("closed", "The pipe is broken");
    },
  };
  const session = sessionOf(async () => ({ connection }));
  const stop = new AbortController();
  const request = { method: "subscriptions/listen", params: { notifications: { toolsListChanged: true } } };
  const listening = session.handle(request, contextOf(stop.signal));
  // That this returns at all shows that the process is not blocked.
  await new Promise((resolve) => setTimeout(resolve, 250));
  await eventually(() => expect(attempts).toBeGreaterThan(1));
  expect(attempts).toBeLessThan(10);
  stop.abort(new Error("enough"));
  await expect(listening).rejects.toThrow("enough");
  await session.close(1);
});

it.each([
  ["tools/list", new McpError(-32603, "no key"), "tools/list failed: no key"],
  ["tools/list", new McpError(-32601, "unknown"), "tools/list failed: unknown"],
  ["prompts/list", new McpError(-32601, "unknown"), undefined],
])("an upstream that runs and cannot be listed says so until it can be: %s, %s", async (method, error, expected) => {
  const { opened, letGo } = slowToClose();
  let isBroken = true;
  const handler: ServerConnection["handler"] = async () => {
    if (isBroken) throw error;
    return { resultType: "complete" };
  };
  const discovered = { resultType: "complete", capabilities: { tools: {} } };
  const session = sessionOf(async () => ({ connection: { ...opened.connection, handler, discovered } }));
  const list = (): Promise<unknown> => session.handle({ method, params: {} }, contextOf()).catch(() => undefined);
  await list();
  expect(session.supervisor.unlisted).toBe(expected);
  isBroken = false;
  await list();
  expect(session.supervisor.unlisted).toBeUndefined();
  letGo();
  await session.close();
});

it("a stateless program that does not know its own lists is started once more, and only once", async () => {
  const { opened, letGo } = slowToClose();
  letGo();
  const discovered = { resultType: "complete", capabilities: { tools: {} } };
  let knownFrom = 2;
  const open = vi.fn(async (): Promise<UpstreamConnection> => {
    const isKnown = open.mock.calls.length >= knownFrom;
    const handler: ServerConnection["handler"] = async () => {
      if (isKnown) return { resultType: "complete", tools: [] };
      throw new McpError(-32601, "Method not found");
    };
    return { connection: { ...opened.connection, handler, discovered } };
  });
  const list = (session: UpstreamSession): Promise<unknown> =>
    session.handle({ method: "tools/list", params: {} }, contextOf());
  const session = sessionOf(open);
  expect(await list(session)).toMatchObject({ tools: [] });
  expect(open).toHaveBeenCalledTimes(2);
  await session.close();
  knownFrom = Infinity;
  const hopeless = sessionOf(open);
  for (let times = 0; times < 2; times += 1) await expect(list(hopeless)).rejects.toThrow("Method not found");
  expect(open).toHaveBeenCalledTimes(4);
  await hopeless.close();
});
