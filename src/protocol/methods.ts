// Every method of the newest revision with the types of its params and result. Types only.

import type * as Model from "./model/index.ts";

/**
 * Requests to a server. `tools/call`, `prompts/get` and `resources/read` may also be answered by `input_required`, and
 * `tools/call` by a task if the client has declared the extension.
 */
export interface Methods {
  "server/discover": { params: Model.RequestParams; result: Model.DiscoverResult };
  "tools/list": { params: Model.PageParams; result: Model.ListToolsResult };
  "tools/call": { params: Model.CallToolParams; result: Model.CallToolResult };
  "resources/list": { params: Model.PageParams; result: Model.ListResourcesResult };
  "resources/templates/list": { params: Model.PageParams; result: Model.ListResourceTemplatesResult };
  "resources/read": { params: Model.ReadResourceParams; result: Model.ReadResourceResult };
  "prompts/list": { params: Model.PageParams; result: Model.ListPromptsResult };
  "prompts/get": { params: Model.GetPromptParams; result: Model.GetPromptResult };
  "completion/complete": { params: Model.CompleteParams; result: Model.CompleteResult };
  "subscriptions/listen": { params: Model.ListenParams; result: Model.EmptyResult };
  "tasks/get": { params: Model.TaskParams; result: Model.GetTaskResult };
  "tasks/update": { params: Model.UpdateTaskParams; result: Model.EmptyResult };
  "tasks/cancel": { params: Model.TaskParams; result: Model.EmptyResult };
}

/** Requests of a server to the client. */
export interface ClientMethods {
  "elicitation/create": { params: Model.ElicitParams; result: Model.ElicitResult };
  "sampling/createMessage": { params: Model.CreateMessageParams; result: Model.CreateMessageResult };
  "roots/list": { params: Model.RequestParams; result: Model.ListRootsResult };
}

/** The params of each notification of the newest revision. */
export interface Notifications {
  "notifications/cancelled": Model.CancelledParams;
  "notifications/progress": Model.ProgressParams;
  "notifications/message": Model.LogMessageParams;
  "notifications/tools/list_changed": Model.RequestParams | undefined;
  "notifications/prompts/list_changed": Model.RequestParams | undefined;
  "notifications/resources/list_changed": Model.RequestParams | undefined;
  "notifications/resources/updated": Model.ResourceUpdatedParams;
  "notifications/subscriptions/acknowledged": Model.AcknowledgedParams;
  "notifications/tasks": Model.TaskNotificationParams;
}

/** The name of a method of the newest revision. */
export type MethodName = keyof Methods;
