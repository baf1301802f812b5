// Schemas of tools and forms: a Standard Schema (zod, arktype, valibot, ...) or a plain JSON Schema. Both yield the
// JSON Schema that clients see and a check for values. This file imports no schema library; json-schema.ts checks plain
// JSON Schema.

import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { kindOf } from "../core/options.ts";
import { errorMessage, fieldsOf, isObject } from "../core/values.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import { type KeywordOf, type OtherKeyword, schemaProblem } from "../tools/schema-mistakes.ts";
import {
  checkSchema,
  dialectOf,
  isStandardSchema,
  issueText,
  vendorOf,
  type SchemaCheck,
  type SchemaCheckResult,
} from "../tools/schema-kind.ts";

/** A Standard Schema (zod, arktype, valibot, ...) or a plain JSON Schema. */
export type Schema = StandardSchemaV1 | JsonSchema;

/** The type of a value before the schema has checked it. */
export type SchemaInput<Of> = Of extends StandardSchemaV1 ? StandardSchemaV1.InferInput<Of> : FromJsonSchema<Of>;
/** The type of a value after the schema has checked it. */
export type SchemaOutput<Of> = Of extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<Of> : FromJsonSchema<Of>;

/** The type that a literal JSON Schema describes. Understands the simple keywords; others give `unknown`. */
export type FromJsonSchema<Of> = Of extends { readonly const: infer Value }
  ? Value
  : Of extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : Of extends { readonly type: infer Name extends keyof PlainTypes }
      ? PlainTypes[Name]
      : Of extends { readonly type: "array"; readonly items: infer Items }
        ? FromJsonSchema<Items>[]
        : Of extends { readonly type: "object"; readonly properties: infer Fields }
          ? FromFields<Fields, Of extends { readonly required: readonly (infer Name)[] } ? Name : never>
          : Of extends { readonly type: "object" }
            ? Record<string, unknown>
            : unknown;

interface PlainTypes {
  string: string;
  number: number;
  integer: number;
  boolean: boolean;
  null: null;
}

type FromFields<Fields, Required> = Simplify<
  { -readonly [Name in keyof Fields as Name extends Required ? Name : never]: FromJsonSchema<Fields[Name]> } & {
    -readonly [Name in keyof Fields as Name extends Required ? never : Name]?: FromJsonSchema<Fields[Name]>;
  }
>;

/** An intersection as one object type, which editors show better. */
export type Simplify<Of> = { [Name in keyof Of]: Of[Name] };

/** The keys whose values are Standard Schemas: fields that should have been wrapped in an object schema. */
export type BareFields<Of> = Of extends StandardSchemaV1
  ? never
  : { [Name in keyof Of]: Of[Name] extends { readonly "~standard": unknown } ? Name : never }[keyof Of];

/** What is wrong with a schema, as far as the compiler sees it; never if nothing is. */
export type SchemaMistake<Of> = [BareFields<Of>] extends [never]
  ? Of extends StandardSchemaV1
    ? never
    : MisspeltKeyword<Of> extends infer Name extends string
      ? `\`${Name}\` is not a keyword of JSON Schema; other keys begin with x-`
      : never
  : "its values are schemas; wrap them: z.object({ ... })";

/** The same for a schema of arguments, which have names. */
export type ArgumentsMistake<Of> = SchemaMistake<Of> | (Of extends Schema ? NotAnObject<Of> : never);

type NotAnObject<Of> = Of extends StandardSchemaV1
  ? unknown extends SchemaInput<Of>
    ? never
    : [Exclude<Extract<SchemaInput<Of>, object>, readonly unknown[]>] extends [never]
      ? ObjectExpected
      : never
  : Of extends { readonly type: infer Type extends string }
    ? "object" extends Type
      ? never
      : ObjectExpected
    : never;

type ObjectExpected = "it must be an object schema, because arguments have names";

/** The keys of a literal JSON Schema that are not keywords, here and in the schemas within. */
type MisspeltKeyword<Of> = Of extends readonly (infer Item)[]
  ? MisspeltKeyword<Item>
  : Of extends object
    ? string extends keyof Of
      ? never
      : { [Name in keyof Of & string]: MisspeltAt<Of, Name> }[keyof Of & string]
    : never;

/** Literals have no optional keys, and the types of JSON Schema in other packages, which contain themselves, have. */
type MisspeltAt<Of, Name extends keyof Of & string> =
  object extends Pick<Of, Name>
    ? never
    : Name extends KeywordOf<"schema" | "schemas" | "schema or schemas">
      ? MisspeltKeyword<Of[Name]>
      : Name extends KeywordOf<"named schemas">
        ? { [Field in keyof Of[Name]]: MisspeltKeyword<Of[Name][Field]> }[keyof Of[Name]]
        : Name extends KeywordOf | OtherKeyword | `x-${string}` | `$${string}` | `~${string}`
          ? never
          : Name;

/** `owner` starts the error messages. */
export function createSchemaCheck(schema: Schema, owner = "The schema"): SchemaCheck {
  if (!isStandardSchema(schema)) return createPlainCheck(schema, owner);
  const { "~standard": standard } = schema;
  return (value) => {
    const result = standard.validate(value);
    if (result instanceof Promise) return result.then((settled) => toCheckResult(settled, owner));
    // A schema that is written by hand may return anything, which `toCheckResult` refuses.
    return isObject(result) && "value" in result && !result.issues ? result : toCheckResult(result, owner);
  };
}

