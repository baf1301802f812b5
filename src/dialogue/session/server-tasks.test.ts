// Tasks of a session-style server, with a fake server: which calls become a task, their outcome, who may see them, and
// how they are cancelled. Requests reach the server in its own form; results come back in that of the newest revision.

import { describe, expect, it, vi } from "vitest";
import { as, desk, FORM, KNOWS, silence, TEXT, unaware, UNKNOWN, RELATED } from "../../../test/support/tasks/session-task-server.ts";
import type { Context } from "../../core/handler.ts";
import { REVISIONS } from "../../protocol/revisions/index.ts";
import { TASK_SUPPORT, TASK_REQUESTED, TASKS_EXTENSION, LISTS_TASKS } from "../../protocol/tasks.ts";

type Loose = { readonly [key: string]: unknown };

describe("the capabilities of a server", () => {
  it("include the extension only if it can run calls as tasks", async () => {
    const capabilities = async (tasks: Loose): Promise<unknown> => {
      const { opened } = await desk({ capabilities: { tools: {}, tasks } });
      return opened.discovered["capabilities"];
    };
    const extended = { tools: {}, extensions: { [TASKS_EXTENSION]: {} } };
    expect(await capabilities({ list: {}, cancel: {}, requests: { tools: { call: {} } } })).toEqual(extended);
    expect(await capabilities({ requests: { tools: { call: {} } } })).toEqual(extended);
    expect(await capabilities({ list: {}, requests: { tools: {} } })).toEqual({ tools: {} });
    expect(await capabilities({})).toEqual({ tools: {} });
  });

  it.each(REVISIONS.filter(({ requests }) => requests.has("initialize") && !requests.has("tasks/get")))(
    "never include it in $name",
    async ({ name }) => {
      const { ask, end, opened } = await desk({ revision: name });
      expect(opened.discovered["capabilities"]).toEqual({ tools: {} });
      expect(await ask("tools/call", { name: "job", [TASK_REQUESTED]: "if-supported" })).toMatchObject({
        content: [{ text: "plain" }],
      });
      expect(end.all("tools/list")).toEqual([]);
      expect(end.last("tools/call")).not.toHaveProperty("task");
      await expect(ask("tasks/get", { taskId: "x" })).rejects.toMatchObject({ code: -32601 });
    },
  );
});

