// Sampling: an end asks its caller's model for a message, perhaps with tools that the model may use. Types only;
// how the question reaches the caller is in rounds.ts.

import type { Meta } from "../../core/handler.ts";
import type { AudioContent, ContentBlock, ImageContent, Role, TextContent } from "./content.ts";
import type { RequestParams } from "./results.ts";
import type { Tool } from "./tools.ts";

export interface ToolUseContent {
  readonly type: "tool_use";
  readonly id: string;
  readonly name: string;
  readonly input: { readonly [key: string]: unknown };
  readonly _meta?: Meta;
}

export interface ToolResultContent {
  readonly type: "tool_result";
  readonly toolUseId: string;
  readonly content: readonly ContentBlock[];
  readonly structuredContent?: unknown;
  readonly isError?: boolean;
  readonly _meta?: Meta;
}

export type SamplingContent = TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent;

export interface SamplingMessage {
  readonly role: Role;
  readonly content: SamplingContent | readonly SamplingContent[];
  readonly _meta?: Meta;
}

/** Priorities from 0 to 1; hints are names, or parts of names, of models. */
export interface ModelPreferences {
  readonly hints?: readonly { readonly name?: string }[];
  readonly costPriority?: number;
  readonly speedPriority?: number;
  readonly intelligencePriority?: number;
}

export interface CreateMessageParams extends RequestParams {
  readonly messages: readonly SamplingMessage[];
  readonly maxTokens: number;
  readonly systemPrompt?: string;
  readonly modelPreferences?: ModelPreferences;
  readonly includeContext?: "none" | "thisServer" | "allServers";
  readonly temperature?: number;
  readonly stopSequences?: readonly string[];
  readonly metadata?: { readonly [key: string]: unknown };
  readonly tools?: readonly Tool[];
  readonly toolChoice?: { readonly mode?: "auto" | "required" | "none" };
}

export interface CreateMessageResult {
  readonly role: Role;
  readonly content: SamplingContent | readonly SamplingContent[];
  readonly model: string;
  /** "endTurn", "stopSequence", "maxTokens", "toolUse", or a word of the provider. */
  readonly stopReason?: string;
  readonly _meta?: Meta;
  readonly [key: string]: unknown;
}
