// Whether the check of a value against a schema is bounded work. References can make a small schema exponential: each
// level refers twice to the next one, or a schema refers to itself in two ways for the same part of a value. A schema
// that someone else has written is not checked if it may do that.

import { isObject } from "../core/values.ts";
import type { JsonSchema } from "./model/index.ts";
import { resolvePointer } from "./schema-kind.ts";

/** How many schemas one value may be checked against, with every reference followed once. */
const MAX_VISITS = 20_000;

/** Keywords whose schemas are for the same value. */
const SAME_VALUE = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
const SAME_VALUE_BY_NAME = ["dependentSchemas", "dependencies"];
const ITEMS = ["items", "prefixItems", "additionalItems", "contains", "unevaluatedItems"];
const PROPERTIES = ["additionalProperties", "unevaluatedProperties", "propertyNames"];

/** A part of a value: any item, any property, or the property of a name (after the colon). */
type Part = "item" | "property" | `property:${string}`;

interface Edge {
  readonly part: Part;
  readonly schema: JsonSchema;
}

/** False if it may be exponential, or if it has references that are not followed here. */
export function isBoundedWork(root: JsonSchema): boolean {
  try {
    const graph = new SchemaGraph(root);
    graph.visit(root, new Set());
    return graph.isUnambiguous();
  } catch (error) {
    // Schemas in each other without end are a RangeError, since they overflow the stack.
    if (error instanceof TooMuchWork || error instanceof RangeError) return false;
    throw error;
  }
}

class TooMuchWork extends Error {}

class SchemaGraph {
  readonly #root: JsonSchema;
  /** For each schema, those for the parts of its value. */
  readonly #edges = new Map<JsonSchema, readonly Edge[]>();
  #visits = 0;

  constructor(root: JsonSchema) {
    this.#root = root;
  }

  /** Follows everything once for each way that leads to it, but nothing into itself. */
  visit(schema: JsonSchema, outer: ReadonlySet<JsonSchema>): void {
    const edges: Edge[] = [];
    this.#expand(schema, edges, new Set());
    this.#edges.set(schema, edges);
    const visiting = new Set([...outer, schema]);
    for (const edge of edges) if (!visiting.has(edge.schema)) this.visit(edge.schema, visiting);
  }

  /** Adds the edges of all schemas that are for the same value. */
  #expand(schema: JsonSchema, edges: Edge[], outer: ReadonlySet<JsonSchema>): void {
    this.#visits += 1;
    const isOther = "$dynamicRef" in schema || "$recursiveRef" in schema;
    if (this.#visits > MAX_VISITS || isOther || outer.has(schema)) throw new TooMuchWork();
    const inner = new Set([...outer, schema]);
    const { $ref, properties, patternProperties } = schema;
    if ($ref !== undefined) {
      const target = typeof $ref === "string" ? resolvePointer(this.#root, $ref) : undefined;
      if (target === undefined) throw new TooMuchWork();
      for (const found of schemasIn(target)) this.#expand(found, edges, inner);
    }
    const same = [
      ...SAME_VALUE.map((keyword) => schema[keyword]),
      ...SAME_VALUE_BY_NAME.flatMap((keyword) => valuesOf(schema[keyword])),
    ];
    for (const found of same.flatMap(schemasIn)) this.#expand(found, edges, inner);
    const add = (part: Part, value: unknown): void => {
      for (const found of schemasIn(value)) edges.push({ part, schema: found });
    };
    for (const keyword of ITEMS) add("item", schema[keyword]);
    for (const keyword of PROPERTIES) add("property", schema[keyword]);
    for (const value of valuesOf(patternProperties)) add("property", value);
    for (const [name, value] of Object.entries(isObject(properties) ? properties : {})) add(`property:${name}`, value);
  }

  /** Whether a schema that leads to itself does so in one way for each part of a value. */
  isUnambiguous(): boolean {
    const groups = this.#groups();
    return [...this.#edges].every(([schema, edges]) => {
      const within = edges.filter((edge) => groups.get(edge.schema) === groups.get(schema));
      const isAny = (part: Part): boolean => within.some((edge) => edge.part === part);
      const named = within.map(({ part }) => part);
      const hasTwice = new Set(named).size < named.length;
      return !hasTwice && !(isAny("property") && named.some((part) => part.startsWith("property:")));
    });
  }

  /** A number for each schema, the same for those that lead to each other (Tarjan's algorithm). */
  #groups(): ReadonlyMap<JsonSchema, number> {
    const order = new Map<JsonSchema, number>();
    const groups = new Map<JsonSchema, number>();
    const stack: JsonSchema[] = [];
    const connect = (schema: JsonSchema): number => {
      const index = order.size;
      order.set(schema, index);
      stack.push(schema);
      let low = index;
      for (const { schema: next } of this.#edges.get(schema) ?? []) {
        if (groups.has(next)) continue;
        low = Math.min(low, order.has(next) ? (order.get(next) ?? 0) : connect(next));
      }
      if (low === index) {
        for (let member = stack.pop(); member !== undefined; member = member === schema ? undefined : stack.pop()) {
          groups.set(member, index);
        }
      }
      return low;
    };
    for (const schema of this.#edges.keys()) if (!order.has(schema)) connect(schema);
    return groups;
  }
}

function schemasIn(value: unknown): JsonSchema[] {
  if (Array.isArray(value)) return value.filter(isObject);
  return isObject(value) ? [value] : [];
}

function valuesOf(value: unknown): unknown[] {
  return isObject(value) ? Object.values(value) : [];
}
