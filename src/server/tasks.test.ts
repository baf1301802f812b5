// Tool calls that become tasks: when they do, how they end, their requests to the client, and cancellation.

import { expect, it, vi } from "vitest";
import { eventually } from "../../test/support/waiting.ts";
import { fakeClient, withParamsCheck } from "../../test/support/handlers/fake-client.ts";
import {
  gate,
  getTask,
  startTask,
  taskClient,
  TASK_CAPABILITIES,
  QUESTION,
  type TaskTool,
  jobServer,
  startJob,
  untilStatus,
} from "../../test/support/tasks/task-client.ts";
import type { Context, Result } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import { NEWEST_SESSION } from "../protocol/revisions/index.ts";
import { TASKS_EXTENSION } from "../protocol/tasks.ts";
import type { TaskOptions } from "./options.ts";
import { createServer, inputRequired } from "./index.ts";

it("a call that becomes a task is answered with a task at once, which has the result later", async () => {
  const { run, open } = gate();
  const caller = taskClient(jobServer(run, { support: "optional", ttlMs: 5_000, pollIntervalMs: 20 }));
  const made = await startJob(caller);
  expect(made).toEqual({
    resultType: "task",
    taskId: expect.stringMatching(/^[0-9a-f]{32}$/),
    status: "working",
    createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    lastUpdatedAt: made["createdAt"],
    ttlMs: 5_000,
    pollIntervalMs: 20,
    _meta: expect.anything(),
  });
  const id = made["taskId"] as string;
  expect(await getTask(caller, id)).toEqual({ ...made, resultType: "complete" });
  open();
  expect(await untilStatus(caller, id, "completed")).toMatchObject({
    resultType: "complete",
    result: { content: [{ type: "text", text: "done" }], isError: false },
  });
});

it("a call that becomes a task is a plain call for a client without tasks, and refused if the tool requires tasks", async () => {
  const ordinary = fakeClient(jobServer(() => "done"));
  expect(await startJob(ordinary)).toMatchObject({ resultType: "complete", content: [{ text: "done" }] });
  const run = vi.fn(() => "done");
  const error = await fakeClient(jobServer(run, "required")).callError("tools/call", { name: "job" });
  expect(error).toMatchObject({
    code: -32021,
    data: { requiredCapabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } },
  });
  expect(run).not.toHaveBeenCalled();
});

it("a call that becomes a task is answered at once if the arguments are invalid or the tool is unknown", async () => {
  const server = createServer({ name: "a", version: "1" }).tool(
    "job",
    { task: "required", input: { type: "object", required: ["n"] } },
    () => "done",
  );
  const caller = taskClient(server);
  expect(await startJob(caller)).toMatchObject({ resultType: "complete", isError: true });
  expect(await caller.callError("tools/call", { name: "none" })).toMatchObject({ code: -32602 });
});

it("a call that becomes a task ignores the field `task` of the previous revision", async () => {
  const server = createServer({ name: "a", version: "1" }).tool("plain", {}, () => "done");
  const caller = taskClient(server);
  expect(await caller.call("tools/call", { name: "plain", task: { ttl: 1 } })).toMatchObject({
    resultType: "complete",
  });
  // The connection of that revision requests a task in another way.
  const wanting: Context = { ...caller.context, task: { mode: "required" } };
  await expect(server({ method: "tools/call", params: { name: "plain" } }, wanting)).rejects.toMatchObject({
    code: -32601,
  });
});

it("a call that becomes a task has the progress message as status message until it is over", async () => {
  const { run, open } = gate();
  const caller = taskClient(
    jobServer((args, context) => {
      context.progress(1, 2, "half");
      return run(args, context);
    }),
  );
  const id = await startTask(caller);
  expect(await getTask(caller, id)).toMatchObject({ status: "working", statusMessage: "half" });
  // A stateless request ends with its answer.
  expect(caller.notifications).toEqual([]);
  open();
  expect(await untilStatus(caller, id, "completed")).not.toHaveProperty("statusMessage");
});

