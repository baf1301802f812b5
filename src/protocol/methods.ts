// Every method of the newest revision with the types of its params and result. Types only.

import type {
  AcknowledgedParams,
  CallToolParams,
  CallToolResult,
  CancelledParams,
  CompleteParams,
  CompleteResult,
  CreateMessageParams,
  CreateMessageResult,
  DiscoverResult,
  ElicitParams,
  ElicitResult,
  EmptyResult,
  GetPromptParams,
  GetPromptResult,
  GetTaskResult,
  ListenParams,
  ListPromptsResult,
  ListResourcesResult,
  ListResourceTemplatesResult,
  ListRootsResult,
  ListToolsResult,
  LogMessageParams,
  PageParams,
  ProgressParams,
  ReadResourceParams,
  ReadResourceResult,
  RequestParams,
  ResourceUpdatedParams,
  TaskNotificationParams,
  TaskParams,
  UpdateTaskParams,
} from "./model/index.ts";

/**
 * Requests to a server. `tools/call`, `prompts/get` and `resources/read` may also be answered by `input_required`, and
 * `tools/call` by a task if the client has declared the extension.
 */
export interface Methods {
  "server/discover": { params: RequestParams; result: DiscoverResult };
  "tools/list": { params: PageParams; result: ListToolsResult };
  "tools/call": { params: CallToolParams; result: CallToolResult };
  "resources/list": { params: PageParams; result: ListResourcesResult };
  "resources/templates/list": { params: PageParams; result: ListResourceTemplatesResult };
  "resources/read": { params: ReadResourceParams; result: ReadResourceResult };
  "prompts/list": { params: PageParams; result: ListPromptsResult };
  "prompts/get": { params: GetPromptParams; result: GetPromptResult };
  "completion/complete": { params: CompleteParams; result: CompleteResult };
  "subscriptions/listen": { params: ListenParams; result: EmptyResult };
  "tasks/get": { params: TaskParams; result: GetTaskResult };
  "tasks/update": { params: UpdateTaskParams; result: EmptyResult };
  "tasks/cancel": { params: TaskParams; result: EmptyResult };
}

/** Requests of a server to the client. */
export interface ClientMethods {
  "elicitation/create": { params: ElicitParams; result: ElicitResult };
  "sampling/createMessage": { params: CreateMessageParams; result: CreateMessageResult };
  "roots/list": { params: RequestParams; result: ListRootsResult };
}

export interface Notifications {
  "notifications/cancelled": CancelledParams;
  "notifications/progress": ProgressParams;
  "notifications/message": LogMessageParams;
  "notifications/tools/list_changed": RequestParams | undefined;
  "notifications/prompts/list_changed": RequestParams | undefined;
  "notifications/resources/list_changed": RequestParams | undefined;
  "notifications/resources/updated": ResourceUpdatedParams;
  "notifications/subscriptions/acknowledged": AcknowledgedParams;
  "notifications/tasks": TaskNotificationParams;
}

export type MethodName = keyof Methods;
