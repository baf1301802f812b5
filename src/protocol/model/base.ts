// Types that requests of many methods share: `_meta`, pages, caching, progress, logs, cancellation, capabilities and
// subscriptions. Also the reserved keys of `_meta`, the only runtime value in this file.

import type { LogLevel, Meta } from "../../core/handler.ts";
import type { Id } from "../../jsonrpc/message.ts";
import type { Icon } from "./content.ts";

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

export interface ClientCapabilities {
  /** An empty object means that only forms are supported. */
  readonly elicitation?: { readonly form?: Settings; readonly url?: Settings };
  readonly sampling?: { readonly context?: Settings; readonly tools?: Settings };
  readonly roots?: Settings;
  readonly extensions?: { readonly [name: string]: Settings };
  readonly experimental?: { readonly [name: string]: Settings };
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
