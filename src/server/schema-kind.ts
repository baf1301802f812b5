// What was given as a schema, looked at when it is registered: a Standard Schema, a JSON Schema, or a mistake
// that would switch checking off without a word. The usual one is the bare fields of an object schema,
// `{ a: z.string() }`: any object can be read as a JSON Schema, and none of its words is known.

import type { StandardSchemaV1 } from "@standard-schema/spec";
import { isObject } from "../core/objects.ts";
import type { JsonSchema } from "../protocol/model/index.ts";

/** How the makers of schemas write an object schema. */
const WRAPPED: Readonly<Record<string, string>> = {
  zod: "z.object({ ... })",
  valibot: "v.object({ ... })",
  arktype: "type({ ... })",
};

export function isStandard(value: unknown): value is StandardSchemaV1 {
  const mayBe = typeof value === "function" || (typeof value === "object" && value !== null);
  return mayBe && "~standard" in value;
}

/** Who made a schema, for the texts of errors. */
export function vendorOf(schema: StandardSchemaV1): string {
  const { vendor } = Object(schema["~standard"]) as { vendor?: unknown };
  return typeof vendor === "string" ? vendor : "an unknown library";
}

/** Throws where it is neither kind of schema. `field` is what holds it; `as` is the field where such schemas belong. */
export function checkSchema(owner: string, field: string, schema: unknown, as: string = field): void {
  if (isStandard(schema)) {
    if (as === field) return;
    throw new TypeError(`${owner}: its ${field} is a schema of ${vendorOf(schema)}; give it as ${as}`);
  }
  if (!isObject(schema)) {
    const kinds = as === field ? "a Standard Schema or a JSON Schema" : "a JSON Schema";
    throw new TypeError(`${owner}: its ${field} must be ${kinds}, an object`);
  }
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  const bare = [...Object.values(schema), ...Object.values(properties)].find(isStandard);
  if (bare !== undefined) {
    const vendor = vendorOf(bare);
    const wrapped = WRAPPED[vendor] ?? `an object schema of ${vendor}`;
    const place = as === field ? "" : `${as}: `;
    throw new TypeError(`${owner}: its ${field} has schemas of ${vendor} as values; wrap them: ${place}${wrapped}`);
  }
  for (const [name, property] of Object.entries(properties)) {
    if (isObject(property) || typeof property === "boolean") continue;
    throw new TypeError(
      `${owner}: properties.${name} of its ${field} must be a JSON Schema, such as { type: "string" }`,
    );
  }
}

/** What `$schema` may say, without an empty fragment at its end. The first is meant where it says nothing. */
const DIALECTS = [
  "https://json-schema.org/draft/2020-12/schema",
  "https://json-schema.org/draft/2019-09/schema",
  "http://json-schema.org/draft-07/schema",
] as const;

export type Dialect = (typeof DIALECTS)[number];

/** Throws where the schema is in a dialect that cannot be checked here. */
export function dialectOf({ $schema }: JsonSchema, owner: string): Dialect {
  if ($schema === undefined) return DIALECTS[0];
  // A dialect is named, not fetched, so an address with the other scheme means the same.
  const plain = (uri: string): string => uri.replace(/^https?:/, "").replace(/#$/, "");
  const dialect = DIALECTS.find((name) => typeof $schema === "string" && plain(name) === plain($schema));
  if (dialect !== undefined) return dialect;
  const said = JSON.stringify($schema);
  throw new TypeError(`${owner} is in the JSON Schema dialect ${said}; the supported ones are ${DIALECTS.join(", ")}`);
}

// What comes of checking a value against a schema, whichever kind of schema it was: the value, or lines of
// text that name each fault, for a model to read and mend.

/** A value as the schema leaves it (defaults filled in, unknown fields dropped), or what is wrong with it. */
export type Checked = { readonly value: unknown; readonly issues?: undefined } | { readonly issues: readonly string[] };
export type Check = (value: unknown) => Checked | Promise<Checked>;

/** A place as a person would write it; "" is the whole. */
export function placeText(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) => (typeof part === "number" ? `[${part}]` : (index === 0 ? "" : ".") + String(part)))
    .join("");
}

/** One line for one fault: where it is, and what it is. */
export function issueText(path: readonly PropertyKey[], message: string): string {
  const place = placeText(path);
  // Some libraries name the place themselves.
  return place === "" || message.startsWith(`${place} must`) ? message : `${place}: ${message}`;
}
