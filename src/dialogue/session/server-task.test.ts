// Input requests and notifications of a session-style server's task, and callers that do not know tasks and wait for
// one, with a fake server. No caller sees what belongs to another.

import { expect, it, vi } from "vitest";
import { eventually } from "../../../test/support/waiting.ts";
import {
  sessionTaskFixture,
  FORM,
  TASK_CAPABILITIES,
  NO_ANSWER,
  TEXT,
  withoutTasks,
  UNKNOWN,
  RELATED,
} from "../../../test/support/tasks/session-task-server.ts";
import type { Request } from "../../core/handler.ts";
import { fakeCaller } from "../../../test/support/handlers/fake-client.ts";
import { TASKS_EXTENSION } from "../../protocol/tasks.ts";

type Loose = { readonly [key: string]: unknown };

it("an input request of a task is in the task under a unique key once `tasks/result` is pending", async () => {
  const { server, start, untilStatus, request, get } = await sessionTaskFixture();
  const id = await start();
  server.update(id, { status: "input_required" });
  const looked = get(id);
  await server.peer.until(({ method }) => method === "tasks/result");
  const first = server.requestClient(id, "elicitation/create", FORM);
  expect(await looked).toMatchObject({
    status: "input_required",
    inputRequests: { 1: { method: "elicitation/create", params: FORM } },
  });
  expect(JSON.stringify(await looked)).not.toContain(RELATED);
  await expect(request("tasks/update", { taskId: id, inputResponses: { 1: 5 } })).rejects.toMatchObject(UNKNOWN);
  await request("tasks/update", { taskId: id, inputResponses: { 1: { action: "decline" }, other: {} } });
  expect(await first.answer).toMatchObject({
    result: { action: "decline", _meta: { [RELATED]: { taskId: id } } },
  });
  const second = server.requestClient(id, "roots/list");
  expect((await untilStatus(id, "input_required"))["inputRequests"]).toEqual({
    2: { method: "roots/list", params: {} },
  });
  const answers = { 1: { action: "accept" }, 2: { roots: [] } };
  await request("tasks/update", { taskId: id, inputResponses: answers });
  expect(await second.answer).toMatchObject({ result: { roots: [] } });
  // A status of input_required without a request cannot be answered.
  expect(await get(id)).toMatchObject({ status: "working" });
  server.finish(id, "completed", { result: TEXT });
  expect(await untilStatus(id, "completed")).toMatchObject({ result: TEXT });
  expect(server.received("tasks/result")).toHaveLength(1);
  expect(server.received("notifications/cancelled")).toEqual([]);
});

it("an input request of a task may come without a status, and together with the answer to the call", async () => {
  const { server, request, untilStatus } = await sessionTaskFixture({
    answer: ({ method, id }) => {
      if (method !== "tools/call") return undefined;
      server.peer.send({ id, result: { task: server.createTask() } });
      server.requestClient("task-1", "roots/list");
      return NO_ANSWER;
    },
  });
  await request("tools/call", { name: "job" });
  expect(await untilStatus("task-1", "input_required")).toMatchObject({
    inputRequests: { 1: { method: "roots/list" } },
  });
  expect(server.received("tasks/result")).toEqual([]);
});

it("an input request of a task is cancelled by the server, and when the task finishes", async () => {
  const { server, start, untilStatus, request } = await sessionTaskFixture();
  const id = await start();
  const { id: requestId } = server.requestClient(id, "roots/list");
  await untilStatus(id, "input_required");
  server.peer.send({ method: "notifications/cancelled", params: { requestId } });
  await untilStatus(id, "working");
  const { answer } = server.requestClient(id, "roots/list");
  await untilStatus(id, "input_required");
  await request("tasks/cancel", { taskId: id });
  expect(await answer).toMatchObject({ error: { code: -32603 } });
  expect(await server.requestClient(id, "roots/list").answer).toMatchObject({ error: {} });
});

it("an input request of a task is refused if the caller has not declared the capability", async () => {
  const { server, start, get } = await sessionTaskFixture();
  const id = await start({ caller: fakeCaller({ capabilities: { extensions: { [TASKS_EXTENSION]: {} } } }) });
  expect(await server.requestClient(id, "elicitation/create", FORM).answer).toMatchObject({
    error: { code: -32602 },
  });
  expect(await server.requestClient(id, "roots/list").answer).toMatchObject({ error: { code: -32601 } });
  expect(await get(id)).toMatchObject({ status: "working" });
});

it("an input request of a task is refused if the task is unknown and several clients share the server", async () => {
  const { server, start } = await sessionTaskFixture();
  for (const key of ["one", "other"]) await start({ caller: fakeCaller({ capabilities: TASK_CAPABILITIES, key }) });
  expect(await server.requestClient("none", "roots/list").answer).toMatchObject({
    error: { message: expect.stringContaining("Several clients share") as string },
  });
  // A running task counts as a call in flight, however old it is.
  expect(await server.requestClient(undefined, "roots/list").answer).toMatchObject({ error: {} });
});

