// Requests that a server sends to the client (elicitation, sampling, roots), and the result `input_required` that
// carries them in the newest revision. Types only.

import type { Meta } from "../../core/handler.ts";
import type { AudioContent, ContentBlock, ImageContent, RequestParams, Role, TextContent, Tool } from "./base.ts";

interface Field {
  readonly title?: string;
  readonly description?: string;
}

interface TextField extends Field {
  readonly type: "string";
  readonly default?: string;
}

export interface StringField extends TextField {
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly format?: "email" | "uri" | "date" | "date-time";
}

export interface NumberField extends Field {
  readonly type: "number" | "integer";
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: number;
}

export interface BooleanField extends Field {
  readonly type: "boolean";
  readonly default?: boolean;
}

export interface Choice {
  readonly const: string;
  readonly title: string;
}

export interface ChoiceField extends TextField {
  readonly enum: readonly string[];
  /** Titles of the `enum` values; deprecated in favor of `oneOf`. */
  readonly enumNames?: readonly string[];
}

export interface TitledChoiceField extends TextField {
  readonly oneOf: readonly Choice[];
}

interface ArrayField extends Field {
  readonly type: "array";
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly default?: readonly string[];
}

export interface ChoicesField extends ArrayField {
  readonly items: { readonly type: "string"; readonly enum: readonly string[] };
}

export interface TitledChoicesField extends ArrayField {
  readonly items: { readonly anyOf: readonly Choice[] };
}

export type FormField =
  | StringField
  | NumberField
  | BooleanField
  | ChoiceField
  | TitledChoiceField
  | ChoicesField
  | TitledChoicesField;

export interface FormSchema {
  readonly $schema?: string;
  readonly type: "object";
  readonly properties: { readonly [name: string]: FormField };
  readonly required?: readonly string[];
}

export interface ElicitFormParams extends RequestParams {
  /** The default. */
  readonly mode?: "form";
  readonly message: string;
  readonly requestedSchema: FormSchema;
}

export interface ElicitUrlParams extends RequestParams {
  readonly mode: "url";
  readonly message: string;
  readonly url: string;
}

export type ElicitParams = ElicitFormParams | ElicitUrlParams;

export type ElicitValue = string | number | boolean | readonly string[];

export interface ElicitResult {
  readonly action: "accept" | "decline" | "cancel";
  /** Only if the user accepted a form. */
  readonly content?: { readonly [name: string]: ElicitValue };
  readonly [key: string]: unknown;
}

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

/** Priorities are from 0 to 1; hints are names of models, or parts of names. */
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

export interface CreateMessageResult extends SamplingMessage {
  readonly model: string;
  /** "endTurn", "stopSequence", "maxTokens", "toolUse", or a provider-specific value. */
  readonly stopReason?: string;
  readonly [key: string]: unknown;
}

export interface Root {
  /** A `file:` URI. */
  readonly uri: string;
  readonly name?: string | undefined;
  readonly _meta?: Meta | undefined;
}

export interface ListRootsResult {
  readonly roots: readonly Root[];
  readonly [key: string]: unknown;
}

export type InputRequest =
  | { readonly method: "elicitation/create"; readonly params: ElicitParams }
  | { readonly method: "sampling/createMessage"; readonly params: CreateMessageParams }
  | { readonly method: "roots/list"; readonly params?: RequestParams };

export type InputResponse = ElicitResult | CreateMessageResult | ListRootsResult;

/** The server chooses the keys. The responses have the same keys. */
export type InputRequests = { readonly [key: string]: InputRequest };
export type InputResponses = { readonly [key: string]: InputResponse };

export interface InputRequiredResult {
  readonly resultType: "input_required";
  readonly inputRequests?: InputRequests;
  /** Opaque to the client, which returns it unchanged. */
  readonly requestState?: string;
  readonly _meta?: Meta;
  readonly [key: string]: unknown;
}

/** Params of requests that may be answered by `input_required` and sent again with the responses. */
export interface RetryableParams extends RequestParams {
  readonly inputResponses?: InputResponses;
  readonly requestState?: string;
}
