// Classifies the errors of upstreams, and adds the upstream's name where callers need it. An error response, such
// as "tool not found", does not get the name. If an upstream does not answer, the error names it, because callers see
// only one server and could not tell which upstream failed.

import { ConnectionError } from "../../core/errors.ts";
import type { Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import {
  INTERNAL_ERROR,
  INVALID_PARAMS,
  McpError,
  METHOD_NOT_FOUND,
  type ErrorKind,
  errorKind,
  isTemporary,
  withoutDiagnostics,
} from "../../protocol/errors.ts";
import { UNAVAILABLE, type Unavailable, unavailableIn } from "../../protocol/lists.ts";

/** Kinds of errors that mean that the upstream did not answer. */
const NO_ANSWER: ReadonlySet<ErrorKind | undefined> = new Set<ErrorKind>(["timeout", "unreachable"]);
/** Adds the name of the upstream to an error, unless the error is a response of the upstream. */
export function withUpstreamName(upstream: string, error: unknown): Error {
  if (error instanceof ConnectionError) {
    const subject = `The upstream ${upstream}`;
    const rest = error.subject === undefined ? ` failed: ${error.problem}` : error.problem.slice(error.subject.length);
    return error.subject === subject ? error : error.with({ subject, problem: `${subject}${rest}` });
  }
  const failed = (message: string): string => `The upstream ${upstream} failed: ${message}`;
  if (error instanceof McpError) {
    if (!NO_ANSWER.has(errorKind(error))) return error;
    const data = isObject(error.data) ? error.data : {};
    if (data["upstreamName"] === upstream) return error;
    return new McpError(error.code, failed(error.message), { ...data, upstreamName: upstream }, { cause: error });
  }
  return McpError.of("internal_error", failed(withoutDiagnostics(error)), { upstreamName: upstream }, { cause: error });
}

export function unavailable(upstream: string, error: unknown): Unavailable {
  return { upstream, message: withoutDiagnostics(withUpstreamName(upstream, error)) };
}

/** The unavailable upstreams that a result lists, if the upstream itself is a router. */
export function nestedUnavailable(upstream: string, result: Result | undefined): readonly Unavailable[] {
  return unavailableIn(result).map((unavailable) => ({
    ...unavailable,
    upstream: `${upstream}.${unavailable.upstream}`,
  }));
}

/** The error if every upstream has failed. */
export function allFailed(method: string, failures: readonly Unavailable[]): McpError {
  const messages = failures.map(({ message }) => message).join("; ");
  return McpError.of("unreachable", `No upstream could answer ${method}: ${messages}`, { [UNAVAILABLE]: failures });
}

export function isMethodNotFound(error: unknown): boolean {
  return error instanceof McpError && (error.code === METHOD_NOT_FOUND || errorKind(error) === "method_not_found");
}

/** Whether the upstream rejected the request, and would reject it again. */
export function isRefusal(error: unknown): boolean {
  return error instanceof McpError && error.code !== INTERNAL_ERROR && !isTemporary(error);
}

/** Whether the upstream did not answer. */
export function isNoAnswer(error: unknown): boolean {
  return error instanceof ConnectionError || (error instanceof McpError && NO_ANSWER.has(errorKind(error)));
}

export function isTimeout(error: unknown): boolean {
  return error instanceof ConnectionError ? error.kind === "timeout" : errorKind(error) === "timeout";
}

/** Whether the error means that the upstream has no such resource. Servers use many codes and messages for this. */
export function isNotFound(error: unknown): boolean {
  if (!(error instanceof McpError)) return false;
  if (errorKind(error) === "resource_not_found" || isMethodNotFound(error)) return true;
  return error.code === INVALID_PARAMS || /not found|unknown resource|no such|does not exist/i.test(error.message);
}

/** Replaces the upstream's own name of an item in the error's data with the name that the caller used. */
export function withRequestedName(error: unknown, field: string, ownName: string, requested: string): unknown {
  if (ownName === requested || !(error instanceof McpError)) return error;
  if (!isObject(error.data) || error.data[field] !== ownName) return error;
  return new McpError(error.code, error.message, { ...error.data, [field]: requested }, { cause: error });
}
