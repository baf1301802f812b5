// Tasks of a session-style server, with a fake server: which calls become a task, their outcome, who may see them, and
// how they are cancelled. Requests reach the server in its own form; results come back in that of the newest revision.

import { expect, it, vi } from "vitest";
import { eventually } from "../../../test/support/waiting.ts";
import {
  asPrincipal,
  sessionTaskFixture,
  FORM,
  TASK_CAPABILITIES,
  NO_ANSWER,
  TEXT,
  withoutTasks,
  UNKNOWN,
  RELATED,
} from "../../../test/support/tasks/session-task-server.ts";
import type { Context } from "../../core/handler.ts";
import { REVISIONS } from "../../protocol/revisions/index.ts";
import { fakeCaller } from "../../../test/support/handlers/fake-client.ts";
import { TASKS_EXTENSION } from "../../protocol/tasks.ts";

type Loose = { readonly [key: string]: unknown };

const wanting = (mode: "required" | "if-supported"): Partial<Context> => ({ task: { mode } });
const session = (principal: string): Partial<Context> => ({
  caller: fakeCaller({ style: "session", capabilities: TASK_CAPABILITIES, principal }),
});

it("the capabilities of a server include the extension only if it can run calls as tasks", async () => {
  const capabilities = async (tasks: Loose): Promise<unknown> => {
    const { connection } = await sessionTaskFixture({ capabilities: { tools: {}, tasks } });
    return connection.discovered["capabilities"];
  };
  const extended = { tools: {}, extensions: { [TASKS_EXTENSION]: {} } };
  expect(await capabilities({ list: {}, cancel: {}, requests: { tools: { call: {} } } })).toEqual(extended);
  expect(await capabilities({ requests: { tools: { call: {} } } })).toEqual(extended);
  expect(await capabilities({ list: {}, requests: { tools: {} } })).toEqual({ tools: {} });
  expect(await capabilities({})).toEqual({ tools: {} });
});

it.each(REVISIONS.filter(({ requests }) => requests.has("initialize") && !requests.has("tasks/get")))(
  "the capabilities of a server never include it in $name",
  async ({ name }) => {
    const { request, server, connection } = await sessionTaskFixture({ revision: name });
    expect(connection.discovered["capabilities"]).toEqual({ tools: {} });
    expect(await request("tools/call", { name: "job" }, wanting("if-supported"))).toMatchObject({
      content: [{ text: "plain" }],
    });
    expect(server.received("tools/list")).toEqual([]);
    expect(server.last("tools/call")).not.toHaveProperty("task");
    await expect(request("tasks/get", { taskId: "x" })).rejects.toMatchObject({ code: -32601 });
  },
);

const tools = { job: "required", maybe: "optional", never: "forbidden", silent: "" };

it("a call is sent as a task if its tool requires one, and answered in the newest form", async () => {
  const { request, server } = await sessionTaskFixture();
  expect(await request("tools/call", { name: "job", arguments: { a: 1 } })).toEqual({
    resultType: "task",
    taskId: "task-1",
    status: "working",
    createdAt: "2026-01-01T00:00:00Z",
    lastUpdatedAt: "2026-01-01T00:00:00Z",
    ttlMs: 60_000,
    pollIntervalMs: 100,
  });
  expect(server.last("tools/call")).toEqual({ name: "job", arguments: { a: 1 }, task: { ttl: 3_600_000 } });
});

it.each([
  ["job", undefined, true],
  ["maybe", undefined, false],
  ["maybe", "if-supported", true],
  ["maybe", "required", true],
  ["never", "if-supported", false],
  ["silent", "if-supported", false],
  ["nowhere", undefined, false],
  // The server reports what is wrong with it.
  ["nowhere", "required", false],
] as const)("a call of %s with a task request of %j runs as a task: %j", async (name, wanted, isTask) => {
  const { request, server } = await sessionTaskFixture({ tools });
  const result = await request("tools/call", { name }, wanted && wanting(wanted));
  expect(result.resultType).toBe(isTask ? "task" : "complete");
  expect("task" in server.last("tools/call")).toBe(isTask);
});

