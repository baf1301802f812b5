// The checks that an HTTP request must pass before its message is handled: Accept, Content-Type, body, authentication,
// and the limits on requests and sessions. A request that fails a check gets an error response with a status.

import { callListener, printProblem } from "../../core/listeners.ts";
import type { ByteBudget, ByteHolder, FairLimit } from "../../core/budgets.ts";
import { AuthError, type Authenticator, type Credentials, type Identity } from "../../core/authentication.ts";
import type { Caller } from "../../core/handler.ts";
import { withoutCredentials } from "../../core/secrets.ts";
import { errorMessage } from "../../core/values.ts";
import { decode } from "../../jsonrpc/codec.ts";
import type { CompatRules } from "../../protocol/compat-documents.ts";
import { type ErrorKind, codeOf, McpError } from "../../protocol/errors.ts";
import {
  isNotification,
  isRequest,
  type Message,
  type ErrorBody,
  type ErrorMessage,
  type RequestMessage,
} from "../../jsonrpc/message.ts";
import { HttpError, type BodyCounter, type BodyLimits, type HttpRequest } from "./http-request.ts";
import type { LimitValues } from "./options.ts";
import type { Reply } from "./reply.ts";
import type { BatchItem, Inbound } from "../../transport/transport.ts";
import { isVendorMethod, NEWEST } from "../../protocol/revisions/index.ts";

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
    return (name === type || name === family || name === "*/*") && !parameters.some((one) => /^q=0(\.0*)?$/.test(one));
  });
}

/**
 * Throws a 415 unless the body is JSON. Any web page can post some of the other types, such as plain text, without a
 * CORS preflight.
 */
function checkContentType({ headers }: HttpRequest): void {
  const type = headers["content-type"];
  if (type === "application/json") return;
  if (type?.split(";", 1)[0]?.trim().toLowerCase() === "application/json") return;
  const problem = type === undefined ? "it is missing" : `got ${JSON.stringify(type)}`;
  throw new HttpError(415, `The header Content-Type must be application/json; ${problem}`);
}

/** The parsed body of a POST: one message, or a batch. */
export type ParsedBody = (
  | { readonly kind: "message"; readonly message: Message }
  | { readonly kind: "batch"; readonly items: readonly BatchItem[] }
) & {
  /** The length of a long body. */
  readonly length?: number;
};

/** From this length on, the characters of a body count until its request is finished. */
const LONG_BODY_LENGTH = 64 * 1024;

/** Reads the body and passes it to `take`. Sends the response if it is not a valid message, or if `take` throws. */
export function readMessage(reply: Reply, { limits, fail }: SharedLimits, take: (body: ParsedBody) => void): void {
  checkContentType(reply.request);
  const onBody = (text: string): void => {
    try {
      const body = parseMessage(text, reply, limits);
      if (body === undefined) return;
      take(text.length < LONG_BODY_LENGTH ? body : { ...body, length: text.length });
    } catch (error) {
      fail(reply, error);
    }
  };
  const onError = (error: unknown): void => fail(reply, error);
  reply.request.readBody(limits, onBody, onError);
}

/** If the body is not a valid message, sends the error and returns undefined. */
function parseMessage(text: string, reply: Reply, limits: LimitValues): ParsedBody | undefined {
  const decoded = decode(text, limits);
  if (decoded.kind === "message") {
    // Set here, so that later errors contain the id of the request.
    if (isRequest(decoded.message)) reply.id = decoded.message.id;
    return decoded;
  }
  if (decoded.kind === "batch") {
    return { kind: "batch", items: decoded.items.filter((item) => !("fault" in item) || item.answerable) };
  }
  // An invalid response from the client has the id of a request of ours. An error with this id would look to the client
  // like the answer to one of its own requests.
  reply.sendJson(decoded.answerable ? decoded.fault : { ...decoded.fault, id: null }, 400);
  return undefined;
}

export function expectsResponse(body: ParsedBody): boolean {
  if (body.kind === "message") return isRequest(body.message);
  return body.items.some((item) => "fault" in item || isRequest(item.message));
}

export function toInbound(body: ParsedBody): Pick<Inbound, "kind" | "message" | "batch"> {
  return body.kind === "message" ? body : { kind: "batch", batch: body.items };
}

let neverAborted: AbortSignal | undefined;

/** Created on first use, since Workers do not allow it while a module is loaded. */
export function neverAbortedSignal(): AbortSignal {
  return (neverAborted ??= new AbortController().signal);
}

/** Receives internal errors, which clients must not see. */
export type ErrorReporter = (error: unknown, doing: string) => void;

