// Checks against plain JSON Schema, by ajv, which is loaded at the first value and not before: most servers
// never need it. A schema is compiled once. What it refers to must be inside it: nothing is ever fetched.

import type { ErrorObject, Options, ValidateFunction } from "ajv";
import { textOf } from "../core/text.ts";
import { McpError } from "../protocol/errors.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import { type Check, type Checked, issueText, placeText } from "./issues.ts";
import { followable, placeOfReference } from "./references.ts";

/** More would tell the model nothing new. */
const MOST_ISSUES = 20;

/** What `$schema` may say, without an empty fragment at its end. The first is meant where it says nothing. */
const DIALECTS = {
  "https://json-schema.org/draft/2020-12/schema": {
    load: async () => (await import("ajv/dist/2020.js")).Ajv2020,
    dynamic: "$dynamicRef",
  },
  "https://json-schema.org/draft/2019-09/schema": {
    load: async () => (await import("ajv/dist/2019.js")).Ajv2019,
    dynamic: "$recursiveRef",
  },
  "http://json-schema.org/draft-07/schema": { load: async () => (await import("ajv")).Ajv, dynamic: undefined },
} as const;

type Dialect = keyof typeof DIALECTS;
type AjvClass = Awaited<ReturnType<(typeof DIALECTS)[Dialect]["load"]>>;

// Every fault is named, so that a model can mend all at once.
const COMMON = { strict: false, allErrors: true, logger: false } as const satisfies Options;

/** Throws at once where the schema is in a dialect that is not known here; `owner` is for the error's text. */
export function plainCheck(schema: JsonSchema, owner: string): Check {
  const dialect = dialectOf(schema, owner);
  let compiled: ValidateFunction | undefined;
  let compiling: Promise<ValidateFunction> | undefined;
  const check = (validate: ValidateFunction, value: unknown): Checked => {
    try {
      return validate(value) ? { value } : { issues: issuesOf(validate.errors ?? []) };
    } catch (error) {
      throw unusable(owner, whyOf(error), error);
    }
  };
  return (value) => {
    if (compiled !== undefined) return check(compiled, value);
    compiling ??= compile(schema, dialect, owner);
    return compiling.then((validate) => check((compiled = validate), value));
  };
}

async function compile(schema: JsonSchema, dialect: Dialect, owner: string): Promise<ValidateFunction> {
  const { load, dynamic } = DIALECTS[dialect];
  const Ajv = await load();
  // Formats are only notes, as the dialect has it. The schema itself is not held against its dialect, which would
  // cost thirty times its own compiling: a word that makes no sense is found by the compiler.
  const ajv = new Ajv({ ...COMMON, validateFormats: false, validateSchema: false });
  try {
    // A schema may be the dialect's own, or bear its name.
    if (typeof schema["$id"] === "string") ajv.removeSchema(schema["$id"]);
    return ajv.compile(followable(schema, dynamic));
  } catch (error) {
    const { missingRef } = Object(error) as { missingRef?: unknown };
    if (typeof missingRef === "string") {
      const place = placeText(placeOfReference(schema, missingRef) ?? []);
      const what = `it refers to ${missingRef}, which is not inside it, and nothing is ever fetched`;
      throw unusable(owner, place === "" ? what : `at ${place}, ${what}`, error);
    }
    const places = faultyPlaces(Ajv, schema);
    throw unusable(owner, places === "" ? whyOf(error) : `at ${places}, ${whyOf(error)}`, error);
  }
}

function unusable(owner: string, why: string, cause: unknown): McpError {
  return McpError.of("internal_error", `${owner} cannot be used as a JSON Schema: ${why}`, {}, { cause });
}

function whyOf(error: unknown): string {
  return error instanceof RangeError ? "it refers to itself without end" : textOf(error);
}

/** Where a schema that does not compile breaks the rules of its dialect; "" where it keeps them. */
function faultyPlaces(Ajv: AjvClass, { $schema: _dialect, ...schema }: JsonSchema): string {
  try {
    const ajv = new Ajv({ ...COMMON, formats: { regex: isPattern } });
    if (ajv.validateSchema(schema) === true) return "";
    const places = (ajv.errors ?? []).map(({ instancePath }) => placeText(pathOf(instancePath)));
    return [...new Set(places)].filter((place) => place !== "").join(" and ");
  } catch {
    return "";
  }
}

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, "u") instanceof RegExp;
  } catch {
    return false;
  }
}

function dialectOf({ $schema }: JsonSchema, owner: string): Dialect {
  const known = Object.keys(DIALECTS) as [Dialect, ...Dialect[]];
  if ($schema === undefined) return known[0];
  // A dialect is named, not fetched, so an address with the other scheme means the same.
  const plain = (uri: string): string => uri.replace(/^https?:/, "").replace(/#$/, "");
  const dialect = known.find((name) => typeof $schema === "string" && plain(name) === plain($schema));
  if (dialect !== undefined) return dialect;
  const said = JSON.stringify($schema);
  throw new TypeError(`${owner} is in the JSON Schema dialect ${said}; the supported ones are ${known.join(", ")}`);
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
