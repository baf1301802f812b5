// Input requests and notifications of a session-style server's task, and callers that do not know tasks and wait for
// one, with a fake server. No caller sees what belongs to another.

import { describe, expect, it, vi } from "vitest";
import { desk, FORM, KNOWS, silence, TEXT, unaware, UNKNOWN, RELATED } from "../../../test/support/tasks/session-task-server.ts";
import type { Request } from "../../core/handler.ts";
import { TASKS_EXTENSION } from "../../protocol/tasks.ts";

type Loose = { readonly [key: string]: unknown };

describe("an input request of a task", () => {
  it("is in the task under a unique key once `tasks/result` is pending", async () => {
    const { end, start, when, ask, get } = await desk();
    const id = await start();
    end.move(id, { status: "input_required" });
    const looked = get(id);
    await end.peer.until(({ method }) => method === "tasks/result");
    const first = end.ask(id, "elicitation/create", FORM);
    expect(await looked).toMatchObject({
      status: "input_required",
      inputRequests: { 1: { method: "elicitation/create", params: FORM } },
    });
    expect(JSON.stringify(await looked)).not.toContain(RELATED);
    await expect(ask("tasks/update", { taskId: id, inputResponses: { 1: 5 } })).rejects.toMatchObject(UNKNOWN);
    await ask("tasks/update", { taskId: id, inputResponses: { 1: { action: "decline" }, other: {} } });
    expect(await first.answer).toMatchObject({
      result: { action: "decline", _meta: { [RELATED]: { taskId: id } } },
    });
    const second = end.ask(id, "roots/list");
    expect((await when(id, "input_required"))["inputRequests"]).toEqual({ 2: { method: "roots/list", params: {} } });
    const answers = { 1: { action: "accept" }, 2: { roots: [] } };
    await ask("tasks/update", { taskId: id, inputResponses: answers });
    expect(await second.answer).toMatchObject({ result: { roots: [] } });
    // A status of input_required without a request cannot be answered.
    expect(await get(id)).toMatchObject({ status: "working" });
    end.finish(id, "completed", { result: TEXT });
    expect(await when(id, "completed")).toMatchObject({ result: TEXT });
    expect(end.all("tasks/result")).toHaveLength(1);
    expect(end.all("notifications/cancelled")).toEqual([]);
  });

  it("may come without a status, and together with the answer to the call", async () => {
    const { end, ask, when } = await desk({
      answer: ({ method, id }) => {
        if (method !== "tools/call") return undefined;
        end.peer.send({ id, result: { task: end.make() } });
        end.ask("task-1", "roots/list");
        return silence;
      },
    });
    await ask("tools/call", { name: "job" });
    expect(await when("task-1", "input_required")).toMatchObject({ inputRequests: { 1: { method: "roots/list" } } });
    expect(end.all("tasks/result")).toEqual([]);
  });

  it("is cancelled by the server, and when the task finishes", async () => {
    const { end, start, when, ask } = await desk();
    const id = await start();
    const { id: requestId } = end.ask(id, "roots/list");
    await when(id, "input_required");
    end.peer.send({ method: "notifications/cancelled", params: { requestId } });
    await when(id, "working");
    const { answer } = end.ask(id, "roots/list");
    await when(id, "input_required");
    await ask("tasks/cancel", { taskId: id });
    expect(await answer).toMatchObject({ error: { code: -32603 } });
    expect(await end.ask(id, "roots/list").answer).toMatchObject({ error: {} });
  });

  it("is refused if the caller has not declared the capability", async () => {
    const { end, start, get } = await desk();
    const id = await start({ caller: { capabilities: { extensions: { [TASKS_EXTENSION]: {} } } } });
    expect(await end.ask(id, "elicitation/create", FORM).answer).toMatchObject({ error: { code: -32602 } });
    expect(await end.ask(id, "roots/list").answer).toMatchObject({ error: { code: -32601 } });
    expect(await get(id)).toMatchObject({ status: "working" });
  });

  it("is refused if the task is unknown and several clients share the server", async () => {
    const { end, start } = await desk();
    for (const origin of [{}, {}]) await start({ caller: { capabilities: KNOWS, origin } });
    expect(await end.ask("none", "roots/list").answer).toMatchObject({
      error: { message: expect.stringContaining("Several clients share") as string },
    });
    // A running task counts as a call in flight, however old it is.
    expect(await end.ask(undefined, "roots/list").answer).toMatchObject({ error: {} });
  });

  it("does not cause a busy loop if `tasks/result` does not block", async () => {
    const error = { code: -32600, message: "Not finished yet" };
    const { end, start, get } = await desk({
      answer: ({ method }) => (method === "tasks/result" ? { error } : undefined),
    });
    const id = await start();
    end.move(id, { status: "input_required" });
    expect(await get(id)).toMatchObject({ status: "working" });
    await get(id);
    expect(end.all("tasks/result").length).toBeLessThanOrEqual(2);
    // The error was not the outcome of the task.
    end.move(id, { status: "working" });
    expect(await get(id)).not.toHaveProperty("error");
  });
});

