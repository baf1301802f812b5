// Turns any thrown value into a JSON-RPC error for the client's revision. The kind of an McpError decides
// its code; one without a kind (from an upstream, or with a code that the user chose) keeps its code. A ConnectionError
// becomes an McpError of the kind `timeout` or `unreachable`. Any other exception becomes -32603 with its message only.

import type { Caller, Params, Request, Result } from "../../core/handler.ts";
import { errorMessage, isObject } from "../../core/values.ts";
import { encode } from "../../jsonrpc/codec.ts";
import type { ErrorBody, ResponseMessage } from "../../jsonrpc/message.ts";
import { checkClientRequest, INPUT_METHODS } from "../../protocol/client-requests.ts";
import type { CompatRules } from "../../protocol/compat-documents.ts";
import { codeOf, type ErrorKind, errorKind, McpError, toMcpError } from "../../protocol/errors.ts";
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

// Translates URL elicitation between revisions. A server may answer with an error that asks a person to visit URLs
// first. If the client's revision does not know that error, a stateless client gets `input_required`, and an older
// session gets text. Nothing waits for the visit: the client tries again.

/** Sent by a server when a URL elicitation is finished. */
export const ELICITATION_COMPLETE = "notifications/elicitation/complete";

interface UrlElicitation {
  readonly url: string;
  readonly message: string;
  readonly id: unknown;
}

/** The URL elicitations that an error requires before its request can succeed; undefined for any other error. */
export function requiredUrlElicitations(error: unknown): readonly [UrlElicitation, ...UrlElicitation[]] | undefined {
  try {
    if (!(error instanceof McpError) || error.kind !== "url_elicitation_required" || !isObject(error.data)) {
      return undefined;
    }
    const { elicitations } = error.data;
    const [first, ...rest] = Array.isArray(elicitations) ? elicitations.flatMap(readUrlElicitation) : [];
    return first === undefined ? undefined : [first, ...rest];
  } catch {
    // The error may come from user code, and its getters may throw.
    return undefined;
  }
}

function readUrlElicitation(elicitation: unknown): readonly UrlElicitation[] {
  if (!isObject(elicitation) || typeof elicitation["url"] !== "string") return [];
  const { url, message, elicitationId } = elicitation;
  return [{ url, message: typeof message === "string" ? message : "", id: elicitationId }];
}

/** Returns the result for a stateless client. Rethrows the error if it asks for no visit or the client has declined. */
export function urlElicitationAsInput(error: unknown, { method, params }: Request, { capabilities }: Caller): Result {
  const elicitations = requiredUrlElicitations(error);
  if (elicitations === undefined || !INPUT_METHODS.has(method)) throw error;
  const requests = elicitations.map(({ url, message }) => ({
    method: "elicitation/create",
    params: { mode: "url", message, url },
  }));
  try {
    for (const request of requests) checkClientRequest(request, capabilities);
  } catch (missing) {
    // Add the URLs to the message, so that a person who reads it can visit them.
    if (errorKind(missing) !== "missing_capability") throw missing;
    const { data } = missing as McpError;
    throw McpError.of("missing_capability", `${(missing as McpError).message}: ${toText(error, elicitations)}`, {
      ...(isObject(data) ? data : undefined),
      elicitations: requests.map((request) => request.params),
    });
  }
  const keyed = requests.map((request, index) => [`visit-${index + 1}`, request] as const);
  const given = params["inputResponses"];
  // Otherwise a client that declined would be asked again forever.
  if (isObject(given) && keyed.some(([key]) => isRefusal(given[key]))) throw error;
  return { resultType: "input_required", inputRequests: Object.fromEntries(keyed) };
}

function isRefusal(answer: unknown): boolean {
  return isObject(answer) && answer["action"] !== "accept";
}

/**
 * Returns the result for a tool call of an older session. For other requests of such a session, throws the error with
 * the URLs in the message. Rethrows errors that ask for no visit, or that the client's revision knows.
 */
export function urlElicitationAsText(error: unknown, { method }: Request, revision: Revision): Result {
  const elicitations = requiredUrlElicitations(error);
  if (elicitations === undefined || revision.serverNotifications.has(ELICITATION_COMPLETE)) throw error;
  const text = toText(error, elicitations);
  if (method === "tools/call") return { resultType: "complete", content: [{ type: "text", text }], isError: true };
  const { code, data } = error as McpError;
  throw new McpError(code, text, data, { cause: error });
}

function toText(error: unknown, elicitations: readonly UrlElicitation[]): string {
  const urls = elicitations.map(({ url, message }) => (message === "" ? url : `${url} (${message})`));
  return `${(error as McpError).message}: visit ${urls.join(", ")}, then try again`;
}
