// Tasks in both forms over real fronts: one server, a caller of the newest revision and one of the revision before on
// wires of their own, raw messages in and out. What the official schemas have a shape for is held against it.

import { afterEach, describe, expect, it, vi } from "vitest";
import { createServer, McpError, type Server } from "../../src/index.ts";
import type { Message } from "../../src/jsonrpc/message.ts";
import { NEWEST, NEWEST_SESSION } from "../../src/protocol/revisions/index.ts";
import { TASKS_EXTENSION } from "../../src/protocol/tasks.ts";
import { haveSpec, specOf, validateMessage, validateParams, validateResult } from "../support/schema.ts";
import { facing } from "../support/connection.ts";
import { stamp, type RawPeer } from "../support/raw-peer.ts";

type Loose = { readonly [key: string]: unknown };
type Task = Loose & { readonly taskId: string };

const R5 = NEWEST.name;
const R4 = NEWEST_SESSION.name;
const RELATED = "io.modelcontextprotocol/related-task";
const NAME = { type: "object", properties: { name: { type: "string" } } } as const;
const KNOWS = { elicitation: {}, extensions: { [TASKS_EXTENSION]: {} } };

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

/** An exchange for each request, all of them valid where the schema knows them. */
async function exchanging(server: Server, capabilities: Loose = KNOWS, caller: Loose = {}): Promise<Exchange> {
  const peer = await facing((request, context) =>
    server(request, { ...context, caller: { ...context.caller, ...caller } }),
  );
  const ask = async (method: string, params: Loose = {}): Promise<Loose> => {
    const answer = await peer.request({
      id: (count += 1),
      method,
      params: { ...params, _meta: stamp(R5, capabilities) },
    });
    if (haveSpec("tasks over exchanges")) judgeExchange(method, answer);
    return answer;
  };
  return { peer, ask };
}

interface Exchange {
  readonly peer: RawPeer;
  ask(method: string, params?: Loose): Promise<Loose>;
}

function judgeExchange(method: string, answer: Loose): void {
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
  if (method === "tasks/get") judgeState(result);
}

/** What is inside a task is what would have been a message of its own. */
function judgeState({ result, inputRequests, status }: Loose): void {
  expect(["working", "input_required", "completed", "failed", "cancelled"]).toContain(status);
  if (result !== undefined) expect(validateResult(R5, "tools/call", result)).toEqual([]);
  for (const { method, params } of Object.values(Object(inputRequests)) as { method: string; params: unknown }[]) {
    expect(validateParams(R5, method, params)).toEqual([]);
  }
}

const taskOf = async ({ ask }: Exchange, name: string): Promise<Task> =>
  (await ask("tools/call", { name }))["result"] as Task;

async function settled({ ask }: Exchange, { taskId }: Task, status: string): Promise<Loose> {
  return vi.waitFor(async () => {
    const state = (await ask("tasks/get", { taskId }))["result"] as Loose;
    expect(state["status"]).toBe(status);
    return state;
  });
}

