// Handles and calls toward an end that is made by hand: what fails on the way, what the end does of its own accord,
// and what it gets to hear of us.

import { afterEach, describe, expect, it, vi } from "vitest";
import { taskServer, type TaskServer, type TaskServerOptions } from "../../test/support/task-end.ts";
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

/** A client in front of the end; the next requests of a method fail as it is told. */
async function facing(
  options: TaskServerOptions = {},
  how: ConnectOptions = {},
): Promise<{ end: TaskServer; client: Client; break(method: string, ...errors: Error[]): void }> {
  const end = taskServer({ pollIntervalMs: 100, ...options });
  const faults = new Map<string, Error[]>();
  const handler: Handler = async (request, context) => {
    const error = faults.get(request.method)?.shift();
    if (error !== undefined) throw error;
    return end.handler(request, context);
  };
  const client = await connect(handler, how);
  clients.push(client);
  return { end, client, break: (method, ...errors) => faults.set(method, errors) };
}

const lost = (): ConnectionError => new ConnectionError("http", "The end answered 502 Bad Gateway");

describe("a task whose end is hard to reach", () => {
  it("is asked for again after a few failures, be it by a call or by its handle", async () => {
    const { end, client, break: fail } = await facing({ listens: false });
    const handle = await client.startTool("job");
    fail("tasks/get", lost(), lost());
    const result = handle.result();
    end.move("task-1", DONE);
    expect(textOf(await result)).toBe("done");
    fail("tasks/get", lost());
    const call = client.callTool("job");
    await vi.waitFor(() => expect(end.count("tools/call")).toBe(2));
    end.move("task-2", DONE);
    expect(textOf(await call)).toBe("done");
    expect(end.count("tasks/cancel")).toBe(0);
  });

  it("is given up in the end, and with the call it is cancelled", async () => {
    const { end, client, break: fail } = await facing({ listens: false });
    fail("tasks/get", lost(), lost(), lost(), lost());
    await expect(client.callTool("job")).rejects.toMatchObject({ name: "ConnectionError", kind: "http" });
    expect(end.count("tasks/cancel")).toBe(1);
    const handle = await client.startTool("job");
    fail("tasks/get", lost(), lost(), lost(), lost());
    await expect(handle.result()).rejects.toMatchObject({ kind: "http" });
    expect(end.count("tasks/cancel")).toBe(1);
    // The handle is as good as before.
    end.move("task-2", DONE);
    expect(textOf(await handle.result())).toBe("done");
  });

  it("says so to who only looks on, too", async () => {
    const { end, client } = await facing({ listens: false });
    const handle = await client.startTool("job");
    end.forget("task-1");
    const looking = (async () => {
      for await (const { status } of handle) expect(status).toBe("working");
    })();
    await expect(looking).rejects.toMatchObject({ code: -32602, data: { taskId: "task-1" } });
    await expect(handle.refresh()).rejects.toThrow("no longer knows the task task-1");
    await expect(handle.cancel()).rejects.toMatchObject({ code: -32602 });
  });
});

