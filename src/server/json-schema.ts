// Checks against plain JSON Schema, by ajv, which is loaded at the first value and not before: most servers
// never need it. A schema is compiled once. What it refers to must be inside it: nothing is ever fetched.

import type { ErrorObject, Options, ValidateFunction } from "ajv";
import { errorMessage } from "../core/text.ts";
import { McpError } from "../protocol/errors.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import { type Check, type Checked, issueText, placeText, type Dialect } from "./schema-kind.ts";
import { isObject } from "../core/objects.ts";

/** More would tell the model nothing new. */
const MOST_ISSUES = 20;

const LOADERS = {
  "https://json-schema.org/draft/2020-12/schema": {
    load: async () => (await import("ajv/dist/2020.js")).Ajv2020,
    dynamic: "$dynamicRef",
  },
  "https://json-schema.org/draft/2019-09/schema": {
    load: async () => (await import("ajv/dist/2019.js")).Ajv2019,
    dynamic: "$recursiveRef",
  },
  "http://json-schema.org/draft-07/schema": { load: async () => (await import("ajv")).Ajv, dynamic: undefined },
} as const satisfies Record<Dialect, object>;

type AjvClass = Awaited<ReturnType<(typeof LOADERS)[Dialect]["load"]>>;

// Only what a value has itself counts: every object would have a `constructor`.
const COMMON = { strict: false, allErrors: true, logger: false, ownProperties: true } as const satisfies Options;

/** Up to this length every fault of a value is named, so that a model can mend all at once; beyond it, the first. */
const THOROUGH_LENGTH = 64 * 1024;

/** `owner` is for the texts of errors. */
export function plainCheck(schema: JsonSchema, dialect: Dialect, owner: string): Check {
  let compiled: ValidateFunction | undefined;
  const first = once(() => compile(schema, dialect, owner, false));
  const every = once(() => compile(schema, dialect, owner, true));
  const fits = (validate: ValidateFunction, value: unknown): boolean => {
    try {
      return validate(value);
    } catch (error) {
      const deep = error instanceof RangeError ? ", or the value is nested too deep" : "";
      throw unusable(owner, `${whyOf(error)}${deep}`, error);
    }
  };
  const check = (validate: ValidateFunction, value: unknown): Checked | Promise<Checked> => {
    if (fits(validate, value)) return { value };
    const found = { issues: issuesOf(validate.errors ?? []) };
    if (JSON.stringify(value).length > THOROUGH_LENGTH) return found;
    return every().then((thorough) => (fits(thorough, value) ? found : { issues: issuesOf(thorough.errors ?? []) }));
  };
  return (value) =>
    compiled === undefined ? first().then((validate) => check((compiled = validate), value)) : check(compiled, value);
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}

async function compile(
  schema: JsonSchema,
  dialect: Dialect,
  owner: string,
  allErrors: boolean,
): Promise<ValidateFunction> {
  const { load, dynamic } = LOADERS[dialect];
  const Ajv = await load();
  // Formats are only notes, as the dialect has it. The schema itself is not held against its dialect, which would
  // cost thirty times its own compiling: a word that makes no sense is found by the compiler.
  const ajv = new Ajv({ ...COMMON, allErrors, validateFormats: false, validateSchema: false });
  try {
    // A schema may be the dialect's own, or bear its name.
    if (typeof schema["$id"] === "string") ajv.removeSchema(schema["$id"]);
    return ajv.compile(followable(schema, dynamic));
  } catch (error) {
    const place = faultyPlace(Ajv, schema, error);
    throw unusable(owner, place === "" ? whyOf(error) : `at ${place}, ${whyOf(error)}`, error);
  }
}

function unusable(owner: string, why: string, cause: unknown): McpError {
  return McpError.of("internal_error", `${owner} cannot be used as a JSON Schema: ${why}`, {}, { cause });
}

function whyOf(error: unknown): string {
  const missing = missingOf(error);
  if (missing !== undefined) return `it refers to ${missing}, which is not inside it, and nothing is ever fetched`;
  return error instanceof RangeError ? "it refers to itself without end" : errorMessage(error);
}

/** The reference that ajv could not follow, made whole by the `$id` around it. */
function missingOf(error: unknown): string | undefined {
  const { missingRef } = Object(error) as { missingRef?: unknown };
  return typeof missingRef === "string" ? missingRef : undefined;
}

/** Where a schema does not compile, as far as it can be told; ajv itself does not say. */
function faultyPlace(Ajv: AjvClass, { $schema: _dialect, ...schema }: JsonSchema, error: unknown): string {
  try {
    const missing = missingOf(error);
    if (missing !== undefined) {
      const path = placeOf(schema, ({ $ref, $dynamicRef }) =>
        [$ref, $dynamicRef].some((target) => typeof target === "string" && missing.endsWith(target)),
      );
      return placeText(path ?? []);
    }
    if (error instanceof SyntaxError) return placeText(placeOf(schema, hasBadPattern) ?? []);
    const ajv = new Ajv(COMMON);
    void ajv.validateSchema(schema);
    const places = (ajv.errors ?? []).map(({ instancePath }) => placeText(pathOf(instancePath)));
    return [...new Set(places)].filter((place) => place !== "").join(" and ");
  } catch {
    return "";
  }
}

