// Limits of tasks: who may see a task, how many there may be and for how long, and subscriptions to tasks.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { eventually } from "../../test/support/waiting.ts";
import { fakeClient, type FakeClient } from "../../test/support/handlers/fake-client.ts";
import {
  gate,
  getTask,
  startTask,
  taskClient,
  QUESTION,
  jobServer,
  startJob,
  untilStatus,
} from "../../test/support/tasks/task-client.ts";
import { TASKS_EXTENSION } from "../protocol/tasks.ts";
import { createServer } from "./index.ts";

it("the owner of a task is the only one who can tell whether it exists", async () => {
  const { run } = gate();
  const server = jobServer(run);
  const ada = taskClient(server, "ada");
  const id = await startTask(ada);
  const params = { taskId: id, inputResponses: {} };
  for (const other of [taskClient(server, "bob"), taskClient(server)]) {
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
      const unknown = await other.callError(method, { ...params, taskId: "0".repeat(32) });
      const foreign = await other.callError(method, params);
      expect(foreign.code).toBe(-32602);
      expect(foreign.message).toBe(unknown.message);
      expect(Object.keys(foreign.data as object)).toEqual(Object.keys(unknown.data as object));
    }
    await other.call("subscriptions/listen", { notifications: { taskIds: [id] } });
    expect(other.notifications).toEqual([
      { method: "notifications/subscriptions/acknowledged", params: { notifications: {} } },
    ]);
  }
  expect(await getTask(ada, id)).toMatchObject({ status: "working" });
  await server.close();
});

it("the owner of a task must have declared tasks, for every method", async () => {
  const server = jobServer(() => "done");
  const caller = fakeClient(server);
  for (const [method, params] of [
    ["tasks/get", { taskId: "x" }],
    ["tasks/update", { taskId: "x", inputResponses: {} }],
    ["tasks/cancel", { taskId: "x" }],
    ["subscriptions/listen", { notifications: { taskIds: ["x"] } }],
  ] as const) {
    expect(await caller.callError(method, params), method).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } },
    });
  }
});

it.each([5, null, undefined, {}, ""])("the owner of a task must send a valid id, not %j", async (taskId) => {
  const caller = taskClient(jobServer(() => "done"));
  expect(await caller.callError("tasks/get", { taskId })).toMatchObject({ code: -32602 });
});

it("the number of tasks is limited: above it, optional tasks are plain calls and required tasks are refused", async () => {
  const { run, open } = gate();
  const server = createServer({ name: "a", version: "1", tasks: { max: 3, maxPerCaller: 2 } })
    .tool("job", { task: "optional" }, run)
    .tool("must", { task: "required" }, run);
  const [ada, bob, eve] = ["ada", "bob", "eve"].map((name) => taskClient(server, name)) as [
    FakeClient,
    FakeClient,
    FakeClient,
  ];
  const kept = [await startTask(ada), await startTask(ada)];
  const plain = startJob(ada);
  expect(await ada.callError("tools/call", { name: "must" })).toMatchObject({ data: { kind: "rate_limited" } });
  expect(await startJob(bob)).toMatchObject({ resultType: "task" });
  expect(await eve.callError("tools/call", { name: "must" })).toMatchObject({ data: { kind: "rate_limited" } });
  open();
  expect(await plain).toMatchObject({ resultType: "complete" });
  // Finished tasks count until they expire.
  for (const id of kept) await untilStatus(ada, id, "completed");
  expect(await ada.callError("tools/call", { name: "must" })).toMatchObject({ data: { kind: "rate_limited" } });
  await server.close();
  expect(await startJob(ada)).toMatchObject({ resultType: "task" });
  await server.close();
});

it("the number of tasks may be a thousand at once", async () => {
  const { run, open } = gate();
  const server = jobServer(run, "required", { maxPerCaller: 1_000 });
  const caller = taskClient(server);
  const ids = await Promise.all(Array.from({ length: 1_000 }, () => startTask(caller)));
  expect(new Set(ids).size).toBe(1_000);
  expect(await caller.callError("tools/call", { name: "job" })).toMatchObject({ data: { kind: "rate_limited" } });
  open();
  for (const id of ids) await untilStatus(caller, id, "completed");
  await server.close();
});

