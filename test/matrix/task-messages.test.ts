// The raw messages of both forms of tasks: one server, with callers of the newest revision and of the one before. They
// are checked against the official schemas where those have a type for them.

import { afterEach, expect, it } from "vitest";
import { eventually } from "../support/waiting.ts";
import { createServer, McpError, type Server } from "../../src/index.ts";
import type { Message } from "../../src/jsonrpc/message.ts";
import { NEWEST, NEWEST_SESSION } from "../../src/protocol/revisions/index.ts";
import { TASKS_EXTENSION } from "../../src/protocol/tasks.ts";
import { hasSpec, specOf, validateMessage, validateParams, validateResult } from "../support/spec/official-schema.ts";
import { servePeer } from "../support/dialogue/served-connection.ts";
import { statelessMeta, type RawPeer } from "../support/dialogue/raw-peer.ts";

type Loose = { readonly [key: string]: unknown };
type Task = Loose & { readonly taskId: string };

const R5 = NEWEST.name;
const R4 = NEWEST_SESSION.name;
const RELATED = "io.modelcontextprotocol/related-task";
const NAME = { type: "object", properties: { name: { type: "string" } } } as const;
const CAPABILITIES = { elicitation: {}, extensions: { [TASKS_EXTENSION]: {} } };

const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

function makeServer(): { server: Server; signals: AbortSignal[] } {
  const signals: AbortSignal[] = [];
  const server = createServer({ name: "jobs", version: "1" })
    .tool("plain", {}, () => "at once")
    .tool("ask", { task: "optional" }, async (_args, { ask }) => {
      const { action, content } = await ask.elicit({ message: "Name?", requestedSchema: NAME }, { key: "name" });
      return `${action} ${String(content?.["name"])}`;
    })
    .tool("hold", { task: "required" }, async (_args, { signal, progress }) => {
      progress(1, 2, "held");
      signals.push(signal);
      await new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
      });
    })
    .tool("fail", { task: "required" }, () => {
      throw new Error("No paper");
    })
    .tool("break", { task: "required" }, () => {
      throw new McpError(-31_001, "Out of order", { since: 1 });
    })
    .tool("detach", { task: { support: "required", when: "when-detached" } }, async (_args, { ask, detach }) => {
      const { content } = await ask.elicit({ message: "Who?", requestedSchema: NAME }, { key: "user_name" });
      detach();
      return `Hello, ${String(content?.["name"])}`;
    });
  servers.push(server);
  return { server, signals };
}

let count = 0;

/** A stateless caller whose responses are checked. */
async function openStateless(
  server: Server,
  capabilities: Loose = CAPABILITIES,
  caller: Loose = {},
): Promise<RawCaller> {
  const peer = await servePeer((request, context) =>
    server(request, { ...context, caller: { ...context.caller, ...caller } }),
  );
  const ask = async (method: string, params: Loose = {}): Promise<Loose> => {
    const answer = await peer.request({
      id: (count += 1),
      method,
      params: { ...params, _meta: statelessMeta(R5, capabilities) },
    });
    if (hasSpec("stateless tasks")) checkStateless(method, answer);
    return answer;
  };
  return { peer, ask };
}

interface RawCaller {
  readonly peer: RawPeer;
  ask(method: string, params?: Loose): Promise<Loose>;
}

function checkStateless(method: string, answer: Loose): void {
  const message = answer as unknown as Message;
  if ("error" in answer) {
    expect(validateMessage(R5, "error", method, message)).toEqual([]);
    return;
  }
  const result = answer["result"] as Loose;
  expect(specOf(R5).validator("Result", false)(result)).toBe(true);
  if (result["resultType"] === "complete" && method === "tools/call") {
    expect(validateMessage(R5, "result", method, message)).toEqual([]);
  }
  if (method === "tasks/get") checkTask(result);
}

/** A task contains a result and requests, each as valid as a message of its own. */
function checkTask({ result, inputRequests, status }: Loose): void {
  expect(["working", "input_required", "completed", "failed", "cancelled"]).toContain(status);
  if (result !== undefined) expect(validateResult(R5, "tools/call", result)).toEqual([]);
  for (const { method, params } of Object.values(Object(inputRequests)) as { method: string; params: unknown }[]) {
    expect(validateParams(R5, method, params)).toEqual([]);
  }
}

const startTask = async ({ ask }: RawCaller, name: string): Promise<Task> =>
  (await ask("tools/call", { name }))["result"] as Task;

async function untilStatus({ ask }: RawCaller, { taskId }: Task, status: string): Promise<Loose> {
  return eventually(async () => {
    const state = (await ask("tasks/get", { taskId }))["result"] as Loose;
    expect(state["status"]).toBe(status);
    return state;
  });
}

