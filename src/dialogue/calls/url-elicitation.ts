// Translates URL elicitation between revisions. A server may answer with an error that asks a person to visit URLs
// first. If the client's revision does not know that error, a stateless client gets `input_required`, and an older
// session gets text. Nothing waits for the visit: the client tries again.

import type { Caller, Request, Result } from "../../core/handler.ts";
import { errorMessage, isObject } from "../../core/values.ts";
import { checkClientRequest, INPUT_METHODS } from "../../protocol/client-requests.ts";
import { McpError } from "../../protocol/errors.ts";
import type { Revision } from "../../protocol/revision.ts";

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
    if (!(missing instanceof McpError) || missing.kind !== "missing_capability") throw missing;
    const { message, data } = missing;
    throw McpError.of("missing_capability", `${message}: ${toText(error, elicitations)}`, {
      ...(isObject(data) ? data : undefined),
      elicitations: requests.map((request) => request.params),
    });
  }
  const keyed = requests.map((request, index) => [`visit-${index + 1}`, request] as const);
  const responses = params["inputResponses"];
  // Otherwise a client that declined would be asked again forever.
  if (isObject(responses) && keyed.some(([key]) => isRefusal(responses[key]))) throw error;
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
  if (elicitations === undefined || !(error instanceof McpError)) throw error;
  if (revision.serverNotifications.has(ELICITATION_COMPLETE)) throw error;
  const text = toText(error, elicitations);
  if (method === "tools/call") return { resultType: "complete", content: [{ type: "text", text }], isError: true };
  const { code, data } = error;
  throw new McpError(code, text, data, { cause: error });
}

function toText(error: unknown, elicitations: readonly UrlElicitation[]): string {
  const urls = elicitations.map(({ url, message }) => (message === "" ? url : `${url} (${message})`));
  return `${errorMessage(error)}: visit ${urls.join(", ")}, then try again`;
}
