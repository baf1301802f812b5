// The model: the message types of the newest revision. They allow unknown fields, because such fields are passed on. Here
// are those about what servers offer, and every method with its types.

import type {
  AcknowledgedParams,
  CacheableResult,
  CancelledParams,
  CompleteResultBase,
  ContentBlock,
  DiscoverResult,
  EmptyResult,
  Listed,
  ListenParams,
  LogMessageParams,
  PageParams,
  PageResult,
  ProgressParams,
  RequestParams,
  Resource,
  ResourceContents,
  Role,
  Tool,
} from "./base.ts";
import type {
  CreateMessageParams,
  CreateMessageResult,
  ElicitParams,
  ElicitResult,
  ListRootsResult,
  RetryableParams,
} from "./client-requests.ts";
import type { GetTaskResult, TaskNotificationParams, TaskParams, UpdateTaskParams } from "./tasks.ts";

export type * from "./base.ts";
export type * from "./client-requests.ts";
export type * from "./tasks.ts";

export interface ListToolsResult extends PageResult {
  readonly tools: readonly Tool[];
}

export interface CallToolParams extends RetryableParams {
  readonly name: string;
  readonly arguments?: { readonly [key: string]: unknown };
}

export interface CallToolResult extends CompleteResultBase {
  readonly content: readonly ContentBlock[];
  /** Any JSON value that matches the tool's output schema. */
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
}

export interface ResourceTemplate extends Omit<Resource, "uri" | "size"> {
  /** RFC 6570. */
  readonly uriTemplate: string;
}

export interface ListResourcesResult extends PageResult {
  readonly resources: readonly Resource[];
}

export interface ListResourceTemplatesResult extends PageResult {
  readonly resourceTemplates: readonly ResourceTemplate[];
}

export interface ReadResourceParams extends RetryableParams {
  readonly uri: string;
}

export interface ReadResourceResult extends CacheableResult {
  readonly contents: readonly ResourceContents[];
}

export interface ResourceUpdatedParams extends RequestParams {
  readonly uri: string;
}

export interface PromptArgument extends Pick<Listed, "name" | "title" | "description"> {
  readonly required?: boolean;
}

export interface Prompt extends Listed {
  readonly arguments?: readonly PromptArgument[];
}

export interface PromptMessage {
  readonly role: Role;
  readonly content: ContentBlock;
}

export interface ListPromptsResult extends PageResult {
  readonly prompts: readonly Prompt[];
}

export interface GetPromptParams extends RetryableParams {
  readonly name: string;
  readonly arguments?: { readonly [name: string]: string };
}

export interface GetPromptResult extends CompleteResultBase {
  readonly description?: string;
  readonly messages: readonly PromptMessage[];
}

export interface PromptReference extends Pick<Listed, "name" | "title"> {
  readonly type: "ref/prompt";
}

export interface ResourceTemplateReference {
  readonly type: "ref/resource";
  /** A URI or a URI template. */
  readonly uri: string;
}

export interface CompleteParams extends RequestParams {
  readonly ref: PromptReference | ResourceTemplateReference;
  readonly argument: { readonly name: string; readonly value: string };
  /** The values that were already chosen for other arguments. */
  readonly context?: { readonly arguments?: { readonly [name: string]: string } };
}

export interface CompleteResult extends CompleteResultBase {
  readonly completion: {
    /** At most 100 values. */
    readonly values: readonly string[];
    readonly total?: number;
    readonly hasMore?: boolean;
  };
}

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

/** The params of each notification of the newest revision. */
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

/** The name of a method of the newest revision. */
export type MethodName = keyof Methods;
