// Types that requests of many methods share: content blocks, tool definitions (sampling has them too), pages, caching,
// progress, logs, cancellation, capabilities and subscriptions. Objects may have fields that are not listed here, which
// are passed on unchanged. Also the reserved keys of `_meta`, the only runtime value in this file.

import type { LogLevel, Meta } from "../../core/handler.ts";
export type { ClientCapabilities } from "../../core/handler.ts";
import type { Id } from "../../jsonrpc/message.ts";

export type Role = "user" | "assistant";

export interface Annotations {
  readonly audience?: readonly Role[] | undefined;
  /** From 0 (optional) to 1 (required). */
  readonly priority?: number | undefined;
  /** ISO 8601. */
  readonly lastModified?: string | undefined;
  readonly [key: string]: unknown;
}

export interface Icon {
  readonly src: string;
  readonly mimeType?: string | undefined;
  readonly sizes?: readonly string[] | undefined;
  readonly theme?: "light" | "dark" | undefined;
}

interface Block {
  readonly annotations?: Annotations;
  readonly _meta?: Meta;
}

export interface TextContent extends Block {
  readonly type: "text";
  readonly text: string;
}

interface Media extends Block {
  /** Base64. */
  readonly data: string;
  readonly mimeType: string;
}

export interface ImageContent extends Media {
  readonly type: "image";
}

export interface AudioContent extends Media {
  readonly type: "audio";
}

interface Contents {
  readonly uri: string;
  readonly mimeType?: string;
  readonly _meta?: Meta;
}

export interface TextResourceContents extends Contents {
  readonly text: string;
}

export interface BlobResourceContents extends Contents {
  /** Base64. */
  readonly blob: string;
}

export type ResourceContents = TextResourceContents | BlobResourceContents;

export interface EmbeddedResource extends Block {
  readonly type: "resource";
  readonly resource: ResourceContents;
}

/** An entry of a list. */
export interface Listed {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly icons?: readonly Icon[];
  readonly _meta?: Meta;
}

export interface Resource extends Listed, Block {
  readonly uri: string;
  readonly mimeType?: string;
  /** In bytes. */
  readonly size?: number;
}

/** A resource that can be read; it need not be in any list. */
export interface ResourceLink extends Resource {
  readonly type: "resource_link";
}

export type ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource;

export type JsonSchema = { readonly [key: string]: unknown };

/** Hints, not guarantees: a server may claim anything about its tools. */
export interface ToolAnnotations {
  readonly title?: string | undefined;
  readonly readOnlyHint?: boolean | undefined;
  readonly destructiveHint?: boolean | undefined;
  readonly idempotentHint?: boolean | undefined;
  readonly openWorldHint?: boolean | undefined;
}

export interface Tool extends Listed {
  readonly inputSchema: JsonSchema & { readonly type: "object" };
  readonly outputSchema?: JsonSchema;
  readonly annotations?: ToolAnnotations;
}

export const META = {
  /** The protocol revision of the request. */
  revision: "io.modelcontextprotocol/protocolVersion",
  clientCapabilities: "io.modelcontextprotocol/clientCapabilities",
  clientInfo: "io.modelcontextprotocol/clientInfo",
  /** The lowest level of log messages that the client wants with this request. */
  logLevel: "io.modelcontextprotocol/logLevel",
  serverInfo: "io.modelcontextprotocol/serverInfo",
  /** On every message of a subscription: the id of its `subscriptions/listen`. */
  subscriptionId: "io.modelcontextprotocol/subscriptionId",
  /** On a session-style message that belongs to a task: `{ taskId }`. */
  relatedTask: "io.modelcontextprotocol/related-task",
  progressToken: "progressToken",
} as const;

export interface RequestParams {
  readonly _meta?: Meta;
  readonly [key: string]: unknown;
}

export interface PageParams extends RequestParams {
  /** Opaque. A server may use an empty string as a cursor, so only an absent cursor means the first page. */
  readonly cursor?: string;
}

export interface CompleteResultBase {
  readonly resultType?: "complete";
  readonly _meta?: Meta;
  readonly [key: string]: unknown;
}

export type CacheScope = "public" | "private";

export interface CacheableResult extends CompleteResultBase {
  /** How long the result may be cached. If absent, it must not be cached. */
  readonly ttlMs?: number;
  readonly cacheScope?: CacheScope;
}

export interface PageResult extends CacheableResult {
  readonly nextCursor?: string;
}

export type EmptyResult = CompleteResultBase;

export interface LogMessageParams extends RequestParams {
  readonly level: LogLevel;
  readonly logger?: string;
  readonly data: unknown;
}

export interface ProgressParams extends RequestParams {
  readonly progressToken: Id;
  /** Increases with each message. */
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

export interface CancelledParams extends RequestParams {
  readonly requestId: Id;
  readonly reason?: string;
}

type Settings = { readonly [key: string]: unknown };

export interface Implementation {
  readonly name: string;
  readonly version: string;
  readonly title?: string;
  readonly description?: string;
  readonly icons?: readonly Icon[];
  readonly websiteUrl?: string;
  readonly [key: string]: unknown;
}

export interface ServerCapabilities {
  readonly tools?: { readonly listChanged?: boolean };
  readonly prompts?: { readonly listChanged?: boolean };
  readonly resources?: { readonly listChanged?: boolean; readonly subscribe?: boolean };
  readonly completions?: Settings;
  readonly logging?: Settings;
  readonly extensions?: { readonly [name: string]: Settings };
  readonly experimental?: { readonly [name: string]: Settings };
  readonly [key: string]: unknown;
}

export interface DiscoverResult extends CacheableResult {
  /** Revisions that the server supports. */
  readonly supportedVersions: readonly string[];
  readonly capabilities: ServerCapabilities;
  readonly instructions?: string;
}

export interface SubscriptionFilter {
  readonly toolsListChanged?: boolean;
  readonly promptsListChanged?: boolean;
  readonly resourcesListChanged?: boolean;
  /** URIs of the resources to watch. */
  readonly resourceSubscriptions?: readonly string[];
  /** Tasks to watch; a field of the tasks extension. */
  readonly taskIds?: readonly string[];
  readonly [key: string]: unknown;
}

export interface ListenParams extends RequestParams {
  readonly notifications: SubscriptionFilter;
}

export interface AcknowledgedParams extends RequestParams {
  /** The part of the filter that the server accepted. */
  readonly notifications: SubscriptionFilter;
}
