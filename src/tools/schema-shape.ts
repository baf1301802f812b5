// What a JSON Schema says about a value, as far as it decides how a value of another language is read: types, names of
// properties, elements, and choices. All schemas that hold at one place are one shape. Patterns are not run.

import { isObject } from "../core/values.ts";
import { resolveReference } from "./schema.ts";

export interface Shape {
  readonly types: ReadonlySet<string> | undefined;
  /** Whether `types` was derived from other keywords, so that other types are valid too. */
  readonly isGuess: boolean;
  readonly allowed: readonly (readonly unknown[])[];
  readonly properties: ReadonlyMap<string, unknown>;
  readonly required: readonly string[];
  /** The schema of properties that are not named; undefined if the schema says nothing about them. */
  readonly others: unknown;
  readonly prefix: readonly unknown[];
  readonly items: unknown;
  readonly minItems: number;
  readonly maxItems: number;
  /** The schemas that result if each alternative of the first choice is taken; empty if there is no choice. */
  readonly alternatives: readonly object[];
}

type Schema = { readonly [keyword: string]: unknown };

const MAX_CONJUNCTION = 100;

/** The schemas that all hold: the schema itself, what it refers to, and its `allOf`. */
export function conjunction(schema: unknown, root: unknown): readonly Schema[] {
  const all = new Set<unknown>([schema]);
  for (const part of all) {
    if (!isObject(part) || all.size > MAX_CONJUNCTION) continue;
    const { $ref, allOf } = part;
    if (typeof $ref === "string") all.add(resolveReference(root, $ref));
    if (Array.isArray(allOf)) for (const part of allOf) all.add(part);
  }
  return [...all].filter(isObject);
}

/** The schema that all of these are. */
function both(schemas: readonly unknown[]): unknown {
  return schemas.length < 2 ? schemas[0] : { allOf: schemas };
}

export function shapeOf(schemas: readonly Schema[]): Shape {
  const of = (keyword: string): unknown[] =>
    schemas.map((schema) => schema[keyword]).filter((value) => value !== undefined);
  const choices = schemas.flatMap(choicesOf);
  const properties = new Map<string, unknown[]>();
  for (const named of of("properties")) {
    for (const [name, schema] of Object.entries(isObject(named) ? named : {})) {
      const known = properties.get(name);
      if (known === undefined) properties.set(name, [schema]);
      else known.push(schema);
    }
  }
  const [tuples, items] = [of("prefixItems"), of("items")];
  // Before JSON Schema 2020-12, `items` had the elements of a tuple.
  const prefix = [...tuples, ...items].find((list): list is unknown[] => Array.isArray(list)) ?? [];
  const patterns = of("patternProperties").flatMap((properties) =>
    isObject(properties) ? Object.values(properties) : [],
  );
  const open = of("additionalProperties");
  const others = patterns.length > 0 ? { anyOf: [...patterns, ...open] } : both(open);
  const allowed = [
    ...of("enum").filter((values): values is unknown[] => Array.isArray(values)),
    ...of("const").map((value) => [value]),
  ];
  const named = schemas.map(typesOf).filter((types) => types !== undefined);
  const hints = [
    ...(properties.size > 0 || others !== undefined || of("required").length > 0 ? ["object"] : []),
    ...(prefix.length > 0 || items.length > 0 ? ["array"] : []),
  ];
  return {
    types: named.length > 0 ? intersection(named) : hints.length > 0 ? new Set(hints) : undefined,
    isGuess: named.length === 0,
    allowed,
    properties: new Map([...properties].map(([name, all]) => [name, both(all)])),
    required: of("required").flatMap((names) =>
      Array.isArray(names) ? names.filter((name) => typeof name === "string") : [],
    ),
    others,
    prefix,
    items: both([...items, ...of("additionalItems")].filter((item) => !Array.isArray(item))),
    minItems: Math.max(0, ...of("minItems").map(Number)),
    maxItems: Math.min(Infinity, ...of("maxItems").map(Number)),
    alternatives: alternativesOf(schemas, choices),
  };
}

function choicesOf({ anyOf, oneOf, if: condition, then, else: otherwise }: Schema): readonly (readonly unknown[])[] {
  const branches = condition === undefined ? [] : [then, otherwise, true].filter((branch) => branch !== undefined);
  return [anyOf, oneOf, branches].filter(
    (alternatives): alternatives is unknown[] => Array.isArray(alternatives) && alternatives.length > 0,
  );
}

function alternativesOf(schemas: readonly Schema[], choices: readonly (readonly unknown[])[]): readonly object[] {
  const [first, ...rest] = choices;
  if (first === undefined) return [];
  const plain = schemas.map(({ $ref: _ref, allOf: _all, anyOf: _any, oneOf: _one, if: _if, ...others }) => others);
  const kept = plain.filter((schema) => Object.keys(schema).length > 0);
  const later = rest.map((anyOf) => ({ anyOf }));
  return first.map((alternative) => ({ allOf: [...kept, alternative, ...later] }));
}

function typesOf({ type, nullable }: Schema): ReadonlySet<string> | undefined {
  const types = (Array.isArray(type) ? type : [type]).filter((name) => typeof name === "string");
  if (types.length === 0) return undefined;
  return new Set(nullable === true ? [...types, "null"] : types);
}

function intersection(sets: readonly ReadonlySet<string>[]): ReadonlySet<string> {
  const [first = new Set<string>(), ...rest] = sets;
  const isInAll = (type: string): boolean =>
    rest.every((set) => set.has(type) || (type === "integer" && set.has("number")));
  const shared = [...first].filter(isInAll);
  const isNumber = first.has("number") && rest.every((set) => set.has("integer") || set.has("number"));
  return new Set(isNumber && !shared.includes("number") ? [...shared, "integer"] : shared);
}

export const ANY: Shape = shapeOf([]);

export function allows({ types }: Shape, type: string): boolean {
  return types === undefined || types.has(type) || (type === "integer" && types.has("number"));
}
