// Checks against plain JSON Schema, by ajv, which is loaded at the first value and not before: most servers
// never need it. A schema is compiled once. What it refers to must be inside it: nothing is ever fetched.

import type { ErrorObject, ValidateFunction } from "ajv";
import { McpError } from "../protocol/errors.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import { type Check, type Checked, issueText } from "./issues.ts";

/** More would tell the model nothing new. */
const MOST_ISSUES = 20;

/** What `$schema` may say, without an empty fragment at its end. The first is meant where it says nothing. */
const DIALECTS = {
  "https://json-schema.org/draft/2020-12/schema": async () => (await import("ajv/dist/2020.js")).Ajv2020,
  "https://json-schema.org/draft/2019-09/schema": async () => (await import("ajv/dist/2019.js")).Ajv2019,
  "http://json-schema.org/draft-07/schema": async () => (await import("ajv")).Ajv,
} as const;

type Dialect = keyof typeof DIALECTS;

/** Throws at once where the schema is in a dialect that is not known here; `owner` is for the error's text. */
export function plainCheck(schema: JsonSchema, owner: string): Check {
  const dialect = dialectOf(schema, owner);
  let compiled: ValidateFunction | undefined;
  let compiling: Promise<ValidateFunction> | undefined;
  const check = (validate: ValidateFunction, value: unknown): Checked =>
    validate(value) ? { value } : { issues: issuesOf(validate.errors ?? []) };
  return (value) => {
    if (compiled !== undefined) return check(compiled, value);
    compiling ??= compile(schema, dialect);
    return compiling.then((validate) => check((compiled = validate), value));
  };
}

async function compile(schema: JsonSchema, dialect: Dialect): Promise<ValidateFunction> {
  const Ajv = await DIALECTS[dialect]();
  // Every fault is named, so that a model can mend all at once; formats are only notes, as the dialect has it. The
  // schema itself is not held against its dialect, which would cost thirty times its own compiling: a word that
  // makes no sense is found by the compiler.
  const options = { strict: false, allErrors: true, validateFormats: false, validateSchema: false } as const;
  const ajv = new Ajv({ ...options, addUsedSchema: false, logger: false });
  try {
    return ajv.compile(schema);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw McpError.of("internal_error", `A schema of this server cannot be used: ${why}`, {}, { cause: error });
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
  const path = instancePath
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
  const { missingProperty, additionalProperty, allowedValues } = params as Record<string, unknown>;
  if (keyword === "required") return issueText([...path, String(missingProperty)], "is required");
  if (keyword === "additionalProperties") return issueText([...path, String(additionalProperty)], "is not known");
  if (keyword === "enum") return issueText(path, `must be one of ${JSON.stringify(allowedValues)}`);
  return issueText(path, message);
}
