// Tasks of a client, in process and over connections of either style: starting, waiting, answering, watching,
// cancelling and coming back.

import { afterEach, describe, expect, it } from "vitest";
import { eventually } from "../../test/support/waiting.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Message } from "../jsonrpc/message.ts";
import { McpError } from "../protocol/errors.ts";
import type { CallToolResult, DetailedTask } from "../protocol/model/index.ts";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../protocol/revisions/index.ts";
import { hasTasks } from "../protocol/tasks.ts";
import { createServer, type Server, type ToolContext } from "../server/index.ts";
import { connectInMemory } from "../testing.ts";
import { connect, type Client, type ConnectOptions } from "./index.ts";

const NAME = { type: "object", properties: { name: { type: "string" } } } as const;
const TASK = { pollIntervalMs: 100 };
const REQUIRED = { support: "required", ...TASK } as const;

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

interface Jobs {
  readonly server: Server;
  /** Calls of `hold` that wait, in order. */
  readonly held: { readonly context: ToolContext; readonly release: (text: string) => void }[];
  holding(count: number): Promise<void>;
}

function jobs(): Jobs {
  const held: Jobs["held"] = [];
  const hold = (_args: object, context: ToolContext): Promise<string> =>
    new Promise<string>((resolve, reject) => {
      held.push({ context, release: resolve });
      context.signal.addEventListener("abort", () => reject(context.signal.reason as Error), { once: true });
    });
  const server = createServer({ name: "jobs", version: "1" })
    .tool("plain", {}, () => "at once")
    .tool("maybe", { task: { support: "optional", ...TASK } }, (_args, { progress }) => {
      progress(1, 2, "half");
      return "maybe";
    })
    .tool("ask", { task: REQUIRED }, async (_args, { ask }) => {
      const first = await ask.elicit({ message: "First?", requestedSchema: NAME }, { key: "first" });
      const second = await ask.elicit({ message: "Second?", requestedSchema: NAME }, { key: "second" });
      return [first, second].map(({ content }) => String(content?.["name"])).join(" ");
    })
    .tool("roots", { task: REQUIRED }, async (_args, { ask }) => JSON.stringify((await ask.roots()).roots))
    .tool("hold", { task: REQUIRED }, hold)
    .tool("brief", { task: { ...REQUIRED, ttlMs: 300 } }, hold)
    .tool("fail", { task: REQUIRED }, () => {
      throw new Error("No paper");
    })
    .tool("break", { task: REQUIRED }, () => {
      throw new McpError(-31_001, "Out of order", { since: 1 });
    });
  closers.push(() => server.close());
  return { server, held, holding: (count) => eventually(() => expect(held.length).toBeGreaterThanOrEqual(count)) };
}

const textOf = ({ content }: CallToolResult): string => (content[0] as { text: string }).text;

const TARGETS = [
  ["in process", undefined],
  ["stateless", NEWEST.name],
  ["in a session", NEWEST_SESSION.name],
] as const;

