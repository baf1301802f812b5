// Checks values against plain JSON Schemas with ajv. Most servers never need ajv, so it is loaded when the first value
// is checked. A schema is compiled for a check that stops at the first issue and, after an invalid value, also for one
// that finds all issues. References must point into the schema itself, because nothing is fetched. Where ajv is missing
// or may not generate code, and for very large schemas, interpreted-schema.ts checks instead.

import type { Ajv, ErrorObject, FuncKeywordDefinition, Options } from "ajv";
import { canonical } from "../core/seal.ts";
import { errorMessage, fieldsOf, isObject } from "../core/values.ts";
import { McpError } from "../protocol/errors.ts";
import { jsonLength } from "../protocol/pages.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import { isPattern, mapSchema, type SchemaPath, schemasWithin } from "./schema.ts";
import {
  type Dialect,
  dialectOf,
  issueText,
  parsePointer,
  pathText,
  type SchemaCheck,
  type SchemaCheckResult,
} from "./schema-kind.ts";
import { checkWork } from "./schema-work.ts";

/** More issues would not help the model. */
const MAX_ISSUES = 20;

/**
 * A schema with more schemas inside is not compiled: the code of ajv nests a block for each property, so that it takes
 * long to make and overflows the stack at about twice as many.
 */
const MAX_COMPILED_SUBSCHEMAS = 1_000;

/** Where ajv has its class for a dialect, and the dialect's keyword for a dynamic reference, if it has one. */
const DIALECTS = {
  "https://json-schema.org/draft/2020-12/schema": {
    module: "ajv/dist/2020.js",
    name: "Ajv2020",
    dynamic: "$dynamicRef",
  },
  "https://json-schema.org/draft/2019-09/schema": {
    module: "ajv/dist/2019.js",
    name: "Ajv2019",
    dynamic: "$recursiveRef",
  },
  "http://json-schema.org/draft-07/schema": { module: "ajv", name: "Ajv", dynamic: undefined },
} as const satisfies Record<Dialect, object>;

type AjvClass = typeof Ajv;

/**
 * Undefined if ajv is not installed. Bundlers do not see this `require`, so they leave ajv out of bundles; an `import`
 * with a name that is computed would do the same, but some runtimes refuse to load a module that contains one.
 */
function loadAjv(dialect: Dialect): AjvClass | undefined {
  const { module, name } = DIALECTS[dialect];
  try {
    const require = process.getBuiltinModule("node:module").createRequire(import.meta.url);
    const { [name]: ajvClass } = require(module) as { readonly [name: string]: AjvClass | undefined };
    return typeof ajvClass === "function" ? ajvClass : undefined;
  } catch {
    return undefined;
  }
}

// Only own properties count. Otherwise every object would have a property `constructor`.
const COMMON = { strict: false, allErrors: true, logger: false, ownProperties: true } as const satisfies Options;

/** Longer values (as JSON) get only the first issue. Others get up to MAX_ISSUES, so that a model can fix them. */
const MAX_THOROUGH_LENGTH = 64 * 1024;

/** For a schema of someone else: the most characters of a value times the schemas for each part of it. */
const MAX_UNTRUSTED_WORK = 200_000_000;

/** Error messages start with `owner`. */
export function createJsonSchemaCheck(schema: JsonSchema, dialect: Dialect, owner: string): SchemaCheck {
  let compiled: Validate | undefined;
  const compileFirst = once(() => compile(schema, dialect, owner, false));
  const compileThorough = once(() => compile(schema, dialect, owner, true));
  const issuesOf = (validate: Validate, value: unknown): readonly string[] | undefined => {
    try {
      return validate(value);
    } catch (error) {
      const deep = error instanceof RangeError ? ", or the value is nested too deep" : "";
      throw unusableSchema(owner, `${explain(error)}${deep}`, error);
    }
  };
  const check = (validate: Validate, value: unknown): SchemaCheckResult | Promise<SchemaCheckResult> => {
    const first = issuesOf(validate, value);
    if (first === undefined) return { value };
    if (jsonLength(value) > MAX_THOROUGH_LENGTH) return { issues: shorten(first) };
    return compileThorough().then((thorough) => ({ issues: shorten(issuesOf(thorough, value) ?? first) }));
  };
  return (value) =>
    compiled === undefined
      ? compileFirst().then((validate) => check((compiled = validate), value))
      : check(compiled, value);
}

/**
 * A check against a schema of a document or an upstream. Its patterns are not run: with a pattern such as `(a+)+$`, a few
 * characters of a caller would take forever. Throws, and so does the check, if it may take too much work.
 */
