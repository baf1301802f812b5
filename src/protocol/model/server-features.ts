// The types of tools, resources, prompts and completion, and of the requests and results about them.

import type { Meta } from "../../core/handler.ts";
import type {
  Annotations,
  CacheableResult,
  CompleteResultBase,
  ContentBlock,
  Icon,
  PageResult,
  RequestParams,
  Resource,
  ResourceContents,
  Role,
  Tool,
} from "./base.ts";
import type { RetryableParams } from "./client-requests.ts";

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

export interface ResourceTemplate {
  /** RFC 6570. */
  readonly uriTemplate: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly icons?: readonly Icon[];
  readonly annotations?: Annotations;
  readonly _meta?: Meta;
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

export interface PromptArgument {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly required?: boolean;
}

export interface Prompt {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly icons?: readonly Icon[];
  readonly arguments?: readonly PromptArgument[];
  readonly _meta?: Meta;
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

export interface PromptReference {
  readonly type: "ref/prompt";
  readonly name: string;
  readonly title?: string;
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