describe.each(TARGETS)("tasks %s", (_, revision) => {
  async function join(
    server: Server,
    options: ConnectOptions = {},
  ): Promise<{ client: Client; sent: readonly Message[]; methods(): string[] }> {
    const joined = revision === undefined ? undefined : await connectInMemory(server, { ...options, revision });
    const client = joined?.client ?? (await connect(server, options));
    closers.unshift(() => joined?.close() ?? client.close());
    const sent = joined?.sent ?? [];
    return { client, sent, methods: () => sent.flatMap((message) => ("method" in message ? message.method : [])) };
  }

  it("tasks return their result as often as it is awaited", async () => {
    const { server, held, holding } = jobs();
    const { client } = await join(server);
    expect(hasTasks(client.capabilities)).toBe(true);
    const handle = await client.callToolAsTask("hold", {});
    expect(handle.id).toMatch(/^[0-9a-f]{32}$/);
    expect([handle.status, handle.isOver]).toEqual(["working", false]);
    expect(handle.state).toMatchObject({ taskId: handle.id, status: "working", pollIntervalMs: 100, ttlMs: 3_600_000 });
    const [one, two] = [handle.result(), handle.result()];
    await holding(1);
    held[0]?.release("held");
    expect(textOf(await one)).toBe("held");
    expect(textOf(await two)).toBe("held");
    expect(textOf(await handle.result())).toBe("held");
    expect([handle.status, handle.isOver]).toEqual(["completed", true]);
    expect(handle.state).toMatchObject({ result: { content: [{ text: "held" }] } });
  });

  it("tasks are over at once if the server answers without one", async () => {
    const { client } = await join(jobs().server);
    const handle = await client.callToolAsTask("plain");
    expect([handle.id, handle.status, handle.isOver]).toEqual(["", "completed", true]);
    expect(textOf(await handle.result())).toBe("at once");
    await handle.cancel();
    expect((await handle.refresh()).status).toBe("completed");
    const states: string[] = [];
    for await (const { status } of handle) states.push(status);
    expect(states).toEqual(["completed"]);
    await expect(client.callToolAsTask("nowhere")).rejects.toMatchObject({ code: -32602 });
  });

  it("tasks are created for tools with optional tasks on request", async () => {
    const { client } = await join(jobs().server);
    const handle = await client.callToolAsTask("maybe");
    expect(handle.id).not.toBe("");
    expect(textOf(await handle.result())).toBe("maybe");
  });

  it("tasks send each input request to the handlers of the client once", async () => {
    const asked: string[] = [];
    const { client, methods } = await join(jobs().server, {
      elicit: ({ message }) => {
        asked.push(message);
        return { action: "accept", content: { name: message } };
      },
      roots: [{ uri: "file:///work" }],
    });
    const handle = await client.callToolAsTask("ask");
    const [one, two] = await Promise.all([handle.result(), handle.result()]);
    expect(textOf(one)).toBe("First? Second?");
    expect(two).toEqual(one);
    expect(asked).toEqual(["First?", "Second?"]);
    expect(textOf(await client.callTool("ask"))).toBe("First? Second?");
    expect(asked).toHaveLength(4);
    expect(JSON.parse(textOf(await client.callTool("roots")))).toEqual([{ uri: "file:///work" }]);
    if (revision === NEWEST.name) expect(methods().filter((method) => method === "tasks/update")).toHaveLength(5);
    if (revision === NEWEST_SESSION.name) expect(methods()).not.toContain("tasks/update");
  });

  it("tasks end even if an input request cannot be answered", async () => {
    const { client } = await join(jobs().server, { elicit: () => ({ action: "decline" }) });
    const refused = await client.callTool("roots").catch((error: unknown) => error);
    // The tool decides what an undeclared request means.
    if (refused instanceof Error) expect(refused).toMatchObject({ kind: "missing_capability" });
    else expect(refused).toMatchObject({ isError: true });
    const failing = await join(jobs().server, {
      roots: () => {
        throw new Error("no roots today");
      },
    });
    const failed = failing.client.callTool("roots");
    const text = await failed.then(textOf, (error: unknown) => String(error));
    expect(text).toContain("no roots today");
  });

  it("tasks fail with a result for an error of the tool, and with an error otherwise", async () => {
    const { client } = await join(jobs().server);
    for (const call of [
      (name: string) => client.callTool(name),
      async (name: string) => (await client.callToolAsTask(name)).result(),
    ]) {
      expect(await call("fail")).toMatchObject({ isError: true, content: [{ text: "No paper" }] });
      await expect(call("break")).rejects.toMatchObject({
        name: "McpError",
        code: -31_001,
        message: "Out of order",
        data: { since: 1 },
      });
    }
  });

  it("tasks are cancelled by their handle, which rejects all waits", async () => {
    const { server, held, holding } = jobs();
    const { client } = await join(server);
    const handle = await client.callToolAsTask("hold");
    await holding(1);
    const waiting = handle.result();
    waiting.catch(() => undefined);
    await handle.cancel();
    expect(held[0]?.context.signal.aborted).toBe(true);
    expect(handle.status).toBe("cancelled");
    for (const result of [() => waiting, () => handle.result()]) {
      await expect(result()).rejects.toMatchObject({ name: "ConnectionError", kind: "cancelled" });
    }
    await handle.cancel();
  });

  it("tasks are cancelled with the call that waits for them, but not with a wait on the handle", async () => {
    const { server, held, holding } = jobs();
    const { client } = await join(server);
    const stop = new AbortController();
    const cause = new Error("changed my mind");
    const call = client.callTool("hold", {}, { signal: stop.signal });
    await holding(1);
    stop.abort(cause);
    await expect(call).rejects.toMatchObject({ name: "ConnectionError", kind: "cancelled", cause });
    await eventually(() => expect(held[0]?.context.signal.aborted).toBe(true));
    const handle = await client.callToolAsTask("hold");
    const waiting = handle.result({ signal: AbortSignal.abort(cause) });
    await expect(waiting).rejects.toMatchObject({ kind: "cancelled", cause });
    await expect(handle.result({ maxTimeoutMs: 50 })).rejects.toMatchObject({ kind: "timeout" });
    expect((await handle.refresh()).status).toBe("working");
    expect(held[1]?.context.signal.aborted).toBe(false);
  });

  it("tasks end with the call after a timeout, and with the client", async () => {
    const { server, held, holding } = jobs();
    const { client } = await join(server);
    await expect(client.callTool("hold", {}, { maxTimeoutMs: 100 })).rejects.toMatchObject({ kind: "timeout" });
    await eventually(() => expect(held[0]?.context.signal.aborted).toBe(true));
    const call = client.callTool("hold");
    const handle = await client.callToolAsTask("hold");
    await holding(3);
    const waiting = handle.result();
    waiting.catch(() => undefined);
    const watching = (async () => {
      for await (const state of handle) expect(state.status).toBe("working");
    })();
    watching.catch(() => undefined);
    const closing = client.close();
    for (const one of [call, waiting, watching]) await expect(one).rejects.toMatchObject({ kind: "closed" });
    await closing;
  });

  it("tasks can be watched by listeners and loops until they are over", async () => {
    const { server, held, holding } = jobs();
    const { client } = await join(server, { elicit: () => ({ action: "accept", content: { name: "Ada" } }) });
    const handle = await client.callToolAsTask("hold");
    await holding(1);
    const statuses: string[] = [];
    const off = handle.onStatus(() => statuses.push("no more"));
    off();
    off();
    handle.onStatus(({ status }) => statuses.push(status));
    const seen: DetailedTask[] = [];
    for await (const state of handle) {
      seen.push(state);
      held[0]?.release("held");
    }
    expect(seen.map(({ status }) => status)).toEqual(["working", "completed"]);
    expect(seen[1]).toMatchObject({ result: { content: [{ text: "held" }] } });
    expect(statuses).toEqual(["completed"]);
    const asking = await client.callToolAsTask("ask");
    const states: string[] = [];
    for await (const state of asking) {
      if (state.status !== "input_required") continue;
      states.push(...Object.values(state.inputRequests).map(({ method }) => method));
      // Only waiting for the result answers.
      if (states.length === 1) void asking.result();
    }
    expect(states).toEqual(["elicitation/create", "elicitation/create"]);
  });

  it("tasks are found by their ids, with one handle each", async () => {
    const { server, held, holding } = jobs();
    const { client } = await join(server);
    const handle = await client.callToolAsTask("hold");
    expect(await client.task(handle.id)).toBe(handle);
    const { client: other } = await join(server);
    const found = await other.task(handle.id);
    expect(found).not.toBe(handle);
    expect([found.id, found.status]).toEqual([handle.id, "working"]);
    await holding(1);
    held[0]?.release("held");
    expect(textOf(await found.result())).toBe("held");
    const over = await (await join(server)).client.task(handle.id);
    expect([over.status, textOf(await over.result())]).toEqual(["completed", "held"]);
  });

  it("tasks that are unknown or expired are reported", async () => {
    const { server } = jobs();
    const { client } = await join(server);
    await expect(client.task("none")).rejects.toMatchObject({ code: -32602, data: { taskId: "none" } });
    await expect(client.task("none")).rejects.toThrow("The server has no task none");
    const brief = await client.callToolAsTask("brief");
    expect(brief.state.ttlMs).toBe(300);
    await expect(brief.result()).rejects.toThrow(/no longer knows the task|within (the|its lifetime of) 300 ms/);
    const later = (await client.callToolAsTask("brief")).refresh();
    expect((await later).status).toBe("working");
  });

  it("tasks can be used with plain requests", async () => {
    const { client } = await join(jobs().server);
    const { id } = await client.callToolAsTask("hold");
    expect(await client.request("tasks/get", { taskId: id })).toMatchObject({ resultType: "complete", taskId: id });
    const events: unknown[] = [];
    const subscription = await client.listen({ taskIds: [id, "none"] }, ({ params }) => events.push(params));
    expect(subscription.granted).toEqual({ taskIds: [id] });
    await client.request("tasks/cancel", { taskId: id });
    await subscription.ended;
    expect(events.at(-1)).toMatchObject({ taskId: id, status: "cancelled" });
    expect(await client.request("tasks/get", { taskId: id })).toMatchObject({ status: "cancelled" });
  });

  it("tasks are avoided for calls with progress or logs, if the server allows it", async () => {
    const { server, held, holding } = jobs();
    const steps: unknown[] = [];
    const { client, sent } = await join(server);
    const onProgress = ({ message }: { message?: string }): void => void steps.push(message);
    expect(textOf(await client.callTool("maybe", {}, { onProgress }))).toBe("maybe");
    expect(steps).toEqual(["half"]);
    expect(textOf(await client.callTool("maybe"))).toBe("maybe");
    const call = client.callTool("hold", {}, { onProgress });
    await holding(1);
    held[0]?.context.progress(1, 2, "in between");
    held[0]?.release("held");
    expect(textOf(await call)).toBe("held");
    // Only the older revision has progress of tasks.
    expect(steps.slice(1)).toEqual(revision === NEWEST_SESSION.name ? ["in between"] : []);
    if (revision === NEWEST.name) {
      const declared = sent.flatMap((message) => {
        if (!("method" in message) || message.method !== "tools/call") return [];
        const meta = message.params?._meta as Record<string, unknown>;
        return hasTasks(meta["io.modelcontextprotocol/clientCapabilities"]);
      });
      // The last call was refused first, because its tool requires tasks.
      expect(declared).toEqual([false, true, false, true]);
    }
  });
});

describe.each(REVISIONS.filter(({ requests }) => !requests.has("tasks/get")).map(({ name }) => name))(
  "a server of %s",
  (revision) => {
    it("a server has no tasks: calls wait, and handles are over", async () => {
      const { server, held, holding } = jobs();
      const { client, close } = await connectInMemory(server, { revision });
      closers.unshift(close);
      const starting = client.callToolAsTask("hold");
      await holding(1);
      held[0]?.release("held");
      const handle = await starting;
      expect([handle.id, handle.status]).toEqual(["", "completed"]);
      expect(textOf(await handle.result())).toBe("held");
      expect(await client.callTool("fail")).toMatchObject({ isError: true });
      const refused = client.task("any");
      await expect(refused).rejects.toBeInstanceOf(ConnectionError);
      await expect(refused).rejects.toMatchObject({ kind: "refused" });
    });
  },
);