it("tasks of the newest revision are declared as an extension only", async () => {
  const { ask } = await openStateless(makeServer().server);
  const { capabilities } = (await ask("server/discover"))["result"] as { capabilities: Loose };
  expect(capabilities["extensions"]).toEqual({ [TASKS_EXTENSION]: {} });
  expect(capabilities).not.toHaveProperty("tasks");
  const { tools } = (await ask("tools/list"))["result"] as { tools: Loose[] };
  for (const tool of tools) expect(tool).not.toHaveProperty("execution");
  for (const method of ["tasks/result", "tasks/list"]) {
    expect(await ask(method, { taskId: "x" })).toMatchObject({ error: { code: -32601 } });
  }
});

it("tasks of the newest revision are polled, answered, and complete with the tool's result", async () => {
  const caller = await openStateless(makeServer().server);
  const task = await startTask(caller, "ask");
  expect(task).toMatchObject({ resultType: "task", status: "working", ttlMs: 3_600_000, pollIntervalMs: 1_000 });
  for (const field of ["task", "ttl", "pollInterval", "result", "error", "inputRequests", "requestState"]) {
    expect(task).not.toHaveProperty(field);
  }
  const asking = await untilStatus(caller, task, "input_required");
  expect(asking["inputRequests"]).toMatchObject({ name: { method: "elicitation/create" } });
  const inputResponses = { name: { action: "accept", content: { name: "Ada" } } };
  expect(await caller.ask("tasks/update", { taskId: task.taskId, inputResponses })).toMatchObject({
    result: { resultType: "complete" },
  });
  const completed = await untilStatus(caller, task, "completed");
  expect(completed).toMatchObject({ resultType: "complete", result: { content: [{ text: "accept Ada" }] } });
  expect(completed).not.toHaveProperty("inputRequests");
});

it("tasks of the newest revision complete, fail or are cancelled as the specification says", async () => {
  const caller = await openStateless(makeServer().server);
  expect(await untilStatus(caller, await startTask(caller, "fail"), "completed")).toMatchObject({
    result: { isError: true, content: [{ text: "No paper" }] },
  });
  const broken = await untilStatus(caller, await startTask(caller, "break"), "failed");
  expect(broken["error"]).toEqual({ code: -31_001, message: "Out of order", data: { since: 1 } });
  expect(broken).not.toHaveProperty("result");
  const held = await startTask(caller, "hold");
  await caller.ask("tasks/cancel", { taskId: held.taskId });
  await untilStatus(caller, held, "cancelled");
});

it("tasks of the newest revision begin after the input that a call requires first", async () => {
  const caller = await openStateless(makeServer().server);
  const first = await startTask(caller, "detach");
  expect(first).toMatchObject({ resultType: "input_required", inputRequests: { user_name: {} } });
  expect(first).not.toHaveProperty("taskId");
  const made = (
    await caller.ask("tools/call", {
      name: "detach",
      requestState: first["requestState"],
      inputResponses: { user_name: { action: "accept", content: { name: "Alice" } } },
    })
  )["result"] as Task;
  expect(made).toMatchObject({ resultType: "task", status: "working" });
  expect(made).not.toHaveProperty("requestState");
  expect(await untilStatus(caller, made, "completed")).toMatchObject({
    result: { content: [{ text: "Hello, Alice" }] },
  });
});

it("tasks of the newest revision send nothing on the stream of the call that made them, and outlive its connection", async () => {
  const { server, signals } = makeServer();
  const caller = await openStateless(server);
  const task = await startTask(caller, "hold");
  expect(caller.peer.received.filter((message) => "method" in message)).toEqual([]);
  await caller.peer.close();
  await eventually(() => expect(caller.peer.ended).toBe(true));
  expect(signals[0]?.aborted).toBe(false);
  const again = await openStateless(server);
  expect(await untilStatus(again, task, "working")).toMatchObject({ statusMessage: "held" });
});

it("tasks of the newest revision are reported on a subscription, tagged with its id, until the last is over", async () => {
  const caller = await openStateless(makeServer().server);
  const { taskId } = await startTask(caller, "hold");
  const subscription = caller.ask("subscriptions/listen", { notifications: { taskIds: [taskId, "none"] } });
  const events = (): Loose[] =>
    caller.peer.received.filter(({ method }) => method !== undefined && method !== "notifications/cancelled");
  await eventually(() => expect(events()).toHaveLength(2));
  await caller.ask("tasks/cancel", { taskId });
  await subscription;
  expect(events().map(({ method, params }) => [method, (params as Loose)["status"]])).toEqual([
    ["notifications/subscriptions/acknowledged", undefined],
    ["notifications/tasks", "working"],
    ["notifications/tasks", "cancelled"],
  ]);
  expect(events()[0]).toMatchObject({ params: { notifications: { taskIds: [taskId] } } });
  for (const { params } of events()) {
    expect(params).toHaveProperty(["_meta", "io.modelcontextprotocol/subscriptionId"], count - 1);
  }
});