it("a call that becomes a task fails with a protocol error, and completes with an error of the tool", async () => {
  const broken = taskClient(
    jobServer(() => {
      throw McpError.of("internal_error", "Broken");
    }),
  );
  const failed = await untilStatus(broken, await startTask(broken), "failed");
  expect(failed).toMatchObject({ statusMessage: "Broken", error: { code: -32603, message: "Broken" } });
  expect(failed).not.toHaveProperty("result");
  const failing = taskClient(
    jobServer(() => {
      throw new Error("No paper");
    }),
  );
  expect(await untilStatus(failing, await startTask(failing), "completed")).toMatchObject({
    result: { isError: true, content: [{ text: "No paper" }] },
  });
});

it.each(["completed", "failed", "cancelled"])(
  "a call that becomes a task sends nothing more when it is %s, whatever its tool does",
  async (how) => {
    let report: () => void = () => undefined;
    let end: () => void = () => undefined;
    const server = createServer({ name: "a", version: "1", logging: true }).tool(
      "job",
      { task: "required" },
      async (_args, { progress, log }) => {
        let count = 0;
        report = () => {
          progress((count += 1), 9, "more");
          log("error", count);
        };
        report();
        await new Promise<void>((resolve) => {
          end = resolve;
        });
        if (how === "failed") throw McpError.of("internal_error", "Broken");
      },
    );
    // A session can send notifications after the answer.
    const { context, notifications } = fakeClient(server, {
      caller: { style: "session", capabilities: TASK_CAPABILITIES },
      logLevel: "debug",
    });
    const session: Context = { ...context, revision: NEWEST_SESSION.name };
    const { taskId } = await server({ method: "tools/call", params: { name: "job" } }, session);
    report();
    expect(notifications).toHaveLength(4);
    if (how === "cancelled") await server({ method: "tasks/cancel", params: { taskId } }, session);
    else end();
    const caller = taskClient(server);
    await untilStatus(caller, taskId as string, how);
    report();
    expect(notifications).toHaveLength(4);
    expect(await getTask(caller, taskId as string)).not.toHaveProperty("statusMessage", "more");
    end();
  },
);

it("a call that becomes a task goes on when the request that created it ends", async () => {
  const { run, open, signals } = gate();
  const caller = taskClient(jobServer(run));
  const id = await startTask(caller);
  caller.abort(new Error("gone"));
  expect(signals[0]?.aborted).toBe(false);
  open();
  expect(await untilStatus(caller, id, "completed")).toBeDefined();
});

const options: TaskOptions = { support: "optional", when: "when-detached" };

it("a tool that detaches sends requests as in a plain call before, and through the task after", async () => {
  const run: TaskTool = async (_args, { ask, detach }) => {
    const first = await ask.elicit(QUESTION);
    detach();
    detach();
    const second = await ask.elicit(QUESTION);
    return `${first.action}, ${second.action}`;
  };
  const answer = (): Result => ({ action: "decline" });
  const caller = fakeClient(jobServer(run, options), { caller: { capabilities: TASK_CAPABILITIES }, answer });
  const id = await startTask(caller);
  expect(caller.clientRequests).toHaveLength(1);
  const asking = await untilStatus(caller, id, "input_required");
  expect(Object.keys(asking["inputRequests"] as object)).toEqual(["1"]);
  await caller.call("tasks/update", { taskId: id, inputResponses: { 1: { action: "accept" } } });
  expect(await untilStatus(caller, id, "completed")).toMatchObject({
    result: { content: [{ text: "decline, accept" }] },
  });
});

it("a tool that detaches is a plain call if it never does, or if the client has no tasks", async () => {
  const never = taskClient(jobServer(() => "done", options));
  expect(await startJob(never)).toMatchObject({ resultType: "complete", content: [{ text: "done" }] });
  const run: TaskTool = async (_args, { ask, detach }) => {
    detach();
    return (await ask.elicit(QUESTION)).action;
  };
  const answer = (): Result => ({ action: "cancel" });
  const ordinary = fakeClient(jobServer(run, options), { caller: { capabilities: { elicitation: {} } }, answer });
  expect(await startJob(ordinary)).toMatchObject({ resultType: "complete", content: [{ text: "cancel" }] });
});

