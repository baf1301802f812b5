// Checks values against plain JSON Schemas without generating code, for runtimes that forbid it (Workers, browsers) and
// for bundles, which leave ajv out. It takes longer per value than ajv, and needs no compilation. Separate from
// json-schema.ts, so that its package is loaded only where ajv cannot be used.

import { dereference, type OutputUnit, type SchemaDraft, validate } from "@cfworker/json-schema";
import { errorMessage, fieldsOf } from "../core/values.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import { type Dialect, issueText, parsePointer } from "./schema-kind.ts";

const DRAFTS: Readonly<Record<Dialect, SchemaDraft>> = {
  "https://json-schema.org/draft/2020-12/schema": "2020-12",
  "https://json-schema.org/draft/2019-09/schema": "2019-09",
  "http://json-schema.org/draft-07/schema": "7",
};

/** References become absolute, so they need a base. */
const BASE = "schema:/";

/**
 * Returns a function that finds the issues of a value; undefined if it is valid. `schema` is changed: pass a copy, with
 * plain references and without formats. Throws an Error if it refers to something that is not in it.
 */
export function interpret(
  schema: JsonSchema,
  dialect: Dialect,
  allErrors: boolean,
): (value: unknown) => readonly string[] | undefined {
  const $id = new URL(typeof schema["$id"] === "string" ? schema["$id"] : "", BASE).href;
  const rooted = { ...schema, $id };
  const lookup = dereference(rooted);
  for (const inner of Object.values(lookup)) {
    const { $ref, __absolute_ref__: target } = fieldsOf(inner);
    if (typeof target !== "string" || lookup[target] !== undefined) continue;
    throw new Error(`it refers to ${String($ref)}, which is not in the schema; references are not fetched`);
  }
  const issuesOf = (value: unknown): readonly string[] | undefined => {
    const { valid, errors } = validate(value, rooted, DRAFTS[dialect], lookup, !allErrors);
    return valid ? undefined : errors.flatMap(toIssue);
  };
  return (value) => {
    if (value === undefined) return ["must not be undefined"];
    try {
      return issuesOf(value);
    } catch (error) {
      // The package refuses values that JSON does not have, such as undefined. As sent, the value is without them.
      if (!errorMessage(error).endsWith("type are not supported.")) throw error;
      return issuesOf(JSON.parse(JSON.stringify(value)));
    }
  };
}

/** Keywords that only say that a schema inside of them has issues, which are listed too. */
const OUTER: ReadonlySet<string> = new Set(
  `$recursiveRef $ref additionalItems additionalProperties allOf dependentSchemas if
   items patternProperties prefixItems properties unevaluatedItems unevaluatedProperties`.split(/\s+/),
);

/** Says the most frequent issues as ajv does, and the others in the words of the package. */
function toIssue({ keyword, instanceLocation, error }: OutputUnit): string[] {
  if (OUTER.has(keyword)) return [];
  const path = parsePointer(decodeURI(instanceLocation.slice(1)));
  const quoted = /"(.*)"/s.exec(error)?.[1] ?? "";
  switch (keyword) {
    case "required":
      return [issueText([...path, quoted], "is required")];
    case "false":
      return [issueText(path, "is not allowed")];
    case "type":
      return [issueText(path, `must be ${(/Expected "(.*)"/s.exec(error)?.[1] ?? "").replaceAll('", "', ",")}`)];
    case "enum":
      return [issueText(path, `must be one of ${error.slice(error.indexOf("["), -1)}`)];
    default:
      return [issueText(path, error.replace(/\.$/, ""))];
  }
}