describe("tasks of the newest revision", () => {
  it("are an extension that the server names, and nothing else", async () => {
    const { ask } = await exchanging(makeServer().server);
    const { capabilities } = (await ask("server/discover"))["result"] as { capabilities: Loose };
    expect(capabilities["extensions"]).toEqual({ [TASKS_EXTENSION]: {} });
    expect(capabilities).not.toHaveProperty("tasks");
    const { tools } = (await ask("tools/list"))["result"] as { tools: Loose[] };
    for (const tool of tools) expect(tool).not.toHaveProperty("execution");
    for (const method of ["tasks/result", "tasks/list"]) {
      expect(await ask(method, { taskId: "x" })).toMatchObject({ error: { code: -32601 } });
    }
  });

  it("are asked about, answered, and over with the tool's result", async () => {
    const caller = await exchanging(makeServer().server);
    const task = await taskOf(caller, "ask");
    expect(task).toMatchObject({ resultType: "task", status: "working", ttlMs: 3_600_000, pollIntervalMs: 1_000 });
    for (const field of ["task", "ttl", "pollInterval", "result", "error", "inputRequests", "requestState"]) {
      expect(task).not.toHaveProperty(field);
    }
    const asking = await settled(caller, task, "input_required");
    expect(asking["inputRequests"]).toMatchObject({ name: { method: "elicitation/create" } });
    const inputResponses = { name: { action: "accept", content: { name: "Ada" } } };
    expect(await caller.ask("tasks/update", { taskId: task.taskId, inputResponses })).toMatchObject({
      result: { resultType: "complete" },
    });
    const over = await settled(caller, task, "completed");
    expect(over).toMatchObject({ resultType: "complete", result: { content: [{ text: "accept Ada" }] } });
    expect(over).not.toHaveProperty("inputRequests");
  });

  it("end as the specification says, each in its own way", async () => {
    const caller = await exchanging(makeServer().server);
    expect(await settled(caller, await taskOf(caller, "fail"), "completed")).toMatchObject({
      result: { isError: true, content: [{ text: "No paper" }] },
    });
    const broken = await settled(caller, await taskOf(caller, "break"), "failed");
    expect(broken["error"]).toEqual({ code: -31_001, message: "Out of order", data: { since: 1 } });
    expect(broken).not.toHaveProperty("result");
    const held = await taskOf(caller, "hold");
    await caller.ask("tasks/cancel", { taskId: held.taskId });
    await settled(caller, held, "cancelled");
  });

  it("begin after the rounds of a call that asks first", async () => {
    const caller = await exchanging(makeServer().server);
    const first = await taskOf(caller, "detach");
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
    expect(await settled(caller, made, "completed")).toMatchObject({
      result: { content: [{ text: "Hello, Alice" }] },
    });
  });

  it("say nothing on the stream of the call that made them, and outlive its wire", async () => {
    const { server, signals } = makeServer();
    const caller = await exchanging(server);
    const task = await taskOf(caller, "hold");
    expect(caller.peer.received.filter((message) => "method" in message)).toEqual([]);
    await caller.peer.close();
    await vi.waitFor(() => expect(caller.peer.ended).toBe(true));
    expect(signals[0]?.aborted).toBe(false);
    const again = await exchanging(server);
    expect(await settled(again, task, "working")).toMatchObject({ statusMessage: "held" });
  });

  it("are told on a listen, tagged, until the last of them is over", async () => {
    const caller = await exchanging(makeServer().server);
    const { taskId } = await taskOf(caller, "hold");
    const listen = caller.ask("subscriptions/listen", { notifications: { taskIds: [taskId, "none"] } });
    const told = (): Loose[] =>
      caller.peer.received.filter(({ method }) => method !== undefined && method !== "notifications/cancelled");
    await vi.waitFor(() => expect(told()).toHaveLength(2));
    await caller.ask("tasks/cancel", { taskId });
    await listen;
    expect(told().map(({ method, params }) => [method, (params as Loose)["status"]])).toEqual([
      ["notifications/subscriptions/acknowledged", undefined],
      ["notifications/tasks", "working"],
      ["notifications/tasks", "cancelled"],
    ]);
    expect(told()[0]).toMatchObject({ params: { notifications: { taskIds: [taskId] } } });
    for (const { params } of told()) {
      expect(params).toHaveProperty(["_meta", "io.modelcontextprotocol/subscriptionId"], count - 1);
    }
  });

  it("are known to nobody but their principal, and to no caller that has not declared them", async () => {
    const { server } = makeServer();
    const ada = await exchanging(server, KNOWS, { principal: "ada" });
    const bob = await exchanging(server, KNOWS, { principal: "bob" });
    const { taskId } = await taskOf(ada, "hold");
    const unknown = { code: -32602 };
    expect(await bob.ask("tasks/get", { taskId })).toMatchObject({ error: unknown });
    expect(await bob.ask("tasks/cancel", { taskId })).toMatchObject({ error: unknown });
    expect(await bob.ask("tasks/update", { taskId, inputResponses: {} })).toMatchObject({ error: unknown });
    expect(await ada.ask("tasks/get", { taskId })).toMatchObject({ result: { status: "working" } });
    const plain = await exchanging(server, { elicitation: {} });
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
});

describe("tasks of the revision before", () => {
  async function session(server: Server): Promise<Exchange> {
    const peer = await facing(server);
    const begun = await peer.handshake(R4, { elicitation: {} });
    judge("initialize", begun);
    const ask = async (method: string, params: Loose = {}): Promise<Loose> => {
      const answer = await peer.request({ id: (count += 1), method, params });
      judge(method, answer);
      for (const message of peer.received.filter((one) => "method" in one)) judgeOwn(message);
      return answer;
    };
    return { peer, ask };
  }

  function judge(method: string, answer: Loose): void {
    if (!haveSpec("tasks over sessions")) return;
    const message = answer as unknown as Message;
    const { task } = Object(answer["result"]) as { task?: unknown };
    if ("error" in answer) expect(validateMessage(R4, "error", method, message)).toEqual([]);
    else if (task !== undefined) expect(specOf(R4).validator("CreateTaskResult", true)(answer["result"])).toBe(true);
    else if (method === "tasks/result") expect(validateResult(R4, "tools/call", answer["result"])).toEqual([]);
    else expect(validateMessage(R4, "result", method, message)).toEqual([]);
  }

  /** What the front sends of its own. */
  function judgeOwn(message: Loose): void {
    if (!haveSpec("tasks over sessions")) return;
    const kind = "id" in message ? "request" : "notification";
    const options = { from: "server", closed: true } as const;
    expect(validateMessage(R4, kind, String(message["method"]), message as unknown as Message, options)).toEqual([]);
  }

  const start = async ({ ask }: Exchange, name: string): Promise<Task> =>
    ((await ask("tools/call", { name, task: { ttl: 60_000 } }))["result"] as { task: Task }).task;

  it("are a capability, and said of each tool", async () => {
    const { peer, ask } = await session(makeServer().server);
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

  it("ask while their result is waited for, and give it with the task's name", async () => {
    const caller = await session(makeServer().server);
    const { taskId } = await start(caller, "ask");
    await vi.waitFor(async () => {
      expect(await caller.ask("tasks/get", { taskId })).toMatchObject({ result: { status: "input_required" } });
    });
    const answer = caller.ask("tasks/result", { taskId });
    const question = await caller.peer.until(({ method }) => method === "elicitation/create");
    expect(question["params"]).toMatchObject({ message: "Name?", _meta: { [RELATED]: { taskId } } });
    const _meta = { [RELATED]: { taskId } };
    caller.peer.send({ id: question["id"], result: { action: "accept", content: { name: "Ada" }, _meta } });
    expect(await answer).toMatchObject({ result: { content: [{ text: "accept Ada" }], _meta } });
    const told = caller.peer.received.filter(({ method }) => method === "notifications/tasks/status");
    expect(told.at(-1)).toMatchObject({ params: { taskId, status: "completed", ttl: 3_600_000 } });
    expect(told.at(-1)).not.toHaveProperty("params.result");
  });

  it("end in the words of that revision", async () => {
    const caller = await session(makeServer().server);
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

  it("are cancelled in the tool too, also while they ask", async () => {
    const { server, signals } = makeServer();
    const caller = await session(server);
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

  it("begin after the questions of a call that asks first", async () => {
    const caller = await session(makeServer().server);
    const made = start(caller, "detach");
    const question = await caller.peer.until(({ method }) => method === "elicitation/create");
    caller.peer.send({ id: question["id"], result: { action: "accept", content: { name: "Alice" } } });
    expect(await caller.ask("tasks/result", await made)).toMatchObject({
      result: { content: [{ text: "Hello, Alice" }] },
    });
  });

  it("are the same tasks as those of the newest", async () => {
    const { server } = makeServer();
    const older = await session(server);
    const newer = await exchanging(server);
    const held = await start(older, "hold");
    expect(await newer.ask("tasks/get", held)).toMatchObject({ result: { status: "working", ttlMs: 3_600_000 } });
    await newer.ask("tasks/cancel", held);
    expect(await older.ask("tasks/get", held)).toMatchObject({ result: { status: "cancelled" } });
    expect(await older.ask("tasks/cancel", held)).toMatchObject({ error: { code: -32602 } });
  });

  it("are over when the server closes", async () => {
    const { server, signals } = makeServer();
    const caller = await session(server);
    const held = await start(caller, "hold");
    const waiting = caller.ask("tasks/result", held);
    await vi.waitFor(() => expect(signals).toHaveLength(1));
    await server.close();
    expect(signals[0]?.aborted).toBe(true);
    expect(await waiting).toMatchObject({ error: {} });
  });
});