it("a tool that detaches may return inputRequired before", async () => {
  const run: TaskTool = (_args, { answers, state, detach }) => {
    if (state === undefined) return inputRequired({ who: { method: "elicitation/create", params: QUESTION } }, 1);
    detach();
    return `Hello, ${String((answers["who"] as { content?: { name?: unknown } }).content?.name)}`;
  };
  const caller = taskClient(jobServer(run, options));
  const asked = await startJob(caller);
  expect(asked).toMatchObject({ resultType: "input_required" });
  const made = await caller.call("tools/call", {
    name: "job",
    requestState: asked["requestState"],
    inputResponses: { who: { action: "accept", content: { name: "Ada" } } },
  });
  expect(made).toMatchObject({ resultType: "task" });
  expect(made).not.toHaveProperty("requestState");
  expect(await untilStatus(caller, made["taskId"] as string, "completed")).toMatchObject({
    result: { content: [{ text: "Hello, Ada" }] },
  });
});

it("a tool that detaches is aborted with the request until it detaches, and cannot detach after that", async () => {
  let received: AbortSignal | undefined;
  const caller = taskClient(
    jobServer(async (_args, { signal, detach }) => {
      received = signal;
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      detach();
      return "late";
    }, options),
  );
  const call = startJob(caller);
  await eventually(() => expect(received).toBeDefined());
  caller.abort(new Error("gone"));
  expect(received?.aborted).toBe(true);
  expect(await call).toMatchObject({ resultType: "complete" });
});

it("a server with tasks declares the extension once a tool supports tasks", async () => {
  const server = createServer({ name: "a", version: "1" }).tool("plain", { task: "forbidden" }, () => "x");
  const caller = fakeClient(server);
  expect((await caller.call("server/discover"))["capabilities"]).toEqual({
    logging: {},
    tools: { listChanged: true },
  });
  server.tool("job", { task: "optional" }, () => "x");
  expect((await caller.call("server/discover"))["capabilities"]).toEqual({
    logging: {},
    tools: { listChanged: true },
    extensions: { [TASKS_EXTENSION]: {} },
  });
  const [plain, job] = ["plain", "job"].map((name) => ({ name, inputSchema: { type: "object" } }));
  expect((await caller.call("tools/list"))["tools"]).toEqual([plain, job]);
  // Only session-style revisions have a field for it.
  const session = fakeClient(server, { caller: { style: "session" } });
  for (let times = 0; times < 2; times += 1) {
    expect((await session.call("tools/list"))["tools"]).toEqual([
      { ...plain, execution: {} },
      { ...job, execution: { taskSupport: "optional" } },
    ]);
  }
  expect((await caller.call("tools/list"))["tools"]).toEqual([plain, job]);
});

it("a server with tasks lists tasks only for callers of a revision that has such a method", async () => {
  const { run } = gate();
  const server = jobServer(run);
  const ids = [await startTask(taskClient(server, "ada")), await startTask(taskClient(server, "ada"))];
  await startTask(taskClient(server, "bob"));
  const caller = taskClient(server, "ada");
  expect(await caller.callError("tasks/list", {})).toMatchObject({ code: -32601 });
  const session = { style: "session", principal: "ada" } as const;
  const listing = fakeClient(server, { caller: { ...session, capabilities: TASK_CAPABILITIES } });
  expect((await listing.call("tasks/list"))["tasks"]).toMatchObject(
    ids.map((taskId) => ({ taskId, status: "working" })),
  );
  expect(await fakeClient(server, { caller: session }).callError("tasks/list")).toMatchObject({ code: -32021 });
  await server.close();
});

it("a server with tasks aborts all tools and ends all subscriptions and tasks when it closes", async () => {
  const { run, signals } = gate();
  const server = jobServer(run);
  const caller = taskClient(server);
  const ids = [await startTask(caller), await startTask(caller)];
  const subscription = caller.call("subscriptions/listen", { notifications: { taskIds: ids } });
  await eventually(() => expect(caller.notifications).toHaveLength(3));
  await server.close();
  await subscription;
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  for (const taskId of ids) expect(await caller.callError("tasks/get", { taskId })).toMatchObject({ code: -32602 });
});