describe("a call", () => {
  const tools = { job: "required", maybe: "optional", never: "forbidden", silent: "" };

  it("is sent as a task if its tool requires one, and answered in the newest form", async () => {
    const { ask, end } = await desk();
    expect(await ask("tools/call", { name: "job", arguments: { a: 1 } })).toEqual({
      resultType: "task",
      taskId: "task-1",
      status: "working",
      createdAt: "2026-01-01T00:00:00Z",
      lastUpdatedAt: "2026-01-01T00:00:00Z",
      ttlMs: 60_000,
      pollIntervalMs: 100,
    });
    expect(end.last("tools/call")).toEqual({ name: "job", arguments: { a: 1 }, task: { ttl: 3_600_000 } });
  });

  it.each([
    ["job", undefined, true],
    ["maybe", undefined, false],
    ["maybe", "if-supported", true],
    ["maybe", true, true],
    ["never", "if-supported", false],
    ["silent", "if-supported", false],
    ["nowhere", undefined, false],
    // The server reports what is wrong with it.
    ["nowhere", true, false],
  ] as const)("of %s with a task request of %j runs as a task: %j", async (name, wanted, isTask) => {
    const { ask, end } = await desk({ tools });
    const result = await ask("tools/call", { name, ...(wanted === undefined ? {} : { [TASK_REQUESTED]: wanted }) });
    expect(result.resultType).toBe(isTask ? "task" : "complete");
    expect("task" in end.last("tools/call")).toBe(isTask);
  });

  it.each(["never", "silent"])("of %s is refused and not sent if the caller insists on a task", async (name) => {
    const { ask, end } = await desk({ tools });
    await expect(ask("tools/call", { name, [TASK_REQUESTED]: true })).rejects.toMatchObject({
      code: -32601,
      message: `Tool ${name} cannot be run as a task`,
    });
    expect(end.all("tools/call")).toEqual([]);
  });

  it("lists the tools once, page by page, and again after they have changed", async () => {
    const { ask, end } = await desk({ tools });
    await Promise.all(["job", "never", "maybe"].map((name) => ask("tools/call", { name })));
    await ask("tools/call", { name: "nowhere" });
    expect(end.all("tools/list")).toHaveLength(4);
    end.peer.send({ method: "notifications/tools/list_changed" });
    await ask("tools/call", { name: "never" });
    await ask("tools/call", { name: "job" });
    expect(end.all("tools/list")).toHaveLength(8);
  });

  it("needs no list if one passed by, which is marked for handlers in this process", async () => {
    const { ask, end } = await desk({ tools });
    const { tools: page } = (await ask("tools/list", { cursor: "3" })) as { tools: readonly Loose[] };
    expect(page[0]).toMatchObject({ name: "silent", [TASK_SUPPORT]: "forbidden" });
    const [first] = (await ask("tools/list"))["tools"] as readonly Loose[];
    expect(first).toMatchObject({ execution: { taskSupport: "required" }, [TASK_SUPPORT]: "required" });
    await ask("tools/call", { name: "job" });
    await ask("tools/call", { name: "silent" });
    expect(end.all("tools/list")).toHaveLength(2);
  });

  it("is sent unchanged if the tools cannot be listed", async () => {
    const error = { code: -32603, message: "Not now" };
    const { ask, end } = await desk({ answer: ({ method }) => (method === "tools/list" ? { error } : undefined) });
    expect(await ask("tools/call", { name: "job" })).toMatchObject({ content: [{ text: "plain" }] });
    expect(end.last("tools/call")).not.toHaveProperty("task");
  });

  it("can be cancelled while the tools are listed", async () => {
    const { ask, end } = await desk({ answer: ({ method }) => (method === "tools/list" ? silence : undefined) });
    const stop = new AbortController();
    const call = ask("tools/call", { name: "job" }, { signal: stop.signal });
    await end.peer.until(({ method }) => method === "tools/list");
    stop.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
    expect(end.all("tools/call")).toEqual([]);
  });

  it("that did not request a task must not be answered with one", async () => {
    const answer = ({ method }: Loose) => (method === "tools/call" ? { result: { task: { taskId: "x" } } } : undefined);
    const { ask } = await desk({ tools: { never: "forbidden" }, answer });
    await expect(ask("tools/call", { name: "never" })).rejects.toMatchObject({
      name: "ConnectionError",
      kind: "protocol",
    });
  });

  it("may be answered without a task after all", async () => {
    const { ask } = await desk({ answer: ({ method }) => (method === "tools/call" ? { result: TEXT } : undefined) });
    expect(await ask("tools/call", { name: "job" })).toEqual({ ...TEXT, resultType: "complete" });
  });
});

