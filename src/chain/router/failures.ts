// What ends throw, as merge reads it and passes it on. An answer of an end ("there is no such tool") is its own and
// stays as it is; a failure to answer is told with the end's name, because a caller sees one server and must learn
// which of the many behind it is away.

import { ConnectionError } from "../../core/errors.ts";
import type { Result } from "../../core/handler.ts";
import { errorMessage } from "../../core/text.ts";
import { kindOf, toMcpError } from "../../dialogue/calls/errors.ts";
import { isObject } from "../../core/objects.ts";
import { McpError, type ErrorKind } from "../../protocol/errors.ts";

/** Under this key of a result's `_meta` stands which ends it had to do without, and why. */
export const UNAVAILABLE = "catenary/unavailable";

export interface Unavailable {
  readonly end: string;
  readonly message: string;
}

const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;

/** Kinds that say that nobody answered, whoever wrote them. */
const SILENT: ReadonlySet<ErrorKind | undefined> = new Set<ErrorKind>(["timeout", "unreachable"]);
/** Kinds that may go well another time. */
const PASSING: ReadonlySet<ErrorKind | undefined> = new Set<ErrorKind>([
  "timeout",
  "unreachable",
  "rate_limited",
  "shutting_down",
]);

/** The same error, which says which end it is about. */
export function named(end: string, error: unknown): Error {
  if (error instanceof ConnectionError) {
    const { kind, mayHaveRun, status } = error;
    const message = withName(end, error.message);
    if (message === error.message) return error;
    return new ConnectionError(kind, message, {
      cause: error,
      mayHaveRun,
      ...(status === undefined ? undefined : { status }),
    });
  }
  if (error instanceof McpError) {
    if (!SILENT.has(kindOf(error))) return error;
    const data = isObject(error.data) ? { ...error.data, end } : { end };
    return new McpError(error.code, withName(end, error.message), data, { cause: error });
  }
  return McpError.of("internal_error", withName(end, errorMessage(error)), { end }, { cause: error });
}

/** Many errors speak of "the end", which is enough where there is one. */
function withName(end: string, message: string): string {
  if (message.includes(`end ${end} `)) return message;
  return message.startsWith("The end ")
    ? `The end ${end} ${message.slice("The end ".length)}`
    : `The end ${end} failed: ${message}`;
}

/** What callers may be told of a failure. */
export function tellable(error: Error): string {
  return error instanceof ConnectionError ? toMcpError(error).message : errorMessage(error);
}

export function unavailable(end: string, error: unknown): Unavailable {
  return { end, message: tellable(named(end, error)) };
}

/** What an end that is itself made of many had to do without. */
export function nested(end: string, result: Result | undefined): readonly Unavailable[] {
  const said = result?._meta?.[UNAVAILABLE];
  const isOne = (one: unknown): one is Unavailable => isObject(one) && typeof one["end"] === "string";
  return Array.isArray(said) ? said.filter(isOne).map((one) => ({ ...one, end: `${end}.${one.end}` })) : [];
}

/** What is thrown where every end has failed. */
export function allFailed(what: string, failed: readonly Unavailable[]): McpError {
  const messages = failed.map(({ message }) => message);
  return McpError.of("unreachable", `No end could answer ${what}: ${messages.join("; ")}`, { [UNAVAILABLE]: failed });
}

export function isMethodNotFound(error: unknown): boolean {
  return error instanceof McpError && (error.code === METHOD_NOT_FOUND || kindOf(error) === "method_not_found");
}

/** Whether the end said no, and will say so again; false where it could not answer. */
export function isRefusal(error: unknown): boolean {
  return error instanceof McpError && error.code !== INTERNAL_ERROR && !PASSING.has(kindOf(error));
}

/** Whether an end was asked in vain because nobody answered. */
export function isSilence(error: unknown): boolean {
  return error instanceof ConnectionError || (error instanceof McpError && SILENT.has(kindOf(error)));
}

export function isTimeout(error: unknown): boolean {
  return error instanceof ConnectionError ? error.kind === "timeout" : kindOf(error) === "timeout";
}

/** Whether an end says that it has no such resource. Ends have many words for it. */
export function isNotFound(error: unknown): boolean {
  if (!(error instanceof McpError)) return false;
  if (kindOf(error) === "resource_not_found" || isMethodNotFound(error)) return true;
  return error.code === INVALID_PARAMS || /not found|unknown resource|no such|does not exist/i.test(error.message);
}

/** An error that names what it is about, by the name that the caller used. */
export function inCallersWords(error: unknown, field: string, own: string, asked: string): unknown {
  if (own === asked || !(error instanceof McpError) || !isObject(error.data) || error.data[field] !== own) return error;
  return new McpError(error.code, error.message, { ...error.data, [field]: asked }, { cause: error });
}