const both: TaskTool = async (_args, { ask }) => {
  const answers = await Promise.all([ask.elicit(QUESTION, { key: "a" }), ask.elicit(QUESTION, { key: "b" })]);
  return answers.map(({ action }) => action).join();
};

it("a task that sends requests to the client accepts answers one by one, and ignores unknown keys", async () => {
  const caller = taskClient(jobServer(both));
  const id = await startTask(caller);
  await eventually(async () => {
    expect(Object.keys(Object((await getTask(caller, id))["inputRequests"]))).toEqual(["a", "b"]);
  });
  const update = (inputResponses: object): Promise<Result> =>
    caller.call("tasks/update", { taskId: id, inputResponses });
  const acknowledged = await update({ a: { action: "accept" }, unknown: 5, toString: {}, __proto__: {} });
  expect(Object.keys(acknowledged).toSorted()).toEqual(["_meta", "resultType"]);
  expect(await getTask(caller, id)).toMatchObject({ status: "input_required", inputRequests: { b: {} } });
  expect(Object.keys((await getTask(caller, id))["inputRequests"] as object)).toEqual(["b"]);
  // The second answer to `a` is ignored.
  await update({ a: { action: "cancel" }, b: { action: "decline" } });
  expect(await untilStatus(caller, id, "completed")).toMatchObject({
    result: { content: [{ text: "accept,decline" }] },
  });
  expect(await update({ a: { action: "accept" } })).toMatchObject({ resultType: "complete" });
});

it("a task that sends requests to the client refuses an update with an invalid answer as a whole", async () => {
  const caller = taskClient(withParamsCheck(jobServer(both)));
  const id = await startTask(caller);
  await untilStatus(caller, id, "input_required");
  for (const junk of [5, null, "x", [], { action: "perhaps" }, {}]) {
    const inputResponses = { a: { action: "accept" }, b: junk };
    expect(await caller.callError("tasks/update", { taskId: id, inputResponses })).toMatchObject({ code: -32602 });
  }
  for (const inputResponses of [undefined, null, [], "x"]) {
    expect(await caller.callError("tasks/update", { taskId: id, inputResponses })).toMatchObject({ code: -32602 });
  }
  expect(Object.keys((await getTask(caller, id))["inputRequests"] as object)).toEqual(["a", "b"]);
});

it("a task that sends requests to the client never uses a key twice", async () => {
  const keys: string[] = [];
  const caller = taskClient(
    jobServer(async (_args, { ask }) => {
      for (let n = 0; n < 3; n += 1) await ask.elicit(QUESTION, { key: "again" });
      await ask.elicit(QUESTION);
      return "done";
    }),
  );
  const id = await startTask(caller);
  for (let n = 0; n < 4; n += 1) {
    const { inputRequests } = await untilStatus(caller, id, "input_required");
    const [key = ""] = Object.keys(inputRequests as object);
    keys.push(key);
    await caller.call("tasks/update", { taskId: id, inputResponses: { [key]: { action: "accept" } } });
    await eventually(async () => {
      const { inputRequests: now } = await getTask(caller, id);
      expect(Object.keys(Object(now))).not.toContain(key);
    });
  }
  expect(new Set(keys).size).toBe(4);
  await untilStatus(caller, id, "completed");
});

it("a task that sends requests to the client may return inputRequired and runs again with the answers", async () => {
  const run: TaskTool = (_args, { answers, state }) => {
    const seen = Number(state ?? 0);
    if (seen === 2) return JSON.stringify(answers);
    return inputRequired({ who: { method: "elicitation/create", params: QUESTION } }, seen + 1);
  };
  const caller = taskClient(jobServer(run));
  const id = await startTask(caller);
  for (const action of ["accept", "decline"]) {
    const { inputRequests } = await untilStatus(caller, id, "input_required");
    const [key = ""] = Object.keys(inputRequests as object);
    await caller.call("tasks/update", { taskId: id, inputResponses: { [key]: { action } } });
  }
  expect(await untilStatus(caller, id, "completed")).toMatchObject({
    result: { content: [{ text: '{"who":{"action":"decline"}}' }] },
  });
});