export function createUntrustedCheck(schema: JsonSchema, owner: string): SchemaCheck {
  const work = checkWork(schema);
  if (work === undefined) throw unusableSchema(owner, "it may take too much work to check");
  const check = createJsonSchemaCheck(mapSchema(schema, withoutPatterns), dialectOf(schema, owner), owner);
  const maxLength = MAX_UNTRUSTED_WORK / work;
  return (value) => {
    if (subtractLength(maxLength, value) >= 0) return check(value);
    throw unusableSchema(owner, "a value this long may take too much work to check");
  };
}

/** `room`, less about the length of a value as JSON. Negative if the value is longer: the rest of it is not looked at. */
function subtractLength(room: number, value: unknown): number {
  if (typeof value === "string") return room - value.length;
  let rest = room - 2;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length && rest >= 0; at += 1) rest = subtractLength(rest - 1, value[at]);
    return rest;
  }
  if (!isObject(value)) return room - 1;
  for (const name of Object.keys(value)) {
    if (rest < 0) break;
    rest = subtractLength(rest - name.length - 3, value[name]);
  }
  return rest;
}

/** Also without the keywords about the properties that are left over, since the patterns decide which those are. */
function withoutPatterns({ pattern: _pattern, patternProperties, ...schema }: JsonSchema): JsonSchema {
  if (patternProperties === undefined) return schema;
  const { additionalProperties: _additional, unevaluatedProperties: _unevaluated, ...rest } = schema;
  return rest;
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let promise: Promise<T> | undefined;
  return () => (promise ??= make());
}

/** Returns the issues of a value; undefined if it is valid. */
type Validate = (value: unknown) => readonly string[] | undefined;

async function compile(schema: JsonSchema, dialect: Dialect, owner: string, allErrors: boolean): Promise<Validate> {
  const { dynamic } = DIALECTS[dialect];
  const Ajv = [...schemasWithin(schema)].length > MAX_COMPILED_SUBSCHEMAS ? undefined : loadAjv(dialect);
  if (Ajv === undefined) return interpretSchema(schema, dialect, owner, allErrors);
  // Formats are annotations and are not checked. The schema itself is not validated either: that would take thirty
  // times as long as compiling it, and the compiler finds invalid keywords anyway.
  const ajv = new Ajv({ ...COMMON, allErrors, validateFormats: false, validateSchema: false });
  try {
    ajv.removeKeyword("uniqueItems");
    ajv.addKeyword({ keyword: "uniqueItems", type: "array", schemaType: "boolean", validate: hasUniqueItems });
    // ajv has the meta-schema of the dialect already, and would reject a schema with the same `$id`.
    if (typeof schema["$id"] === "string") ajv.removeSchema(schema["$id"]);
    const validate = ajv.compile(normalizeReferences(schema, dynamic));
    return (value) => (validate(value) ? undefined : (validate.errors ?? []).map(toIssue));
  } catch (error) {
    if (error instanceof EvalError) return interpretSchema(schema, dialect, owner, allErrors);
    const place = faultyPlace(Ajv, schema, error);
    throw unusableSchema(owner, place === "" ? explain(error) : `at ${place}, ${explain(error)}`, error);
  }
}

/** As ajv does it, but ajv compares each item with all others, which takes minutes for an array of a megabyte. */
const hasUniqueItems: FuncKeywordDefinition["validate"] & object = (isWanted: boolean, items: readonly unknown[]) => {
  if (!isWanted) return true;
  const places = new Map<string, number>();
  for (const [at, item] of items.entries()) {
    const key = canonical(item);
    const first = places.get(key);
    if (first !== undefined) {
      const message = `must NOT have duplicate items (items ## ${first} and ${at} are identical)`;
      hasUniqueItems.errors = [{ keyword: "uniqueItems", message, params: {} }];
      return false;
    }
    places.set(key, at);
  }
  return true;
};

async function interpretSchema(
  schema: JsonSchema,
  dialect: Dialect,
  owner: string,
  allErrors: boolean,
): Promise<Validate> {
  const { dynamic } = DIALECTS[dialect];
  const { interpret } = await import("./interpreted-schema.ts");
  try {
    const plain = mapSchema(normalizeReferences(schema, dynamic), ({ format: _annotation, ...rest }) => rest);
    const path = findPath(plain, (inner) => inner["$dynamicRef"] !== undefined || inner["$recursiveRef"] !== undefined);
    if (path !== undefined) {
      throw new Error(`at ${pathText(path)}, its ${dynamic} leads to a schema with an $id of its own; use $ref`);
    }
    return interpret(plain, dialect, allErrors);
  } catch (error) {
    throw unusableSchema(owner, explain(error), error);
  }
}

function unusableSchema(owner: string, why: string, cause?: unknown): McpError {
  return McpError.of("internal_error", `${owner} cannot be used as a JSON Schema: ${why}`, {}, { cause });
}

