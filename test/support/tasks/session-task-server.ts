// A server with the tasks of the newest session-style revision, made by hand, and a fixture with a client in front of it
// that uses the tasks extension. The test moves the tasks from state to state. Every message is recorded.

import { NEWEST_SESSION, NEWEST } from "../../../src/protocol/revisions/index.ts";
import { memoryPair } from "../../../src/transport/memory.ts";
import type { Transport } from "../../../src/transport/transport.ts";
import { RawPeer } from "../dialogue/raw-peer.ts";
import { afterEach, expect } from "vitest";
import { eventually } from "../waiting.ts";
import type { Caller, Context, Notification, Params, Result } from "../../../src/core/handler.ts";
import { openConnection, type ServerConnection } from "../../../src/dialogue/connect.ts";
import { fakeCaller } from "../handlers/fake-client.ts";
import { TASKS_EXTENSION } from "../../../src/protocol/tasks.ts";

type Loose = { readonly [key: string]: unknown };
type Outcome = { readonly result: Loose } | { readonly error: Loose };

export const RELATED = "io.modelcontextprotocol/related-task";
const TASKS_OFFERED = { list: {}, cancel: {}, requests: { tools: { call: {} } } };
const AT = "2026-01-01T00:00:00Z";

export interface SessionTaskServerOptions {
  /** The value of `taskSupport` by tool; the list has pages of one tool each. */
  readonly tools?: Readonly<Record<string, string>>;
  readonly capabilities?: Loose;
  readonly revision?: string;
  readonly ttl?: number | null;
  readonly pollInterval?: number;
  /** Replaces the usual answer to a request; undefined keeps it. */
  readonly answer?: (message: Loose) => Outcome | undefined;
}

export class SessionTaskServer {
  /** The client's side of the connection. */
  readonly transport: Transport;
  readonly peer: RawPeer;
  readonly #options: SessionTaskServerOptions;
  readonly #tasks = new Map<string, Loose>();
  readonly #outcomes = new Map<string, Outcome>();
  /** The ids of pending `tasks/result` requests, by task. */
  readonly #waiting = new Map<string, unknown[]>();
  #clientRequests = 0;

  constructor(options: SessionTaskServerOptions = {}) {
    const [ours, theirs] = memoryPair();
    this.transport = ours;
    this.#options = options;
    this.peer = new RawPeer({
      start: (receive) =>
        theirs.start((inbound) => {
          receive(inbound);
          const message = inbound.kind === "message" ? (inbound.message as unknown as Loose) : {};
          if ("method" in message && "id" in message) this.#answer(message);
        }),
      send: (message) => theirs.send(message),
      close: () => theirs.close(),
    });
  }

  static async start(options?: SessionTaskServerOptions): Promise<SessionTaskServer> {
    const server = new SessionTaskServer(options);
    await server.peer.start();
    return server;
  }

  /** The messages with this method. */
  received(method: string): readonly Loose[] {
    return this.peer.received.filter((message) => message["method"] === method);
  }

  /** The params of the last message with this method. */
  last(method: string): Loose {
    return (this.received(method).at(-1)?.["params"] ?? {}) as Loose;
  }

