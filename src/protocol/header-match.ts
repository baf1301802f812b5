// The headers of a call beside its arguments: whether they say the same, and what they must be so that they do
// (specification, basic/transports/streamable-http, server validation). The first is for whoever runs the tool, the
// second for whoever calls it. Which arguments stand in headers is in header-params; it is loaded with every server,
// and this with the first call that needs it.

import { isObject } from "../core/objects.ts";
import type { HeaderParam } from "./header-params.ts";
import { decodeHeaderValue, encodeHeaderValue } from "./header-value.ts";

/** A whole number as JSON writes it, and with nothing but zeros behind a point. */
const WHOLE = /^-?(?:0|[1-9][0-9]*)(?:\.0+)?$/;

/** What does not agree between the headers, by lower-case names, and the arguments; undefined where all does. */
export function checkHeaderParams(
  params: readonly HeaderParam[],
  args: unknown,
  headers: Readonly<Record<string, string | undefined>>,
): string | undefined {
  for (const { path, header } of params) {
    const value = valueAt(args, path);
    const fault = disagreement(value, headers[header]);
    if (fault !== undefined) return `Header mismatch: ${header} ${fault} the argument ${path.join(".")}`;
  }
  return undefined;
}

function disagreement(value: unknown, given: string | undefined): string | undefined {
  if (value === undefined || value === null) return given === undefined ? undefined : "is there without";
  const text = textOf(value);
  if (text === undefined) return "cannot carry";
  if (given === undefined) return "is missing beside";
  const decoded = decodeHeaderValue(given);
  if (decoded === undefined) return "is not well-formed beside";
  const equal = typeof value === "number" ? WHOLE.test(decoded) && Number(decoded) === value : decoded === text;
  return equal ? undefined : "does not equal";
}

/** Headers that were held against the arguments as they came in. */
const held = new WeakSet<object>();

/** From here on the arguments may be changed on their way: nobody holds them against these headers again. */
export function setHeld(headers: object): void {
  held.add(headers);
}

export function wereHeld(headers: object): boolean {
  return held.has(headers);
}

/** The headers that must go with a call of these arguments. What has no place in a header is left out. */
export function mirrorHeaders(params: readonly HeaderParam[], args: unknown): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const { path, header } of params) {
    const text = textOf(valueAt(args, path));
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

/** Undefined for all that is no string, no boolean and no integer that a double holds exactly. */
function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "boolean" || Number.isSafeInteger(value) ? String(value) : undefined;
}
