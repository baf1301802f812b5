// Schemas as people write them: a Standard Schema (zod, arktype, valibot, ...) or a plain JSON Schema object.
// From either come the JSON Schema that callers see and the check that values pass. A Standard Schema
// checks by itself; a plain one is checked by json-schema.ts. No schema library is imported here.

import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { errorMessage } from "../core/text.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import { type Check, type Checked, issueText, checkSchema, dialectOf, isStandard, vendorOf } from "./schema-kind.ts";

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

/** The fields of an object schema that nobody wrapped; not a schema, though any object can be read as one. */
export type BareFields<Of> = Of extends StandardSchemaV1
  ? never
  : { [Name in keyof Of]: Of[Name] extends { readonly "~standard": unknown } ? Name : never }[keyof Of];

/** `owner` is for the error texts. */
export function checkOf(schema: Schema, owner = "A schema"): Check {
  if (!isStandard(schema)) return latePlainCheck(schema, owner);
  const { "~standard": standard } = schema;
  return (value) => {
    const result = standard.validate(value);
    return result instanceof Promise ? result.then(checked) : checked(result);
  };
}

/** What checks plain JSON Schema is loaded with the first value: many servers have only schemas that check themselves. */
function latePlainCheck(schema: JsonSchema, owner: string): Check {
  const dialect = dialectOf(schema, owner);
  let check: Check | undefined;
  return (value) => {
    if (check !== undefined) return check(value);
    return import("./json-schema.ts").then(({ plainCheck }) => (check ??= plainCheck(schema, dialect, owner))(value));
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
 * say itself in JSON Schema. Throws where either is none.
 */
export function jsonSchemaOf(
  owner: string,
  side: "input" | "output",
  schema: Schema | undefined,
  given: JsonSchema | undefined,
): JsonSchema | undefined {
  const beside = `${side}Schema`;
  if (schema !== undefined) checkSchema(owner, side, schema);
  if (given !== undefined) checkSchema(owner, beside, given, side);
  if (given !== undefined || schema === undefined) return given;
  if (!isStandard(schema)) return schema;
  return said(schema, side, `${owner}: its ${side}`, `give the JSON Schema beside it, as ${beside}`);
}

/** A form to ask with; a Standard Schema says its own. Throws where it is none. */
export function formSchemaOf(schema: unknown): unknown {
  const owner = "ask.elicit()";
  checkSchema(owner, "requestedSchema", schema);
  if (!isStandard(schema)) return schema;
  const form = said(schema, "input", `${owner}: its requestedSchema`, "give a JSON Schema in its place");
  if (form["type"] === "object") return form;
  throw new TypeError(`${owner}: its requestedSchema must be an object, because the fields of a form have names`);
}

/** What a schema says of itself; `what` and `advice` are for the error texts. */
function said(schema: StandardSchemaV1, side: "input" | "output", what: string, advice: string): JsonSchema {
  const standard = schema["~standard"] as StandardSchemaV1.Props & Partial<StandardJSONSchemaV1.Props>;
  if (standard.jsonSchema === undefined) {
    const vendor = vendorOf(schema);
    const more =
      vendor === "valibot" ? ", or give toStandardJsonSchema(schema) of the package @valibot/to-json-schema" : "";
    throw new TypeError(`${what} is a schema of ${vendor}, which does not say itself in JSON Schema; ${advice}${more}`);
  }
  try {
    // The dialect is the one that callers take for granted; naming it with each tool would only make lists longer.
    const { $schema: _dialect, ...words } = standard.jsonSchema[side]({ target: "draft-2020-12" });
    return words;
  } catch (error) {
    throw new TypeError(`${what} cannot be said in JSON Schema (${errorMessage(error)}); ${advice}`, { cause: error });
  }
}
