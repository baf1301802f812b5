// Tool arguments that are also sent as headers, so that proxies can route without reading bodies: which arguments a
// schema marks with `x-mcp-header`, how their values are encoded, and whether headers and arguments agree
// (specification, basic/transports/streamable-http). Schemas are untrusted, so the work is linear in their size.

import { Buffer } from "node:buffer";
import { isObject } from "../core/values.ts";

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
  /** Whether the path from the root consists of `properties` only. */
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
    // An object that is reached twice would give two arguments the same header. So an annotation in it is a problem.
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
    return { problem: `${where} must be on a property that is reached only through \`properties\`, and only once` };
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
      // An array is visited like a schema, so that its elements are visited too.
      yield { schema: value as object, key: keyword, parent, isPlain: false };
      continue;
    }
    const isPlain = parent.isPlain && keyword === "properties" && isObject(value);
    for (const [key, schema] of Object.entries(value as object)) {
      if (typeof schema === "object" && schema !== null) yield { schema: schema as object, key, parent, isPlain };
    }
  }
}

/** An integer as in JSON, possibly with zeros after a decimal point. */
const INTEGER = /^-?(?:0|[1-9][0-9]*)(?:\.0+)?$/;

/** The first mismatch between the headers, by lower-case names, and the arguments; undefined if there is none. */
export function checkHeaderParams(
  params: readonly HeaderParam[],
  args: unknown,
  headers: Readonly<Record<string, string | undefined>>,
): string | undefined {
  for (const { path, header } of params) {
    const value = valueAt(args, path);
    const problem = compare(value, headers[header]);
    if (problem !== undefined) return `Header mismatch: ${header} ${problem} the argument ${path.join(".")}`;
  }
  return undefined;
}

function compare(value: unknown, given: string | undefined): string | undefined {
  if (value === undefined || value === null) return given === undefined ? undefined : "is set without";
  const text = toHeaderString(value);
  if (text === undefined) return "cannot carry";
  if (given === undefined) return "is missing for";
  const decoded = decodeHeaderValue(given);
  if (decoded === undefined) return "is malformed for";
  const isEqual = typeof value === "number" ? INTEGER.test(decoded) && Number(decoded) === value : decoded === text;
  return isEqual ? undefined : "does not equal";
}

/** The headers to send with these arguments. Values that a header cannot express are left out. */
export function mirrorHeaders(params: readonly HeaderParam[], args: unknown): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const { path, header } of params) {
    const text = toHeaderString(valueAt(args, path));
    if (text !== undefined) headers[header] = encodeHeaderValue(text);
  }
  return headers;
}

function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args;
  for (const key of path) {
    if (!isObject(value) || !Object.hasOwn(value, key)) return undefined;
    value = value[key];
  }
  return value;
}

/** Undefined unless it is a string, a boolean or a safe integer. */
function toHeaderString(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "boolean" || Number.isSafeInteger(value) ? String(value) : undefined;
}

const PREFIX = "=?base64?";
const SUFFIX = "?=";

/** Visible ASCII, space and tab. */
const PLAIN = /^[\t\x20-\x7e]*$/;

// A byte order mark is kept, as in a JSON body.
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function encodeHeaderValue(text: string): string {
  // Receivers trim values, so a string with surrounding spaces must be encoded.
  if (PLAIN.test(text) && text.trim() === text && !isEncoded(text)) return text;
  return `${PREFIX}${Buffer.from(text).toString("base64")}${SUFFIX}`;
}

/** Undefined if the value is malformed. */
export function decodeHeaderValue(value: string): string | undefined {
  if (!PLAIN.test(value)) return undefined;
  if (!isEncoded(value)) return value;
  // In "=?base64?=", the prefix and the suffix overlap.
  if (value.length < PREFIX.length + SUFFIX.length) return undefined;
  const inner = value.slice(PREFIX.length, -SUFFIX.length);
  const bytes = Buffer.from(inner, "base64");
  // Buffer ignores invalid characters, missing padding and leftover bits; accept only the canonical form.
  if (bytes.toString("base64") !== inner) return undefined;
  try {
    return UTF8.decode(bytes);
  } catch {
    return undefined;
  }
}

function isEncoded(value: string): boolean {
  return value.startsWith(PREFIX) && value.endsWith(SUFFIX);
}
