// Recognizes what was passed as a schema: a Standard Schema, a JSON Schema, or a mistake that would silently disable
// checking. The usual mistake is to pass the bare fields of an object schema, `{ a: z.string() }`, which would be taken
// for a JSON Schema without keywords. This file also has the types that both kinds of check share.

import type { StandardSchemaV1 } from "@standard-schema/spec";
import { fieldsOf, isObject } from "../core/values.ts";
import type { JsonSchema } from "../protocol/model/index.ts";

/** The value as the schema returns it (defaults filled in, unknown fields dropped), or one line for each problem. */
export type SchemaCheckResult =
  | { readonly value: unknown; readonly issues?: undefined }
  | { readonly issues: readonly string[] };
export type SchemaCheck = (value: unknown) => SchemaCheckResult | Promise<SchemaCheckResult>;

/** A path as people write it, such as `items[0].name`; empty for the whole value. */
export function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) => (typeof part === "number" ? `[${part}]` : (index === 0 ? "" : ".") + String(part)))
    .join("");
}

/** The path of a JSON pointer. */
export function parsePointer(pointer: string): readonly (string | number)[] {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}

/** One line that says where the problem is and what it is. */
export function issueText(path: readonly PropertyKey[], message: string): string {
  const place = pathText(path);
  // Some libraries put the path into the message themselves.
  return place === "" || message.startsWith(`${place} must`) ? message : `${place}: ${message}`;
}

/** How each library writes an object schema. */
const OBJECT_SCHEMAS: Readonly<Record<string, string>> = {
  zod: "z.object({ ... })",
  valibot: "v.object({ ... })",
  arktype: "type({ ... })",
};

export function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  const mayBe = typeof value === "function" || (typeof value === "object" && value !== null);
  return mayBe && "~standard" in value;
}

/** The library that made a schema, for error messages. */
export function vendorOf(schema: StandardSchemaV1): string {
  const { vendor } = fieldsOf(schema["~standard"]);
  return typeof vendor === "string" ? vendor : "an unknown library";
}

/** How to write an object schema with the library of this schema. */
export function objectSchemaOf(schema: StandardSchemaV1): string {
  const vendor = vendorOf(schema);
  return OBJECT_SCHEMAS[vendor] ?? `an object schema of ${vendor}`;
}

/**
 * Throws a TypeError if the value is not a schema that the option `field` accepts. If `field` accepts only JSON
 * Schema, `standardField` is the option for Standard Schemas.
 */
export function checkSchema(
  owner: string,
  field: string,
  schema: unknown,
  standardField: string = field,
): asserts schema is StandardSchemaV1 | JsonSchema {
  const takesStandard = standardField === field;
  if (isStandardSchema(schema)) {
    if (takesStandard) return;
    throw new TypeError(`${owner}: \`${field}\` is a schema of ${vendorOf(schema)}; pass it as \`${standardField}\``);
  }
  if (!isObject(schema)) {
    const kinds = takesStandard ? "a Standard Schema or a JSON Schema" : "a JSON Schema";
    throw new TypeError(`${owner}: \`${field}\` must be ${kinds}, an object`);
  }
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  const bare = [...Object.values(schema), ...Object.values(properties)].find(isStandardSchema);
  if (bare !== undefined) {
    const vendor = vendorOf(bare);
    const wrapped = objectSchemaOf(bare);
    const place = takesStandard ? "" : `${standardField}: `;
    throw new TypeError(`${owner}: the values of \`${field}\` are schemas of ${vendor}; wrap them: ${place}${wrapped}`);
  }
  for (const [name, property] of Object.entries(properties)) {
    if (isObject(property) || typeof property === "boolean") continue;
    throw new TypeError(`${owner}: \`${field}.properties.${name}\` must be a JSON Schema, such as { type: "string" }`);
  }
}

/** Supported values of `$schema`, without a trailing `#`. The first is the default. */
const DIALECTS = [
  "https://json-schema.org/draft/2020-12/schema",
  "https://json-schema.org/draft/2019-09/schema",
  "http://json-schema.org/draft-07/schema",
] as const;

export type Dialect = (typeof DIALECTS)[number];

export function dialectOf({ $schema }: JsonSchema, owner: string): Dialect {
  if ($schema === undefined) return DIALECTS[0];
  // `$schema` names a dialect and is not fetched, so http and https mean the same.
  const normalize = (uri: string): string => uri.replace(/^https?:/, "").replace(/#$/, "");
  const dialect = DIALECTS.find((name) => typeof $schema === "string" && normalize(name) === normalize($schema));
  if (dialect !== undefined) return dialect;
  const name = JSON.stringify($schema);
  throw new TypeError(`${owner} has the JSON Schema dialect ${name}; supported are ${DIALECTS.join(", ")}`);
}