function explain(error: unknown): string {
  const missing = missingReference(error);
  if (missing !== undefined) return `it refers to ${missing}, which is not in the schema; references are not fetched`;
  return error instanceof RangeError ? "it refers to itself without end" : errorMessage(error);
}

/** The reference that ajv could not resolve, as an absolute URI. */
function missingReference(error: unknown): string | undefined {
  const { missingRef } = fieldsOf(error);
  return typeof missingRef === "string" ? missingRef : undefined;
}

/** The path of the part that does not compile, which ajv does not report. Empty if it cannot be found. */
function faultyPlace(Ajv: AjvClass, { $schema: _dialect, ...schema }: JsonSchema, error: unknown): string {
  try {
    const missing = missingReference(error);
    if (missing !== undefined) {
      const path = findPath(schema, ({ $ref, $dynamicRef }) =>
        [$ref, $dynamicRef].some((target) => typeof target === "string" && missing.endsWith(target)),
      );
      return pathText(path ?? []);
    }
    if (error instanceof SyntaxError) return pathText(findPath(schema, hasInvalidPattern) ?? []);
    const ajv = new Ajv(COMMON);
    void ajv.validateSchema(schema);
    const places = (ajv.errors ?? []).map(({ instancePath }) => pathText(parsePointer(instancePath)));
    return [...new Set(places)].filter((place) => place !== "").join(" and ");
  } catch {
    return "";
  }
}

function hasInvalidPattern({ pattern, patternProperties }: JsonSchema): boolean {
  const patterns = Object.keys(fieldsOf(patternProperties));
  return (typeof pattern === "string" && !isPattern(pattern)) || !patterns.every(isPattern);
}

function shorten(all: readonly string[]): readonly string[] {
  const issues = new Set(all);
  const first = [...issues].slice(0, MAX_ISSUES);
  return issues.size > first.length ? [...first, `and ${issues.size - first.length} more`] : first;
}

function toIssue({ instancePath, keyword, params, message = "is not valid" }: ErrorObject): string {
  const path = parsePointer(instancePath);
  const { missingProperty, additionalProperty, allowedValues } = fieldsOf(params);
  if (keyword === "required") return issueText([...path, String(missingProperty)], "is required");
  if (keyword === "additionalProperties") return issueText([...path, String(additionalProperty)], "is not allowed");
  if (keyword === "enum") return issueText(path, `must be one of ${JSON.stringify(allowedValues)}`);
  return issueText(path, message);
}

/**
 * Rewrites references that ajv resolves wrongly: it ignores anchors at the root, and resolves a dynamic reference to
 * the schema that contains the reference. If no inner schema has its own `$id`, a dynamic reference means the same as a
 * plain one, so plain ones replace all of them. Otherwise those that start with `#` are left to ajv. `dynamic` is the
 * dialect's keyword for a dynamic reference, if it has one.
 */
function normalizeReferences(schema: JsonSchema, dynamic: string | undefined): JsonSchema {
  const hasScope = ({ $id }: JsonSchema): boolean => typeof $id === "string" && !$id.startsWith("#");
  const hasInnerScopes = [...schemasWithin(schema)].some(
    ({ schema: inner, path }) => path.length > 0 && hasScope(inner),
  );
  const plain = mapSchema(schema, (inner) => {
    const { [dynamic ?? ""]: target, ...rest } = inner;
    if (dynamic === undefined || typeof target !== "string") return inner;
    if (hasInnerScopes && target.startsWith("#")) return inner;
    if (rest["$ref"] === undefined) return { ...rest, $ref: target };
    const others: readonly unknown[] = Array.isArray(rest["allOf"]) ? rest["allOf"] : [];
    return { ...rest, allOf: [...others, { $ref: target }] };
  });
  // `$async` is an extension of ajv that would make each check return a promise.
  const { $async: _ajv, ...keywords } = plain;
  return withRootAnchors(keywords);
}

/** For each anchor at the root, adds a schema to `$defs` that has the anchor and refers to the root. */
function withRootAnchors(schema: JsonSchema): JsonSchema {
  const anchors = [schema["$anchor"], schema["$dynamicAnchor"]].filter((anchor) => typeof anchor === "string");
  if (anchors.length === 0) return schema;
  const $defs = new Map<string, unknown>(isObject(schema["$defs"]) ? Object.entries(schema["$defs"]) : []);
  for (const $anchor of new Set(anchors)) {
    let name = `root ${$anchor}`;
    while ($defs.has(name)) name += "'";
    $defs.set(name, { $anchor, $ref: "#" });
  }
  return { ...schema, $defs: Object.fromEntries($defs) };
}

/** The path of the first match among a schema and the schemas inside it. */
function findPath(schema: JsonSchema, isMatch: (inner: JsonSchema) => boolean): SchemaPath | undefined {
  for (const { schema: inner, path } of schemasWithin(schema)) if (isMatch(inner)) return path;
  return undefined;
}
