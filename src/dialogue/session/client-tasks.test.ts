// Tasks for a client of the last session-style revision, with a fake handler: requests reach it in the newest form,
// whether or not it supports subscriptions.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { eventually } from "../../../test/support/waiting.ts";
import { servePeer } from "../../../test/support/dialogue/served-connection.ts";
import type { RawPeer } from "../../../test/support/dialogue/raw-peer.ts";
import { taskServer, type TaskServer, type TaskServerOptions } from "../../../test/support/tasks/task-server.ts";
import { McpError } from "../../protocol/errors.ts";
import { NEWEST_SESSION } from "../../protocol/revisions/index.ts";

type Loose = { readonly [key: string]: unknown };

const RELATED = "io.modelcontextprotocol/related-task";
const ELICIT = {
  method: "elicitation/create",
  params: { mode: "form", message: "Name?", requestedSchema: { type: "object", properties: {} } },
};
const DONE = { status: "completed", result: { content: [{ type: "text", text: "done" }], isError: false } };

let ids = 100;

async function session(
  options: TaskServerOptions = {},
  capabilities: Loose = { elicitation: {}, sampling: {} },
): Promise<{ server: TaskServer; peer: RawPeer; ask(method: string, params?: Loose): Promise<Loose> }> {
  const server = taskServer(options);
  const peer = await servePeer(server.handler);
  await peer.handshake(NEWEST_SESSION.name, capabilities);
  const ask = (method: string, params: Loose = {}): Promise<Loose> => peer.request({ id: (ids += 1), method, params });
  return { server, peer, ask };
}

const augmented = (more: Loose = {}): Loose => ({ name: "job", task: {}, ...more });

/** The next request of the front that has not been seen yet. */
function asked(peer: RawPeer, method: string, after = 0): Promise<Loose> {
  return peer.until((message) => {
    const all = peer.received.filter((one) => one["method"] === method && "id" in one);
    return all[after] === message;
  });
}

it("a call with a task declares the extension and is answered with the task in the older form", async () => {
  const { server, ask } = await session();
  const { result } = await ask("tools/call", augmented({ task: { ttl: 5 }, arguments: { a: 1 } }));
  expect(result).toEqual({
    task: {
      taskId: "task-1",
      status: "working",
      createdAt: "2026-01-01T00:00:00Z",
      lastUpdatedAt: "2026-01-01T00:00:00Z",
      ttl: 60_000,
      pollInterval: 100,
    },
  });
  const { request, declared } = server.requests.find((one) => one.request.method === "tools/call")!;
  expect(declared).toBe(true);
  expect(JSON.parse(JSON.stringify(request.params))).toEqual({ name: "job", arguments: { a: 1 } });
});

it("a call with a task does not declare it without a task, whatever the client's capabilities are", async () => {
  const { server, ask } = await session(
    { call: () => ({ resultType: "complete", content: [] }) },
    { extensions: { "io.modelcontextprotocol/tasks": {} } },
  );
  expect(await ask("tools/call", { name: "job" })).toMatchObject({ result: { content: [] } });
  expect(server.requests.find((one) => one.request.method === "tools/call")?.declared).toBe(false);
});

it("a call with a task never returns a task to a client that did not request one", async () => {
  const { ask } = await session();
  expect(await ask("tools/call", { name: "job" })).toMatchObject({ error: { code: -32603 } });
});

it.each([5, "x", null, [], { ttl: "1" }, { ttl: 1.5 }, { ttl: null }])(
  "a call with a task is refused with a task like %j",
  async (task) => {
    const { server, ask } = await session();
    expect(await ask("tools/call", augmented({ task }))).toMatchObject({ error: { code: -32602 } });
    expect(server.count("tools/call")).toBe(0);
  },
);

it("a call with a task that is answered without a task becomes a finished one, which began as working", async () => {
  const content = [{ type: "text", text: "quick" }];
  const { ask } = await session({ call: () => ({ resultType: "complete", content, isError: true }) });
  const made = (await ask("tools/call", augmented()))["result"] as { task: Loose };
  expect(made.task).toMatchObject({ status: "working", ttl: 600_000 });
  const { taskId } = made.task;
  expect(await ask("tasks/get", { taskId })).toMatchObject({ result: { status: "failed", statusMessage: "quick" } });
  expect((await ask("tasks/result", { taskId }))["result"]).toEqual({
    content,
    isError: true,
    _meta: { [RELATED]: { taskId } },
  });
  expect(await ask("tasks/list")).toMatchObject({ result: { tasks: [{ taskId }] } });
  expect(await ask("tasks/cancel", { taskId })).toMatchObject({ error: { code: -32602 } });
});