const toStderr: ErrorReporter = (error, doing) => printProblem(`${doing}: ${errorMessage(error)}`);

/** Errors of the reporter itself do not matter to the request, which is still answered. */
export function safeReporter(report: ErrorReporter = toStderr): ErrorReporter {
  return (error, doing) => callListener("onError", report, [error, doing]);
}

const AUTH_TIMEOUT_MS = 10_000;

/** Throws an AuthError if the caller is not authenticated, and a 503 if the authenticator fails. */
export async function authenticate(
  auth: Authenticator,
  credentials: Credentials,
  report: ErrorReporter,
): Promise<Identity> {
  let identity: Identity | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${AUTH_TIMEOUT_MS} ms`)), AUTH_TIMEOUT_MS);
  });
  try {
    identity = checkIdentity(await Promise.race([auth.authenticate(credentials), timeout]));
  } catch (error) {
    if (error instanceof AuthError) throw error;
    report(error, "the authenticator failed");
    throw new HttpError(503, "Authentication is not available; try again later", { "retry-after": "5" });
  } finally {
    clearTimeout(timer);
  }
  if (identity !== undefined) return identity;
  throw new AuthError(401, "The caller is not authenticated", "Bearer");
}

/** Checked at run time, since untyped code may return anything. If `scopes` were a string, substrings would match. */
export function checkIdentity(identity: Partial<Identity> | undefined | null): Identity | undefined {
  const { principal, scopes } = identity ?? {};
  if (typeof principal !== "string" || principal === "") return undefined;
  if (scopes !== undefined && !(Array.isArray(scopes) && scopes.every((scope) => typeof scope === "string"))) {
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
export function callerFrom(
  { headers, host }: HttpRequest,
  identity: Identity | undefined,
  defaultEnv: unknown,
): Partial<Caller> {
  const visible = withoutCredentials(headers) as Readonly<Record<string, string>>;
  const env = host?.env ?? defaultEnv;
  const given = env === undefined ? undefined : { env };
  if (identity === undefined) return { headers: visible, ...given };
  const { principal, scopes, claims } = identity;
  return {
    headers: visible,
    ...given,
    principal,
    ...(scopes === undefined ? undefined : { scopes }),
    ...(claims === undefined ? undefined : { claims }),
  };
}

/** Sends the response for an error that ended a request. */
export function sendError(reply: Reply, error: unknown, report: ErrorReporter, compat?: CompatRules): void {
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
  } else if (error instanceof AuthError) {
    const status = [400, 401, 403].includes(error.status) ? error.status : 401;
    sendStatus(status, error.message, challengeHeaders(error.challenge));
  } else {
    report(error, "a request could not be answered");
    sendStatus(500, "Internal error", {});
  }
}

// In stateless style these errors have a status of their own. Any other error, and every error in session style, is
// sent with a 200.
const STATUSES: ReadonlyMap<number, number> = new Map(
  (
    [
      ["method_not_found", 404],
      ["header_mismatch", 400],
      ["missing_capability", 400],
      ["unsupported_revision", 400],
    ] as const satisfies readonly (readonly [ErrorKind, number])[]
  ).map(([kind, status]) => [codeOf(kind, NEWEST), status]),
);

export function statusOf(error: ErrorBody): number {
  return STATUSES.get(error.code) ?? 200;
}

const KINDS: ReadonlyMap<number, ErrorKind> = new Map([
  [401, "unauthorized"],
  [403, "access_denied"],
  [500, "internal_error"],
  [503, "rate_limited"],
]);

/** The JSON-RPC error response for a status, without an id. */
export function errorResponse(
  status: number,
  message: string,
  kind: ErrorKind = KINDS.get(status) ?? "invalid_request",
  compat?: CompatRules,
): ErrorMessage {
  const body = McpError.of(kind, message).toBody();
  return { jsonrpc: "2.0", id: null, error: compat?.error(body, kind) ?? body };
}

/** The limits of one server, shared by its endpoints. */
export interface SharedLimits {
  readonly limits: LimitValues & BodyLimits;
  readonly requests: RequestLimiter;
  /** Counts the sessions of all kinds. */
  readonly sessions: FairLimit;
  /** Sends the response for an error that ended a request. */
  readonly fail: (reply: Reply, error: unknown) => void;
}

/** Throws a 503 if all places are taken, or the principal has its share of them. */
export function takePlace(limit: FairLimit, principal: string | undefined, what: string): void {
  const refusal = limit.take(principal);
  if (refusal === undefined) return;
  const whose = refusal === "share" ? " of yours" : "";
  throw new HttpError(503, `Too many ${what}${whose} are open; try again later`, { "retry-after": "10" });
}

function tooMany(what: string, refusal: "full" | "share"): HttpError {
  const whose = refusal === "share" ? " of yours" : "";
  return new HttpError(503, `Too many ${what}${whose} are in flight; try again soon`, { "retry-after": "1" });
}

/**
 * Limits the bodies that are still arriving. If there are too many, the oldest one is given up: a body that takes long
 * must not keep out those that come at once.
 */
export class BodyLimiter implements BodyCounter {
  readonly #max: number;
  readonly #budget: ByteBudget;
  readonly #bodies = new Set<ByteHolder>();

  constructor(max: number, budget: ByteBudget) {
    this.#max = max;
    this.#budget = budget;
  }

  update(body: ByteHolder): void {
    this.#bodies.add(body);
    for (const oldest of this.#bodies) {
      if (this.#bodies.size <= this.#max) break;
      this.#bodies.delete(oldest);
      oldest.disconnect();
    }
    if (this.#bodies.has(body)) this.#budget.update(body);
  }

  release(body: ByteHolder): void {
    this.#bodies.delete(body);
    this.#budget.release(body);
  }
}

/**
 * Call this without an argument when the request is finished. If its client has disconnected, pass the promise of the
 * handler that still runs. Only the first call counts.
 */
export type Release = (running?: Promise<unknown>) => void;

/**
 * Limits the requests in flight over all clients, and those of one principal; also the characters of those that are
 * long. Responses and notifications of the protocol are not limited, since requests in flight may be waiting for them.
 * Pings are not limited either. Subscriptions have their own limit.
 */
export class RequestLimiter {
  readonly #inFlight: FairLimit;
  readonly #abandoned: FairLimit;
  readonly #lengths: FairLimit;
  #isClosed = false;

  /** `limit` makes the limit for one of two counts; `lengths` limits the characters of long requests. */
  constructor(limit: () => FairLimit, lengths: FairLimit) {
    this.#inFlight = limit();
    this.#abandoned = limit();
    this.#lengths = lengths;
  }

  /** Throws a 503 if the limit is reached. */
  begin(body: ParsedBody, principal: string | undefined): Release {
    // Checked again, because the shutdown may have begun while the body was read.
    this.check();
    const size = countRequests(body);
    if (size === 0) return () => undefined;
    // A batch larger than the limit is accepted if nothing else is in flight.
    const refusal = this.#inFlight.take(principal, size);
    if (refusal !== undefined) throw tooMany("requests", refusal);
    const { length = 0 } = body;
    const lengthRefusal = length === 0 ? undefined : this.#lengths.take(principal, length);
    if (lengthRefusal !== undefined) {
      this.#inFlight.release(principal, size);
      throw tooMany("long requests", lengthRefusal);
    }
    let isReleased = false;
    return (running) => {
      if (isReleased) return;
      isReleased = true;
      if (running === undefined) this.#inFlight.release(principal, size);
      else this.#abandon(principal, size, running);
      if (length === 0) return;
      const freed = (): void => this.#lengths.release(principal, length);
      if (running === undefined) freed();
      else running.then(freed, freed);
    };
  }

  /**
   * Stops counting the requests of a handler that still runs after its client has disconnected. They are counted apart
   * then, with the same limit; above it, they stay in the first count.
   */
  #abandon(principal: string | undefined, size: number, running: Promise<unknown>): void {
    const fits = this.#abandoned.take(principal, size) === undefined;
    if (fits) this.#inFlight.release(principal, size);
    const finished = (): void => (fits ? this.#abandoned : this.#inFlight).release(principal, size);
    running.then(finished, finished);
  }

  /** Throws a 503 after `close`. */
  check(): void {
    if (this.#isClosed) throw shuttingDown();
  }

  close(): void {
    this.#isClosed = true;
  }
}

export function shuttingDown(): HttpError {
  return new HttpError(503, "The server is shutting down", { "retry-after": "5" }, "shutting_down");
}

function countRequests(body: ParsedBody): number {
  const message = body.kind === "message" ? body.message : undefined;
  if (message !== undefined && isNotification(message) && isVendorMethod(message.method)) return 1;
  if (!expectsResponse(body)) return 0;
  if (body.kind === "batch") return body.items.filter((item) => "message" in item && isRequest(item.message)).length;
  const { method } = body.message as RequestMessage;
  return method === "subscriptions/listen" || method === "ping" ? 0 : 1;
}
