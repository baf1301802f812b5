// Turns any thrown value into a JSON-RPC error for the client's revision. The kind of an McpError decides
// its code; one without a kind (from an upstream, or with a code that the user chose) keeps its code. A ConnectionError
// becomes an McpError of the kind `timeout` or `unreachable`. Any other exception becomes -32603 with its message only.

import type { Params, Request } from "../../core/handler.ts";
import { errorMessage } from "../../core/values.ts";
import { encode } from "../../jsonrpc/codec.ts";
import type { ErrorBody, ResponseMessage } from "../../jsonrpc/message.ts";
import type { CompatRules } from "../../protocol/compat-documents.ts";
import { codeOf, type ErrorKind, McpError, toMcpError } from "../../protocol/errors.ts";
import type { Revision } from "../../protocol/revision.ts";
import { NEWEST, REVISIONS } from "../../protocol/revisions/index.ts";

/** The abort reason of a cancelled call. It includes the other side's reason if that is a string. */
export function cancellationError(reason: unknown, by: string): Error {
  return new Error(`Cancelled by ${by}${typeof reason === "string" ? `: ${reason}` : ""}`);
}

export function unsupportedRevision(requested: unknown, supported: readonly Revision[]): McpError {
  const names = supported.map(({ name }) => name);
  const message = `Unsupported protocol revision ${String(requested)}; supported: ${names.join(", ")}`;
  return McpError.of("unsupported_revision", message, { supported: names, requested: String(requested) });
}

/** Whether the error may ask a person to visit URLs first: url-elicitation.ts, which is loaded for such an error. */
export function asksForVisits(error: unknown): boolean {
  try {
    return error instanceof McpError && error.kind === "url_elicitation_required";
  } catch {
    // The error may come from user code, and its getters may throw.
    return false;
  }
}

/** Replaces a response that cannot be sent, for example because it cannot be encoded as JSON. */
export function unsendableResponse({ id }: ResponseMessage, error: unknown): ResponseMessage {
  const refusal = McpError.of("internal_error", `The answer cannot be sent: ${errorMessage(error)}`);
  return { jsonrpc: "2.0", id, error: refusal.toBody() };
}

/** Throws if a request to the client cannot be encoded as JSON, so that the code that sends it gets the error. */
export function checkEncodable(method: string, params: Params): void {
  try {
    encode({ jsonrpc: "2.0", id: 0, method, params });
  } catch (error) {
    throw McpError.of("internal_error", `The request ${method} cannot be sent: ${errorMessage(error)}`, { method });
  }
}

/** Never throws, even if the thrown value comes from user code and cannot be read. */
export function toErrorBody(error: unknown, request: Request, revision: Revision, compat?: CompatRules): ErrorBody {
  try {
    return lowerError(error, request, revision, compat);
  } catch {
    return McpError.of("internal_error", "Internal error: cannot read what was thrown").toBody();
  }
}

function lowerError(error: unknown, request: Request, revision: Revision, compat?: CompatRules): ErrorBody {
  const known = toMcpError(error);
  const kind = known.kind !== undefined && isCodeOf(known.kind, known.code) ? known.kind : undefined;
  const body = known.toBody();
  const coded = kind === undefined ? body : { ...body, code: codeOf(kind, revision) };
  const lowered = avoidReservedCode(revision.lower.error(coded, request), revision);
  return compat === undefined ? lowered : compat.error(lowered, kind ?? kindOfCode(lowered.code, revision));
}

/** The kind of an error of another implementation, which does not name it. */
function kindOfCode(code: number, revision: Revision): ErrorKind | undefined {
  const isMissing = revision.style === "session" && code === codeOf("resource_not_found", revision);
  return isMissing ? "resource_not_found" : undefined;
}

/** An upstream's error may have the name of one of our kinds. It is ours only if its code belongs to that kind too. */
function isCodeOf(kind: ErrorKind, code: number): boolean {
  return REVISIONS.some((known) => codeOf(kind, known) === code);
}

/** Stateless revisions reserve some codes and forbid others. A handler's error with such a code is wrapped. */
function avoidReservedCode(body: ErrorBody, revision: Revision): ErrorBody {
  if (revision.style !== "stateless" || DEFINED_CODES.has(body.code)) return body;
  const reserved = (body.code <= -32020 && body.code >= -32099) || body.code === -32002;
  return reserved ? McpError.of("internal_error", body.message, { upstream: body }).toBody() : body;
}

const DEFINED_CODES: ReadonlySet<number> = new Set(
  (["header_mismatch", "missing_capability", "unsupported_revision"] as const).map((kind) => codeOf(kind, NEWEST)),
);