it("tasks of the newest revision are visible only to their principal, and only if it declared the extension", async () => {
  const { server } = makeServer();
  const ada = await openStateless(server, CAPABILITIES, { principal: "ada" });
  const bob = await openStateless(server, CAPABILITIES, { principal: "bob" });
  const { taskId } = await startTask(ada, "hold");
  const unknown = { code: -32602 };
  expect(await bob.ask("tasks/get", { taskId })).toMatchObject({ error: unknown });
  expect(await bob.ask("tasks/cancel", { taskId })).toMatchObject({ error: unknown });
  expect(await bob.ask("tasks/update", { taskId, inputResponses: {} })).toMatchObject({ error: unknown });
  expect(await ada.ask("tasks/get", { taskId })).toMatchObject({ result: { status: "working" } });
  const plain = await openStateless(server, { elicitation: {} });
  const missing = { code: -32021, data: { requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } } } };
  for (const [method, params] of [
    ["tools/call", { name: "hold" }],
    ["tasks/get", { taskId }],
    ["tasks/update", { taskId, inputResponses: {} }],
    ["tasks/cancel", { taskId }],
    ["subscriptions/listen", { notifications: { taskIds: [taskId] } }],
  ] as const) {
    expect(await plain.ask(method, params), method).toMatchObject({ error: missing });
  }
  expect(await plain.ask("tools/call", { name: "plain", task: { ttl: 1 } })).toMatchObject({
    result: { resultType: "complete" },
  });
});

async function openSession(server: Server): Promise<RawCaller> {
  const peer = await servePeer(server);
  const begun = await peer.handshake(R4, { elicitation: {} });
  check("initialize", begun);
  const ask = async (method: string, params: Loose = {}): Promise<Loose> => {
    const answer = await peer.request({ id: (count += 1), method, params });
    check(method, answer);
    for (const message of peer.received.filter((one) => "method" in one)) checkMessage(message);
    return answer;
  };
  return { peer, ask };
}

function check(method: string, answer: Loose): void {
  if (!hasSpec("tasks of sessions")) return;
  const message = answer as unknown as Message;
  const { task } = Object(answer["result"]) as { task?: unknown };
  if ("error" in answer) expect(validateMessage(R4, "error", method, message)).toEqual([]);
  else if (task !== undefined) expect(specOf(R4).validator("CreateTaskResult", true)(answer["result"])).toBe(true);
  else if (method === "tasks/result") expect(validateResult(R4, "tools/call", answer["result"])).toEqual([]);
  else expect(validateMessage(R4, "result", method, message)).toEqual([]);
}

/** A request or notification of the server. */
function checkMessage(message: Loose): void {
  if (!hasSpec("tasks of sessions")) return;
  const kind = "id" in message ? "request" : "notification";
  const options = { from: "server", closed: true } as const;
  expect(validateMessage(R4, kind, String(message["method"]), message as unknown as Message, options)).toEqual([]);
}

const start = async ({ ask }: RawCaller, name: string): Promise<Task> =>
  ((await ask("tools/call", { name, task: { ttl: 60_000 } }))["result"] as { task: Task }).task;

it("tasks of the newest session revision are declared as a capability and for each tool", async () => {
  const { peer, ask } = await openSession(makeServer().server);
  expect(peer.received[0]).toMatchObject({
    result: { capabilities: { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } } },
  });
  const { tools } = (await ask("tools/list"))["result"] as { tools: { name: string; execution?: unknown }[] };
  expect(Object.fromEntries(tools.map(({ name, execution }) => [name, execution]))).toEqual({
    plain: undefined,
    ask: { taskSupport: "optional" },
    hold: { taskSupport: "required" },
    fail: { taskSupport: "required" },
    break: { taskSupport: "required" },
    detach: { taskSupport: "required" },
  });
  expect(await ask("tools/call", { name: "hold" })).toMatchObject({ error: { code: -32601 } });
  expect(await ask("tools/call", { name: "plain", task: {} })).toMatchObject({ error: { code: -32601 } });
  expect(await ask("tools/call", { name: "plain" })).toMatchObject({ result: { content: [{ text: "at once" }] } });
});