  /** Changes a task without a notification; `notify` sends one. */
  update(taskId: string, fields: Loose): void {
    this.#tasks.set(taskId, { ...this.#tasks.get(taskId), ...fields });
    const outcome = this.#outcomes.get(taskId);
    if (outcome === undefined) return;
    for (const id of this.#waiting.get(taskId) ?? []) this.peer.send({ id, ...outcome });
    this.#waiting.delete(taskId);
  }

  notify(taskId: string): void {
    this.peer.send({ method: "notifications/tasks/status", params: this.#tasks.get(taskId) });
  }

  finish(taskId: string, status: string, outcome: Outcome): void {
    this.#outcomes.set(taskId, outcome);
    this.update(taskId, { status });
  }

  forget(taskId: string): void {
    this.#tasks.delete(taskId);
  }

  /** Sends a request to the client on behalf of a task; `answer` resolves with the response. */
  requestClient(
    taskId: string | undefined,
    method: string,
    params: Loose = {},
  ): { id: string; answer: Promise<Loose> } {
    const id = `q${(this.#clientRequests += 1)}`;
    const _meta = taskId === undefined ? {} : { _meta: { [RELATED]: { taskId } } };
    this.peer.send({ id, method, params: { ...params, ..._meta } });
    return { id, answer: this.peer.answerTo(id) };
  }

  createTask(taskId = `task-${this.#tasks.size + 1}`): Loose {
    const { ttl = 60_000, pollInterval = 100 } = this.#options;
    const task = { taskId, status: "working", createdAt: AT, lastUpdatedAt: AT, ttl, pollInterval };
    this.#tasks.set(taskId, task);
    return task;
  }

  #answer(message: Loose): void {
    const { id } = message;
    const own = this.#options.answer?.(message);
    const outcome = own ?? this.#usual(message);
    if (outcome !== undefined) this.peer.send({ id, ...outcome });
  }

  #usual({ id, method, params }: Loose): Outcome | undefined {
    const { taskId, task, cursor } = (params ?? {}) as { taskId?: string; task?: Loose; cursor?: string };
    switch (method) {
      case "initialize": {
        const { revision = NEWEST_SESSION.name, capabilities = { tools: {}, tasks: TASKS_OFFERED } } = this.#options;
        return { result: { protocolVersion: revision, capabilities, serverInfo: { name: "jobs", version: "1" } } };
      }
      case "tools/list":
        return { result: this.#page(Number(cursor ?? 0)) };
      case "tools/call":
        return {
          result: task === undefined ? { content: [{ type: "text", text: "plain" }] } : { task: this.createTask() },
        };
    }
    const found = this.#tasks.get(String(taskId));
    if (found === undefined) return { error: { code: -32602, message: "Task not found" } };
    switch (method) {
      case "tasks/get":
        return { result: found };
      case "tasks/cancel":
        if (!["working", "input_required"].includes(String(found["status"]))) {
          return { error: { code: -32602, message: "The task is finished" } };
        }
        this.update(String(taskId), { status: "cancelled", statusMessage: "Cancelled on request" });
        return { result: this.#tasks.get(String(taskId)) as Loose };
      case "tasks/result": {
        const outcome = this.#outcomes.get(String(taskId));
        if (outcome === undefined)
          this.#waiting.set(String(taskId), [...(this.#waiting.get(String(taskId)) ?? []), id]);
        return outcome;
      }
      default:
        return { error: { code: -32601, message: "Method not found" } };
    }
  }

  #page(at: number): Loose {
    const tools = Object.entries(this.#options.tools ?? { job: "required" });
    const page = tools.slice(at, at + 1).map(([name, taskSupport]) => ({
      name,
      inputSchema: { type: "object" },
      ...(taskSupport === "" ? undefined : { execution: { taskSupport } }),
    }));
    return at + 1 < tools.length ? { tools: page, nextCursor: String(at + 1) } : { tools: page };
  }
}

export const TASK_CAPABILITIES = { elicitation: {}, roots: {}, extensions: { [TASKS_EXTENSION]: {} } };
export const FORM = { message: "Name?", requestedSchema: { type: "object", properties: {} } };
export const TEXT = { content: [{ type: "text", text: "done" }] };
export const UNKNOWN = { code: -32602 };
/** Sent instead of the answer, so that the request gets none. */
export const NO_ANSWER = { id: "never", result: {} };

const opened: ServerConnection[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

export interface SessionTaskFixture {
  readonly server: SessionTaskServer;
  readonly connection: ServerConnection;
  /** The notifications of all calls of `request`. */
  readonly notifications: Notification[];
  request(method: string, params?: Params, more?: Partial<Context>): Promise<Result>;
  /** Starts a task and returns its id. */
  start(more?: Partial<Context>): Promise<string>;
  get(taskId: string, more?: Partial<Context>): Promise<Result>;
  /** Resolves with the task when it has this status. */
  untilStatus(taskId: string, status: string): Promise<Result>;
  /** Subscribes to tasks; `received` are the notifications, in order. */
  subscribe(...taskIds: string[]): { received: Loose[]; stop: AbortController; done: Promise<Result> };
}

export async function sessionTaskFixture(
  options: SessionTaskServerOptions = {},
  caller: Partial<Caller> = {},
): Promise<SessionTaskFixture> {
  const server = await SessionTaskServer.start(options);
  const notifications: Notification[] = [];
  const context: Context = {
    revision: NEWEST.name,
    caller: fakeCaller({ capabilities: TASK_CAPABILITIES, ...caller }),
    signal: new AbortController().signal,
    notify: (notification) => void notifications.push(notification),
    ask: ({ method }) => Promise.reject(new Error(`Unexpected ${method} during a call`)),
  };
  const connection = await openConnection(() => server.transport, {
    info: { name: "us", version: "1" },
    capabilities: TASK_CAPABILITIES,
    defaultContext: context,
    revision: options.revision ?? NEWEST_SESSION.name,
  });
  opened.push(connection);
  const request: SessionTaskFixture["request"] = (method, params = {}, more = {}) =>
    connection.handler({ method, params }, { ...context, ...more });
  const get: SessionTaskFixture["get"] = (taskId, more) => request("tasks/get", { taskId }, more);
  return {
    server,
    connection,
    notifications,
    request,
    get,
    start: async (more) => (await request("tools/call", { name: "job" }, more))["taskId"] as string,
    untilStatus: (taskId, status) =>
      eventually(async () => {
        const state = await get(taskId);
        expect(state["status"]).toBe(status);
        return state;
      }, 5),
    subscribe: (...taskIds) => {
      const received: Loose[] = [];
      const stop = new AbortController();
      const notify = ({ method, params }: Notification): void => void received.push({ method, ...params });
      const done = request("subscriptions/listen", { notifications: { taskIds } }, { signal: stop.signal, notify });
      return { received, stop, done };
    },
  };
}

export const asPrincipal = (principal: string): Partial<Context> => ({
  caller: fakeCaller({ capabilities: TASK_CAPABILITIES, principal }),
});
export const withoutTasks: Partial<Context> = { caller: fakeCaller({ capabilities: { elicitation: {} } }) };
