// Tasks: calls that continue after the client has received a handle. These types are those of the newest revision, in
// which tasks are an extension. The tasks of the previous revision differ and are handled in dialogue/session. Types only.

import type { Meta } from "../../core/handler.ts";
import type { ErrorBody } from "../../jsonrpc/message.ts";
import type { CompleteResultBase, RequestParams } from "./base.ts";
import type { InputRequests, InputResponses } from "./client-requests.ts";

export type TaskStatus = "working" | "input_required" | "completed" | "failed" | "cancelled";

export interface Task {
  readonly taskId: string;
  readonly status: TaskStatus;
  /** For people and models: the current step, or the outcome. */
  readonly statusMessage?: string;
  /** ISO 8601. */
  readonly createdAt: string;
  /** ISO 8601. */
  readonly lastUpdatedAt: string;
  /** How long after its creation the task can be queried; null means no limit. */
  readonly ttlMs: number | null;
  /** How long to wait between two queries. */
  readonly pollIntervalMs?: number;
}

/** A task with the fields of its status. */
export type DetailedTask = Task &
  (
    | { readonly status: "working" | "cancelled" }
    /** All open requests. A key is never used for another request of the same task. */
    | { readonly status: "input_required"; readonly inputRequests: InputRequests }
    /** The result or the error of the call. */
    | { readonly status: "completed"; readonly result: { readonly [key: string]: unknown } }
    | { readonly status: "failed"; readonly error: ErrorBody }
  );

/** Replaces the result of a `tools/call` for a client that has declared the extension. */
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
  /** Responses to some or all of the open requests, by their keys. */
  readonly inputResponses: InputResponses;
}

export type TaskNotificationParams = RequestParams & DetailedTask;
