// The checks that an HTTP request must pass before its message is handled: Accept, Content-Type, body, authentication,
// and the limits on requests and sessions. A request that fails a check gets an error response with a status.

import { AuthError, type Identity } from "../../core/authentication.ts";
import type { FairLimit } from "../../core/fair-limit.ts";
import type { CallerIdentity } from "../../core/handler.ts";
import { callListener, printProblem } from "../../core/listeners.ts";
import { withoutCredentials } from "../../core/secret-headers.ts";
import { errorMessage, isStrings } from "../../core/values.ts";
import { type CallPlaces, CallRefused } from "../../dialogue/calls/call-places.ts";
import { isRequest } from "../../jsonrpc/message.ts";
import type { CompatRules } from "../../protocol/compat-documents.ts";
import type { ErrorKind } from "../../protocol/errors.ts";
import { HttpError, type HttpRequest } from "./http-request.ts";
import type { LimitValues } from "./options.ts";
import type { HttpReply, ParsedBody } from "./reply.ts";
import { errorResponse } from "./statuses.ts";

/** The types that the reply to a POST may have. */
export const POST_TYPES: readonly string[] = ["application/json", "text/event-stream"];

/** The last header that accepted POST_TYPES. Most clients send the same one. */
let lastAccept: string | undefined;

/** Throws a 406 unless the client accepts all of these types. A missing header accepts everything. */
export function checkAccept({ headers }: HttpRequest, types: readonly string[]): void {
  const { accept } = headers;
  if (accept === undefined || accept === lastAccept) return;
  if (types.every((type) => accepts(accept, type))) {
    if (types === POST_TYPES) lastAccept = accept;
    return;
  }
  throw new HttpError(406, `The header Accept must list ${types.join(" and ")}; got ${JSON.stringify(accept)}`);
}

function accepts(accept: string, type: string): boolean {
  if (accept.includes(type) && !accept.includes(";")) return true;
  const family = `${type.slice(0, type.indexOf("/"))}/*`;
  return accept.split(",").some((range) => {
    const [name = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    return (
      (name === type || name === family || name === "*/*") &&
      !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
    );
  });
}

export function expectsResponse(body: ParsedBody): boolean {
  if (body.kind === "message") return isRequest(body.message);
  return body.items.some((item) => "fault" in item || isRequest(item.message));
}

/** Receives internal errors, which clients must not see. */
export type ErrorReporter = (error: unknown, doing: string) => void;

const toStderr: ErrorReporter = (error, doing) => printProblem(`${doing}: ${errorMessage(error)}`);

/** Errors of the reporter itself do not matter to the request, which is still answered. */
export function safeReporter(report: ErrorReporter = toStderr): ErrorReporter {
  return (error, doing) => callListener("onError", report, [error, doing]);
}

/** Checked at run time, since untyped code may return anything. If `scopes` were a string, substrings would match. */
export function checkIdentity(identity: Partial<Identity> | undefined | null): Identity | undefined {
  const { principal, scopes } = identity ?? {};
  if (typeof principal !== "string" || principal === "") return undefined;
  if (scopes !== undefined && !isStrings(scopes)) {
    throw new TypeError("the scopes of an identity must be an array of strings");
  }
  return identity as Identity;
}

/** The WWW-Authenticate header for a challenge. The authenticator is user code, so an invalid value is replaced. */
export function challengeHeaders(challenge: unknown): Readonly<Record<string, string>> {
  const isValid = typeof challenge === "string" && /^[\t\x20-\x7e]+$/.test(challenge);
  return { "www-authenticate": isValid ? challenge : "Bearer" };
}

/** The caller as handlers see it, without its credentials. */
export function callerFrom({ request, identity }: HttpReply, defaultEnv: unknown): CallerIdentity {
  const { headers, host } = request;
  const caller: { -readonly [Name in keyof CallerIdentity]: CallerIdentity[Name] } = {
    headers: withoutCredentials(headers),
  };
  const env = host?.env ?? defaultEnv;
  if (env !== undefined) caller.env = env;
  if (identity === undefined) return caller;
  const { principal, scopes, claims } = identity;
  caller.principal = principal;
  if (scopes !== undefined) caller.scopes = scopes;
  if (claims !== undefined) caller.claims = claims;
  return caller;
}

export function sendError(reply: HttpReply, error: unknown, report: ErrorReporter, compat?: CompatRules): void {
  const sendStatus = (
    status: number,
    message: string,
    headers: Readonly<Record<string, string>>,
    kind?: ErrorKind,
  ): void => {
    reply.headers = { ...reply.headers, ...headers };
    reply.sendJson({ ...errorResponse(status, message, kind, compat), id: reply.id }, status);
  };
  if (error instanceof HttpError) {
    sendStatus(error.status, error.message, error.headers, error.kind);
  } else if (error instanceof CallRefused) {
    const retryAfter = { "retry-after": String(error.retryAfterSeconds) };
    sendStatus(503, error.message, retryAfter, error.isClosed ? "shutting_down" : undefined);
  } else if (error instanceof AuthError) {
    const status = [400, 401, 403].includes(error.status) ? error.status : 401;
    sendStatus(status, error.message, challengeHeaders(error.challenge));
  } else {
    report(error, "a request could not be answered");
    sendStatus(500, "Internal error", {});
  }
}

/** The limits of one server, shared by its endpoints. */
export interface SharedLimits {
  readonly limits: LimitValues;
  readonly places: CallPlaces;
  /** Counts the sessions of all kinds. */
  readonly sessions: FairLimit;
}
