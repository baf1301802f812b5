// The lives of what is behind one session, with programs that are none: what closing waits for, and what it ends.

import { expect, it, vi } from "vitest";
import type { Context } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Opened } from "../../dialogue/connect.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { StandingListens } from "./standing-listens.ts";
import { Supervisor, type Life, type SupervisorOptions } from "./supervisor.ts";

const forever = new AbortController().signal;

function contextOf(signal: AbortSignal = forever): Context {
  const refuse = (): Promise<never> => Promise.reject(new Error("nobody is asked here"));
  return { revision: NEWEST.name, caller: { capabilities: {} }, signal, notify: () => undefined, ask: refuse };
}

/** A life whose close takes until it is let go, or until somebody has no more time. */
function slowToEnd(): { life: Life; letGo(): void; budgets: (number | undefined)[] } {
  const budgets: (number | undefined)[] = [];
  let letGo = (): void => undefined;
  const gone = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const opened: Opened = {
    handler: async () => ({ resultType: "complete" }),
    revision: NEWEST,
    discovered: { resultType: "complete" },
    saysWhose: true,
    ended: () => new Promise(() => undefined),
    close: (budgetMs) => {
      budgets.push(budgetMs);
      if (budgetMs !== undefined) letGo();
      return gone;
    },
  };
  return { life: { opened }, letGo: () => letGo(), budgets };
}

function supervise(options: Partial<SupervisorOptions> & Pick<SupervisorOptions, "open">): Supervisor {
  return new Supervisor({ name: "it", idleMs: 0, restart: {}, isNeeded: () => false, ...options });
}

it("waits, when it is closed, for a life that was put to rest and has not ended", async () => {
  const { life, budgets } = slowToEnd();
  const supervisor = supervise({ open: async () => life, idleMs: 1 });
  await supervisor.call({ method: "ping", params: {} }, contextOf(), ({ opened }) => opened.handler);
  await vi.waitFor(() => expect(budgets).toEqual([undefined]));
  expect(supervisor.state).toBe("asleep");
  await supervisor.close(700);
  expect(budgets).toEqual([undefined, 700]);
});

it("ends a start within its budget, and says that nothing ran", async () => {
  const supervisor = supervise({ open: () => new Promise(() => undefined) });
  const call = supervisor.call({ method: "tools/call", params: {} }, contextOf(), ({ opened }) => opened.handler);
  call.catch(() => undefined);
  await supervisor.close(1);
  expect(supervisor.state).toBe("closed");
  await expect(supervisor.running(forever)).rejects.toMatchObject({ kind: "closed", mayHaveRun: false });
});

it("tells callers whose start was ended by its close that it is closed", async () => {
  const open = (signal: AbortSignal): Promise<Life> =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(new Error("the start was given up")));
    });
  const supervisor = supervise({ open });
  const call = supervisor.call({ method: "tools/call", params: {} }, contextOf(), ({ opened }) => opened.handler);
  const refused = expect(call).rejects.toMatchObject({ kind: "closed", mayHaveRun: false, message: /it is closed/ });
  await supervisor.close();
  await refused;
});

it("ends listens that wait for its next life, when it is closed", async () => {
  const supervisor = supervise({ open: () => new Promise(() => undefined) });
  const capabilities = { tools: { listChanged: true } };
  const catalogue = { discovered: { resultType: "complete", capabilities }, lists: {} } as const;
  const listens = new StandingListens(
    supervisor,
    async () => catalogue,
    ({ opened }) => opened.handler,
    () => undefined,
  );
  let heard = 0;
  const request = { method: "subscriptions/listen", params: { notifications: { toolsListChanged: true } } };
  const listen = listens.listen(request, { ...contextOf(), notify: () => void (heard += 1) });
  await vi.waitFor(() => expect(heard).toBe(1));
  await supervisor.close();
  expect(await listen).toEqual({ resultType: "complete" });
});

it("ends the pause before the next try, when it is closed", async () => {
  const supervisor = supervise({ open: () => Promise.reject(new Error("never")) });
  const paused = expect(supervisor.pause(60_000, forever)).rejects.toMatchObject({ kind: "closed" });
  await supervisor.close();
  await paused;
});

it("knows of an address by its calls whether anybody is there, and tells each change once", async () => {
  const { life } = slowToEnd();
  let isThere = true;
  const refused = new ConnectionError("refused", "Nothing listens at it", { mayHaveRun: false });
  const answer = async (): Promise<{ resultType: string }> => {
    if (!isThere) throw refused;
    return { resultType: "complete" };
  };
  const told: (string | undefined)[] = [];
  const supervisor = supervise({
    open: async () => life,
    restart: undefined,
    onState: () => told.push(supervisor.recovery.problem),
  });
  const call = (): Promise<unknown> => supervisor.call({ method: "tools/call", params: {} }, contextOf(), () => answer);
  await call();
  told.length = 0;
  isThere = false;
  for (let time = 0; time < 3; time += 1) {
    await expect(call()).rejects.toMatchObject({ message: "The end it failed: Nothing listens at it" });
  }
  isThere = true;
  for (let time = 0; time < 3; time += 1) await call();
  expect(told).toEqual(["Nothing listens at it", undefined]);
  expect(supervisor.state).toBe("running");
});

it("says of a call whether it may have run: not where nothing could be begun", async () => {
  const gone = new ConnectionError("closed", "it exited");
  const { life } = slowToEnd();
  const call = (supervisor: Supervisor, method: string): Promise<unknown> =>
    supervisor.call({ method, params: {} }, contextOf(), () => () => Promise.reject(gone));
  const unbegun = call(supervise({ open: () => Promise.reject(gone) }), "tools/call");
  await expect(unbegun).rejects.toMatchObject({ mayHaveRun: false, message: "The end it failed: it exited" });
  const begun = supervise({ open: async () => life });
  await expect(call(begun, "tools/call")).rejects.toMatchObject({
    mayHaveRun: true,
    message: "The end it failed and the call may have run: it exited",
  });
  await expect(call(begun, "tools/list")).rejects.toThrow("The end it failed: it exited");
});

it("does not ask an end again and again whose pipe is broken, until its death is known", async () => {
  let asked = 0;
  const opened: Opened = {
    ...slowToEnd().life.opened,
    handler: async (_request, context) => {
      asked += 1;
      if (asked === 1)
        context.notify({
          method: "notifications/subscriptions/acknowledged",
          params: { notifications: { toolsListChanged: true } },
        });
      throw new ConnectionError("closed", "The pipe is broken");
    },
  };
  const supervisor = supervise({ open: async () => ({ opened }) });
  const stop = new AbortController();
  const listens = new StandingListens(
    supervisor,
    async () => undefined,
    ({ opened: { handler } }) => handler,
    () => undefined,
  );
  const request = { method: "subscriptions/listen", params: { notifications: { toolsListChanged: true } } };
  const listening = listens.listen(request, contextOf(stop.signal));
  // That this comes back at all shows that the process is not held up.
  await new Promise((resolve) => setTimeout(resolve, 250));
  expect(asked).toBeGreaterThan(1);
  expect(asked).toBeLessThan(10);
  stop.abort(new Error("enough"));
  await expect(listening).rejects.toThrow("enough");
  await supervisor.close(1);
});
