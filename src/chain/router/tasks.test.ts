// Tasks through the router: their ids name their upstreams, so that each request goes to the right one.

import { expect, it } from "vitest";
import { connect } from "../../client/index.ts";
import type { Params } from "../../core/handler.ts";
import { invalidParams } from "../../protocol/errors.ts";
import { hasTasks, TASKS_EXTENSION } from "../../protocol/tasks.ts";
import { createServer } from "../../server/index.ts";
import { fakeClient } from "../../../test/support/handlers/fake-client.ts";
import { scriptedServer, toolList } from "../../../test/support/handlers/scripted-server.ts";
import { gate, getTask, TASK_CAPABILITIES, untilStatus } from "../../../test/support/tasks/task-client.ts";
import { createRouter } from "./router.ts";

/** An upstream with one task, `1`, whose result links to a resource. */
function taskServer(who: string, more: object = {}): ReturnType<typeof scriptedServer> {
  const task = { taskId: "1", status: "working", who };
  const result = { content: [{ type: "resource_link", uri: "file:///x", name: "x" }] };
  const known = (params: Params): Params => {
    if (params["taskId"] !== "1") throw invalidParams("Unknown task", { taskId: params["taskId"] });
    return params;
  };
  return scriptedServer(
    {
      "tools/list": toolList("job", `job-${who}`),
      "tools/call": { resultType: "task", ...task },
      "tasks/get": (params) => known(params) && { resultType: "complete", ...task, status: "completed", result },
      "tasks/update": (params) => known(params) && { resultType: "complete" },
      "tasks/cancel": (params) => known(params) && { resultType: "complete" },
      "tasks/result": (params) => known(params) && result,
      "tasks/list": { tasks: [task] },
      "resources/list": { resources: [{ uri: "file:///x", name: "x" }] },
      ...more,
    },
    { extensions: { [TASKS_EXTENSION]: {} } },
  );
}

it("tasks of many upstreams have ids that name their upstreams, which get the requests", async () => {
  const [a, b] = [taskServer("a"), taskServer("b")];
  const caller = fakeClient(createRouter({ a, b }));
  await caller.call("resources/list");
  expect(await caller.call("tools/call", { name: "b_job" })).toEqual({
    resultType: "task",
    taskId: "b.1",
    status: "working",
    who: "b",
  });
  const linked = { content: [{ type: "resource_link", uri: "b.file:///x", name: "x" }] };
  expect(await caller.call("tasks/get", { taskId: "b.1" })).toMatchObject({
    taskId: "b.1",
    who: "b",
    result: linked,
  });
  expect(await caller.call("tasks/update", { taskId: "b.1", inputResponses: { k: {} } })).toEqual({
    resultType: "complete",
  });
  expect(await caller.call("tasks/cancel", { taskId: "b.1" })).toEqual({ resultType: "complete" });
  expect(await caller.call("tasks/result", { taskId: "b.1" })).toEqual(linked);
  const about = b.requests.filter(({ method }) => method.startsWith("tasks/"));
  expect(about.map(({ params }) => params)).toEqual([
    { taskId: "1" },
    { taskId: "1", inputResponses: { k: {} } },
    { taskId: "1" },
    { taskId: "1" },
  ]);
  expect(a.requests.some(({ method }) => method.startsWith("tasks/"))).toBe(false);
});

it("tasks of many upstreams are refused by the caller's id if it names no upstream or no task", async () => {
  const caller = fakeClient(createRouter({ a: taskServer("a") }));
  for (const taskId of ["1", "b.1", ""]) {
    const error = await caller.callError("tasks/get", { taskId });
    expect(error.data).toEqual({ kind: "invalid_params", taskId });
  }
  expect((await caller.callError("tasks/get", { taskId: "a.2" })).data).toEqual({
    kind: "invalid_params",
    taskId: "a.2",
  });
});

it("tasks of many upstreams are listed together", async () => {
  const broken = taskServer("c", {
    "tasks/list": () => {
      throw new Error("out of order");
    },
  });
  const router = createRouter({ a: taskServer("a"), b: taskServer("b"), none: scriptedServer({}), broken });
  const result = await fakeClient(router).call("tasks/list");
  expect(result["tasks"]).toEqual([
    { taskId: "a.1", status: "working", who: "a" },
    { taskId: "b.1", status: "working", who: "b" },
  ]);
  expect(result._meta?.["catenary/unavailable"]).toEqual([
    { upstream: "broken", message: "The upstream broken failed: out of order" },
  ]);
  expect((await fakeClient(createRouter({ none: scriptedServer({}) })).callError("tasks/list")).kind).toBe(
    "method_not_found",
  );
});

it("tasks of many upstreams notify subscribers with the same ids", async () => {
  const a = taskServer("a", {
    "subscriptions/listen": async ({ notifications }: Params, context: { notify(event: object): void }) => {
      context.notify({ method: "notifications/subscriptions/acknowledged", params: { notifications } });
      context.notify({ method: "notifications/tasks", params: { taskId: "1", status: "completed", result: {} } });
      return { resultType: "complete" };
    },
  });
  const b = taskServer("b");
  const caller = fakeClient(createRouter({ a, b }));
  const filter = { taskIds: ["a.1"] };
  expect(await caller.call("subscriptions/listen", { notifications: filter })).toEqual({ resultType: "complete" });
  expect(caller.notifications).toEqual([
    { method: "notifications/subscriptions/acknowledged", params: { notifications: filter } },
    { method: "notifications/tasks", params: { taskId: "a.1", status: "completed", result: {} } },
  ]);
  expect(b.requests).toEqual([]);
  const error = await caller.callError("subscriptions/listen", { notifications: { taskIds: ["unknown.1"] } });
  expect(error.data).toEqual({ kind: "invalid_params", taskId: "unknown.1" });
});

it("tasks of real servers run and finish through the router", async () => {
  const { run, open } = gate();
  const make = (name: string): ReturnType<typeof createServer> =>
    createServer({ name, version: "1" }).tool("job", { task: "optional" }, run);
  const router = createRouter({ a: make("a"), b: make("b") });
  const caller = fakeClient(router, { caller: { capabilities: TASK_CAPABILITIES } });
  const { capabilities } = await caller.call("server/discover");
  expect(hasTasks(capabilities)).toBe(true);
  const { taskId } = await caller.call("tools/call", { name: "b_job" });
  expect(taskId).toMatch(/^b\../);
  expect(await getTask(caller, taskId as string)).toMatchObject({ taskId, status: "working" });
  open();
  const done = await untilStatus(caller, taskId as string, "completed");
  expect(done).toMatchObject({ taskId, result: { content: [{ type: "text", text: "done" }] } });
});

it("tasks of real servers work with a client as with one server", async () => {
  const job = createServer({ name: "a", version: "1" }).tool("job", { task: "required" }, async () => "done");
  const other = createServer({ name: "b", version: "1" }).tool("other", {}, () => "x");
  const client = await connect(createRouter({ a: job, b: other }));
  const handle = await client.callToolAsTask("job");
  expect(handle.id).toMatch(/^a\../);
  expect(await handle.result()).toMatchObject({ content: [{ type: "text", text: "done" }] });
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["job", "other"]);
  await client.close();
});
