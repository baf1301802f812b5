// Waiting for tasks: tools that always run as a task, called by clients that do not know tasks, and input requests whose
// connection is lost before they are answered.

import { describe, expect, it } from "vitest";
import { eventually } from "../../test/support/waiting.ts";
import { servePeer } from "../../test/support/dialogue/served-connection.ts";
import { statelessMeta, type RawPeer } from "../../test/support/dialogue/raw-peer.ts";
import { taskServer, type TaskServer, type TaskServerOptions } from "../../test/support/tasks/task-server.ts";
import type { Context, Handler, Result } from "../core/handler.ts";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../protocol/revisions/index.ts";
import { hasTasks, TASKS_EXTENSION, tasksNotDeclared } from "../protocol/tasks.ts";
import { CallerTask } from "./completion.ts";
import { fakeCaller } from "../../test/support/handlers/fake-client.ts";

type Loose = { readonly [key: string]: unknown };

const ELICIT = {
  method: "elicitation/create",
  params: { mode: "form", message: "Name?", requestedSchema: { type: "object", properties: {} } },
};
const ROOTS = { method: "roots/list" };
const DONE = { status: "completed", result: { content: [{ type: "text", text: "done" }], isError: false } };
const WITHOUT = REVISIONS.filter(({ style, requests }) => style === "session" && !requests.has("tasks/get"));

/** A server whose only tool always runs as a task. */
function insisting(options: TaskServerOptions = {}): TaskServer {
  const server = taskServer({
    ...options,
    call: (_request, context) => {
      if (!hasTasks(context.caller.capabilities)) throw tasksNotDeclared("job");
      return undefined as never;
    },
  });
  return server;
}

async function calling(server: TaskServer, revision: string, capabilities: Loose): Promise<RawPeer> {
  const peer = await servePeer(server.handler);
  await peer.handshake(revision, capabilities);
  peer.send({ id: "call", method: "tools/call", params: { name: "job", arguments: { n: 1 } } });
  await eventually(() => expect(server.count("tools/call")).toBe(2));
  return peer;
}

describe.each(WITHOUT.map(({ name }) => name))("a client of %s", (revision) => {
  it("a client gets the result of a tool that always runs as a task", async () => {
    const server = insisting({ update: (taskId) => server.move(taskId, DONE) });
    const peer = await calling(server, revision, { roots: {} });
    server.move("task-1", { status: "input_required", inputRequests: { r: ROOTS } });
    const question = await peer.until((one) => one["method"] === "roots/list");
    expect(question).not.toHaveProperty("params");
    peer.send({ id: question["id"], result: { roots: [] } });
    expect((await peer.answerTo("call"))["result"]).toEqual(DONE.result);
    expect(
      server.requests.filter(({ request }) => request.method === "tools/call").map(({ declared }) => declared),
    ).toEqual([false, true]);
  });

  it("a client cancels the task with its call", async () => {
    const server = insisting();
    const peer = await calling(server, revision, {});
    peer.send({ method: "notifications/cancelled", params: { requestId: "call" } });
    await eventually(() => expect(server.count("tasks/cancel")).toBe(1));
    expect(peer.received.some(({ id, method }) => id === "call" && method === undefined)).toBe(false);
  });

  it("a client gets the error of a task that failed, and of one that the server lost", async () => {
    const failing = insisting();
    const peer = await calling(failing, revision, {});
    failing.move("task-1", { status: "failed", error: { code: -31_999, message: "Broken" } });
    expect(await peer.answerTo("call")).toMatchObject({ error: { code: -31_999, message: "Broken" } });
    const forgetful = insisting({ grantsSubscriptions: false });
    const other = await calling(forgetful, revision, {});
    forgetful.forget("task-1");
    expect(await other.answerTo("call")).toMatchObject({ error: { code: -32602 } });
  });

  it("a client sees nothing else of tasks", async () => {
    const server = insisting();
    const peer = await servePeer(server.handler);
    const { result } = await peer.handshake(revision);
    expect(result).not.toHaveProperty("capabilities.tasks");
    expect(result).not.toHaveProperty("capabilities.extensions");
    expect(await peer.request({ id: 1, method: "tools/list" })).toEqual({
      jsonrpc: "2.0",
      id: 1,
      result: { tools: [{ name: "job", inputSchema: { type: "object" } }] },
    });
    for (const method of ["tasks/get", "tasks/result", "tasks/cancel", "tasks/update"]) {
      const params = { taskId: "task-1", inputResponses: {} };
      expect(await peer.request({ id: method, method, params })).toMatchObject({ error: { code: -32601 } });
    }
    expect(await peer.request({ id: 2, method: "tasks/list" })).toMatchObject({ error: { code: -32601 } });
  });
});