describe("an end that acts of its own accord", () => {
  it("cancels a task: whoever waits is told, as of any other cancellation", async () => {
    const { end, client } = await facing();
    const call = client.callTool("job");
    await vi.waitFor(() => expect(end.count("subscriptions/listen")).toBe(1));
    end.move("task-1", { status: "cancelled", statusMessage: "Closing time" });
    await expect(call).rejects.toMatchObject({
      kind: "cancelled",
      message: "The task task-1 was cancelled: Closing time",
    });
  });

  it("gives a handle of what is over already: it is asked what came of it", async () => {
    const times = { createdAt: "2026-01-01T00:00:00Z", lastUpdatedAt: "2026-01-01T00:00:00Z", ttlMs: null };
    const { end, client } = await facing({
      call: () => {
        end.move("ready", { taskId: "ready", ...times, ...DONE });
        return { resultType: "task", taskId: "ready", status: "completed", ...times };
      },
    });
    expect(textOf(await client.callTool("job"))).toBe("done");
    const handle = await client.startTool("job");
    expect(handle.isOver).toBe(false);
    expect((await handle.refresh()).status).toBe("completed");
    expect(textOf(await handle.result())).toBe("done");
  });

  it("fails a task without a word of the error, but with one beside it", async () => {
    const { end, client } = await facing();
    const handle = await client.startTool("job");
    end.move("task-1", { status: "failed", error: { code: -32603, message: "No result" }, statusMessage: "No paper" });
    await expect(handle.result()).rejects.toMatchObject({ code: -32603, message: "No result (No paper)" });
    const mute = await client.startTool("job");
    end.move("task-2", { status: "completed" });
    await expect(mute.result()).rejects.toBeInstanceOf(McpError);
  });

  it("never heeds a cancellation: for us the task is cancelled all the same", async () => {
    const end = taskServer();
    const heedless: Handler = async (request, context) =>
      request.method === "tasks/cancel" ? { resultType: "complete" } : end.handler(request, context);
    const client = await connect(heedless);
    clients.push(client);
    const handle = await client.startTool("job");
    const waiting = handle.result();
    waiting.catch(() => undefined);
    await handle.cancel();
    expect(await client.request("tasks/get", { taskId: handle.id })).toMatchObject({ status: "working" });
    expect(handle.status).toBe("cancelled");
    await expect(waiting).rejects.toMatchObject({ kind: "cancelled" });
  });
});

describe("an end that wants to be asked seldom", () => {
  it.each([true, false])("is not asked before its time, where it grants listens %j", async (listens) => {
    const { end, client } = await facing({ listens, pollIntervalMs: 5_000 });
    vi.useFakeTimers();
    try {
      const handle = await client.startTool("job");
      const results = [client.callTool("job"), handle.result()];
      await vi.advanceTimersByTimeAsync(4_900);
      expect(end.count("tools/call")).toBe(2);
      expect(end.count("tasks/get")).toBe(0);
      await vi.advanceTimersByTimeAsync(200);
      expect(end.count("tasks/get")).toBe(2);
      for (const id of ["task-1", "task-2"]) end.move(id, DONE);
      await vi.advanceTimersByTimeAsync(listens ? 0 : 5_000);
      for (const result of await Promise.all(results)) expect(textOf(result)).toBe("done");
    } finally {
      vi.useRealTimers();
    }
  });
});

describe("what a task asks", () => {
  it("is answered once, though it is shown again and again", async () => {
    const asked: string[] = [];
    const given: unknown[] = [];
    const { end, client } = await facing(
      { listens: false, update: (_id, responses) => void given.push(responses) },
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
    const handle = await client.startTool("job");
    end.move("task-1", { status: "input_required", inputRequests: { a: ROOTS, b: FORM } });
    const result = handle.result();
    await vi.waitFor(() => expect(given).toHaveLength(2));
    // The end is slow to take note.
    const looks = end.count("tasks/get");
    await vi.waitFor(() => expect(end.count("tasks/get")).toBeGreaterThan(looks + 1));
    end.move("task-1", DONE);
    await result;
    expect(asked.toSorted()).toEqual(["form", "roots"]);
    expect(given).toEqual(expect.arrayContaining([{ a: { roots: [] } }, { b: { action: "decline" } }]));
  });

  it("is not asked by who only looks on, nor taken for an answer where the end will not have it", async () => {
    const { end, client, break: fail } = await facing({}, { roots: [] });
    const handle = await client.startTool("job");
    end.move("task-1", { status: "input_required", inputRequests: { a: ROOTS } });
    const seen = vi.fn();
    const stop = handle.onStatus(seen);
    await vi.waitFor(() => expect(seen).toHaveBeenCalledTimes(1));
    stop();
    expect(end.count("tasks/update")).toBe(0);
    fail("tasks/update", new McpError(-31_000, "Not like this"));
    await expect(handle.result()).rejects.toMatchObject({ message: "Not like this" });
    expect(end.count("tasks/cancel")).toBe(0);
  });
});
