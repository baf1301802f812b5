// Elicitation: an end asks the person behind its caller, by a form or by an address to visit. A form is flat:
// each field is a text, a number, a yes or no, or a choice. Types only.

import type { RequestParams } from "./results.ts";

interface Field {
  readonly title?: string;
  readonly description?: string;
}

export interface StringField extends Field {
  readonly type: "string";
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly format?: "email" | "uri" | "date" | "date-time";
  readonly default?: string;
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

export interface ChoiceField extends Field {
  readonly type: "string";
  readonly enum: readonly string[];
  /** Titles beside `enum`, as older revisions write them; `oneOf` is the way today. */
  readonly enumNames?: readonly string[];
  readonly default?: string;
}

export interface TitledChoiceField extends Field {
  readonly type: "string";
  readonly oneOf: readonly Choice[];
  readonly default?: string;
}

export interface ChoicesField extends Field {
  readonly type: "array";
  readonly items: { readonly type: "string"; readonly enum: readonly string[] };
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly default?: readonly string[];
}

export interface TitledChoicesField extends Field {
  readonly type: "array";
  readonly items: { readonly anyOf: readonly Choice[] };
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly default?: readonly string[];
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
  /** A form where it is left out. */
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
  /** Only with "accept", and only for a form. */
  readonly content?: { readonly [name: string]: ElicitValue };
  readonly [key: string]: unknown;
}
