// Schemas of tools and forms: a Standard Schema (zod, arktype, valibot, ...) or a plain JSON Schema. Both yield the
// JSON Schema that clients see and a check for values. This file imports no schema library; json-schema.ts checks plain
// JSON Schema.

import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";
import { kindOf, nearest } from "../core/options.ts";
import { errorMessage, isObject } from "../core/values.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import {
  checkSchema,
  dialectOf,
  isStandardSchema,
  issueText,
  pathText,
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
    : Name extends Keywords<"schema" | "schemas" | "schema or schemas">
      ? MisspeltKeyword<Of[Name]>
      : Name extends Keywords<"named schemas">
        ? { [Field in keyof Of[Name]]: MisspeltKeyword<Of[Name][Field]> }[keyof Of[Name]]
        : Name extends Keywords<Kind> | OtherKeyword | `x-${string}` | `$${string}` | `~${string}`
          ? never
          : Name;

type Keywords<Of extends Kind> = Extract<(typeof KEYWORD_LIST)[number], readonly [Of, string]>[1] extends infer Names
  ? Words<Names>
  : never;
type Words<Text> = Text extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Text;
type OtherKeyword = (typeof OTHER_LIST)[number];

/** `owner` starts the error messages. */
export function createSchemaCheck(schema: Schema, owner = "The schema"): SchemaCheck {
  if (!isStandardSchema(schema)) return createPlainCheck(schema, owner);
  const { "~standard": standard } = schema;
  return (value) => {
    const result = standard.validate(value);
    return result instanceof Promise
      ? result.then((settled) => toCheckResult(settled, owner))
      : toCheckResult(result, owner);
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
  const given = Object(result) as object & { readonly issues?: unknown };
  if (given.issues ? !Array.isArray(given.issues) : !("value" in given)) {
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
  const problem = isStandardSchema(schema) ? undefined : schemaProblem(schema as JsonSchema);
  if (problem !== undefined) throw new TypeError(`${owner}: \`${field}\` cannot be used as a JSON Schema: ${problem}`);
}

/**
 * The JSON Schema that clients see. `given` is the explicit JSON Schema for a library that cannot produce one. `owner`
 * starts the error messages, which name the option `field`. Throws a TypeError if `schema` or `given` is not a schema.
 */
export function toJsonSchema(
  owner: string,
  side: "input" | "output",
  schema: Schema | undefined,
  given: JsonSchema | undefined,
  field: string = side,
): JsonSchema | undefined {
  const explicit = `${side}Schema`;
  if (schema !== undefined) checkUsable(owner, field, schema);
  if (given !== undefined) checkUsable(owner, explicit, given, side);
  if (given !== undefined || schema === undefined) return given;
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
  const fields = Object.entries(Object(form["properties"]) as Readonly<Record<string, JsonSchema>>);
  const nested = fields.find(([, field]) => !isFormField(field));
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
  return Array.isArray(alternatives) && alternatives.every((one) => isObject(one) && one["const"] !== undefined);
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

// Finds mistakes in a JSON Schema when it is registered: wrong values of keywords, misspelt keywords, and references
// that lead nowhere. Otherwise callers would find them, or they would stay unnoticed: an unknown keyword checks nothing.
// It is separate from json-schema.ts, which loads ajv and only with the first value.

type Kind =
  | "schema"
  | "schemas"
  | "schema or schemas"
  | "named schemas"
  | "strings"
  | "string"
  | "count"
  | "number"
  | "boolean"
  | "array"
  | "object"
  | "pattern"
  | "type"
  | "any";

/** The keywords of all supported dialects by the kind of their value. */
const KEYWORD_LIST = [
  ["schema", "additionalItems additionalProperties contains contentSchema else if not propertyNames then"],
  ["schema", "unevaluatedItems unevaluatedProperties"],
  ["schemas", "allOf anyOf oneOf prefixItems"],
  ["schema or schemas", "items"],
  ["named schemas", "$defs definitions dependentSchemas patternProperties properties"],
  ["strings", "required"],
  ["string", "$anchor $dynamicAnchor $dynamicRef $id $ref $comment"],
  ["string", "contentEncoding contentMediaType description format title"],
  ["count", "maxContains maxItems maxLength maxProperties minContains minItems minLength minProperties"],
  ["number", "exclusiveMaximum exclusiveMinimum maximum minimum multipleOf"],
  ["boolean", "deprecated readOnly uniqueItems writeOnly"],
  ["array", "enum examples"],
  ["object", "$vocabulary dependentRequired"],
  ["pattern", "pattern"],
  ["type", "type"],
  ["any", "$recursiveAnchor $recursiveRef $schema const default dependencies"],
] as const;

const KEYWORDS: ReadonlyMap<string, Kind> = new Map(
  KEYWORD_LIST.flatMap(([kind, names]) => names.split(" ").map((name): [string, Kind] => [name, kind])),
);

/** Keywords of no dialect that are in use, and look like misspelt ones. */
const OTHER_LIST = ["example", "id", "nullable", "enumNames", "exclusive", "discriminator", "errorMessage"] as const;
const OTHERS: ReadonlySet<string> = new Set(OTHER_LIST);

/** Short keywords are left out, since too many words are near them. */
const SUGGESTED = [...KEYWORDS.keys()].filter((keyword) => keyword.length >= 4 && keyword !== "then");

const TYPES = ["string", "number", "integer", "boolean", "object", "array", "null"];

type Path = readonly (string | number)[];

/** The first mistake in a schema, such as "at properties.n.type, ..."; undefined if there is none. */
function schemaProblem(schema: JsonSchema): string | undefined {
  const references: { readonly target: string; readonly path: Path }[] = [];
  const anchors = new Set<string>();
  const seen = new Set<unknown>();
  const rootHasId = typeof schema["$id"] === "string";
  let hasInnerIds = false;
  let problem: string | undefined;
  const visit = (inner: unknown, path: Path): void => {
    // A schema may be shared between places, or contain itself.
    if (problem !== undefined || typeof inner === "boolean" || seen.has(inner)) return;
    if (!isObject(inner)) {
      problem = `${place(path)}it must be a JSON Schema, not ${kindOf(inner)}`;
      return;
    }
    seen.add(inner);
    const { $id, $ref, $dynamicRef, $anchor, $dynamicAnchor } = inner;
    for (const target of [$ref, $dynamicRef]) if (typeof target === "string") references.push({ target, path });
    for (const anchor of [$anchor, $dynamicAnchor]) if (typeof anchor === "string") anchors.add(`#${anchor}`);
    if (typeof $id === "string") {
      if ($id.startsWith("#")) anchors.add($id);
      else hasInnerIds ||= path.length > 0;
    }
    for (const [keyword, value] of Object.entries(inner)) {
      if (value === undefined || problem !== undefined) continue;
      problem = keywordProblem(keyword, value, [...path, keyword]);
      if (problem === undefined) for (const [at, one] of innerSchemas(keyword, value)) visit(one, [...path, ...at]);
    }
  };
  visit(schema, []);
  // Inner ids change what references mean; then they are left to the check of the first value.
  if (problem !== undefined || hasInnerIds) return problem;
  for (const { target, path } of references) {
    if (!target.startsWith("#") && (rootHasId || isMetaSchema(target))) continue;
    if (!target.startsWith("#") || !leads(schema, target, anchors)) {
      return `${place(path)}it refers to ${target}, which is not in the schema; references are not fetched`;
    }
  }
  return undefined;
}

function isMetaSchema(target: string): boolean {
  return /^https?:\/\/json-schema\.org\//.test(target);
}

function place(path: Path): string {
  return path.length === 0 ? "" : `at ${pathText(path)}, `;
}

function innerSchemas(keyword: string, value: unknown): readonly (readonly [Path, unknown])[] {
  const kind = KEYWORDS.get(keyword);
  if (kind === "schema" || (kind === "schema or schemas" && !Array.isArray(value))) return [[[keyword], value]];
  if (Array.isArray(value) && (kind === "schemas" || kind === "schema or schemas")) {
    return value.map((one: unknown, index) => [[keyword, index], one]);
  }
  if (kind !== "named schemas") return [];
  return Object.entries(value as object).map(([name, one]: [string, unknown]) => [[keyword, name], one]);
}

function keywordProblem(keyword: string, value: unknown, path: Path): string | undefined {
  const kind = KEYWORDS.get(keyword);
  if (kind === undefined) return misspelling(keyword, path);
  const wrong = keyword === "patternProperties" && isObject(value) && Object.keys(value).find((key) => !isPattern(key));
  if (typeof wrong === "string") return `${place(path)}${JSON.stringify(wrong)} is not a valid regular expression`;
  const expected = expectation(kind, value);
  return expected === undefined ? undefined : `${place(path)}it must be ${expected}`;
}

function misspelling(keyword: string, path: Path): string | undefined {
  if (OTHERS.has(keyword) || keyword.length < 4 || /^x-/i.test(keyword)) return undefined;
  const [near] = nearest(keyword, SUGGESTED, keyword.length < 6 ? 1 : 2);
  return near && `at ${pathText(path)}, it is not a keyword; did you mean \`${near}\`?`;
}

/** What a value of this kind must be, if the value is something else. */
function expectation(kind: Kind, value: unknown): string | undefined {
  switch (kind) {
    case "type":
      return typeProblem(value);
    case "schemas":
      return Array.isArray(value) && value.length > 0 ? undefined : "a non-empty array of schemas";
    case "named schemas":
    case "object":
      return isObject(value) ? undefined : "an object";
    case "strings":
      return Array.isArray(value) && value.every((one) => typeof one === "string") ? undefined : "an array of strings";
    case "string":
      return typeof value === "string" ? undefined : "a string";
    case "count":
      return Number.isInteger(value) && Number(value) >= 0 ? undefined : "a whole number, 0 or more";
    case "number":
      return typeof value === "number" ? undefined : "a number";
    case "boolean":
      return typeof value === "boolean" ? undefined : "true or false";
    case "array":
      return Array.isArray(value) ? undefined : "an array";
    case "pattern":
      return isPattern(value) ? undefined : "a regular expression as a string";
    default:
      return undefined;
  }
}

function typeProblem(value: unknown): string | undefined {
  const names: readonly unknown[] = Array.isArray(value) ? value : [value];
  const wrong = names.find((name) => !TYPES.includes(name as string));
  if (wrong === undefined && names.length > 0) return undefined;
  const [near] = typeof wrong === "string" ? nearest(wrong, TYPES) : [];
  return near === undefined ? `one of ${TYPES.join(", ")}` : `a type; did you mean "${near}"?`;
}

function isPattern(value: unknown): boolean {
  try {
    return typeof value === "string" && new RegExp(value, "u") instanceof RegExp;
  } catch {
    return false;
  }
}

/** Whether a reference within the schema leads to a part of it. */
function leads(schema: JsonSchema, target: string, anchors: ReadonlySet<string>): boolean {
  if (target === "#" || anchors.has(target)) return true;
  if (!target.startsWith("#/")) return false;
  let inner: unknown = schema;
  for (const part of target.slice(2).split("/")) {
    let name: string;
    try {
      name = decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
    } catch {
      return false;
    }
    if (typeof inner !== "object" || inner === null || !Object.hasOwn(inner, name)) return false;
    inner = (inner as Readonly<Record<string, unknown>>)[name];
  }
  return true;
}
