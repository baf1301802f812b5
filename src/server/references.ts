// The references of a plain JSON Schema, written so that ajv follows them as the dialects say. ajv knows no anchor
// at the root, and takes a dynamic reference for the schema that it stands in. A schema that holds no other with an
// `$id` has one scope, and there a dynamic reference means the same as a plain one. Schemas inside schemas that
// each have an `$id` keep their dynamic references, and ajv's reading of them.

import { isObject } from "../core/objects.ts";
import type { JsonSchema } from "../protocol/model/index.ts";

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