it("a call with a task may ask for input before the task is created", async () => {
  const call: NonNullable<TaskServerOptions["call"]> = ({ params }) =>
    params["inputResponses"] === undefined
      ? { resultType: "input_required", inputRequests: { name: ELICIT }, requestState: "s" }
      : { resultType: "task", taskId: "after", status: "working", createdAt: "", lastUpdatedAt: "", ttlMs: null };
  const { peer, ask } = await session({ call });
  const answer = ask("tools/call", augmented());
  const question = await asked(peer, "elicitation/create");
  expect(question).not.toHaveProperty(["params", "_meta", RELATED]);
  peer.send({ id: question["id"], result: { action: "decline" } });
  expect(await answer).toMatchObject({ result: { task: { taskId: "after", ttl: null } } });
});

it("a call with a task fails if the server creates a task without an id", async () => {
  const { ask } = await session({ call: () => ({ resultType: "task", status: "working" }) });
  expect(await ask("tools/call", augmented())).toMatchObject({ error: { code: -32603 } });
});

it("a call with a task passes progress on under the client's token until the task is finished", async () => {
  let say: (progress: number) => void = () => undefined;
  const { peer, ask } = await session({
    call: (_request, context) => {
      say = (progress) => context.notify({ method: "notifications/progress", params: { progress } });
      say(1);
      return undefined as never;
    },
  });
  const answered = await ask("tools/call", augmented({ _meta: { progressToken: "mine" } }));
  expect(answered).toMatchObject({ result: { task: { taskId: "task-1" } } });
  say(1);
  say(2);
  const heard = peer.received.filter((one) => one["method"] === "notifications/progress");
  await eventually(() => {
    const now = peer.received.filter((one) => one["method"] === "notifications/progress");
    expect(now.map(({ params }) => params)).toEqual([
      { progressToken: "mine", progress: 1 },
      { progressToken: "mine", progress: 2, _meta: { [RELATED]: { taskId: "task-1" } } },
    ]);
  });
  expect(heard).toHaveLength(1);
});

it.each(["completed", "failed", "cancelled"])(
  "a call with a task sends no more notifications once it is %s",
  async (status) => {
    let say: (progress: number) => void = () => undefined;
    const { server, peer, ask } = await session({
      call: (_request, context) => {
        say = (progress) => {
          context.notify({ method: "notifications/progress", params: { progress } });
          context.notify({ method: "notifications/message", params: { level: "error", data: progress } });
        };
        return undefined as never;
      },
    });
    await ask("tools/call", augmented({ _meta: { progressToken: "mine" } }));
    await ask("tasks/get", { taskId: "task-1" });
    say(1);
    if (status === "cancelled") await ask("tasks/cancel", { taskId: "task-1" });
    else server.move("task-1", { ...DONE, status });
    expect(await ask("tasks/get", { taskId: "task-1" })).toMatchObject({ result: { status } });
    say(2);
    await ask("tasks/get", { taskId: "task-1" });
    const notified = peer.received.filter(({ method }) => /progress|message/.test(String(method)));
    expect(notified.map(({ params }) => (params as Loose)["progress"] ?? (params as Loose)["data"])).toEqual([1, 1]);
  },
);

