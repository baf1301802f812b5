// Tool arguments that are also sent as headers, so that proxies can route without reading bodies: those that a schema
// marks with `x-mcp-header` (specification, basic/transports/streamable-http, custom headers from tool parameters).
// Schemas are untrusted, so the work is linear in their size.

import { isObject } from "../core/objects.ts";

export interface HeaderParam {
  /** The keys that lead to the value, from the arguments down. */
  readonly path: readonly string[];
  /** The full name of the header, in lower case. */
  readonly header: string;
}

export interface HeaderParams {
  readonly params: readonly HeaderParam[];
  /** The problem with an annotation; the tool is then not valid over HTTP. */
  readonly problem?: string;
}

const KEYWORD = "x-mcp-header";

/** A header field name (RFC 9110, 5.6.2). */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const TYPES: ReadonlySet<unknown> = new Set(["integer", "string", "boolean"]);

/** Keywords whose values are maps of schemas. */
const MAP_KEYWORDS = new Set([
  "properties",
  "patternProperties",
  "$defs",
  "definitions",
  "dependentSchemas",
  "dependencies",
]);

/** Keywords whose values are data, even if they look like schemas. */
const DATA_KEYWORDS = new Set(["const", "default", "enum", "example", "examples"]);

interface SchemaNode {
  readonly schema: object;
  readonly key: string;
  readonly parent: SchemaNode | undefined;
  /** Whether only `properties` lead here from the root. */
  readonly isPlain: boolean;
}

/** The header parameters of an input schema. Each object is visited twice at most, so cycles end. */
export function headerParams(inputSchema: object): HeaderParams {
  const params: HeaderParam[] = [];
  const taken = new Set<string>();
  const seen = { plain: new Set<object>(), other: new Set<object>() };
  const nodes: SchemaNode[] = [{ schema: inputSchema, key: "", parent: undefined, isPlain: true }];
  // The array grows during the loop.
  for (const reached of nodes) {
    // An object that is reached twice has its annotation twice, which is not allowed.
    const node = seen.plain.has(reached.schema) ? { ...reached, isPlain: false } : reached;
    const known = node.isPlain ? seen.plain : seen.other;
    if (known.has(node.schema)) continue;
    known.add(node.schema);
    const found = annotation(node);
    if (found !== undefined) {
      if ("problem" in found) return { params: [], problem: found.problem };
      if (taken.has(found.header)) return { params: [], problem: `${found.header} is the header of two arguments` };
      taken.add(found.header);
      params.push(found);
    }
    for (const next of subschemas(node)) nodes.push(next);
  }
  return { params };
}

function annotation(node: SchemaNode): HeaderParam | { readonly problem: string } | undefined {
  const { [KEYWORD]: name, type } = node.schema as Record<string, unknown>;
  if (name === undefined) return undefined;
  const path = pathTo(node);
  const where = path.length === 0 ? `${KEYWORD} of its input` : `${KEYWORD} of ${path.join(".")}`;
  if (!node.isPlain || path.length === 0) {
    return { problem: `${where} must be on a property that only \`properties\` lead to, and only once` };
  }
  if (typeof name !== "string" || !TOKEN.test(name)) return { problem: `${where} must be a name for an HTTP header` };
  if (!TYPES.has(type)) return { problem: `${where} needs the type "string", "integer" or "boolean"` };
  return { path, header: `mcp-param-${name.toLowerCase()}` };
}

function pathTo(node: SchemaNode): string[] {
  const path: string[] = [];
  for (let at: SchemaNode = node; at.parent !== undefined; at = at.parent) path.push(at.key);
  return path.toReversed();
}

function* subschemas(parent: SchemaNode): Iterable<SchemaNode> {
  for (const [keyword, value] of Object.entries(parent.schema)) {
    if (DATA_KEYWORDS.has(keyword) || typeof value !== "object" || value === null) continue;
    if (!MAP_KEYWORDS.has(keyword)) {
      // An array is visited as a schema too, so that its elements are.
      yield { schema: value as object, key: keyword, parent, isPlain: false };
      continue;
    }
    const isPlain = parent.isPlain && keyword === "properties" && isObject(value);
    for (const [key, schema] of Object.entries(value as object)) {
      if (typeof schema === "object" && schema !== null) yield { schema: schema as object, key, parent, isPlain };
    }
  }
}
