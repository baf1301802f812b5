// Tasks at a server's desk: a tool that can be one, a caller that knows them, and waiting for how one stands.

import { expect, vi } from "vitest";
import type { Result } from "../../../src/core/handler.ts";
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

/** What a caller declares that knows tasks and can be asked. */
export const TASK_CAPABILITIES = { elicitation: {}, extensions: { [TASKS_EXTENSION]: {} } };

export type TaskTool = (args: Record<string, unknown>, context: ToolContext) => unknown;

/** A server of one tool, `job`. */
export function jobServer(
  run: TaskTool,
  task: TaskOptions | "optional" | "required" = "optional",
  tasks: TaskLimits = {},
): Server {
  return createServer({ name: "a", version: "1", tasks }).tool("job", { task }, run);
}

export function taskClient(server: Server, principal?: string): FakeClient {
  return fakeClient(server, { caller: { capabilities: TASK_CAPABILITIES, ...(principal === undefined ? undefined : { principal }) } });
}

export const startJob = (caller: FakeClient): Promise<Result> => caller.call("tools/call", { name: "job" });

export async function startTask(caller: FakeClient): Promise<string> {
  return (await startJob(caller))["taskId"] as string;
}

export const getTask = (caller: FakeClient, taskId: string): Promise<Result> => caller.call("tasks/get", { taskId });

/** How the task stands once it stands so. */
export function untilStatus(caller: FakeClient, taskId: string, status: string): Promise<Result> {
  return vi.waitFor(
    async () => {
      const state = await getTask(caller, taskId);
      expect(state["status"]).toBe(status);
      return state;
    },
    { interval: 2 },
  );
}

export interface Gate {
  readonly run: TaskTool;
  readonly signals: AbortSignal[];
  /** Lets go of all who wait. */
  open(): void;
}

/** A tool that waits until it is let go, and heeds its signal unless it is deaf. */
export function gate(deaf = false): Gate {
  const doors: (() => void)[] = [];
  const signals: AbortSignal[] = [];
  const run: TaskTool = (_args, { signal }) =>
    new Promise<string>((resolve, reject) => {
      signals.push(signal);
      doors.push(() => resolve("done"));
      if (!deaf) signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    });
  return {
    run,
    signals,
    open: () => {
      for (const door of doors.splice(0)) door();
    },
  };
}
