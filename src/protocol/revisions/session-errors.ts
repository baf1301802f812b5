// Converts errors between the session-style revisions and their successor. The successor reports a missing resource as
// invalid params, and reserves the codes -32020 to -32099. `data.kind` names the failure on both sides.

import { isObject } from "../../core/values.ts";
import type { ErrorBody } from "../../jsonrpc/message.ts";
import { INTERNAL_ERROR, INVALID_PARAMS, McpError, METHOD_NOT_FOUND, type ErrorKind } from "../errors.ts";

type FailedRequest = { readonly method: string; readonly params: { readonly [key: string]: unknown } };

type SessionKind = "resource_not_found" | "url_elicitation_required" | SuccessorKind;
type SuccessorKind = "header_mismatch" | "missing_capability" | "unsupported_revision";

export const SESSION_CODES: Readonly<Record<SessionKind, number>> = {
  resource_not_found: -32002,
  url_elicitation_required: -32042,
  header_mismatch: -32600,
  missing_capability: INTERNAL_ERROR,
  unsupported_revision: INVALID_PARAMS,
};

/** Codes that only the successor defines. */
const SUCCESSOR_CODES: ReadonlyMap<number, SuccessorKind> = new Map([
  [-32020, "header_mismatch"],
  [-32021, "missing_capability"],
  [-32022, "unsupported_revision"],
] as const);

const isReserved = (code: number): boolean =>
  (code <= -32020 && code >= -32099) || code === SESSION_CODES.resource_not_found;

/** Adds the kind to an error's data; data that is not an object moves to `details`. */
function withKind(kind: ErrorKind, data: unknown, more?: Readonly<Record<string, unknown>>): Record<string, unknown> {
  if (isObject(data)) return { kind, ...more, ...data };
  return data === undefined ? { kind, ...more } : { kind, ...more, details: data };
}

export function errorUp(error: ErrorBody, { method, params }: FailedRequest): ErrorBody {
  const { code, message, data } = error;
  if (code === SESSION_CODES.resource_not_found && method === "resources/read") {
    return { code: INVALID_PARAMS, message, data: withKind("resource_not_found", data, { uri: params.uri }) };
  }
  // Some older servers answer METHOD_NOT_FOUND for an unknown tool.
  if (code === METHOD_NOT_FOUND && method === "tools/call") {
    return { code: INVALID_PARAMS, message, data: { kind: "tool_not_found", upstream: error } };
  }
  if (code === SESSION_CODES.url_elicitation_required && isObject(data) && Array.isArray(data.elicitations)) {
    return { code: INTERNAL_ERROR, message, data: withKind("url_elicitation_required", data) };
  }
  // Wrapped, because the caller would take a reserved code for one that the specification defines.
  return isReserved(code) ? McpError.of("internal_error", message, { upstream: error }).toBody() : error;
}

export function errorDown(error: ErrorBody, { method, params }: FailedRequest): ErrorBody {
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

/** Whether `errorUp` created this error. A server's own error with a field `upstream` is not unwrapped. */
function isWrapped(
  data: Readonly<Record<string, unknown>>,
  message: string,
): data is { readonly kind: string; readonly upstream: ErrorBody } {
  const { kind, upstream, ...rest } = data;
  if (kind !== "internal_error" || !isObject(upstream) || Object.keys(rest).length > 0) return false;
  return upstream.message === message && typeof upstream.code === "number" && isReserved(upstream.code);
}

/** An error without a kind reports a missing resource if its data has the requested URI. */
function isMissingResource(
  data: Readonly<Record<string, unknown>>,
  method: string,
  params: FailedRequest["params"],
): boolean {
  if (data.kind !== undefined) return data.kind === "resource_not_found";
  return method === "resources/read" && data.uri !== undefined && data.uri === params.uri;
}