it("an input request of a task does not cause a busy loop if `tasks/result` does not block", async () => {
  const error = { code: -32600, message: "Not finished yet" };
  const { server, start, get } = await sessionTaskFixture({
    answer: ({ method }) => (method === "tasks/result" ? { error } : undefined),
  });
  const id = await start();
  server.update(id, { status: "input_required" });
  expect(await get(id)).toMatchObject({ status: "working" });
  await get(id);
  expect(server.received("tasks/result").length).toBeLessThanOrEqual(2);
  // The error was not the outcome of the task.
  server.update(id, { status: "working" });
  expect(await get(id)).not.toHaveProperty("error");
});

it("a subscription to tasks begins with the current states, gets changes with their details, and ends with the last task", async () => {
  const { server, start, subscribe } = await sessionTaskFixture({ pollInterval: 60_000 });
  const [one, two] = [await start(), await start()];
  const { received, done } = subscribe(one, two, "none");
  await eventually(() => expect(received).toHaveLength(3));
  expect(received[0]).toMatchObject({ notifications: { taskIds: [one, two] } });
  expect(received.slice(1)).toMatchObject([
    { method: "notifications/tasks", taskId: one, status: "working", ttlMs: 60_000 },
    { taskId: two, status: "working" },
  ]);
  server.update(one, { statusMessage: "half" });
  server.notify(one);
  server.finish(one, "completed", { result: TEXT });
  server.notify(one);
  server.notify(one);
  await eventually(() => expect(received).toHaveLength(5));
  expect(received.slice(3)).toMatchObject([
    { taskId: one, status: "working", statusMessage: "half" },
    { taskId: one, status: "completed", result: TEXT },
  ]);
  const { answer } = server.requestClient(two, "roots/list");
  await eventually(() => expect(received).toHaveLength(6));
  expect(received[5]).toMatchObject({ taskId: two, status: "input_required", inputRequests: { 1: {} } });
  server.update(two, { status: "cancelled" });
  server.notify(two);
  expect(await done).toMatchObject({ resultType: "complete" });
  expect(received.at(-1)).toMatchObject({ taskId: two, status: "cancelled" });
  expect(await answer).toMatchObject({ error: {} });
  for (const state of received) expect(state).not.toHaveProperty("resultType");
  expect(server.received("tasks/get").map(({ params }) => params)).toEqual([{ taskId: "none" }]);
});