it.each(["never", "silent"])("a call of %s is refused and not sent if the caller insists on a task", async (name) => {
  const { request, server } = await sessionTaskFixture({ tools });
  await expect(request("tools/call", { name }, wanting("required"))).rejects.toMatchObject({
    code: -32601,
    message: `Tool ${name} cannot be run as a task`,
  });
  expect(server.received("tools/call")).toEqual([]);
});

it("a call lists the tools once, page by page, and again after they have changed", async () => {
  const { request, server } = await sessionTaskFixture({ tools });
  await Promise.all(["job", "never", "maybe"].map((name) => request("tools/call", { name })));
  await request("tools/call", { name: "nowhere" });
  expect(server.received("tools/list")).toHaveLength(4);
  server.peer.send({ method: "notifications/tools/list_changed" });
  await request("tools/call", { name: "never" });
  await request("tools/call", { name: "job" });
  expect(server.received("tools/list")).toHaveLength(8);
});

it("a call needs no list if one passed by, which then says of all tools whether they support tasks", async () => {
  const { request, server } = await sessionTaskFixture({ tools });
  const { tools: page } = (await request("tools/list", { cursor: "3" })) as { tools: readonly Loose[] };
  expect(page[0]).toMatchObject({ name: "silent", execution: {} });
  const [first] = (await request("tools/list"))["tools"] as readonly Loose[];
  expect(first).toMatchObject({ execution: { taskSupport: "required" } });
  await request("tools/call", { name: "job" });
  await request("tools/call", { name: "silent" });
  expect(server.received("tools/list")).toHaveLength(2);
});

it("a call is sent unchanged if the tools cannot be listed", async () => {
  const error = { code: -32603, message: "Not now" };
  const { request, server } = await sessionTaskFixture({
    answer: ({ method }) => (method === "tools/list" ? { error } : undefined),
  });
  expect(await request("tools/call", { name: "job" })).toMatchObject({ content: [{ text: "plain" }] });
  expect(server.last("tools/call")).not.toHaveProperty("task");
});

it("a call can be cancelled while the tools are listed", async () => {
  const { request, server } = await sessionTaskFixture({
    answer: ({ method }) => (method === "tools/list" ? NO_ANSWER : undefined),
  });
  const stop = new AbortController();
  const call = request("tools/call", { name: "job" }, { signal: stop.signal });
  await server.peer.until(({ method }) => method === "tools/list");
  stop.abort(new Error("enough"));
  await expect(call).rejects.toThrow("enough");
  expect(server.received("tools/call")).toEqual([]);
});

it("a call that did not request a task must not be answered with one", async () => {
  const answer = ({ method }: Loose) => (method === "tools/call" ? { result: { task: { taskId: "x" } } } : undefined);
  const { request } = await sessionTaskFixture({ tools: { never: "forbidden" }, answer });
  await expect(request("tools/call", { name: "never" })).rejects.toMatchObject({
    name: "ConnectionError",
    kind: "protocol",
  });
});

it("a call may be answered without a task after all", async () => {
  const { request } = await sessionTaskFixture({
    answer: ({ method }) => (method === "tools/call" ? { result: TEXT } : undefined),
  });
  expect(await request("tools/call", { name: "job" })).toEqual({ ...TEXT, resultType: "complete" });
});

it("a task is finished with its result inside, which is fetched once", async () => {
  const { server, start, get } = await sessionTaskFixture();
  const id = await start();
  expect(await get(id)).toMatchObject({ resultType: "complete", status: "working", ttlMs: 60_000 });
  server.finish(id, "completed", { result: { ...TEXT, _meta: { [RELATED]: { taskId: id }, own: 1 } } });
  const over = await get(id);
  expect(over).toMatchObject({
    resultType: "complete",
    status: "completed",
    result: { ...TEXT, resultType: "complete", _meta: { own: 1 } },
  });
  expect(await get(id)).toEqual(over);
  expect(server.received("tasks/result")).toHaveLength(1);
  expect(server.received("tasks/get")).toHaveLength(2);
});

