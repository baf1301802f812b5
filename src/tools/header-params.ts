// Tool arguments that are also sent as headers, so that proxies can route without reading bodies: which arguments a
// schema marks with `x-mcp-header`, and whether headers and arguments agree (specification,
// basic/transports/streamable-http). Schemas are untrusted, so the work is linear in their size.

import { fieldsOf, isObject } from "../core/values.ts";
import { decodeHeaderValue, encodeHeaderValue } from "../protocol/header-values.ts";
import { innerSchemas } from "./schema.ts";

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
  const takenHeaders = new Set<string>();
  const seen = { plain: new Set<object>(), other: new Set<object>() };
  const nodes: SchemaNode[] = [{ schema: inputSchema, key: "", parent: undefined, isPlain: true }];
  // The array grows during the loop.
  for (const reached of nodes) {
    // An object that is reached twice would give two arguments the same header. So an annotation in it is a problem.
    const node = seen.plain.has(reached.schema) ? { ...reached, isPlain: false } : reached;
    const known = node.isPlain ? seen.plain : seen.other;
    if (known.has(node.schema)) continue;
    known.add(node.schema);
    const annotated = annotation(node);
    if (annotated !== undefined) {
      if ("problem" in annotated) return { params: [], problem: annotated.problem };
      if (takenHeaders.has(annotated.header))
        return { params: [], problem: `${annotated.header} is the header of two arguments` };
      takenHeaders.add(annotated.header);
      params.push(annotated);
    }
    for (const { keyword, name, schema } of innerSchemas(node.schema)) {
      if (typeof schema !== "object" || schema === null) continue;
      const isNamed = typeof name === "string";
      const key = isNamed ? name : name === undefined ? keyword : `${keyword}.${name}`;
      nodes.push({ schema, key, parent: node, isPlain: node.isPlain && isNamed && keyword === "properties" });
    }
  }
  return { params };
}

function annotation(node: SchemaNode): HeaderParam | { readonly problem: string } | undefined {
  const { [KEYWORD]: name, type } = fieldsOf(node.schema);
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

function compare(value: unknown, header: string | undefined): string | undefined {
  if (value === undefined || value === null) return header === undefined ? undefined : "is set without";
  const text = toHeaderString(value);
  if (text === undefined) return "cannot carry";
  if (header === undefined) return "is missing for";
  const decoded = decodeHeaderValue(header);
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
