// Tools: what a list says of one, what a call takes and gives. Types only; arguments are checked against a
// tool's schema by the server that has it.

import type { Meta } from "../../core/handler.ts";
import type { ContentBlock, Icon } from "./content.ts";
import type { CompleteResultBase, PageResult } from "./results.ts";
import type { AnsweredParams } from "./rounds.ts";

export type JsonSchema = { readonly [key: string]: unknown };

/** Hints, never promises: an end may say of its tools what it likes. */
export interface ToolAnnotations {
  readonly title?: string;
  readonly readOnlyHint?: boolean;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: boolean;
  readonly openWorldHint?: boolean;
}

export interface Tool {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly icons?: readonly Icon[];
  readonly inputSchema: JsonSchema & { readonly type: "object" };
  readonly outputSchema?: JsonSchema;
  readonly annotations?: ToolAnnotations;
  readonly _meta?: Meta;
}

export interface ListToolsResult extends PageResult {
  readonly tools: readonly Tool[];
}

export interface CallToolParams extends AnsweredParams {
  readonly name: string;
  readonly arguments?: { readonly [key: string]: unknown };
}

export interface CallToolResult extends CompleteResultBase {
  readonly content: readonly ContentBlock[];
  /** Any JSON value, in the shape of the tool's output schema. */
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
}