describe("the lifetime of a task", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("the lifetime of a task aborts a running task and forgets a finished one", async () => {
    const { run, open, signals } = gate();
    const server = jobServer(run, { support: "optional", ttlMs: 10_000 });
    const caller = taskClient(server);
    const running = await startTask(caller);
    vi.advanceTimersByTime(5_000);
    const over = await startTask(caller);
    await caller.call("tasks/cancel", { taskId: over });
    vi.advanceTimersByTime(4_999);
    expect(await getTask(caller, running)).toMatchObject({ status: "working" });
    vi.advanceTimersByTime(1);
    // Unknown even before the next sweep.
    expect(await caller.callError("tasks/get", { taskId: running })).toMatchObject({ code: -32602 });
    expect(signals[0]?.aborted).toBe(true);
    expect(await getTask(caller, over)).toMatchObject({ status: "cancelled" });
    vi.advanceTimersByTime(6_000);
    expect(await caller.callError("tasks/get", { taskId: over })).toMatchObject({ code: -32602 });
    // The sweeper has stopped.
    expect(vi.getTimerCount()).toBe(0);
    open();
  });

  it("the lifetime of a task is limited by the server", async () => {
    const { run } = gate();
    const server = jobServer(run, { support: "optional", ttlMs: 10_000 }, { maxTtlMs: 1_000 });
    expect(await startJob(taskClient(server))).toMatchObject({ ttlMs: 1_000, pollIntervalMs: 1_000 });
    const other = jobServer(run, "optional", { ttlMs: 7_000, pollIntervalMs: 50 });
    expect(await startJob(taskClient(other))).toMatchObject({ ttlMs: 7_000, pollIntervalMs: 50 });
    expect(await startJob(taskClient(jobServer(run)))).toMatchObject({ ttlMs: 3_600_000, pollIntervalMs: 1_000 });
    await Promise.all([server.close(), other.close()]);
  });

  it("the lifetime of a task is reported to subscribers when it ends", async () => {
    const { run } = gate();
    const caller = taskClient(jobServer(run, { support: "optional", ttlMs: 1_000 }));
    const taskId = await startTask(caller);
    const subscription = caller.call("subscriptions/listen", { notifications: { taskIds: [taskId] } });
    await eventually(() => expect(caller.notifications).toHaveLength(2));
    vi.advanceTimersByTime(2_000);
    await subscription;
    expect(caller.notifications.at(-1)).toMatchObject({
      params: { status: "failed", error: { data: { kind: "timeout" } } },
    });
  });

  it("the lifetime of a task counts a tool that ignores its signal until it returns", async () => {
    const { run, open } = gate(true);
    const server = jobServer(run, { support: "required", ttlMs: 1_000 }, { maxPerCaller: 2 });
    const caller = taskClient(server);
    for (const taskId of [await startTask(caller), await startTask(caller)])
      await caller.call("tasks/cancel", { taskId });
    vi.advanceTimersByTime(2_000);
    expect(await caller.callError("tools/call", { name: "job" })).toMatchObject({ data: { kind: "rate_limited" } });
    open();
    await eventually(async () => expect(await startJob(caller)).toMatchObject({ resultType: "task" }));
    await server.close();
  });
});

it("a subscription to tasks starts with the state of each, reports every change, and ends with the last task", async () => {
  const caller = taskClient(jobServer(async (_args, { ask }) => (await ask.elicit(QUESTION, { key: "q" })).action));
  const [first, second] = [await startTask(caller), await startTask(caller)];
  await untilStatus(caller, first, "input_required");
  const subscription = caller.call("subscriptions/listen", {
    notifications: { taskIds: [first, "none", second, first], toolsListChanged: false },
  });
  await eventually(() => expect(caller.notifications).toHaveLength(3));
  expect(caller.notifications[0]).toEqual({
    method: "notifications/subscriptions/acknowledged",
    params: { notifications: { taskIds: [first, second] } },
  });
  const { resultType: _type, _meta, ...state } = await getTask(caller, first);
  expect(caller.notifications[1]).toEqual({ method: "notifications/tasks", params: state });
  for (const taskId of [first, second]) {
    await caller.call("tasks/update", { taskId, inputResponses: { q: { action: "accept" } } });
  }
  expect(await subscription).toMatchObject({ resultType: "complete" });
  const received = caller.notifications.slice(3).map(({ params }) => [params?.["taskId"], params?.["status"]]);
  expect(received.filter(([id]) => id === first)).toEqual([
    [first, "working"],
    [first, "completed"],
  ]);
  expect(received.filter(([id]) => id === second).at(-1)).toEqual([second, "completed"]);
  expect(caller.notifications.at(-1)?.params).toMatchObject({ result: { content: [{ text: "accept" }] } });
});

it("a subscription to tasks goes on if it also covers something else, until its caller leaves", async () => {
  const { run, open } = gate();
  const server = jobServer(run);
  const caller = taskClient(server);
  const taskId = await startTask(caller);
  const subscription = caller.call("subscriptions/listen", {
    notifications: { taskIds: [taskId], toolsListChanged: true },
  });
  await eventually(() => expect(caller.notifications).toHaveLength(2));
  open();
  await eventually(() => expect(caller.notifications.at(-1)?.params).toMatchObject({ status: "completed" }));
  server.tool("another", {}, () => "x");
  await eventually(() => expect(caller.notifications.at(-1)?.method).toBe("notifications/tools/list_changed"));
  caller.abort(new Error("gone"));
  expect(await subscription).toMatchObject({ resultType: "complete" });
});

it("a subscription to tasks is granted nothing by a server without tasks", async () => {
  const caller = taskClient(createServer({ name: "a", version: "1" }).tool("plain", {}, () => "x"));
  await caller.call("subscriptions/listen", { notifications: { taskIds: ["x"] } });
  expect(caller.notifications).toEqual([
    { method: "notifications/subscriptions/acknowledged", params: { notifications: {} } },
  ]);
  expect(await caller.callError("tasks/get", { taskId: "x" })).toMatchObject({ code: -32601 });
});