it("a task is completed if its tool returned isError, and failed only after a protocol error", async () => {
  const { server, start, get } = await sessionTaskFixture();
  const [tool, error] = [await start(), await start()];
  server.finish(tool, "failed", { result: { ...TEXT, isError: true } });
  expect(await get(tool)).toMatchObject({ status: "completed", result: { isError: true } });
  server.finish(error, "failed", { error: { code: -31_001, message: "Out of order", data: { since: 1 } } });
  server.update(error, { statusMessage: "Broken" });
  const failed = await get(error);
  expect(failed).toMatchObject({ status: "failed", statusMessage: "Broken" });
  expect(failed["error"]).toEqual({ code: -31_001, message: "Out of order", data: { since: 1 } });
  expect(failed).not.toHaveProperty("result");
});

it("a task is polled again if its result could not be fetched", async () => {
  let fails = true;
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  const { server, start, get } = await sessionTaskFixture({
    answer: ({ method }) => (method === "tasks/result" && fails ? NO_ANSWER : undefined),
  });
  const id = await start();
  server.finish(id, "completed", { result: TEXT });
  const looked = get(id).catch((error: unknown) => error);
  await eventually(() => expect(server.received("tasks/result")).toHaveLength(1));
  await vi.advanceTimersByTimeAsync(60_000);
  vi.useRealTimers();
  expect(await looked).toMatchObject({ kind: "timeout" });
  fails = false;
  expect(await get(id)).toMatchObject({ status: "completed", result: TEXT });
});

it("a task is unknown if it is gone or never existed", async () => {
  const { server, start, get, request } = await sessionTaskFixture();
  const id = await start();
  server.forget(id);
  await expect(get(id)).rejects.toMatchObject(UNKNOWN);
  for (const method of ["tasks/get", "tasks/cancel", "tasks/update"]) {
    await expect(request(method, { taskId: "none", inputResponses: {} })).rejects.toMatchObject(UNKNOWN);
  }
});

it("a task from before the connection is found by unauthenticated callers", async () => {
  const { server, get } = await sessionTaskFixture();
  server.createTask("old");
  expect(await get("old")).toMatchObject({ taskId: "old", status: "working" });
  server.createTask("older");
  server.finish("older", "completed", { result: TEXT });
  expect(await get("older")).toMatchObject({ status: "completed", result: TEXT });
  server.createTask("oldest");
  await expect(get("oldest", asPrincipal("ada"))).rejects.toMatchObject(UNKNOWN);
});

it("a task belongs to the principal that created it", async () => {
  const { server, start, get, request, subscribe } = await sessionTaskFixture();
  const id = await start(asPrincipal("ada"));
  for (const stranger of [asPrincipal("bob"), {}]) {
    await expect(get(id, stranger)).rejects.toMatchObject(UNKNOWN);
    await expect(request("tasks/cancel", { taskId: id }, stranger)).rejects.toMatchObject(UNKNOWN);
    const update = request("tasks/update", { taskId: id, inputResponses: {} }, stranger);
    await expect(update).rejects.toMatchObject(UNKNOWN);
  }
  const { received, stop, done } = subscribe(id);
  await eventually(() => expect(received).toHaveLength(1));
  expect(received[0]).toMatchObject({ notifications: {} });
  expect(received[0]).not.toHaveProperty("notifications.taskIds");
  stop.abort();
  await done;
  expect(server.received("tasks/get")).toEqual([]);
  expect(await get(id, asPrincipal("ada"))).toMatchObject({ status: "working" });
  const listed = async (principal: string): Promise<unknown> =>
    (await request("tasks/list", {}, session(principal)))["tasks"];
  expect(await listed("ada")).toMatchObject([{ taskId: id }]);
  expect(await listed("bob")).toEqual([]);
});

it("a task is visible to callers with at least the scopes of its creator", async () => {
  const { start, get } = await sessionTaskFixture();
  const rights = (...scopes: string[]): Partial<Context> => ({
    caller: fakeCaller({ capabilities: TASK_CAPABILITIES, principal: "ada", scopes }),
  });
  const id = await start(rights("run"));
  await expect(get(id, rights("look"))).rejects.toMatchObject({ kind: "access_denied" });
  expect(await get(id, rights("look", "run"))).toMatchObject({ status: "working" });
});

