// Tasks whose caller leaves before the end has named them, toward a hand-made end: nothing is said of the request
// itself, and the task is cancelled when its name comes, if the end can do that.

import { afterEach, describe, expect, it, vi } from "vitest";
import { type Desk, desk, FORM, KNOWS, silence, unaware } from "../../../test/support/session-task-desk.ts";
import type { SessionTaskServerOptions } from "../../../test/support/session-task-end.ts";
import type { Context, Request, Result } from "../../core/handler.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { SessionTaskBack } from "./server-tasks.ts";
import type { TaskBackHost } from "./tasks-back.ts";

type Loose = { readonly [key: string]: unknown };

const NAMED = { taskId: "late", status: "working", createdAt: "2026-01-01T00:00:00Z", ttl: null };
const NO_CANCEL = { tools: {}, tasks: { requests: { tools: { call: {} } } } };

afterEach(() => void vi.useRealTimers());

interface Left extends Desk {
  /** What the caller gets of its call. */
  readonly outcome: Promise<unknown>;
  /** The caller leaves. */
  leave(): Promise<unknown>;
  /** The end answers the call, at last. */
  answer(answer: Loose): void;
}

/** A call of a tool that is a task, which the end has got and does not answer. */
async function unanswered(options: SessionTaskServerOptions = {}, more: Partial<Context> = {}): Promise<Left> {
  const stop = new AbortController();
  const held = await desk({
    ...options,
    answer: ({ method }) => (method === "tools/call" ? silence : undefined),
  });
  const call = held.ask("tools/call", { name: "job" }, { ...more, signal: stop.signal });
  const outcome = call.catch((error: unknown) => error);
  const { id } = await held.end.peer.until(({ method }) => method === "tools/call");
  return {
    ...held,
    outcome,
    leave: () => {
      stop.abort(new Error("enough"));
      return outcome;
    },
    answer: (answer) => held.end.peer.send({ id, ...answer }),
  };
}

/** Until all that was sent before has been taken. */
const settled = (left: Left): Promise<unknown> => left.ask("tools/list");

describe("a caller that leaves before its task has a name", () => {
  it.each([
    ["knows tasks", {}],
    ["knows none", unaware],
  ] as const)("and %s is let go at once, and the task is cancelled when it has one", async (_, more) => {
    const left = await unanswered({}, more);
    expect(await left.leave()).toMatchObject({ kind: "cancelled", message: "Cancelled: enough" });
    await settled(left);
    left.end.make("late");
    left.answer({ result: { task: NAMED } });
    await left.end.peer.until(({ method }) => method === "tasks/cancel");
    expect(left.end.last("tasks/cancel")).toEqual({ taskId: "late" });
    expect(left.end.all("notifications/cancelled")).toEqual([]);
    expect(left.end.all("tasks/cancel")).toHaveLength(1);
  });

  it("leaves it running where the end has not said that it can cancel", async () => {
    const left = await unanswered({ capabilities: NO_CANCEL });
    await left.leave();
    left.answer({ result: { task: NAMED } });
    await settled(left);
    expect(left.end.all("tasks/cancel")).toEqual([]);
    expect(left.end.all("notifications/cancelled")).toEqual([]);
  });

  it.each([
    ["a result", { result: { content: [] } }],
    ["an error", { error: { code: -32603, message: "Broken" } }],
  ])("owes nothing where the end answers with %s", async (_, answer) => {
    const left = await unanswered();
    await left.leave();
    left.answer(answer);
    left.answer(answer);
    await settled(left);
    expect(left.end.all("tasks/cancel")).toEqual([]);
  });

  it("is treated alike where it was its patience that ended", async () => {
    const left = await unanswered({}, { timeouts: { idleMs: 20 } });
    expect(await left.outcome).toMatchObject({ kind: "timeout" });
    left.answer({ result: { task: NAMED } });
    await left.end.peer.until(({ method }) => method === "tasks/cancel");
    expect(left.end.all("notifications/cancelled")).toEqual([]);
  });

  it("is not waited for longer than a minute", async () => {
    const left = await unanswered();
    vi.useFakeTimers();
    await left.leave();
    await vi.advanceTimersByTimeAsync(60_000);
    vi.useRealTimers();
    left.answer({ result: { task: NAMED } });
    await settled(left);
    expect(left.end.all("tasks/cancel")).toEqual([]);
  });

  it("is asked no more", async () => {
    const asked = vi.fn();
    const left = await unanswered({}, { ask: asked });
    await left.leave();
    const { answer } = left.end.ask(undefined, "elicitation/create", FORM);
    expect(await answer).toHaveProperty("error");
    expect(asked).not.toHaveBeenCalled();
  });
});

it("a caller that leaves while the name is on its way gets no task either", async () => {
  const stop = new AbortController();
  const sent: Request[] = [];
  const home: Context = {
    revision: NEWEST.name,
    caller: { capabilities: KNOWS },
    signal: new AbortController().signal,
    notify: () => undefined,
    ask: () => Promise.reject(new Error("Nobody is asked")),
  };
  const host = {
    home,
    offered: () => ({ tasks: { cancel: {} } }),
    send: async (request: Request): Promise<Result> => {
      sent.push(request);
      stop.abort(new Error("enough"));
      return { task: NAMED };
    },
  } as unknown as TaskBackHost;
  const tasks = new SessionTaskBack(host);
  const call = tasks.call(
    { method: "tools/call", params: { name: "job" } },
    { ...home, signal: stop.signal },
    "required",
  );
  await expect(call).rejects.toThrow("enough");
  expect(sent.slice(1)).toEqual([{ method: "tasks/cancel", params: { taskId: "late" } }]);
});