it("a subscription to tasks polls a server that sends no status, and only while it is open", async () => {
  const { server, start, subscribe } = await sessionTaskFixture();
  const id = await start();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const { received, stop, done } = subscribe(id);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(received).toHaveLength(2);
  expect(server.received("tasks/get")).toHaveLength(10);
  server.update(id, { statusMessage: "half" });
  await vi.advanceTimersByTimeAsync(100);
  expect(received[2]).toMatchObject({ status: "working", statusMessage: "half" });
  stop.abort();
  await done;
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

it("a subscription to tasks may include changed lists, and then goes on when the tasks are finished", async () => {
  const { server, request, start } = await sessionTaskFixture({
    capabilities: { tools: { listChanged: true }, tasks: { requests: { tools: { call: {} } } } },
  });
  const id = await start();
  const heard: string[] = [];
  const stop = new AbortController();
  const listening = request(
    "subscriptions/listen",
    { notifications: { toolsListChanged: true, taskIds: [id] } },
    { signal: stop.signal, notify: ({ method }) => void heard.push(method) },
  );
  await eventually(() => expect(heard).toHaveLength(2));
  server.update(id, { status: "cancelled" });
  server.notify(id);
  await eventually(() => expect(heard).toHaveLength(3));
  server.peer.send({ method: "notifications/tools/list_changed" });
  await eventually(() => expect(heard.at(-1)).toBe("notifications/tools/list_changed"));
  stop.abort();
  await listening;
});

it("a subscription to tasks gets no messages outside calls", async () => {
  const { server, start, subscribe, notifications } = await sessionTaskFixture();
  const { received, stop, done } = subscribe(await start());
  await eventually(() => expect(received).toHaveLength(2));
  server.peer.send({ method: "notifications/message", params: { level: "info", data: "hello" } });
  await eventually(() => expect(notifications).toHaveLength(1));
  expect(received).toHaveLength(2);
  stop.abort();
  await done;
});

it("a caller that does not know tasks waits for a tool that always runs as a task, and is asked during the call", async () => {
  const { server, request } = await sessionTaskFixture();
  const questions: Request[] = [];
  const call = request(
    "tools/call",
    { name: "job" },
    {
      ...withoutTasks,
      ask: async (question) => {
        questions.push(question);
        return { action: "accept", content: { name: "Ada" } };
      },
    },
  );
  await server.peer.until(({ method }) => method === "tasks/get");
  server.update("task-1", { status: "input_required" });
  server.notify("task-1");
  await server.peer.until(({ method }) => method === "tasks/result");
  const { answer } = server.requestClient("task-1", "elicitation/create", FORM);
  expect(await answer).toMatchObject({ result: { action: "accept", content: { name: "Ada" } } });
  server.finish("task-1", "completed", { result: TEXT });
  server.notify("task-1");
  expect(await call).toEqual({ ...TEXT, resultType: "complete" });
  expect(questions).toMatchObject([{ method: "elicitation/create", params: FORM }]);
  expect(server.last("tools/call")).toHaveProperty("task");
});

it("a caller that does not know tasks gets the error of the task, and cancels the task with the call", async () => {
  const { server, request } = await sessionTaskFixture();
  const failing = request("tools/call", { name: "job" }, withoutTasks);
  await server.peer.until(({ method }) => method === "tasks/get");
  server.finish("task-1", "failed", { error: { code: -31_001, message: "Out of order" } });
  server.notify("task-1");
  await expect(failing).rejects.toMatchObject({ code: -31_001, message: "Out of order" });
  const stop = new AbortController();
  const held = request("tools/call", { name: "job" }, { ...withoutTasks, signal: stop.signal });
  await eventually(() => expect(server.last("tasks/get")).toEqual({ taskId: "task-2" }));
  stop.abort(new Error("enough"));
  await expect(held).rejects.toThrow();
  await eventually(() => expect(server.received("tasks/cancel")).toHaveLength(1));
});

it("a caller that does not know tasks respects the poll interval, and sends one poll at a time", async () => {
  const { server, request } = await sessionTaskFixture({ pollInterval: 5_000 });
  vi.useFakeTimers();
  try {
    const call = request("tools/call", { name: "job" }, withoutTasks);
    await vi.advanceTimersByTimeAsync(4_900);
    expect(server.received("tools/call")).toHaveLength(1);
    expect(server.received("tasks/get")).toHaveLength(0);
    await vi.advanceTimersByTimeAsync(200);
    expect(server.received("tasks/get")).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(server.received("tasks/get")).toHaveLength(2);
    server.finish("task-1", "completed", { result: TEXT });
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await call).toEqual({ ...TEXT, resultType: "complete" });
  } finally {
    vi.useRealTimers();
  }
});

it("a caller that does not know tasks gets progress while it waits", async () => {
  const { server, request, notifications } = await sessionTaskFixture();
  const call = request("tools/call", { name: "job", _meta: { progressToken: "mine" } }, withoutTasks);
  await server.peer.until(({ method }) => method === "tasks/get");
  const { progressToken } = server.last("tools/call")["_meta"] as Loose;
  const progress = (n: number): void =>
    server.peer.send({ method: "notifications/progress", params: { progressToken, progress: n } });
  progress(1);
  progress(2);
  await eventually(() => expect(notifications).toHaveLength(2));
  server.finish("task-1", "completed", { result: TEXT });
  server.notify("task-1");
  await call;
  progress(3);
  await request("server/discover");
  expect(notifications.map(({ params }) => params?.["progress"])).toEqual([1, 2]);
});

it("gets progress that comes in one chunk with the answer that creates the task", async () => {
  const { server, request, notifications } = await sessionTaskFixture({
    answer: ({ method, id, params }) => {
      if (method !== "tools/call") return undefined;
      const { progressToken } = (params as Loose)["_meta"] as Loose;
      server.peer.send(
        { id, result: { task: server.createTask("steps") } },
        { method: "notifications/progress", params: { progressToken, progress: 1 } },
      );
      return NO_ANSWER;
    },
  });
  const call = request("tools/call", { name: "job", _meta: { progressToken: "mine" } }, withoutTasks);
  await server.peer.until(({ method }) => method === "tasks/get");
  server.finish("steps", "completed", { result: TEXT });
  server.notify("steps");
  await call;
  expect(notifications.map(({ params }) => params?.["progress"])).toEqual([1]);
});

it("sends no notifications to a call that was answered with a task", async () => {
  const { server, request, get, notifications } = await sessionTaskFixture();
  const made = await request("tools/call", { name: "job", _meta: { progressToken: "mine" } });
  const { progressToken } = server.last("tools/call")["_meta"] as Loose;
  server.peer.send({ method: "notifications/progress", params: { progressToken, progress: 1 } });
  await get(made["taskId"] as string);
  expect(notifications).toEqual([]);
});
