// For tests of tasks in a server: a server with a tool that can run as a task, and a client that supports tasks.

import { expect } from "vitest";
import { eventually } from "../waiting.ts";
import type { Handler, Result } from "../../../src/core/handler.ts";
import { TASKS_EXTENSION } from "../../../src/protocol/tasks.ts";
import {
  createServer,
  type Server,
  type TaskLimits,
  type TaskOptions,
  type ToolContext,
} from "../../../src/server/index.ts";
import { fakeClient, type FakeClient } from "../handlers/fake-client.ts";

export const QUESTION = {
  message: "Your name?",
  requestedSchema: { type: "object", properties: { name: { type: "string" } } },
} as const;

/** The capabilities of a client that supports tasks and elicitation. */
export const TASK_CAPABILITIES = { elicitation: {}, extensions: { [TASKS_EXTENSION]: {} } };

export type TaskTool = (args: Record<string, unknown>, context: ToolContext) => unknown;

/** A server with one tool, `job`. */
export function jobServer(
  run: TaskTool,
  task: TaskOptions | "optional" | "required" = "optional",
  tasks: TaskLimits = {},
): Server {
  return createServer({ name: "a", version: "1", tasks }).tool("job", { task }, run);
}

export function taskClient(server: Handler, principal?: string): FakeClient {
  return fakeClient(server, {
    caller: { capabilities: TASK_CAPABILITIES, ...(principal === undefined ? undefined : { principal }) },
  });
}

export const startJob = (client: FakeClient): Promise<Result> => client.call("tools/call", { name: "job" });

export async function startTask(client: FakeClient): Promise<string> {
  return (await startJob(client))["taskId"] as string;
}

export const getTask = (client: FakeClient, taskId: string): Promise<Result> => client.call("tasks/get", { taskId });

/** Resolves with the task when it has this status. */
export function untilStatus(client: FakeClient, taskId: string, status: string): Promise<Result> {
  return eventually(async () => {
    const state = await getTask(client, taskId);
    expect(state["status"]).toBe(status);
    return state;
  }, 2);
}

export interface Gate {
  readonly run: TaskTool;
  readonly signals: AbortSignal[];
  /** Finishes all running calls. */
  open(): void;
}

/** A tool that runs until the gate opens or its signal is aborted. */
export function gate(ignoresSignal = false): Gate {
  const finish: (() => void)[] = [];
  const signals: AbortSignal[] = [];
  const run: TaskTool = (_args, { signal }) =>
    new Promise<string>((resolve, reject) => {
      signals.push(signal);
      finish.push(() => resolve("done"));
      if (!ignoresSignal) signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    });
  return {
    run,
    signals,
    open: () => {
      for (const done of finish.splice(0)) done();
    },
  };
}
