// The two interfaces of HTTP authentication. An Authenticator identifies the callers of our server. An Authorizer
// proves our identity to a server. They are in core because http/ calls them and auth/ implements them.

import { isMarked } from "./errors.ts";

const AUTH_ERROR = Symbol.for("catenary.AuthError");

/** What an Authenticator gets to see of a request. */
export interface Credentials {
  /** Keys are lower-case header names. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The URL of the endpoint, without query: the audience that a token must have been issued for. */
  readonly endpoint: string;
}

/** Who a caller is, as an Authenticator has proved it. */
export interface Identity {
  /** Never empty; equal for two calls only if they come from the same caller. */
  readonly principal: string;
  /** The scopes that were granted to the caller. */
  readonly scopes?: readonly string[];
  /** Other proven facts, but never the token itself. */
  readonly claims?: Readonly<Record<string, unknown>>;
}

/** The principal of all callers that send the one token of a gateway. */
export const TOKEN_PRINCIPAL = "bearer of the token";

/**
 * The principal of the calls that the operator makes in the console. It alone gives no rights: callers of the network may
 * have any principal. The field `operatorCall` of a caller does, which no transport sets.
 */
export const OPERATOR = "console";

/** Whether a page of the console reads by itself: it takes what can be had soon, and starts nothing that fails. */
export function isOfPages({ operatorCall }: { readonly operatorCall?: string }): boolean {
  return operatorCall === "";
}

/** Identifies the callers of a server over HTTP; `bearer()` is one. */
export interface Authenticator {
  /** Rejects with an AuthError if the caller is not authenticated. */
  authenticate(credentials: Credentials): Promise<Identity>;
  /** Creates the error for an authenticated caller that lacks these scopes. If absent, a plain challenge is sent. */
  insufficientScope?(scopes: readonly string[], identity: Identity, credentials: Credentials): AuthError;
  /** A public JSON document at this path, such as resource metadata. `endpoint` is our own URL. */
  document?(path: string, endpoint: string): object | undefined;
}

/**
 * Refuses a request before its message is read: 400 if its credentials are malformed, 401 if a token is missing or not
 * valid, 403 if the token is not sufficient.
 */
export class AuthError extends Error {
  static {
    Object.defineProperty(this.prototype, AUTH_ERROR, { value: true });
  }

  /** Also true for errors of another copy of this package. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return isMarked(this, AuthError, AUTH_ERROR, value);
  }

  /** The status of the HTTP response. */
  readonly status: 400 | 401 | 403;
  /** The whole value of WWW-Authenticate. */
  readonly challenge: string;

  constructor(status: 400 | 401 | 403, message: string, challenge: string) {
    super(message);
    this.name = "AuthError";
    this.status = status;
    this.challenge = challenge;
  }
}

/** An HTTP request to a server, before it is sent. */
export interface OutgoingRequest {
  /** The HTTP method. */
  readonly method: string;
  /** The URL of the server. */
  readonly url: URL;
  /** Aborted when the request is no longer wanted. */
  readonly signal: AbortSignal;
}

/** A 401 or 403 from a server. */
export interface Challenge extends OutgoingRequest {
  /** The status of the HTTP response. */
  readonly status: 401 | 403;
  /** Headers of the response. Keys are lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** The headers that `authorize` returned for the refused request. The current ones may be newer. */
  readonly sent: Readonly<Record<string, string>>;
  /** How often this request has been refused, from 1. */
  readonly attempt: number;
}

/** Each server has its own authorizer, so that no server ever sees the credentials of another. */
export interface Authorizer {
  /** Protocol extensions that the authorizer implements. The client declares them. */
  readonly extensions?: readonly string[];
  /** Called for every request. Resolves to the headers to send; rejects with ConnectionError if it can give none. */
  authorize(request: OutgoingRequest): Promise<Readonly<Record<string, string>>>;
  /** Resolves to whether to send the request again. Rejects with ConnectionError("unauthorized") if that is useless. */
  refused(challenge: Challenge): Promise<boolean>;
  /** Called with the headers of a response that is not a challenge. */
  answered?(request: OutgoingRequest, headers: Readonly<Record<string, string>>): void;
}