describe("a subscription to tasks", () => {
  it("begins with the current states, gets changes with their details, and ends with the last task", async () => {
    const { end, start, listen } = await desk({ pollInterval: 60_000 });
    const [one, two] = [await start(), await start()];
    const { heard, over } = listen(one, two, "none");
    await vi.waitFor(() => expect(heard).toHaveLength(3));
    expect(heard[0]).toMatchObject({ notifications: { taskIds: [one, two] } });
    expect(heard.slice(1)).toMatchObject([
      { method: "notifications/tasks", taskId: one, status: "working", ttlMs: 60_000 },
      { taskId: two, status: "working" },
    ]);
    end.move(one, { statusMessage: "half" });
    end.tell(one);
    end.finish(one, "completed", { result: TEXT });
    end.tell(one);
    end.tell(one);
    await vi.waitFor(() => expect(heard).toHaveLength(5));
    expect(heard.slice(3)).toMatchObject([
      { taskId: one, status: "working", statusMessage: "half" },
      { taskId: one, status: "completed", result: TEXT },
    ]);
    const { answer } = end.ask(two, "roots/list");
    await vi.waitFor(() => expect(heard).toHaveLength(6));
    expect(heard[5]).toMatchObject({ taskId: two, status: "input_required", inputRequests: { 1: {} } });
    end.move(two, { status: "cancelled" });
    end.tell(two);
    expect(await over).toMatchObject({ resultType: "complete" });
    expect(heard.at(-1)).toMatchObject({ taskId: two, status: "cancelled" });
    expect(await answer).toMatchObject({ error: {} });
    for (const state of heard) expect(state).not.toHaveProperty("resultType");
    expect(end.all("tasks/get").map(({ params }) => params)).toEqual([{ taskId: "none" }]);
  });

  it("polls a server that sends no status, and only while it is open", async () => {
    const { end, start, listen } = await desk();
    const id = await start();
    vi.useFakeTimers();
    const { heard, stop, over } = listen(id);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(heard).toHaveLength(2);
    expect(end.all("tasks/get")).toHaveLength(10);
    end.move(id, { statusMessage: "half" });
    await vi.advanceTimersByTimeAsync(100);
    expect(heard[2]).toMatchObject({ status: "working", statusMessage: "half" });
    stop.abort();
    await over;
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });

  it("may include changed lists, and then goes on when the tasks are finished", async () => {
    const { end, ask, start } = await desk({
      capabilities: { tools: { listChanged: true }, tasks: { requests: { tools: { call: {} } } } },
    });
    const id = await start();
    const heard: string[] = [];
    const stop = new AbortController();
    const listening = ask(
      "subscriptions/listen",
      { notifications: { toolsListChanged: true, taskIds: [id] } },
      { signal: stop.signal, notify: ({ method }) => void heard.push(method) },
    );
    await vi.waitFor(() => expect(heard).toHaveLength(2));
    end.move(id, { status: "cancelled" });
    end.tell(id);
    await vi.waitFor(() => expect(heard).toHaveLength(3));
    end.peer.send({ method: "notifications/tools/list_changed" });
    await vi.waitFor(() => expect(heard.at(-1)).toBe("notifications/tools/list_changed"));
    stop.abort();
    await listening;
  });

  it("gets no messages outside calls", async () => {
    const { end, start, listen, told } = await desk();
    const { heard, stop, over } = listen(await start());
    await vi.waitFor(() => expect(heard).toHaveLength(2));
    end.peer.send({ method: "notifications/message", params: { level: "info", data: "hello" } });
    await vi.waitFor(() => expect(told).toHaveLength(1));
    expect(heard).toHaveLength(2);
    stop.abort();
    await over;
  });
});

