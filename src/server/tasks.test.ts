// Calls of a server's tools that become tasks: when they do, how they end, and what the server says of them.

import { describe, expect, it, vi } from "vitest";
import { desk } from "../../test/support/desk.ts";
import {
  gate,
  get,
  idOf,
  knowing,
  KNOWS,
  QUESTION,
  type Run,
  serverOf,
  start,
  when,
} from "../../test/support/task-desk.ts";
import type { Context, Result } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import { NEWEST_SESSION } from "../protocol/revisions/index.ts";
import { TASK_SUPPORT, TASK_WANTED, TASKS, TASKS_LISTED } from "../protocol/tasks.ts";
import type { TaskOptions } from "./options.ts";
import { createServer, inputRequired } from "./index.ts";

describe("a call that becomes a task", () => {
  it("is answered with a handle that is good at once, and with the result when it is over", async () => {
    const { run, open } = gate();
    const caller = knowing(serverOf(run, { support: "optional", ttlMs: 5_000, pollIntervalMs: 20 }));
    const made = await start(caller);
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
    expect(await get(caller, id)).toEqual({ ...made, resultType: "complete" });
    open();
    expect(await when(caller, id, "completed")).toMatchObject({
      resultType: "complete",
      result: { content: [{ type: "text", text: "done" }], isError: false },
    });
  });

  it("is an ordinary call for a caller that knows no tasks, unless the tool insists", async () => {
    const ordinary = desk(serverOf(() => "done"));
    expect(await start(ordinary)).toMatchObject({ resultType: "complete", content: [{ text: "done" }] });
    const run = vi.fn(() => "done");
    const error = await desk(serverOf(run, "required")).refused("tools/call", { name: "job" });
    expect(error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } },
    });
    expect(run).not.toHaveBeenCalled();
  });

  it("is answered at once where its arguments do not fit, or its tool is unknown", async () => {
    const server = createServer({ name: "a", version: "1" }).tool(
      "job",
      { task: "required", input: { type: "object", required: ["n"] } },
      () => "done",
    );
    const caller = knowing(server);
    expect(await start(caller)).toMatchObject({ resultType: "complete", isError: true });
    expect(await caller.refused("tools/call", { name: "none" })).toMatchObject({ code: -32602 });
  });

  it("ignores a field that only the revision before had", async () => {
    const server = createServer({ name: "a", version: "1" }).tool("plain", {}, () => "done");
    const caller = knowing(server);
    expect(await caller.call("tools/call", { name: "plain", task: { ttl: 1 } })).toMatchObject({
      resultType: "complete",
    });
    // Said by the front of that revision, it is another matter.
    expect(await caller.refused("tools/call", { name: "plain", [TASK_WANTED]: true })).toMatchObject({
      code: -32601,
    });
  });

  it("shows what the tool says of its progress, and lets go of it when it is over", async () => {
    const { run, open } = gate();
    const caller = knowing(
      serverOf((args, context) => {
        context.progress(1, 2, "half");
        return run(args, context);
      }),
    );
    const id = await idOf(caller);
    expect(await get(caller, id)).toMatchObject({ status: "working", statusMessage: "half" });
    // An exchange is over with its answer.
    expect(caller.told).toEqual([]);
    open();
    expect(await when(caller, id, "completed")).not.toHaveProperty("statusMessage");
  });

  it("ends as failed with an error of the protocol, and as completed with a failure of the tool", async () => {
    const broken = knowing(
      serverOf(() => {
        throw McpError.of("internal_error", "Broken");
      }),
    );
    const failed = await when(broken, await idOf(broken), "failed");
    expect(failed).toMatchObject({ statusMessage: "Broken", error: { code: -32603, message: "Broken" } });
    expect(failed).not.toHaveProperty("result");
    const failing = knowing(
      serverOf(() => {
        throw new Error("No paper");
      }),
    );
    expect(await when(failing, await idOf(failing), "completed")).toMatchObject({
      result: { isError: true, content: [{ text: "No paper" }] },
    });
  });

  it.each(["completed", "failed", "cancelled"])(
    "has nothing more to say when it is %s, whatever its tool does",
    async (how) => {
      let say: () => void = () => undefined;
      let end: () => void = () => undefined;
      const server = createServer({ name: "a", version: "1", logging: true }).tool(
        "job",
        { task: "required" },
        async (_args, { progress, log }) => {
          let count = 0;
          say = () => {
            progress((count += 1), 9, "more");
            log("error", count);
          };
          say();
          await new Promise<void>((resolve) => {
            end = resolve;
          });
          if (how === "failed") throw McpError.of("internal_error", "Broken");
        },
      );
      // Session style: there, what comes after the handle has a way.
      const { context, told } = desk(server, { caller: { capabilities: KNOWS }, logLevel: "debug" });
      const session: Context = { ...context, revision: NEWEST_SESSION.name };
      const { taskId } = await server({ method: "tools/call", params: { name: "job" } }, session);
      say();
      expect(told).toHaveLength(4);
      if (how === "cancelled") await server({ method: "tasks/cancel", params: { taskId } }, session);
      else end();
      const caller = knowing(server);
      await when(caller, taskId as string, how);
      say();
      expect(told).toHaveLength(4);
      expect(await get(caller, taskId as string)).not.toHaveProperty("statusMessage", "more");
      end();
    },
  );

  it("is not touched by the end of the request that made it", async () => {
    const { run, open, signals } = gate();
    const caller = knowing(serverOf(run));
    const id = await idOf(caller);
    caller.abort(new Error("gone"));
    expect(signals[0]?.aborted).toBe(false);
    open();
    expect(await when(caller, id, "completed")).toBeDefined();
  });
});

