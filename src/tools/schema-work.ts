// How much work the check of a value against a schema is at most. References can make a small schema exponential: each
// level refers twice to the next one, or schemas refer to themselves in several ways. So the schemas of other people are
// checked only if they are simple enough: few values in all with each reference followed, and at most one schema that
// refers to itself, in at most one way for each part of a value.

import { isObject } from "../core/values.ts";
import type { JsonSchema } from "../protocol/model/index.ts";
import { innerSchemas, resolveReference } from "./schema.ts";

/** The most values in a schema, with each reference followed. */
const MAX_WORK = 10_000;

/** The keywords whose schemas are checked, by the part of a value that they are for. */
const KEYWORDS: ReadonlyMap<string, "value" | "item" | "property"> = new Map([
  ...["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"].map(
    (keyword) => [keyword, "value"] as const,
  ),
  ...["items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"].map(
    (keyword) => [keyword, "item"] as const,
  ),
  ...["additionalProperties", "unevaluatedProperties", "propertyNames", "patternProperties", "properties"].map(
    (keyword) => [keyword, "property"] as const,
  ),
]);

/** A part of a value: any item, any property, or the property of a name (after the colon). */
type Part = "item" | "property" | `property:${string}`;

interface Visit {
  /** How many parts of the value lead to it. */
  readonly depth: number;
  /** The parts of its value by which it refers to itself. */
  readonly returns: Set<Part>;
}

/** How many schemas a part of a value is checked against, at most; undefined if that may be without bound. */
export function checkWork(root: JsonSchema): number | undefined {
  const visitor = new Visitor(root);
  try {
    visitor.visit(root, []);
    return visitor.work;
  } catch (error) {
    // Schemas in each other without end are a RangeError, since they overflow the stack.
    if (error instanceof TooMuchWork || error instanceof RangeError) return undefined;
    throw error;
  }
}

class TooMuchWork extends Error {}

class Visitor {
  readonly #root: JsonSchema;
  readonly #visits = new Map<JsonSchema, Visit>();
  /** The one schema that refers to itself. */
  #recursive: JsonSchema | undefined;
  work = 0;

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  /** `parts`: those of the whole value that lead to the schema. */
  visit(value: unknown, parts: readonly Part[]): void {
    this.work += 1;
    if (this.work > MAX_WORK) throw new TooMuchWork();
    if (Array.isArray(value)) {
      for (const inner of value) this.visit(inner, parts);
      return;
    }
    if (!isObject(value)) return;
    const outer = this.#visits.get(value);
    if (outer !== undefined) {
      this.#return(value, outer, parts);
      return;
    }
    if ("$dynamicRef" in value || "$recursiveRef" in value) throw new TooMuchWork();
    this.#visits.set(value, { depth: parts.length, returns: new Set() });
    this.#follow(value["$ref"], parts);
    for (const { keyword, name, schema } of innerSchemas(value)) {
      const part = KEYWORDS.get(keyword);
      if (part === undefined) continue;
      const isNamed = keyword === "properties" && typeof name === "string";
      this.visit(schema, part === "value" ? parts : [...parts, isNamed ? `property:${name}` : part]);
    }
    this.#visits.delete(value);
  }

  #follow(reference: unknown, parts: readonly Part[]): void {
    if (reference === undefined) return;
    const target = typeof reference === "string" ? resolveReference(this.#root, reference) : undefined;
    if (target === undefined) throw new TooMuchWork();
    this.visit(target, parts);
  }

  /** A schema refers to itself. */
  #return(schema: JsonSchema, { depth, returns }: Visit, parts: readonly Part[]): void {
    const part = parts[depth];
    this.#recursive ??= schema;
    if (part === undefined || this.#recursive !== schema) throw new TooMuchWork();
    const isNamed = part.startsWith("property:");
    const overlaps = returns.has(part) || (isNamed && returns.has("property"));
    if (overlaps || (part === "property" && [...returns].some((other) => other !== "item"))) throw new TooMuchWork();
    returns.add(part);
  }
}