describe("a task", () => {
  it("is finished with its result inside, which is fetched once", async () => {
    const { end, start, get } = await desk();
    const id = await start();
    expect(await get(id)).toMatchObject({ resultType: "complete", status: "working", ttlMs: 60_000 });
    end.finish(id, "completed", { result: { ...TEXT, _meta: { [RELATED]: { taskId: id }, own: 1 } } });
    const over = await get(id);
    expect(over).toMatchObject({
      resultType: "complete",
      status: "completed",
      result: { ...TEXT, resultType: "complete", _meta: { own: 1 } },
    });
    expect(await get(id)).toEqual(over);
    expect(end.all("tasks/result")).toHaveLength(1);
    expect(end.all("tasks/get")).toHaveLength(2);
  });

  it("is completed if its tool returned isError, and failed only after a protocol error", async () => {
    const { end, start, get } = await desk();
    const [tool, error] = [await start(), await start()];
    end.finish(tool, "failed", { result: { ...TEXT, isError: true } });
    expect(await get(tool)).toMatchObject({ status: "completed", result: { isError: true } });
    end.finish(error, "failed", { error: { code: -31_001, message: "Out of order", data: { since: 1 } } });
    end.move(error, { statusMessage: "Broken" });
    const failed = await get(error);
    expect(failed).toMatchObject({ status: "failed", statusMessage: "Broken" });
    expect(failed["error"]).toEqual({ code: -31_001, message: "Out of order", data: { since: 1 } });
    expect(failed).not.toHaveProperty("result");
  });

  it("is polled again if its result could not be fetched", async () => {
    let fails = true;
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    const { end, start, get } = await desk({
      answer: ({ method }) => (method === "tasks/result" && fails ? silence : undefined),
    });
    const id = await start();
    end.finish(id, "completed", { result: TEXT });
    const looked = get(id).catch((error: unknown) => error);
    await vi.waitFor(() => expect(end.all("tasks/result")).toHaveLength(1));
    await vi.advanceTimersByTimeAsync(60_000);
    vi.useRealTimers();
    expect(await looked).toMatchObject({ kind: "timeout" });
    fails = false;
    expect(await get(id)).toMatchObject({ status: "completed", result: TEXT });
  });

  it("is unknown if it is gone or never existed", async () => {
    const { end, start, get, ask } = await desk();
    const id = await start();
    end.forget(id);
    await expect(get(id)).rejects.toMatchObject(UNKNOWN);
    for (const method of ["tasks/get", "tasks/cancel", "tasks/update"]) {
      await expect(ask(method, { taskId: "none", inputResponses: {} })).rejects.toMatchObject(UNKNOWN);
    }
  });

  it("from before the connection is found by unauthenticated callers", async () => {
    const { end, get } = await desk();
    end.make("old");
    expect(await get("old")).toMatchObject({ taskId: "old", status: "working" });
    end.make("older");
    end.finish("older", "completed", { result: TEXT });
    expect(await get("older")).toMatchObject({ status: "completed", result: TEXT });
    end.make("oldest");
    await expect(get("oldest", as("ada"))).rejects.toMatchObject(UNKNOWN);
  });

  it("belongs to the principal that created it", async () => {
    const { end, start, get, ask, listen } = await desk();
    const id = await start(as("ada"));
    for (const stranger of [as("bob"), {}]) {
      await expect(get(id, stranger)).rejects.toMatchObject(UNKNOWN);
      await expect(ask("tasks/cancel", { taskId: id }, stranger)).rejects.toMatchObject(UNKNOWN);
      const update = ask("tasks/update", { taskId: id, inputResponses: {} }, stranger);
      await expect(update).rejects.toMatchObject(UNKNOWN);
    }
    const { heard, stop, over } = listen(id);
    await vi.waitFor(() => expect(heard).toHaveLength(1));
    expect(heard[0]).toMatchObject({ notifications: {} });
    expect(heard[0]).not.toHaveProperty("notifications.taskIds");
    stop.abort();
    await over;
    expect(end.all("tasks/get")).toEqual([]);
    expect(await get(id, as("ada"))).toMatchObject({ status: "working" });
    const listed = async (more: Partial<Context>): Promise<unknown> =>
      (await ask("tasks/list", { [LISTS_TASKS]: true }, more))["tasks"];
    expect(await listed(as("ada"))).toMatchObject([{ taskId: id }]);
    expect(await listed(as("bob"))).toEqual([]);
  });

  it("is visible to callers with at least the scopes of its creator", async () => {
    const { start, get } = await desk();
    const rights = (...scopes: string[]): Partial<Context> => ({
      caller: { capabilities: KNOWS, principal: "ada", scopes },
    });
    const id = await start(rights("run"));
    await expect(get(id, rights("look"))).rejects.toMatchObject({ kind: "access_denied" });
    expect(await get(id, rights("look", "run"))).toMatchObject({ status: "working" });
  });

  it("is refused to callers without the extension, as are methods that the newest form lacks", async () => {
    const { start, ask } = await desk();
    const taskId = await start();
    for (const [method, params] of [
      ["tasks/get", { taskId }],
      ["tasks/cancel", { taskId }],
      ["tasks/update", { taskId, inputResponses: {} }],
      ["subscriptions/listen", { notifications: { taskIds: [taskId] } }],
    ] as const) {
      await expect(ask(method, params, unaware), method).rejects.toMatchObject({ kind: "missing_capability" });
    }
    for (const method of ["tasks/list", "tasks/result"]) {
      await expect(ask(method, { taskId })).rejects.toMatchObject({ kind: "method_not_found" });
    }
  });
});

