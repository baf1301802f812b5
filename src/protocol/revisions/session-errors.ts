// Error codes between the session-style revisions and the successor that gave some codes a new meaning:
// a missing resource became a case of invalid params, and -32020 to -32099 became the specification's own.
// `data.kind` says what happened on either side; the code of a kind is in the table of errors.ts.

import { McpError } from "../errors.ts";
import type { ErrorKind } from "../errors.ts";
import type { ErrorBody } from "../../jsonrpc/message.ts";
import { isObject } from "../../core/objects.ts";

type Asked = { readonly method: string; readonly params: { readonly [key: string]: unknown } };

const INVALID_REQUEST = -32600;
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;

type SessionKind =
  | "resource_not_found"
  | "url_elicitation_required"
  | "header_mismatch"
  | "missing_capability"
  | "unsupported_revision";

export const SESSION_CODES: Readonly<Record<SessionKind, number>> = {
  resource_not_found: -32002,
  url_elicitation_required: -32042,
  header_mismatch: INVALID_REQUEST,
  missing_capability: INTERNAL_ERROR,
  unsupported_revision: INVALID_PARAMS,
};

/** Codes that only the successor has. */
const SUCCESSOR_CODES: ReadonlyMap<number, SessionKind> = new Map([
  [-32020, "header_mismatch"],
  [-32021, "missing_capability"],
  [-32022, "unsupported_revision"],
] as const);

/** Codes to which the successor gives a meaning of its own, whatever an older end meant by them. */
const isTaken = (code: number): boolean =>
  (code <= -32020 && code >= -32099) || code === SESSION_CODES.resource_not_found;

/** The data of an error with its kind in it; data that is no object is kept beside the kind. */
function withKind(kind: ErrorKind, data: unknown, more?: Readonly<Record<string, unknown>>): Record<string, unknown> {
  if (isObject(data)) return { kind, ...more, ...data };
  return data === undefined ? { kind, ...more } : { kind, ...more, details: data };
}

export function errorUp(error: ErrorBody, { method, params }: Asked): ErrorBody {
  const { code, message, data } = error;
  if (code === SESSION_CODES.resource_not_found && method === "resources/read") {
    return { code: INVALID_PARAMS, message, data: withKind("resource_not_found", data, { uri: params.uri }) };
  }
  // Some older ends say of a tool what was meant to be said of a method.
  if (code === METHOD_NOT_FOUND && method === "tools/call") {
    return { code: INVALID_PARAMS, message, data: { kind: "tool_not_found", upstream: error } };
  }
  if (code === SESSION_CODES.url_elicitation_required && isObject(data) && Array.isArray(data.elicitations)) {
    return { code: INTERNAL_ERROR, message, data: withKind("url_elicitation_required", data) };
  }
  // Left as it is, the caller would read it as the specification's own code.
  return isTaken(code) ? McpError.of("internal_error", message, { upstream: error }).toBody() : error;
}

export function errorDown(error: ErrorBody, { method, params }: Asked): ErrorBody {
  const { code, message, data } = error;
  const kind = SUCCESSOR_CODES.get(code);
  if (kind) return { code: SESSION_CODES[kind], message, data: withKind(kind, data) };
  if (!isObject(data)) return error;
  if (code === INVALID_PARAMS && isMissingResource(data, method, params)) {
    return { ...error, code: SESSION_CODES.resource_not_found };
  }
  if (code === INVALID_PARAMS && data.kind === "tool_not_found" && isMissingMethod(data.upstream, message)) {
    return data.upstream;
  }
  if (code === INTERNAL_ERROR) {
    if (data.kind === "url_elicitation_required") return { ...error, code: SESSION_CODES.url_elicitation_required };
    if (isWrapped(data, message)) return data.upstream;
  }
  return error;
}

function isMissingMethod(upstream: unknown, message: string): upstream is ErrorBody {
  return isObject(upstream) && upstream.code === METHOD_NOT_FOUND && upstream.message === message;
}

/** Only what went up as one of our wrappings: an error of its own that shows what was behind it stays what it is. */
function isWrapped(
  data: Readonly<Record<string, unknown>>,
  message: string,
): data is { readonly kind: string; readonly upstream: ErrorBody } {
  const { kind, upstream, ...rest } = data;
  if (kind !== "internal_error" || !isObject(upstream) || Object.keys(rest).length > 0) return false;
  return upstream.message === message && typeof upstream.code === "number" && isTaken(upstream.code);
}

/** An end that names no kind is understood by the address in its data. */
function isMissingResource(data: Readonly<Record<string, unknown>>, method: string, params: Asked["params"]): boolean {
  if (data.kind !== undefined) return data.kind === "resource_not_found";
  return method === "resources/read" && data.uri !== undefined && data.uri === params.uri;
}
