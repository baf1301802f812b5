// Finds mistakes in a JSON Schema when it is registered: wrong values of keywords, misspelt keywords, and references
// that lead nowhere. Otherwise callers would find them, or they would stay unnoticed: an unknown keyword checks nothing.

import { kindOf, nearest } from "../core/options.ts";
import { isObject } from "../core/values.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import { pathText } from "./schema-kind.ts";
import { innerSchemas, isPattern, resolveReference, type SchemaPath } from "./schema.ts";

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

export type KeywordOf<Of extends Kind = Kind> = Extract<
  (typeof KEYWORD_LIST)[number],
  readonly [Of, string]
>[1] extends infer Names
  ? Words<Names>
  : never;
type Words<Text> = Text extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Text;

const KEYWORDS: ReadonlyMap<string, Kind> = new Map(
  KEYWORD_LIST.flatMap(([kind, names]) => names.split(" ").map((name): [string, Kind] => [name, kind])),
);

/** Keywords of no dialect that are in use, and look like misspelt ones. */
const OTHER_LIST = ["example", "id", "nullable", "enumNames", "exclusive", "discriminator", "errorMessage"] as const;
export type OtherKeyword = (typeof OTHER_LIST)[number];
const OTHERS: ReadonlySet<string> = new Set(OTHER_LIST);

/** Short keywords are left out, since too many words are near them. */
const SUGGESTED = [...KEYWORDS.keys()].filter((keyword) => keyword.length >= 4 && keyword !== "then");

const META_SCHEMA = /^https?:\/\/json-schema\.org\//;
const TYPES = ["string", "number", "integer", "boolean", "object", "array", "null"];

/** The first mistake in a schema, such as "at properties.n.type, ..."; undefined if there is none. */
export function schemaProblem(schema: JsonSchema): string | undefined {
  const references: { readonly target: string; readonly path: SchemaPath }[] = [];
  const anchors = new Set<string>();
  const seen = new Set<unknown>();
  const rootHasId = typeof schema["$id"] === "string";
  let hasInnerIds = false;
  let problem: string | undefined;
  const visit = (inner: unknown, path: SchemaPath): void => {
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
    }
    for (const { keyword, name, schema: within } of innerSchemas(inner)) {
      if (KEYWORDS.get(keyword)?.includes("schema") !== true) continue;
      if (name !== undefined) visit(within, [...path, keyword, name]);
      else if (within !== undefined) visit(within, [...path, keyword]);
    }
  };
  visit(schema, []);
  // Inner ids change what references mean; then they are left to the check of the first value.
  if (problem !== undefined || hasInnerIds) return problem;
  for (const { target, path } of references) {
    if (!target.startsWith("#") && (rootHasId || META_SCHEMA.test(target))) continue;
    if (!target.startsWith("#") || (!anchors.has(target) && resolveReference(schema, target) === undefined)) {
      return `${place(path)}it refers to ${target}, which is not in the schema; references are not fetched`;
    }
  }
  return undefined;
}

function place(path: SchemaPath): string {
  return path.length === 0 ? "" : `at ${pathText(path)}, `;
}

function keywordProblem(keyword: string, value: unknown, path: SchemaPath): string | undefined {
  const kind = KEYWORDS.get(keyword);
  if (kind === undefined) return misspelling(keyword, path);
  const wrong = keyword === "patternProperties" && isObject(value) && Object.keys(value).find((key) => !isPattern(key));
  if (typeof wrong === "string") return `${place(path)}${JSON.stringify(wrong)} is not a valid regular expression`;
  const expected = expectation(kind, value);
  return expected === undefined ? undefined : `${place(path)}it must be ${expected}`;
}

function misspelling(keyword: string, path: SchemaPath): string | undefined {
  if (OTHERS.has(keyword) || keyword.length < 4 || /^x-/i.test(keyword)) return undefined;
  const [near] = nearest(keyword, SUGGESTED, keyword.length < 6 ? 1 : 2);
  return near && `at ${pathText(path)}, it is not a keyword; did you mean \`${near}\`?`;
}

function isStrings(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/** By kind: whether a value is of it, and what it must be. Schemas are visited, and anything is right for "any". */
const EXPECTED: { readonly [Of in Kind]?: readonly [isRight: (value: unknown) => boolean, what: string] } = {
  schemas: [(value) => Array.isArray(value) && value.length > 0, "a non-empty array of schemas"],
  "named schemas": [isObject, "an object"],
  object: [isObject, "an object"],
  strings: [isStrings, "an array of strings"],
  string: [(value) => typeof value === "string", "a string"],
  count: [(value) => Number.isInteger(value) && Number(value) >= 0, "a whole number, 0 or more"],
  number: [(value) => typeof value === "number", "a number"],
  boolean: [(value) => typeof value === "boolean", "true or false"],
  array: [Array.isArray, "an array"],
  pattern: [isPattern, "a regular expression as a string"],
};

/** What a value of this kind must be, if the value is something else. */
function expectation(kind: Kind, value: unknown): string | undefined {
  if (kind === "type") return typeProblem(value);
  const [isRight, what] = EXPECTED[kind] ?? [];
  return isRight === undefined || isRight(value) ? undefined : what;
}

function typeProblem(value: unknown): string | undefined {
  const names: readonly unknown[] = Array.isArray(value) ? value : [value];
  const wrong = names.find((name) => !TYPES.some((type) => type === name));
  if (wrong === undefined && names.length > 0) return undefined;
  const [near] = typeof wrong === "string" ? nearest(wrong, TYPES) : [];
  return near === undefined ? `one of ${TYPES.join(", ")}` : `a type; did you mean "${near}"?`;
}
