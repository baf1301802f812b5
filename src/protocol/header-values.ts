// Header values of a call: encoding (base64 if a header cannot carry a string), comparison with the arguments, and the
// headers that a client must send (specification, basic/transports/streamable-http). Which arguments are in headers is in
// header-params.ts, which every server loads; this file is loaded with the first call that needs it.

import { isObject } from "../core/objects.ts";
import type { HeaderParam } from "./header-params.ts";

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

/** Headers that were compared with the arguments as received. */
const checked = new WeakSet<object>();

/** Call before middleware may change the arguments: they are not compared with these headers again. */
export function markHeadersChecked(headers: object): void {
  checked.add(headers);
}

export function wereHeadersChecked(headers: object): boolean {
  return checked.has(headers);
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

// A byte order mark is part of the string, as in the body.
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
  // In "=?base64?=" prefix and suffix overlap.
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
