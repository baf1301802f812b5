// Tasks whose caller leaves before the server has answered with their id: the request itself is not cancelled, and the
// task is cancelled once its id is known, if the server supports that.

import { afterEach, expect, it, vi } from "vitest";
import {
  type SessionTaskFixture,
  sessionTaskFixture,
  FORM,
  TASK_CAPABILITIES,
  NO_ANSWER,
  withoutTasks,
  type SessionTaskServerOptions,
} from "../../../test/support/tasks/session-task-server.ts";
import type { Context, Request, Result } from "../../core/handler.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { ServerTasks } from "./server-tasks.ts";
import { fakeCaller } from "../../../test/support/handlers/fake-client.ts";
import type { ServerTasksHost } from "./server-task.ts";

type Loose = { readonly [key: string]: unknown };

const NAMED = { taskId: "late", status: "working", createdAt: "2026-01-01T00:00:00Z", ttl: null };
const NO_CANCEL = { tools: {}, tasks: { requests: { tools: { call: {} } } } };

afterEach(() => void vi.useRealTimers());

interface Left extends SessionTaskFixture {
  /** The outcome of the call for its caller. */
  readonly outcome: Promise<unknown>;
  /** The caller leaves. */
  leave(): Promise<unknown>;
  /** The server answers the call. */
  answer(answer: Loose): void;
}

/** A call that creates a task, which the server has received and not answered. */
async function unanswered(options: SessionTaskServerOptions = {}, more: Partial<Context> = {}): Promise<Left> {
  const stop = new AbortController();
  const held = await sessionTaskFixture({
    ...options,
    answer: ({ method }) => (method === "tools/call" ? NO_ANSWER : undefined),
  });
  const call = held.request("tools/call", { name: "job" }, { ...more, signal: stop.signal });
  const outcome = call.catch((error: unknown) => error);
  const { id } = await held.server.peer.until(({ method }) => method === "tools/call");
  return {
    ...held,
    outcome,
    leave: () => {
      stop.abort(new Error("enough"));
      return outcome;
    },
    answer: (answer) => held.server.peer.send({ id, ...answer }),
  };
}

/** Waits until everything that was sent before has been handled. */
const settled = (left: Left): Promise<unknown> => left.request("tools/list");

it.each([
  ["knows tasks", {}],
  ["does not know tasks", withoutTasks],
] as const)(
  "a caller that leaves before its task has an id and %s is released at once, and the task is cancelled when it has one",
  async (_, more) => {
    const left = await unanswered({}, more);
    expect(await left.leave()).toMatchObject({ kind: "cancelled", message: "Cancelled: enough" });
    await settled(left);
    left.server.createTask("late");
    left.answer({ result: { task: NAMED } });
    await left.server.peer.until(({ method }) => method === "tasks/cancel");
    expect(left.server.last("tasks/cancel")).toEqual({ taskId: "late" });
    expect(left.server.received("notifications/cancelled")).toEqual([]);
    expect(left.server.received("tasks/cancel")).toHaveLength(1);
  },
);

it("a caller that leaves before its task has an id leaves it running if the server has not declared cancellation", async () => {
  const left = await unanswered({ capabilities: NO_CANCEL });
  await left.leave();
  left.answer({ result: { task: NAMED } });
  await settled(left);
  expect(left.server.received("tasks/cancel")).toEqual([]);
  expect(left.server.received("notifications/cancelled")).toEqual([]);
});

it.each([
  ["a result", { result: { content: [] } }],
  ["an error", { error: { code: -32603, message: "Broken" } }],
])(
  "a caller that leaves before its task has an id causes nothing more if the server answers with %s",
  async (_, answer) => {
    const left = await unanswered();
    await left.leave();
    left.answer(answer);
    left.answer(answer);
    await settled(left);
    expect(left.server.received("tasks/cancel")).toEqual([]);
  },
);

it("a caller that leaves before its task has an id is treated the same after a timeout", async () => {
  const left = await unanswered({}, { timeouts: { idleMs: 20 } });
  expect(await left.outcome).toMatchObject({ kind: "timeout" });
  left.answer({ result: { task: NAMED } });
  await left.server.peer.until(({ method }) => method === "tasks/cancel");
  expect(left.server.received("notifications/cancelled")).toEqual([]);
});

it("a caller that leaves before its task has an id keeps the answer awaited for a minute at most", async () => {
  const left = await unanswered();
  vi.useFakeTimers();
  await left.leave();
  await vi.advanceTimersByTimeAsync(60_000);
  vi.useRealTimers();
  left.answer({ result: { task: NAMED } });
  await settled(left);
  expect(left.server.received("tasks/cancel")).toEqual([]);
});

it("a caller that leaves before its task has an id is not asked for input any more", async () => {
  const asked = vi.fn();
  const left = await unanswered({}, { ask: asked });
  await left.leave();
  const { answer } = left.server.requestClient(undefined, "elicitation/create", FORM);
  expect(await answer).toHaveProperty("error");
  expect(asked).not.toHaveBeenCalled();
});

it("a caller that leaves while the id is on its way gets no task either", async () => {
  const stop = new AbortController();
  const sent: Request[] = [];
  const defaultContext: Context = {
    revision: NEWEST.name,
    caller: fakeCaller({ capabilities: TASK_CAPABILITIES }),
    signal: new AbortController().signal,
    notify: () => undefined,
    ask: () => Promise.reject(new Error("Not asked")),
  };
  const host = {
    defaultContext,
    terms: { rawCapabilities: { tasks: { cancel: {} } } },
    send: async (request: Request): Promise<Result> => {
      sent.push(request);
      stop.abort(new Error("enough"));
      return { task: NAMED };
    },
  } as unknown as ServerTasksHost;
  const tasks = new ServerTasks(host);
  const call = tasks.call(
    { method: "tools/call", params: { name: "job" } },
    { ...defaultContext, signal: stop.signal },
    "required",
  );
  await expect(call).rejects.toThrow("enough");
  expect(sent.slice(1)).toEqual([{ method: "tasks/cancel", params: { taskId: "late" } }]);
});