it("a task that sends requests to the client fails if the client has not declared the request", async () => {
  const caller = fakeClient(
    jobServer(() => inputRequired({ a: { method: "roots/list" } })),
    { caller: { capabilities: TASK_CAPABILITIES } },
  );
  expect(await untilStatus(caller, await startTask(caller), "failed")).toMatchObject({ error: { code: -32021 } });
});

it("a task that sends requests to the client goes on when it aborts its request", async () => {
  const { run, open } = gate();
  const caller = taskClient(
    jobServer(async (args, context) => {
      const stop = new AbortController();
      const asked = context.ask.elicit(QUESTION, { signal: stop.signal }).catch(() => undefined);
      await eventually(() => expect(asking).toBe(true));
      stop.abort(new Error("never mind"));
      await asked;
      return run(args, context);
    }),
  );
  let asking = false;
  const id = await startTask(caller);
  await untilStatus(caller, id, "input_required");
  asking = true;
  expect(await untilStatus(caller, id, "working")).not.toHaveProperty("inputRequests");
  open();
  await untilStatus(caller, id, "completed");
});

it("a cancelled task aborts its tool, stays cancelled, and can be cancelled again", async () => {
  const { run, open, signals } = gate(true);
  const caller = taskClient(jobServer(run));
  const id = await startTask(caller);
  const acknowledged = await caller.call("tasks/cancel", { taskId: id });
  expect(Object.keys(acknowledged).toSorted()).toEqual(["_meta", "resultType"]);
  expect(signals[0]?.aborted).toBe(true);
  const state = await getTask(caller, id);
  expect(state).toMatchObject({ status: "cancelled", statusMessage: expect.stringContaining("cancelled") });
  // A tool that ignores its signal changes nothing more.
  open();
  await new Promise((resolve) => setImmediate(resolve));
  expect(await caller.call("tasks/cancel", { taskId: id })).toEqual(acknowledged);
  expect(await getTask(caller, id)).toEqual(state);
});

it("a cancelled task rejects its open requests", async () => {
  const rejected: unknown[] = [];
  const caller = taskClient(
    jobServer((_args, { ask }) => ask.elicit(QUESTION).catch((error: unknown) => void rejected.push(error))),
  );
  const id = await startTask(caller);
  await untilStatus(caller, id, "input_required");
  await caller.call("tasks/cancel", { taskId: id });
  expect(await getTask(caller, id)).not.toHaveProperty("inputRequests");
  await eventually(() => expect(rejected).toHaveLength(1));
  await caller.call("tasks/update", { taskId: id, inputResponses: { 1: { action: "accept" } } });
  expect(await getTask(caller, id)).toMatchObject({ status: "cancelled" });
});

it("a cancelled task stays completed if it was over before", async () => {
  const caller = taskClient(jobServer(() => "done"));
  const id = await startTask(caller);
  const state = await untilStatus(caller, id, "completed");
  expect(await caller.call("tasks/cancel", { taskId: id })).toMatchObject({ resultType: "complete" });
  expect(await getTask(caller, id)).toEqual(state);
});

class Unreadable extends McpError {
  override toBody(): never {
    throw new Error("unreadable");
  }
}
const runs: readonly (readonly [name: string, run: TaskTool])[] = [
  ["a result with a BigInt in it", () => ({ content: [{ type: "text", text: "x", _meta: { n: 1n } }] })],
  ["an error whose toBody throws", () => Promise.reject(new Unreadable(-1, "x"))],
  ["an error with a BigInt in it", () => Promise.reject(new McpError(-1, "x", { n: 1n }))],
];

it.each(runs)("a task with something that has no JSON fails: %s", async (_name, run) => {
  const caller = taskClient(jobServer(run));
  const state = await untilStatus(caller, await startTask(caller), "failed");
  expect(JSON.parse(JSON.stringify(state))).toMatchObject({ status: "failed", error: { code: -32603 } });
});

it("a task with something that has no JSON cannot send a request without JSON, and goes on", async () => {
  const request = { method: "roots/list", params: { _meta: { n: 1n } } };
  const caller = taskClient(jobServer(async (_args, { ask }) => ask(request).catch(() => "not sent")));
  expect(await untilStatus(caller, await startTask(caller), "completed")).toMatchObject({
    result: { content: [{ text: "not sent" }] },
  });
});
