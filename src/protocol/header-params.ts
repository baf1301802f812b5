// Arguments of a tool that stand in headers too, for whoever routes requests without reading their bodies: which
// ones a schema names by `x-mcp-header` (specification, basic/transports/streamable-http, custom headers from tool
// parameters). Schemas may come from anywhere, so the work is bounded by their size. Whether the headers of a call
// agree with its arguments is in header-match.

import { isObject } from "../core/objects.ts";

export interface HeaderParam {
  /** The names that lead to the value, from the arguments down. */
  readonly path: readonly string[];
  /** The whole name of the header, in lower case. */
  readonly header: string;
}

export interface HeaderParams {
  readonly params: readonly HeaderParam[];
  /** What is wrong with an annotation; the tool is then no valid tool over HTTP. */
  readonly problem?: string;
}

const KEYWORD = "x-mcp-header";

/** A name of a header field (RFC 9110, 5.6.2). */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const TYPES: ReadonlySet<unknown> = new Set(["integer", "string", "boolean"]);

/** Keywords whose values are schemas by names of the author's choice. */
const MAPS = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"]);

/** Keywords whose values are data: what stands in them is no schema, whatever it looks like. */
const DATA = new Set(["const", "default", "enum", "example", "examples"]);

interface Place {
  readonly schema: object;
  readonly key: string;
  readonly parent: Place | undefined;
  /** Whether nothing but `properties` leads here from the root. */
  readonly plain: boolean;
}

/** What a schema of arguments says of headers. Each object is looked at twice at most, so circles end too. */
export function headerParams(inputSchema: object): HeaderParams {
  const params: HeaderParam[] = [];
  const taken = new Set<string>();
  const seen = { plain: new Set<object>(), other: new Set<object>() };
  const places: Place[] = [{ schema: inputSchema, key: "", parent: undefined, plain: true }];
  // It grows while it is walked.
  for (const reached of places) {
    // One object that stands at two places has its annotations twice, which none may.
    const place = seen.plain.has(reached.schema) ? { ...reached, plain: false } : reached;
    const known = place.plain ? seen.plain : seen.other;
    if (known.has(place.schema)) continue;
    known.add(place.schema);
    const found = annotation(place);
    if (found !== undefined) {
      if ("problem" in found) return { params: [], problem: found.problem };
      if (taken.has(found.header)) return { params: [], problem: `${found.header} is the header of two arguments` };
      taken.add(found.header);
      params.push(found);
    }
    for (const next of subschemas(place)) places.push(next);
  }
  return { params };
}

function annotation(place: Place): HeaderParam | { readonly problem: string } | undefined {
  const { [KEYWORD]: name, type } = place.schema as Record<string, unknown>;
  if (name === undefined) return undefined;
  const path = pathTo(place);
  const where = path.length === 0 ? `${KEYWORD} of its input` : `${KEYWORD} of ${path.join(".")}`;
  if (!place.plain || path.length === 0) {
    return { problem: `${where} must stand in a property that only \`properties\` lead to, and only once` };
  }
  if (typeof name !== "string" || !TOKEN.test(name)) return { problem: `${where} must be a name for an HTTP header` };
  if (!TYPES.has(type)) return { problem: `${where} needs the type "string", "integer" or "boolean" beside it` };
  return { path, header: `mcp-param-${name.toLowerCase()}` };
}

function pathTo(place: Place): string[] {
  const path: string[] = [];
  for (let at: Place = place; at.parent !== undefined; at = at.parent) path.push(at.key);
  return path.toReversed();
}

function* subschemas(parent: Place): Iterable<Place> {
  for (const [keyword, value] of Object.entries(parent.schema)) {
    if (DATA.has(keyword) || typeof value !== "object" || value === null) continue;
    if (!MAPS.has(keyword)) {
      // An array among the places is looked at as a schema too, and its elements are what it leads to.
      yield { schema: value as object, key: keyword, parent, plain: false };
      continue;
    }
    const plain = parent.plain && keyword === "properties" && isObject(value);
    for (const [key, schema] of Object.entries(value as object)) {
      if (typeof schema === "object" && schema !== null) yield { schema: schema as object, key, parent, plain };
    }
  }
}