it("a tool that always runs as a task must be called as one if the client's revision has tasks and lists the tool so", async () => {
  const server = insisting();
  const handler: Handler = async (request, context) => {
    const result = await server.handler(request, context);
    if (request.method !== "tools/list") return result;
    return {
      ...result,
      tools: [{ name: "job", inputSchema: { type: "object" }, execution: { taskSupport: "required" } }],
    };
  };
  const peer = await servePeer(handler);
  await peer.handshake(NEWEST_SESSION.name);
  expect(await peer.request({ id: 1, method: "tools/call", params: { name: "job" } })).toMatchObject({
    error: { code: -32601, message: "Tool job must be called as a task" },
  });
  expect(server.count("tools/call")).toBe(1);
});

it("a tool that always runs as a task is waited for if it was listed as optional", async () => {
  const server = insisting();
  const peer = await servePeer(server.handler);
  await peer.handshake(NEWEST_SESSION.name);
  expect(await peer.request({ id: "list", method: "tools/list" })).toMatchObject({
    result: { tools: [{ name: "job", execution: { taskSupport: "optional" } }] },
  });
  peer.send({ id: "call", method: "tools/call", params: { name: "job" } });
  await eventually(() => expect(server.count("tools/call")).toBe(2));
  server.move("task-1", DONE);
  expect((await peer.answerTo("call"))["result"]).toEqual(DONE.result);
});

it("a tool that always runs as a task is refused to a stateless client that has not declared tasks, even in the last round only", async () => {
  const peer = await servePeer(
    taskServer({
      call: async (_request, context) => {
        await context.ask(ELICIT, { key: "name" });
        return undefined as never;
      },
    }).handler,
  );
  const knows = { elicitation: {}, extensions: { [TASKS_EXTENSION]: {} } };
  const call = (id: number, capabilities: Loose, more: Loose = {}): Promise<Loose> => {
    const params = { name: "job", _meta: statelessMeta(NEWEST.name, capabilities), ...more };
    return peer.request({ id, method: "tools/call", params });
  };
  const { result } = (await call(1, knows)) as { result: Loose };
  const round = { requestState: result["requestState"], inputResponses: { name: { action: "accept" } } };
  expect(await call(2, { elicitation: {} }, round)).toMatchObject({ error: { code: -32021 } });
  // The round is run once; a repeated retry that declares tasks gets its outcome.
  expect(await call(3, knows, round)).toMatchObject({ result: { resultType: "task", taskId: "task-1" } });
});

it("an input request whose connection is lost is sent again on the next one, and the first is cancelled", async () => {
  const server = taskServer({ update: (taskId) => server.move(taskId, DONE) });
  const context: Context = {
    revision: NEWEST.name,
    caller: fakeCaller({ capabilities: { extensions: { [TASKS_EXTENSION]: {} } } }),
    signal: new AbortController().signal,
    notify: () => undefined,
    ask: () => Promise.reject(new Error("Not by this way")),
  };
  const made = await server.handler({ method: "tools/call", params: { name: "job" } }, context);
  const task = new CallerTask(server.handler, context, made, "job");
  task.subscribe();
  const signals: AbortSignal[] = [];
  const answers: ((answer: Result) => void)[] = [];
  const ask: Context["ask"] = (_request, { signal } = {}) =>
    new Promise<Result>((resolve, reject) => {
      if (signal === undefined) throw new Error("A question without a signal");
      signals.push(signal);
      answers.push(resolve);
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    });
  const first = { isGone: false };
  const wait = (carrier: { isGone: boolean }): Promise<Loose> => task.complete({ ...context, ask }, { carrier });
  const one = wait(first);
  server.move("task-1", { status: "input_required", inputRequests: { a: ELICIT } });
  await eventually(() => expect(signals).toHaveLength(1));
  const two = wait({ isGone: false });
  first.isGone = true;
  task.wake();
  await eventually(() => expect(signals).toHaveLength(2));
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
  answers[1]?.({ action: "accept" });
  expect(await one).toMatchObject({ status: "completed" });
  expect(await two).toMatchObject({ status: "completed" });
  expect(server.count("tasks/update")).toBe(1);
  expect(server.count("tasks/cancel")).toBe(0);
});
