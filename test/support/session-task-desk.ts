// A caller that knows tasks in the newest form, in front of a hand-made end that has them in the older one.

import { afterEach, expect, vi } from "vitest";
import type { Caller, Context, Notification, Params, Result } from "../../src/core/handler.ts";
import { openConnection, type ServerConnection } from "../../src/dialogue/connect.ts";
import { NEWEST, NEWEST_SESSION } from "../../src/protocol/revisions/index.ts";
import { TASKS_EXTENSION } from "../../src/protocol/tasks.ts";
import { SessionTaskServer, type SessionTaskServerOptions } from "./session-task-end.ts";

type Loose = { readonly [key: string]: unknown };

export const KNOWS = { elicitation: {}, roots: {}, extensions: { [TASKS_EXTENSION]: {} } };
export const FORM = { message: "Name?", requestedSchema: { type: "object", properties: {} } };
export const TEXT = { content: [{ type: "text", text: "done" }] };
export const UNKNOWN = { code: -32602 };
/** No answer at all. */
export const silence = { id: "never", result: {} };

const opened: ServerConnection[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

export interface Desk {
  readonly end: SessionTaskServer;
  readonly opened: ServerConnection;
  /** What the caller was told, by the calls of `ask`. */
  readonly told: Notification[];
  ask(method: string, params?: Params, more?: Partial<Context>): Promise<Result>;
  /** The id of a new task. */
  start(more?: Partial<Context>): Promise<string>;
  get(taskId: string, more?: Partial<Context>): Promise<Result>;
  /** How it stands once it stands so. */
  when(taskId: string, status: string): Promise<Result>;
  /** Listens to tasks; what was heard, in order. */
  listen(...taskIds: string[]): { heard: Loose[]; stop: AbortController; over: Promise<Result> };
}

export async function desk(options: SessionTaskServerOptions = {}, caller: Partial<Caller> = {}): Promise<Desk> {
  const end = await SessionTaskServer.start(options);
  const told: Notification[] = [];
  const context: Context = {
    revision: NEWEST.name,
    caller: { capabilities: KNOWS, ...caller },
    signal: new AbortController().signal,
    notify: (notification) => void told.push(notification),
    ask: ({ method }) => Promise.reject(new Error(`Nobody is asked ${method} in mid-call`)),
  };
  const one = await openConnection(() => end.transport, {
    info: { name: "us", version: "1" },
    capabilities: KNOWS,
    defaultContext: context,
    revision: options.revision ?? NEWEST_SESSION.name,
  });
  opened.push(one);
  const ask: Desk["ask"] = (method, params = {}, more = {}) => one.handler({ method, params }, { ...context, ...more });
  const get: Desk["get"] = (taskId, more) => ask("tasks/get", { taskId }, more);
  return {
    end,
    opened: one,
    told,
    ask,
    get,
    start: async (more) => (await ask("tools/call", { name: "job" }, more))["taskId"] as string,
    when: (taskId, status) =>
      vi.waitFor(
        async () => {
          const state = await get(taskId);
          expect(state["status"]).toBe(status);
          return state;
        },
        { interval: 5 },
      ),
    listen: (...taskIds) => {
      const heard: Loose[] = [];
      const stop = new AbortController();
      const notify = ({ method, params }: Notification): void => void heard.push({ method, ...params });
      const over = ask("subscriptions/listen", { notifications: { taskIds } }, { signal: stop.signal, notify });
      return { heard, stop, over };
    },
  };
}

export const as = (principal: string): Partial<Context> => ({ caller: { capabilities: KNOWS, principal } });
export const unaware: Partial<Context> = { caller: { capabilities: { elicitation: {} } } };