it("a task is refused to callers without the extension, as are methods that the newest form lacks", async () => {
  const { start, request } = await sessionTaskFixture();
  const taskId = await start();
  for (const [method, params] of [
    ["tasks/get", { taskId }],
    ["tasks/cancel", { taskId }],
    ["tasks/update", { taskId, inputResponses: {} }],
    ["subscriptions/listen", { notifications: { taskIds: [taskId] } }],
  ] as const) {
    await expect(request(method, params, withoutTasks), method).rejects.toMatchObject({ kind: "missing_capability" });
  }
  for (const method of ["tasks/list", "tasks/result"]) {
    await expect(request(method, { taskId })).rejects.toMatchObject({ kind: "method_not_found" });
  }
});

it("never requests a task from a server without tasks", async () => {
  const { request, server } = await sessionTaskFixture({
    capabilities: { tools: {}, tasks: { list: {}, cancel: {} } },
  });
  for (const method of ["tasks/get", "tasks/cancel", "tasks/list"]) {
    await expect(request(method, { taskId: "x" }, session("ada"))).rejects.toMatchObject({ code: -32601 });
    expect(server.received(method)).toEqual([]);
  }
});

it("takes a status that comes before the call is answered", async () => {
  const { request, server, get } = await sessionTaskFixture({
    answer: ({ method, id }) => {
      if (method !== "tools/call") return undefined;
      server.createTask("quick");
      server.finish("quick", "completed", { result: TEXT });
      server.notify("quick");
      server.peer.send({ id, result: { task: { ...server.createTask("other"), taskId: "quick" } } });
      return NO_ANSWER;
    },
  });
  await request("tools/call", { name: "job" });
  await server.peer.until(({ method }) => method === "tasks/result");
  expect(await get("quick")).toMatchObject({ status: "completed", result: TEXT });
  expect(server.received("tasks/get")).toEqual([]);
});

it("cancelling is local if the server has not declared it: the server is not asked, but callers see it", async () => {
  const capabilities = { tools: {}, tasks: { list: {}, requests: { tools: { call: {} } } } };
  const { server, start, request, get, subscribe } = await sessionTaskFixture({ capabilities });
  const id = await start();
  const { received, done } = subscribe(id);
  expect(await request("tasks/cancel", { taskId: id })).toEqual({ resultType: "complete" });
  await done;
  const statusMessage = "Cancelled by request; the server cannot cancel tasks and may still be working on it";
  expect(received.at(-1)).toMatchObject({ taskId: id, status: "cancelled", statusMessage });
  server.finish(id, "completed", { result: TEXT });
  server.notify(id);
  expect(await get(id)).toMatchObject({ status: "cancelled", statusMessage, ttlMs: 60_000 });
  expect(await server.requestClient(id, "elicitation/create", FORM).answer).toHaveProperty("error");
  expect(server.received("tasks/cancel")).toEqual([]);
  expect(server.received("tasks/result")).toEqual([]);
});

it("cancelling is passed on, and acknowledged even if there is nothing left to cancel", async () => {
  const { server, start, request, get } = await sessionTaskFixture();
  const id = await start();
  expect(await request("tasks/cancel", { taskId: id })).toEqual({ resultType: "complete" });
  expect(await get(id)).toMatchObject({ status: "cancelled", statusMessage: "Cancelled on request" });
  expect(server.received("tasks/result")).toEqual([]);
  const done = await start();
  server.finish(done, "completed", { result: TEXT });
  expect(await request("tasks/cancel", { taskId: done })).toEqual({ resultType: "complete" });
  expect(await get(done)).toMatchObject({ status: "completed" });
  expect(await request("tasks/cancel", { taskId: done })).toEqual({ resultType: "complete" });
  expect(server.received("tasks/cancel")).toHaveLength(2);
});

it("cancelling is acknowledged if the server refuses, and fails if the connection does", async () => {
  let error = { code: -32601, message: "Method not found" };
  const { start, request, get } = await sessionTaskFixture({
    answer: ({ method }) => (method === "tasks/cancel" ? { error } : undefined),
  });
  const id = await start();
  await request("tasks/cancel", { taskId: id });
  expect(await get(id)).toMatchObject({ status: "working" });
  error = { code: -32603, message: "Broken" };
  await expect(request("tasks/cancel", { taskId: id })).rejects.toMatchObject({ message: "Broken" });
});