it("never requests a task from a server without tasks", async () => {
  const { ask, end } = await desk({ capabilities: { tools: {}, tasks: { list: {}, cancel: {} } } });
  for (const method of ["tasks/get", "tasks/cancel", "tasks/list"]) {
    await expect(ask(method, { taskId: "x", [LISTS_TASKS]: true })).rejects.toMatchObject({ code: -32601 });
    expect(end.all(method)).toEqual([]);
  }
});

it("takes a status that comes before the call is answered", async () => {
  const { ask, end, get } = await desk({
    answer: ({ method, id }) => {
      if (method !== "tools/call") return undefined;
      end.make("quick");
      end.finish("quick", "completed", { result: TEXT });
      end.tell("quick");
      end.peer.send({ id, result: { task: { ...end.make("other"), taskId: "quick" } } });
      return silence;
    },
  });
  await ask("tools/call", { name: "job" });
  await end.peer.until(({ method }) => method === "tasks/result");
  expect(await get("quick")).toMatchObject({ status: "completed", result: TEXT });
  expect(end.all("tasks/get")).toEqual([]);
});

describe("cancelling", () => {
  it("is local if the server has not declared it: the server is not asked, but callers see it", async () => {
    const capabilities = { tools: {}, tasks: { list: {}, requests: { tools: { call: {} } } } };
    const { end, start, ask, get, listen } = await desk({ capabilities });
    const id = await start();
    const { heard, over } = listen(id);
    expect(await ask("tasks/cancel", { taskId: id })).toEqual({ resultType: "complete" });
    await over;
    const statusMessage = "Cancelled by request; the server cannot cancel tasks and may still be working on it";
    expect(heard.at(-1)).toMatchObject({ taskId: id, status: "cancelled", statusMessage });
    end.finish(id, "completed", { result: TEXT });
    end.tell(id);
    expect(await get(id)).toMatchObject({ status: "cancelled", statusMessage, ttlMs: 60_000 });
    expect(await end.ask(id, "elicitation/create", FORM).answer).toHaveProperty("error");
    expect(end.all("tasks/cancel")).toEqual([]);
    expect(end.all("tasks/result")).toEqual([]);
  });

  it("is passed on, and acknowledged even if there is nothing left to cancel", async () => {
    const { end, start, ask, get } = await desk();
    const id = await start();
    expect(await ask("tasks/cancel", { taskId: id })).toEqual({ resultType: "complete" });
    expect(await get(id)).toMatchObject({ status: "cancelled", statusMessage: "As you wish" });
    expect(end.all("tasks/result")).toEqual([]);
    const done = await start();
    end.finish(done, "completed", { result: TEXT });
    expect(await ask("tasks/cancel", { taskId: done })).toEqual({ resultType: "complete" });
    expect(await get(done)).toMatchObject({ status: "completed" });
    expect(await ask("tasks/cancel", { taskId: done })).toEqual({ resultType: "complete" });
    expect(end.all("tasks/cancel")).toHaveLength(2);
  });

  it("is acknowledged if the server refuses, and fails if the connection does", async () => {
    let error = { code: -32601, message: "Method not found" };
    const { start, ask, get } = await desk({
      answer: ({ method }) => (method === "tasks/cancel" ? { error } : undefined),
    });
    const id = await start();
    await ask("tasks/cancel", { taskId: id });
    expect(await get(id)).toMatchObject({ status: "working" });
    error = { code: -32603, message: "Broken" };
    await expect(ask("tasks/cancel", { taskId: id })).rejects.toMatchObject({ message: "Broken" });
  });
});