function hasBadPattern({ pattern, patternProperties }: JsonSchema): boolean {
  return [pattern, ...Object.keys(Object(patternProperties) as object)].some((text) => {
    try {
      return typeof text === "string" && !(new RegExp(text, "u") instanceof RegExp);
    } catch {
      return true;
    }
  });
}

function issuesOf(errors: readonly ErrorObject[]): readonly string[] {
  const issues = new Set(errors.map(issueOf));
  const first = [...issues].slice(0, MOST_ISSUES);
  return issues.size > first.length ? [...first, `and ${issues.size - first.length} more`] : first;
}

function issueOf({ instancePath, keyword, params, message = "is wrong" }: ErrorObject): string {
  const path = pathOf(instancePath);
  const { missingProperty, additionalProperty, allowedValues } = params as Record<string, unknown>;
  if (keyword === "required") return issueText([...path, String(missingProperty)], "is required");
  if (keyword === "additionalProperties") return issueText([...path, String(additionalProperty)], "is not known");
  if (keyword === "enum") return issueText(path, `must be one of ${JSON.stringify(allowedValues)}`);
  return issueText(path, message);
}

function pathOf(pointer: string): readonly (string | number)[] {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}

// The references of a plain JSON Schema, written so that ajv follows them as the dialects say. ajv knows no anchor
// at the root, and takes a dynamic reference for the schema that it stands in. A schema that holds no other with an
// `$id` has one scope, and there a dynamic reference means the same as a plain one. Schemas inside schemas that
// each have an `$id` keep their dynamic references, and ajv's reading of them.


type Path = readonly (string | number)[];
type Visit = (schema: JsonSchema, path: Path) => JsonSchema;

/** Words whose value is data, and words whose value has schemas under names of the author's choice. */
const DATA: ReadonlySet<string> = new Set(["const", "enum", "default", "examples"]);
const NAMED: ReadonlySet<string> = new Set([
  "$defs",
  "definitions",
  "dependentSchemas",
  "patternProperties",
  "properties",
]);

/** `dynamic` is the dialect's word for a dynamic reference, if it has one. */
export function followable(schema: JsonSchema, dynamic: string | undefined): JsonSchema {
  let scopes = 0;
  mapped(schema, (inner, path) => {
    if (path.length > 0 && typeof inner["$id"] === "string" && !inner["$id"].startsWith("#")) scopes += 1;
    return inner;
  });
  const plain = mapped(schema, (inner) => {
    const { [dynamic ?? ""]: target, ...rest } = inner;
    if (dynamic === undefined || typeof target !== "string") return inner;
    if (scopes > 0 && target.startsWith("#")) return inner;
    if (rest["$ref"] === undefined) return { ...rest, $ref: target };
    const others: readonly unknown[] = Array.isArray(rest["allOf"]) ? rest["allOf"] : [];
    return { ...rest, allOf: [...others, { $ref: target }] };
  });
  // Of ajv alone, and it would have each check give a promise that nobody waits for.
  const { $async: _own, ...words } = plain;
  return withAnchors(words);
}

/** Gives the root's anchors to schemas inside it that refer to the root. */
function withAnchors(schema: JsonSchema): JsonSchema {
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

/** Where the first schema stands, among a schema and those inside it, that is `wanted`. */
export function placeOf(schema: JsonSchema, wanted: (inner: JsonSchema) => boolean): Path | undefined {
  let place: Path | undefined;
  mapped(schema, (inner, path) => {
    if (place === undefined && wanted(inner)) place = path;
    return inner;
  });
  return place;
}

/** The schema with each schema inside it, and itself at last, as `visit` leaves it. */
function mapped(schema: JsonSchema, visit: Visit, path: Path = []): JsonSchema {
  const inside = Object.entries(schema).map(([word, value]): [string, unknown] => {
    if (DATA.has(word)) return [word, value];
    if (!NAMED.has(word) || !isObject(value)) return [word, mappedValue(value, visit, [...path, word])];
    const named = Object.entries(value).map(([name, held]): [string, unknown] => [
      name,
      mappedValue(held, visit, [...path, word, name]),
    ]);
    return [word, Object.fromEntries(named)];
  });
  return visit(Object.fromEntries(inside), path);
}

function mappedValue(value: unknown, visit: Visit, path: Path): unknown {
  if (Array.isArray(value)) return value.map((held: unknown, index) => mappedValue(held, visit, [...path, index]));
  return isObject(value) ? mapped(value, visit, path) : value;
}