describe.each([{ grantsSubscriptions: true }, { grantsSubscriptions: false }])(
  "the result of a task, with subscriptions: $grantsSubscriptions",
  ({ grantsSubscriptions }) => {
    it("the result of a task is waited for, and is the tool's own", async () => {
      const { server, peer, ask } = await session({ grantsSubscriptions });
      await ask("tools/call", augmented());
      const answer = ask("tasks/result", { taskId: "task-1" });
      expect(await ask("tasks/get", { taskId: "task-1" })).toMatchObject({ result: { status: "working" } });
      server.move("task-1", DONE);
      expect((await answer)["result"]).toEqual({ ...DONE.result, _meta: { [RELATED]: { taskId: "task-1" } } });
      // It is fetched once.
      const asks = server.requests.length;
      expect((await ask("tasks/result", { taskId: "task-1" }))["result"]).toMatchObject(DONE.result);
      const state = (await ask("tasks/get", { taskId: "task-1" }))["result"] as Loose;
      expect(state).toMatchObject({ status: "completed" });
      expect(state).not.toHaveProperty("result");
      expect(server.requests.length).toBe(asks);
      const notified = peer.received.filter((one) => one["method"] === "notifications/tasks/status");
      expect(notified.map(({ params }) => (params as Loose)["status"])).toEqual(["completed"]);
    });

    it("the result of a task is its error if it failed", async () => {
      const { server, ask } = await session({ grantsSubscriptions });
      await ask("tools/call", augmented());
      const answer = ask("tasks/result", { taskId: "task-1" });
      server.move("task-1", { status: "failed", error: { code: -31_999, message: "Broken", data: { why: 1 } } });
      expect(await answer).toMatchObject({ error: { code: -31_999, message: "Broken", data: { why: 1 } } });
      expect(await ask("tasks/get", { taskId: "task-1" })).toMatchObject({
        result: { status: "failed", statusMessage: "Broken" },
      });
    });

    it("the result of a task comes after the input requests, which name their task", async () => {
      const answers: Loose[] = [];
      const { server, peer, ask } = await session({
        grantsSubscriptions,
        update: (taskId, responses) => {
          answers.push(responses);
          if (answers.length === 2) server.move(taskId, DONE);
        },
      });
      await ask("tools/call", augmented());
      const results = [ask("tasks/result", { taskId: "task-1" }), ask("tasks/result", { taskId: "task-1" })];
      server.move("task-1", { status: "input_required", inputRequests: { a: ELICIT, b: ELICIT } });
      const first = await asked(peer, "elicitation/create", 0);
      const second = await asked(peer, "elicitation/create", 1);
      for (const { params } of [first, second]) {
        expect(params).toMatchObject({ message: "Name?", _meta: { [RELATED]: { taskId: "task-1" } } });
      }
      peer.send({ id: second["id"], result: { action: "accept", content: { name: "b" } } });
      // Elicitation has an answer for errors of the client.
      peer.send({ id: first["id"], error: { code: -1, message: "no" } });
      for (const answer of results) expect(await answer).toMatchObject({ result: { content: [{ text: "done" }] } });
      expect(answers).toEqual([{ b: { action: "accept", content: { name: "b" } } }, { a: { action: "cancel" } }]);
      // Two requests wait, and the client is asked once.
      expect(peer.received.filter((one) => one["method"] === "elicitation/create")).toHaveLength(2);
    });

    it("the result of a task says so if the client cannot answer, and the server's task is cancelled", async () => {
      const { server, peer, ask } = await session({ grantsSubscriptions });
      await ask("tools/call", augmented());
      const answer = ask("tasks/result", { taskId: "task-1" });
      const sample = { method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } };
      server.move("task-1", { status: "input_required", inputRequests: { s: sample } });
      const question = await asked(peer, "sampling/createMessage");
      peer.send({ id: question["id"], error: { code: -1, message: "User rejected sampling" } });
      expect(await answer).toMatchObject({
        result: { isError: true, content: [{ text: expect.stringContaining("User rejected sampling") }] },
      });
      expect(server.count("tasks/cancel")).toBe(1);
      expect(await ask("tasks/get", { taskId: "task-1" })).toMatchObject({ result: { status: "failed" } });
    });

    it("the result of a task is an error if the task is cancelled meanwhile, and input requests are cancelled", async () => {
      const { server, peer, ask } = await session({ grantsSubscriptions });
      await ask("tools/call", augmented());
      const answer = ask("tasks/result", { taskId: "task-1" });
      server.move("task-1", { status: "input_required", inputRequests: { a: ELICIT } });
      const question = await asked(peer, "elicitation/create");
      expect((await ask("tasks/cancel", { taskId: "task-1" }))["result"]).toMatchObject({
        taskId: "task-1",
        status: "cancelled",
        ttl: 60_000,
      });
      expect(await answer).toMatchObject({ error: { code: -32603 } });
      await peer.until(
        (one) =>
          one["method"] === "notifications/cancelled" && (one["params"] as Loose)["requestId"] === question["id"],
      );
      expect(await ask("tasks/cancel", { taskId: "task-1" })).toMatchObject({ error: { code: -32602 } });
      expect(await ask("tasks/result", { taskId: "task-1" })).toMatchObject({ error: { code: -32603 } });
      expect(server.count("tasks/cancel")).toBe(1);
    });

    it("the result of a task is an error if the server has lost the task", async () => {
      const { server, ask } = await session({ grantsSubscriptions });
      await ask("tools/call", augmented());
      server.forget("task-1");
      expect(await ask("tasks/result", { taskId: "task-1" })).toMatchObject({ error: { code: -32602 } });
      expect(await ask("tasks/get", { taskId: "task-1" })).toMatchObject({ error: { code: -32602 } });
      expect(await ask("tasks/list")).toMatchObject({ result: { tasks: [] } });
    });

    it("the result of a task is no longer awaited when the request is cancelled, but the task goes on", async () => {
      const { server, peer, ask } = await session({
        grantsSubscriptions,
        update: (taskId) => server.move(taskId, DONE),
      });
      await ask("tools/call", augmented());
      peer.send({ id: "wait", method: "tasks/result", params: { taskId: "task-1" } });
      const other = ask("tasks/result", { taskId: "task-1" });
      server.move("task-1", { status: "input_required", inputRequests: { a: ELICIT } });
      await asked(peer, "elicitation/create", 0);
      peer.send({ method: "notifications/cancelled", params: { requestId: "wait" } });
      // The other waiting request sends the input request now.
      const again = await asked(peer, "elicitation/create", 1);
      peer.send({ id: again["id"], result: { action: "accept" } });
      expect(await other).toMatchObject({ result: DONE.result });
      expect(peer.received.some(({ id, method }) => id === "wait" && method === undefined)).toBe(false);
      expect(server.count("tasks/cancel")).toBe(0);
    });
  },
);

