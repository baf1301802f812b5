// Schemas as people write them: a Standard Schema (zod, arktype, valibot, ...) or a plain JSON Schema object.
// From either come the JSON Schema that callers see and the check that values pass. A Standard Schema
// checks by itself; a plain one is checked by json-schema.ts. No schema library is imported here.

import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import type { JsonSchema } from "../protocol/model/index.ts";
import { type Check, type Checked, issueText } from "./issues.ts";
import { plainCheck } from "./json-schema.ts";

export type Schema = StandardSchemaV1 | JsonSchema;

/** What a value of the schema is before it is checked. */
export type SchemaInput<Of> = Of extends StandardSchemaV1 ? StandardSchemaV1.InferInput<Of> : FromJsonSchema<Of>;
/** What a value of the schema is after it was checked. */
export type SchemaOutput<Of> = Of extends StandardSchemaV1 ? StandardSchemaV1.InferOutput<Of> : FromJsonSchema<Of>;

/** The type that a literal JSON Schema describes, as far as its plain words go; unknown beyond them. */
export type FromJsonSchema<Of> = Of extends { readonly const: infer Value }
  ? Value
  : Of extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : Of extends { readonly type: infer Name extends keyof Plain }
      ? Plain[Name]
      : Of extends { readonly type: "array"; readonly items: infer Items }
        ? FromJsonSchema<Items>[]
        : Of extends { readonly type: "object"; readonly properties: infer Fields }
          ? FromFields<Fields, Of extends { readonly required: readonly (infer Name)[] } ? Name : never>
          : Of extends { readonly type: "object" }
            ? Record<string, unknown>
            : unknown;

interface Plain {
  string: string;
  number: number;
  integer: number;
  boolean: boolean;
  null: null;
}

type FromFields<Fields, Required> = Flat<
  { -readonly [Name in keyof Fields as Name extends Required ? Name : never]: FromJsonSchema<Fields[Name]> } & {
    -readonly [Name in keyof Fields as Name extends Required ? never : Name]?: FromJsonSchema<Fields[Name]>;
  }
>;

export type Flat<Of> = { [Name in keyof Of]: Of[Name] };

function isStandard(schema: Schema): schema is StandardSchemaV1 {
  return "~standard" in schema;
}

/** `owner` is for the error texts. */
export function checkOf(schema: Schema, owner = "A schema"): Check {
  if (!isStandard(schema)) return plainCheck(schema, owner);
  const { "~standard": standard } = schema;
  return (value) => {
    const result = standard.validate(value);
    return result instanceof Promise ? result.then(checked) : checked(result);
  };
}

function checked(result: StandardSchemaV1.Result<unknown>): Checked {
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

/**
 * What callers see of a schema. `owner` is for the error texts; `given` stands beside a schema that cannot
 * say itself in JSON Schema.
 */
export function jsonSchemaOf(
  owner: string,
  side: "input" | "output",
  schema: Schema | undefined,
  given: JsonSchema | undefined,
): JsonSchema | undefined {
  if (given !== undefined || schema === undefined) return given;
  if (!isStandard(schema)) return schema;
  const standard = schema["~standard"] as StandardSchemaV1.Props & Partial<StandardJSONSchemaV1.Props>;
  const advice = `give the JSON Schema beside it, as ${side}Schema`;
  if (standard.jsonSchema === undefined) {
    throw new TypeError(
      `${owner}: its ${side} is a schema of ${standard.vendor}, which does not say itself in JSON Schema; ${advice}`,
    );
  }
  try {
    // The dialect is the one that callers take for granted; naming it with each tool would only make lists longer.
    const { $schema: _dialect, ...said } = standard.jsonSchema[side]({ target: "draft-2020-12" });
    return said;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TypeError(`${owner}: its ${side} cannot be said in JSON Schema (${why}); ${advice}`, { cause: error });
  }
}