it("tasks of the newest session revision send requests while the caller waits for the result, which carries the task's id", async () => {
  const caller = await openSession(makeServer().server);
  const { taskId } = await start(caller, "ask");
  await eventually(async () => {
    expect(await caller.ask("tasks/get", { taskId })).toMatchObject({ result: { status: "input_required" } });
  });
  const answer = caller.ask("tasks/result", { taskId });
  const request = await caller.peer.until(({ method }) => method === "elicitation/create");
  expect(request["params"]).toMatchObject({ message: "Name?", _meta: { [RELATED]: { taskId } } });
  const _meta = { [RELATED]: { taskId } };
  caller.peer.send({ id: request["id"], result: { action: "accept", content: { name: "Ada" }, _meta } });
  expect(await answer).toMatchObject({ result: { content: [{ text: "accept Ada" }], _meta } });
  const statuses = caller.peer.received.filter(({ method }) => method === "notifications/tasks/status");
  expect(statuses.at(-1)).toMatchObject({ params: { taskId, status: "completed", ttl: 3_600_000 } });
  expect(statuses.at(-1)).not.toHaveProperty("params.result");
});

it("tasks of the newest session revision complete and fail as that revision says", async () => {
  const caller = await openSession(makeServer().server);
  const failed = await start(caller, "fail");
  expect(await caller.ask("tasks/result", failed)).toMatchObject({ result: { isError: true } });
  expect(await caller.ask("tasks/get", failed)).toMatchObject({
    result: { status: "failed", statusMessage: "No paper" },
  });
  const broken = await start(caller, "break");
  expect(await caller.ask("tasks/result", broken)).toMatchObject({
    error: { code: -31_001, message: "Out of order", data: { since: 1 } },
  });
  expect(await caller.ask("tasks/get", broken)).toMatchObject({ result: { status: "failed" } });
  expect(await caller.ask("tasks/cancel", broken)).toMatchObject({ error: { code: -32602 } });
  expect(await caller.ask("tasks/list")).toMatchObject({
    result: { tasks: [{ taskId: failed.taskId }, { taskId: broken.taskId }] },
  });
  for (const method of ["tasks/get", "tasks/result", "tasks/cancel"]) {
    expect(await caller.ask(method, { taskId: "none" })).toMatchObject({ error: { code: -32602 } });
  }
});

it("tasks of the newest session revision cancel the tool too, also while it waits for the client", async () => {
  const { server, signals } = makeServer();
  const caller = await openSession(server);
  const held = await start(caller, "hold");
  const waiting = caller.ask("tasks/result", held);
  expect(await caller.ask("tasks/cancel", held)).toMatchObject({ result: { status: "cancelled", ttl: 3_600_000 } });
  expect(signals[0]?.aborted).toBe(true);
  expect(await waiting).toMatchObject({ error: { code: -32603 } });
  const asking = await start(caller, "ask");
  const answer = caller.ask("tasks/result", asking);
  await caller.peer.until(({ method }) => method === "elicitation/create");
  expect(await caller.ask("tasks/cancel", asking)).toMatchObject({ result: { status: "cancelled" } });
  expect(await answer).toMatchObject({ error: { code: -32603 } });
  await caller.peer.until(({ method }) => method === "notifications/cancelled");
});

it("tasks of the newest session revision begin after the requests of a call that asks first", async () => {
  const caller = await openSession(makeServer().server);
  const made = start(caller, "detach");
  const request = await caller.peer.until(({ method }) => method === "elicitation/create");
  caller.peer.send({ id: request["id"], result: { action: "accept", content: { name: "Alice" } } });
  expect(await caller.ask("tasks/result", await made)).toMatchObject({
    result: { content: [{ text: "Hello, Alice" }] },
  });
});

it("tasks of the newest session revision are the same tasks as those of the newest revision", async () => {
  const { server } = makeServer();
  const older = await openSession(server);
  const newer = await openStateless(server);
  const held = await start(older, "hold");
  expect(await newer.ask("tasks/get", held)).toMatchObject({ result: { status: "working", ttlMs: 3_600_000 } });
  await newer.ask("tasks/cancel", held);
  expect(await older.ask("tasks/get", held)).toMatchObject({ result: { status: "cancelled" } });
  expect(await older.ask("tasks/cancel", held)).toMatchObject({ error: { code: -32602 } });
});

it("tasks of the newest session revision end when the server closes", async () => {
  const { server, signals } = makeServer();
  const caller = await openSession(server);
  const held = await start(caller, "hold");
  const waiting = caller.ask("tasks/result", held);
  await eventually(() => expect(signals).toHaveLength(1));
  await server.close();
  expect(signals[0]?.aborted).toBe(true);
  expect(await waiting).toMatchObject({ error: {} });
});
