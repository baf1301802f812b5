// Task handles with a scripted server: failures on the way, unexpected behaviour of the server, and the requests that
// it receives.

import { afterEach, expect, it, vi } from "vitest";
import { eventually } from "../../test/support/waiting.ts";
import { taskServer, type TaskServer, type TaskServerOptions } from "../../test/support/tasks/task-server.ts";
import { IS_LONG } from "../../test/support/thoroughness.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import type { CallToolResult } from "../protocol/model/index.ts";
import { connect, type Client, type ConnectOptions } from "./index.ts";

const ROOTS = { method: "roots/list" };
const FORM = { method: "elicitation/create", params: { message: "?", requestedSchema: { type: "object" } } };
const DONE = { status: "completed", result: { content: [{ type: "text", text: "done" }] } };

const clients: Client[] = [];
afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
});

const textOf = ({ content }: CallToolResult): string => (content[0] as { text: string }).text;

/** A client of a scripted server. `break` makes the next requests of a method fail. */
async function facing(
  options: TaskServerOptions = {},
  how: ConnectOptions = {},
): Promise<{ server: TaskServer; client: Client; break(method: string, ...errors: Error[]): void }> {
  const server = taskServer({ pollIntervalMs: 100, ...options });
  const faults = new Map<string, Error[]>();
  const handler: Handler = async (request, context) => {
    const error = faults.get(request.method)?.shift();
    if (error !== undefined) throw error;
    return server.handler(request, context);
  };
  const client = await connect(handler, how);
  clients.push(client);
  return { server, client, break: (method, ...errors) => faults.set(method, errors) };
}

const lost = (): ConnectionError => new ConnectionError("http", "The server answered 502 Bad Gateway");

it("a task of a server that is hard to reach is polled again after a few failures, by a call and by a handle", async () => {
  const { server, client, break: fail } = await facing({ grantsSubscriptions: false });
  const handle = await client.callToolAsTask("job");
  fail("tasks/get", lost(), lost());
  const result = handle.result();
  server.move("task-1", DONE);
  expect(textOf(await result)).toBe("done");
  fail("tasks/get", lost());
  const call = client.callTool("job");
  await eventually(() => expect(server.count("tools/call")).toBe(2));
  server.move("task-2", DONE);
  expect(textOf(await call)).toBe("done");
  expect(server.count("tasks/cancel")).toBe(0);
});

it.runIf(IS_LONG)(
  "a task of a server that is hard to reach is given up after more failures, and cancelled with its call",
  async () => {
    const { server, client, break: fail } = await facing({ grantsSubscriptions: false });
    fail("tasks/get", lost(), lost(), lost(), lost());
    await expect(client.callTool("job")).rejects.toMatchObject({ name: "ConnectionError", kind: "http" });
    expect(server.count("tasks/cancel")).toBe(1);
    const handle = await client.callToolAsTask("job");
    fail("tasks/get", lost(), lost(), lost(), lost());
    await expect(handle.result()).rejects.toMatchObject({ kind: "http" });
    expect(server.count("tasks/cancel")).toBe(1);
    // The handle can still be used.
    server.move("task-2", DONE);
    expect(textOf(await handle.result())).toBe("done");
  },
);

it("a task of a server that is hard to reach rejects iterations too", async () => {
  const { server, client } = await facing({ grantsSubscriptions: false });
  const handle = await client.callToolAsTask("job");
  server.forget("task-1");
  const watching = (async () => {
    for await (const { status } of handle) expect(status).toBe("working");
  })();
  await expect(watching).rejects.toMatchObject({ code: -32602, data: { taskId: "task-1" } });
  await expect(handle.refresh()).rejects.toThrow("no longer knows the task task-1");
  await expect(handle.cancel()).rejects.toMatchObject({ code: -32602 });
});

it("a server that acts unexpectedly may cancel a task, which rejects like any other cancellation", async () => {
  const { server, client } = await facing();
  const call = client.callTool("job");
  await eventually(() => expect(server.count("subscriptions/listen")).toBe(1));
  server.move("task-1", { status: "cancelled", statusMessage: "Closing time" });
  await expect(call).rejects.toMatchObject({
    kind: "cancelled",
    message: "The task task-1 was cancelled: Closing time",
  });
});

