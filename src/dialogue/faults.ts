// Whatever was thrown, as the error that this caller's revision and profile put on the wire.
// A kind decides the code; an error without a kind (it came from an end, or a user chose its code) keeps
// its own. Errors that nobody meant for the wire become -32603 with their message and nothing else.

import { LinkError } from "../core/errors.ts";
import type { Request } from "../core/handler.ts";
import type { ErrorBody } from "../jsonrpc/message.ts";
import { codeOf, McpError, type ErrorKind, type Profile } from "../protocol/errors.ts";
import type { Revision } from "../protocol/revision.ts";

export function toMcpError(error: unknown): McpError {
  if (error instanceof McpError) return error;
  if (error instanceof LinkError) {
    const kind: ErrorKind = error.kind === "timeout" ? "timeout" : "unreachable";
    return McpError.of(kind, error.message, { link: error.kind }, { cause: error });
  }
  const message = error instanceof Error ? error.message : String(error);
  return McpError.of("internal_error", `Internal error: ${message}`, undefined, { cause: error });
}

/** Why a call was cancelled, as the reason of its signal; what the other side says of it is text or nothing. */
export function cancellation(reason: unknown, by: string): Error {
  return new Error(`Cancelled by ${by}${typeof reason === "string" ? `: ${reason}` : ""}`);
}

export function errorBody(error: unknown, request: Request, revision: Revision, profile: Profile): ErrorBody {
  const known = toMcpError(error);
  const { kind } = known;
  const body = known.toBody();
  const coded = kind === undefined ? body : { ...body, code: codeOf(kind, revision, profile) };
  return revision.lower.error(coded, request);
}