it("an answer that the server rejects is reported to the waiting request, and can be given again", async () => {
  let refuse = true;
  const { server, peer, ask } = await session({
    update: (taskId) => {
      if (refuse) throw McpError.of("invalid_params", "Not a valid name");
      server.move(taskId, DONE);
    },
  });
  await ask("tools/call", augmented());
  server.move("task-1", { status: "input_required", inputRequests: { a: ELICIT } });
  for (const n of [0, 1]) {
    const answer = ask("tasks/result", { taskId: "task-1" });
    peer.send({ id: (await asked(peer, "elicitation/create", n))["id"], result: { action: "accept" } });
    expect(await answer).toMatchObject(n === 0 ? { error: { message: "Not a valid name" } } : { result: {} });
    refuse = false;
  }
});

it("the list of tasks has the session's own tasks, in order and in pages", async () => {
  const { server, peer, ask } = await session({ grantsSubscriptions: false });
  const wanted = Array.from({ length: 150 }, (_, index) => `task-${index + 1}`);
  for (const _ of wanted) await ask("tools/call", augmented());
  server.move("task-2", DONE);
  const first = (await ask("tasks/list"))["result"] as { tasks: Loose[]; nextCursor: string };
  const second = (await ask("tasks/list", { cursor: first.nextCursor }))["result"] as { tasks: Loose[] };
  expect([...first.tasks, ...second.tasks].map(({ taskId }) => taskId)).toEqual(wanted);
  expect(first.tasks[1]).toMatchObject({ status: "completed", ttl: 60_000 });
  expect(second).not.toHaveProperty("nextCursor");
  expect(await ask("tasks/list", { cursor: "made up" })).toMatchObject({ error: { code: -32602 } });
  const another = await servePeer(server.handler);
  await another.handshake(NEWEST_SESSION.name);
  expect(await another.request({ id: 1, method: "tasks/list" })).toMatchObject({ result: { tasks: [] } });
  await peer.close();
});

it("the list of tasks includes an unknown task once the client has asked for it", async () => {
  const { server, ask } = await session();
  await ask("tools/call", augmented());
  const peer = await servePeer(server.handler);
  await peer.handshake(NEWEST_SESSION.name);
  expect(await peer.request({ id: 1, method: "tasks/get", params: { taskId: "none" } })).toMatchObject({
    error: { code: -32602 },
  });
  expect(await peer.request({ id: 2, method: "tasks/get", params: { taskId: "task-1" } })).toMatchObject({
    result: { taskId: "task-1", status: "working" },
  });
  expect(await peer.request({ id: 3, method: "tasks/list" })).toMatchObject({
    result: { tasks: [{ taskId: "task-1" }] },
  });
});

it("the list of tools marks every tool as optional if the server cannot say which tools run as tasks", async () => {
  const { ask } = await session();
  expect(await ask("tools/list")).toMatchObject({
    result: { tools: [{ name: "job", execution: { taskSupport: "optional" } }] },
  });
});

describe("time", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("time drops a task after its lifetime, and respects the poll interval", async () => {
    const { server, ask } = await session({ grantsSubscriptions: false, pollIntervalMs: 5_000 });
    await ask("tools/call", augmented());
    void ask("tasks/result", { taskId: "task-1" });
    await vi.advanceTimersByTimeAsync(0);
    const before = server.count("tasks/get");
    await vi.advanceTimersByTimeAsync(20_000);
    expect(server.count("tasks/get") - before).toBe(4);
    server.move("task-1", DONE);
    await vi.advanceTimersByTimeAsync(40_000);
    expect(await ask("tasks/list")).toMatchObject({ result: { tasks: [] } });
    expect(vi.getTimerCount()).toBe(0);
  });
});