describe("a caller that does not know tasks", () => {
  it("waits for a tool that always runs as a task, and is asked during the call", async () => {
    const { end, ask } = await desk();
    const questions: Request[] = [];
    const call = ask(
      "tools/call",
      { name: "job" },
      {
        ...unaware,
        ask: async (question) => {
          questions.push(question);
          return { action: "accept", content: { name: "Ada" } };
        },
      },
    );
    await end.peer.until(({ method }) => method === "tasks/get");
    end.move("task-1", { status: "input_required" });
    end.tell("task-1");
    await end.peer.until(({ method }) => method === "tasks/result");
    const { answer } = end.ask("task-1", "elicitation/create", FORM);
    expect(await answer).toMatchObject({ result: { action: "accept", content: { name: "Ada" } } });
    end.finish("task-1", "completed", { result: TEXT });
    end.tell("task-1");
    expect(await call).toEqual({ ...TEXT, resultType: "complete" });
    expect(questions).toMatchObject([{ method: "elicitation/create", params: FORM }]);
    expect(end.last("tools/call")).toHaveProperty("task");
  });

  it("gets the error of the task, and cancels the task with the call", async () => {
    const { end, ask } = await desk();
    const failing = ask("tools/call", { name: "job" }, unaware);
    await end.peer.until(({ method }) => method === "tasks/get");
    end.finish("task-1", "failed", { error: { code: -31_001, message: "Out of order" } });
    end.tell("task-1");
    await expect(failing).rejects.toMatchObject({ code: -31_001, message: "Out of order" });
    const stop = new AbortController();
    const held = ask("tools/call", { name: "job" }, { ...unaware, signal: stop.signal });
    await vi.waitFor(() => expect(end.last("tasks/get")).toEqual({ taskId: "task-2" }));
    stop.abort(new Error("enough"));
    await expect(held).rejects.toThrow();
    await vi.waitFor(() => expect(end.all("tasks/cancel")).toHaveLength(1));
  });

  it("respects the poll interval, and sends one poll at a time", async () => {
    const { end, ask } = await desk({ pollInterval: 5_000 });
    vi.useFakeTimers();
    try {
      const call = ask("tools/call", { name: "job" }, unaware);
      await vi.advanceTimersByTimeAsync(4_900);
      expect(end.all("tools/call")).toHaveLength(1);
      expect(end.all("tasks/get")).toHaveLength(0);
      await vi.advanceTimersByTimeAsync(200);
      expect(end.all("tasks/get")).toHaveLength(1);
      await vi.advanceTimersByTimeAsync(5_000);
      expect(end.all("tasks/get")).toHaveLength(2);
      end.finish("task-1", "completed", { result: TEXT });
      await vi.advanceTimersByTimeAsync(5_000);
      expect(await call).toEqual({ ...TEXT, resultType: "complete" });
    } finally {
      vi.useRealTimers();
    }
  });

  it("gets progress while it waits", async () => {
    const { end, ask, told } = await desk();
    const call = ask("tools/call", { name: "job", _meta: { progressToken: "mine" } }, unaware);
    await end.peer.until(({ method }) => method === "tasks/get");
    const { progressToken } = end.last("tools/call")["_meta"] as Loose;
    const progress = (n: number): void =>
      end.peer.send({ method: "notifications/progress", params: { progressToken, progress: n } });
    progress(1);
    progress(2);
    await vi.waitFor(() => expect(told).toHaveLength(2));
    end.finish("task-1", "completed", { result: TEXT });
    end.tell("task-1");
    await call;
    progress(3);
    await ask("server/discover");
    expect(told.map(({ params }) => params?.["progress"])).toEqual([1, 2]);
  });
});

it("sends no notifications to a call that was answered with a task", async () => {
  const { end, ask, get, told } = await desk();
  const made = await ask("tools/call", { name: "job", _meta: { progressToken: "mine" } });
  const { progressToken } = end.last("tools/call")["_meta"] as Loose;
  end.peer.send({ method: "notifications/progress", params: { progressToken, progress: 1 } });
  await get(made["taskId"] as string);
  expect(told).toEqual([]);
});
