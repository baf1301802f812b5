// Tasks: calls that go on after their callers have been given a handle. An extension of the newest revision; the
// one before it had tasks of another form, which dialogue/tasks speaks. Types only.

import type { Meta } from "../../core/handler.ts";
import type { ErrorBody } from "../../jsonrpc/message.ts";
import type { CompleteResultBase, RequestParams } from "./results.ts";
import type { InputRequests, InputResponses } from "./rounds.ts";

export type TaskStatus = "working" | "input_required" | "completed" | "failed" | "cancelled";

export interface Task {
  readonly taskId: string;
  readonly status: TaskStatus;
  /** For people and models: what it is doing, or how it ended. */
  readonly statusMessage?: string;
  /** Both in ISO 8601. */
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  /** For how long after its creation it can be asked about; null: for ever. */
  readonly ttlMs: number | null;
  /** How long to wait before asking again. */
  readonly pollIntervalMs?: number;
}

interface Pending {
  readonly status: "working" | "cancelled";
}

interface Asking {
  readonly status: "input_required";
  /** Everything that is asked right now. A key names one question for as long as the task lives. */
  readonly inputRequests: InputRequests;
}

interface Completed {
  readonly status: "completed";
  /** What the call would have been answered with. */
  readonly result: { readonly [key: string]: unknown };
}

interface Failed {
  readonly status: "failed";
  /** The error that the call would have been answered with. */
  readonly error: ErrorBody;
}

/** A task with what belongs to its status. */
export type DetailedTask = Task & (Pending | Asking | Completed | Failed);

/** Instead of the result of a `tools/call`, for a caller that has declared the extension. */
export interface CreateTaskResult extends Task {
  readonly resultType: "task";
  readonly _meta?: Meta;
  readonly [key: string]: unknown;
}

export type GetTaskResult = CompleteResultBase & DetailedTask;

export interface TaskParams extends RequestParams {
  readonly taskId: string;
}

export interface UpdateTaskParams extends TaskParams {
  /** Some or all of what is asked, by the keys of the questions. */
  readonly inputResponses: InputResponses;
}

export type TaskNotificationParams = RequestParams & DetailedTask;