describe("a tool that detaches", () => {
  const options: TaskOptions = { support: "optional", when: "when-detached" };

  it("asks as in a call until then, and through the task from then on", async () => {
    const run: Run = async (_args, { ask, detach }) => {
      const first = await ask.elicit(QUESTION);
      detach();
      detach();
      const second = await ask.elicit(QUESTION);
      return `${first.action}, ${second.action}`;
    };
    const answer = (): Result => ({ action: "decline" });
    const caller = desk(serverOf(run, options), { caller: { capabilities: KNOWS }, answer });
    const id = await idOf(caller);
    expect(caller.asked).toHaveLength(1);
    const asking = await when(caller, id, "input_required");
    expect(Object.keys(asking["inputRequests"] as object)).toEqual(["1"]);
    await caller.call("tasks/update", { taskId: id, inputResponses: { 1: { action: "accept" } } });
    expect(await when(caller, id, "completed")).toMatchObject({ result: { content: [{ text: "decline, accept" }] } });
  });

  it("is an ordinary call where it never does, or where the caller cannot have a task", async () => {
    const never = knowing(serverOf(() => "done", options));
    expect(await start(never)).toMatchObject({ resultType: "complete", content: [{ text: "done" }] });
    const run: Run = async (_args, { ask, detach }) => {
      detach();
      return (await ask.elicit(QUESTION)).action;
    };
    const answer = (): Result => ({ action: "cancel" });
    const ordinary = desk(serverOf(run, options), { caller: { capabilities: { elicitation: {} } }, answer });
    expect(await start(ordinary)).toMatchObject({ resultType: "complete", content: [{ text: "cancel" }] });
  });

  it("may also return its questions before, to be called again", async () => {
    const run: Run = (_args, { answers, state, detach }) => {
      if (state === undefined) return inputRequired({ who: { method: "elicitation/create", params: QUESTION } }, 1);
      detach();
      return `Hello, ${String((answers["who"] as { content?: { name?: unknown } }).content?.name)}`;
    };
    const caller = knowing(serverOf(run, options));
    const asked = await start(caller);
    expect(asked).toMatchObject({ resultType: "input_required" });
    const made = await caller.call("tools/call", {
      name: "job",
      requestState: asked["requestState"],
      inputResponses: { who: { action: "accept", content: { name: "Ada" } } },
    });
    expect(made).toMatchObject({ resultType: "task" });
    expect(made).not.toHaveProperty("requestState");
    expect(await when(caller, made["taskId"] as string, "completed")).toMatchObject({
      result: { content: [{ text: "Hello, Ada" }] },
    });
  });

  it("hears the end of the request as long as it has not detached, and detaches no more after it", async () => {
    let heard: AbortSignal | undefined;
    const caller = knowing(
      serverOf(async (_args, { signal, detach }) => {
        heard = signal;
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        detach();
        return "late";
      }, options),
    );
    const call = start(caller);
    await vi.waitFor(() => expect(heard).toBeDefined());
    caller.abort(new Error("gone"));
    expect(heard?.aborted).toBe(true);
    expect(await call).toMatchObject({ resultType: "complete" });
  });
});

describe("what a server says of tasks", () => {
  it("is an extension, once there is a tool that can be one", async () => {
    const server = createServer({ name: "a", version: "1" }).tool("plain", { task: "forbidden" }, () => "x");
    const caller = desk(server);
    expect((await caller.call("server/discover"))["capabilities"]).toEqual({ tools: { listChanged: true } });
    server.tool("job", { task: "optional" }, () => "x");
    expect((await caller.call("server/discover"))["capabilities"]).toEqual({
      tools: { listChanged: true },
      extensions: { [TASKS]: {} },
    });
    const { tools } = (await caller.call("tools/list")) as unknown as { tools: { [TASK_SUPPORT]?: string }[] };
    expect(tools.map((tool) => tool[TASK_SUPPORT])).toEqual(["forbidden", "optional"]);
    // On no wire is anything of that to be seen.
    expect(JSON.parse(JSON.stringify(tools))).toEqual([
      { name: "plain", inputSchema: { type: "object" } },
      { name: "job", inputSchema: { type: "object" } },
    ]);
  });

  it("is not a list, but for a front that needs one for its caller", async () => {
    const { run } = gate();
    const server = serverOf(run);
    const ids = [await idOf(knowing(server, "ada")), await idOf(knowing(server, "ada"))];
    await idOf(knowing(server, "bob"));
    const caller = knowing(server, "ada");
    expect(await caller.refused("tasks/list", {})).toMatchObject({ code: -32601 });
    const { tasks } = await caller.call("tasks/list", { [TASKS_LISTED]: true });
    expect(tasks).toMatchObject(ids.map((taskId) => ({ taskId, status: "working" })));
    expect(await desk(server).refused("tasks/list", { [TASKS_LISTED]: true })).toMatchObject({ code: -32021 });
    await server.close();
  });

  it("ends with the server: every tool is told, every listen ends, no task is left", async () => {
    const { run, signals } = gate();
    const server = serverOf(run);
    const caller = knowing(server);
    const ids = [await idOf(caller), await idOf(caller)];
    const listen = caller.call("subscriptions/listen", { notifications: { taskIds: ids } });
    await vi.waitFor(() => expect(caller.told).toHaveLength(3));
    await server.close();
    await listen;
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    for (const taskId of ids) expect(await caller.refused("tasks/get", { taskId })).toMatchObject({ code: -32602 });
  });
});