/** Loads json-schema.ts when the first value is checked, since many servers only use Standard Schemas. */
function createPlainCheck(schema: JsonSchema, owner: string): SchemaCheck {
  const dialect = dialectOf(schema, owner);
  let check: SchemaCheck | undefined;
  return (value) => {
    if (check !== undefined) return check(value);
    return import("../tools/json-schema.ts").then(({ createJsonSchemaCheck }) =>
      (check ??= createJsonSchemaCheck(schema, dialect, owner))(value),
    );
  };
}

function toCheckResult(result: StandardSchemaV1.Result<unknown>, owner: string): SchemaCheckResult {
  // A schema that is written by hand may return anything.
  const answer = Object(result) as object & { readonly issues?: unknown };
  if (answer.issues ? !Array.isArray(answer.issues) : !("value" in answer)) {
    throw new TypeError(`${owner}: \`validate\` must return { value } or { issues }, not ${kindOf(result)}`);
  }
  if (!result.issues) return result;
  return {
    issues: result.issues.map(({ message, path = [] }) =>
      issueText(
        path.map((part) => (typeof part === "object" ? part.key : part)),
        message,
      ),
    ),
  };
}

/** Throws a TypeError if the value is not a schema that the option `field` accepts; see `checkSchema`. */
export function checkUsable(owner: string, field: string, schema: unknown, standardField?: string): void {
  checkSchema(owner, field, schema, standardField);
  const problem = isStandardSchema(schema) ? undefined : schemaProblem(schema);
  if (problem !== undefined) throw new TypeError(`${owner}: \`${field}\` cannot be used as a JSON Schema: ${problem}`);
}

/**
 * The JSON Schema that clients see. `jsonSchema` is the explicit JSON Schema for a library that cannot produce one. `owner`
 * starts the error messages, which name the option `field`. Throws a TypeError if `schema` or `jsonSchema` is not a schema.
 */
export function toJsonSchema(
  owner: string,
  side: "input" | "output",
  schema: Schema | undefined,
  jsonSchema: JsonSchema | undefined,
  field: string = side,
): JsonSchema | undefined {
  const explicit = `${side}Schema`;
  if (schema !== undefined) checkUsable(owner, field, schema);
  if (jsonSchema !== undefined) checkUsable(owner, explicit, jsonSchema, side);
  if (jsonSchema !== undefined || schema === undefined) return jsonSchema;
  if (!isStandardSchema(schema)) return schema;
  const advice = field === side ? `add the JSON Schema as \`${explicit}\`` : "pass a JSON Schema instead";
  return convert(schema, side, `${owner}: \`${field}\``, advice);
}

/** The JSON Schema of an elicitation form. Throws a TypeError if there is none. */
export function toFormSchema(schema: unknown): unknown {
  const owner = "ask.elicit()";
  checkUsable(owner, "requestedSchema", schema);
  const what = `${owner}: \`requestedSchema`;
  const isStandard = isStandardSchema(schema);
  const form = isStandard
    ? convert(schema, "input", `${what}\``, "pass a JSON Schema instead")
    : (schema as JsonSchema);
  if (isStandard && form["type"] !== "object") {
    throw new TypeError(`${what}\` must be an object schema, because form fields have names`);
  }
  const nested = Object.entries(fieldsOf(form["properties"])).find(([, field]) => !isFormField(fieldsOf(field)));
  if (nested === undefined) return form;
  throw new TypeError(`${what}.properties.${nested[0]}\` cannot be in a form; a form is flat: ${FORM_FIELDS}`);
}

const FORM_FIELDS = "strings, numbers, booleans, and choices (an enum, or an array of an enum)";

/** What the specification allows as a field of a form. */
function isFormField(field: JsonSchema): boolean {
  const { type, enum: choices, oneOf, anyOf, const: only, items } = field;
  if (type === "array") return isObject(items) && (Array.isArray(items["enum"]) || isChoices(items["anyOf"]));
  if (type === undefined) return choices !== undefined || only !== undefined || isChoices(oneOf ?? anyOf);
  return typeof type === "string" && ["string", "number", "integer", "boolean"].includes(type);
}

/** Whether each of the alternatives is one value. */
function isChoices(alternatives: unknown): boolean {
  return (
    Array.isArray(alternatives) &&
    alternatives.every((alternative) => isObject(alternative) && alternative["const"] !== undefined)
  );
}

function convert(schema: StandardSchemaV1, side: "input" | "output", what: string, advice: string): JsonSchema {
  const standard = schema["~standard"] as StandardSchemaV1.Props & Partial<StandardJSONSchemaV1.Props>;
  if (standard.jsonSchema === undefined) {
    const vendor = vendorOf(schema);
    const more =
      vendor === "valibot" ? ", or pass toStandardJsonSchema(schema) of the package @valibot/to-json-schema" : "";
    throw new TypeError(`${what} is a schema of ${vendor}, which cannot produce JSON Schema; ${advice}${more}`);
  }
  try {
    // 2020-12 is the default dialect, so `$schema` would only make the lists of tools longer.
    const { $schema: _dialect, ...keywords } = standard.jsonSchema[side]({ target: "draft-2020-12" });
    return keywords;
  } catch (error) {
    throw new TypeError(`${what} cannot be converted to JSON Schema (${errorMessage(error)}); ${advice}`, {
      cause: error,
    });
  }
}