it("a server that acts unexpectedly may return a task that is already over, whose result is fetched", async () => {
  const times = { createdAt: "2026-01-01T00:00:00Z", lastUpdatedAt: "2026-01-01T00:00:00Z", ttlMs: null };
  const { server, client } = await facing({
    call: () => {
      server.move("ready", { taskId: "ready", ...times, ...DONE });
      return { resultType: "task", taskId: "ready", status: "completed", ...times };
    },
  });
  expect(textOf(await client.callTool("job"))).toBe("done");
  const handle = await client.callToolAsTask("job");
  expect(handle.isOver).toBe(false);
  expect((await handle.refresh()).status).toBe("completed");
  expect(textOf(await handle.result())).toBe("done");
});

it("a server that acts unexpectedly may fail a task with a status message, which is added to the error", async () => {
  const { server, client } = await facing();
  const handle = await client.callToolAsTask("job");
  server.move("task-1", {
    status: "failed",
    error: { code: -32603, message: "No result" },
    statusMessage: "No paper",
  });
  await expect(handle.result()).rejects.toMatchObject({ code: -32603, message: "No result (No paper)" });
  const empty = await client.callToolAsTask("job");
  server.move("task-2", { status: "completed" });
  await expect(empty.result()).rejects.toBeInstanceOf(McpError);
});

it("a server that acts unexpectedly may ignore a cancellation, but the handle is cancelled", async () => {
  const server = taskServer();
  const ignoring: Handler = async (request, context) =>
    request.method === "tasks/cancel" ? { resultType: "complete" } : server.handler(request, context);
  const client = await connect(ignoring);
  clients.push(client);
  const handle = await client.callToolAsTask("job");
  const waiting = handle.result();
  waiting.catch(() => undefined);
  await handle.cancel();
  expect(await client.request("tasks/get", { taskId: handle.id })).toMatchObject({ status: "working" });
  expect(handle.status).toBe("cancelled");
  await expect(waiting).rejects.toMatchObject({ kind: "cancelled" });
});

it.each([true, false])(
  "a server with a long poll interval is not polled earlier, with subscriptions %j",
  async (grantsSubscriptions) => {
    const { server, client } = await facing({ grantsSubscriptions, pollIntervalMs: 5_000 });
    vi.useFakeTimers();
    try {
      const handle = await client.callToolAsTask("job");
      const results = [client.callTool("job"), handle.result()];
      await vi.advanceTimersByTimeAsync(4_900);
      expect(server.count("tools/call")).toBe(2);
      expect(server.count("tasks/get")).toBe(0);
      await vi.advanceTimersByTimeAsync(200);
      expect(server.count("tasks/get")).toBe(2);
      for (const id of ["task-1", "task-2"]) server.move(id, DONE);
      await vi.advanceTimersByTimeAsync(grantsSubscriptions ? 0 : 5_000);
      for (const result of await Promise.all(results)) expect(textOf(result)).toBe("done");
    } finally {
      vi.useRealTimers();
    }
  },
);

it("an input request of a task is answered once, even if it is listed again", async () => {
  const asked: string[] = [];
  const given: unknown[] = [];
  const { server, client } = await facing(
    { grantsSubscriptions: false, update: (_id, responses) => void given.push(responses) },
    {
      roots: () => {
        asked.push("roots");
        return [];
      },
      elicit: () => {
        asked.push("form");
        return { action: "decline" };
      },
    },
  );
  const handle = await client.callToolAsTask("job");
  server.move("task-1", { status: "input_required", inputRequests: { a: ROOTS, b: FORM } });
  const result = handle.result();
  await eventually(() => expect(given).toHaveLength(2));
  // The server still lists them for a while.
  const polls = server.count("tasks/get");
  await eventually(() => expect(server.count("tasks/get")).toBeGreaterThan(polls + 1));
  server.move("task-1", DONE);
  await result;
  expect(asked.toSorted()).toEqual(["form", "roots"]);
  expect(given).toEqual(expect.arrayContaining([{ a: { roots: [] } }, { b: { action: "decline" } }]));
});

it("an input request of a task is not answered by watching, and fails if the server refuses the answer", async () => {
  const { server, client, break: fail } = await facing({}, { roots: [] });
  const handle = await client.callToolAsTask("job");
  server.move("task-1", { status: "input_required", inputRequests: { a: ROOTS } });
  const seen = vi.fn();
  const stop = handle.onStatus(seen);
  await eventually(() => expect(seen).toHaveBeenCalledTimes(1));
  stop();
  expect(server.count("tasks/update")).toBe(0);
  fail("tasks/update", new McpError(-31_000, "Not like this"));
  await expect(handle.result()).rejects.toMatchObject({ message: "Not like this" });
  expect(server.count("tasks/cancel")).toBe(0);
});
