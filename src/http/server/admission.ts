// What a visit must be before its message counts: a body of JSON, an answer that the caller can take, a caller who is
// somebody. Each thing that is not so is refused with a status and one sentence.

import { AuthError, type Authenticator, type Credentials, type Identity } from "../../core/authentication.ts";
import type { Caller } from "../../core/handler.ts";
import { errorMessage } from "../../core/text.ts";
import { decode } from "../../jsonrpc/codec.ts";
import { type ErrorKind, codeOf, McpError } from "../../protocol/errors.ts";
import { isRequest, type Message, type ErrorBody, type ErrorMessage, type RequestMessage } from "../../jsonrpc/message.ts";
import { HttpError, type RequestHeaders, type HttpRequest } from "./http-request.ts";
import type { HttpLimits } from "./options.ts";
import type { Reply } from "./reply.ts";
import type { BatchItem, Inbound } from "../../transport/transport.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";

/** Refuses what cannot be answered in one of these types. No header means that any will do. */
export function checkAccept({ headers }: HttpRequest, ...types: readonly string[]): void {
  const { accept } = headers;
  if (accept === undefined || types.every((type) => accepts(accept, type))) return;
  throw new HttpError(406, `The header Accept must list ${types.join(" and ")}; it says ${JSON.stringify(accept)}`);
}

function accepts(accept: string, type: string): boolean {
  if (accept.includes(type) && !accept.includes(";")) return true;
  const family = `${type.slice(0, type.indexOf("/"))}/*`;
  return accept.split(",").some((range) => {
    const [name = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    return (name === type || name === family || name === "*/*") && !parameters.some((one) => /^q=0(\.0*)?$/.test(one));
  });
}

/** A body of another type could come from any web page, which may post plain text without asking first. */
function checkContentType({ headers }: HttpRequest): void {
  const type = headers["content-type"];
  if (type === "application/json") return;
  if (type?.split(";", 1)[0]?.trim().toLowerCase() === "application/json") return;
  const said = type === undefined ? "is missing" : `says ${JSON.stringify(type)}`;
  throw new HttpError(415, `The header Content-Type must say application/json; it ${said}`);
}

/** Undefined where what came is no message, and has been answered so. */
export async function readMessage(way: Reply, limits: HttpLimits): Promise<ParsedBody | undefined> {
  const { visit } = way;
  checkContentType(visit);
  const decoded = decode(await visit.body(limits.messageBytes, limits.bodyMs), limits);
  if (decoded.kind === "message") {
    // Whatever is refused from here on is refused under its id.
    if (isRequest(decoded.message)) way.id = decoded.message.id;
    return decoded;
  }
  if (decoded.kind === "batch") {
    return { kind: "batch", items: decoded.items.filter((item) => !("fault" in item) || item.answerable) };
  }
  // Of a broken answer the id is one of ours: it must not come back as if it were the caller's.
  way.whole(decoded.answerable ? decoded.fault : { ...decoded.fault, id: null }, 400);
  return undefined;
}

/** Told of what no caller is shown. */
export type ErrorReporter = (error: unknown, doing: string) => void;

// Every runtime has this one, and it never is stdout.
// oxlint-disable-next-line no-console
const onStderr: ErrorReporter = (error, doing) => console.error(`catenary: ${doing}: ${errorMessage(error)}`);

/** A report that fails is itself not worth an answer that is never given. */
export function reporter(report: ErrorReporter = onStderr): ErrorReporter {
  return (error, doing) => {
    try {
      report(error, doing);
    } catch {
      // Whoever wanted to know has had the chance.
    }
  };
}

/** How long an authenticator may take. */
const AUTH_MS = 10_000;

/** An identity, or an error; whatever else an authenticator may give. */
export async function authenticate(auth: Authenticator, credentials: Credentials, report: ErrorReporter): Promise<Identity> {
  let identity: Identity | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${AUTH_MS} ms`)), AUTH_MS);
  });
  try {
    identity = checked(await Promise.race([auth.authenticate(credentials), late]));
  } catch (error) {
    if (error instanceof AuthError) throw error;
    report(error, "authentication is out of order");
    throw new HttpError(503, "Authentication is out of order; try again later", { "retry-after": "5" });
  } finally {
    clearTimeout(timer);
  }
  if (identity !== undefined) return identity;
  throw new AuthError(401, "The caller has not proved who it is", "Bearer");
}

/** Programs without types may give anything. Nothing is nobody; scopes in one text would be found by their parts. */
function checked(identity: Partial<Identity> | undefined | null): Identity | undefined {
  const { principal, scopes } = identity ?? {};
  if (typeof principal !== "string" || principal === "") return undefined;
  if (scopes !== undefined && !(Array.isArray(scopes) && scopes.every((scope) => typeof scope === "string"))) {
    throw new TypeError("the scopes of an identity must be a list of strings");
  }
  return identity as Identity;
}

/** The headers of a refusal by an authenticator, whose texts are a user's own. */
export function challengeHeaders(challenge: unknown): Readonly<Record<string, string>> {
  const sayable = typeof challenge === "string" && /^[\t\x20-\x7e]+$/.test(challenge);
  return { "www-authenticate": sayable ? challenge : "Bearer" };
}

const SECRETS = ["authorization", "proxy-authorization", "cookie"];

/** What a handler may know of the caller: never what it proved itself with. */
export function callerFrom({ headers }: HttpRequest, identity: Identity | undefined): Partial<Caller> {
  const shown = withoutSecrets(headers);
  if (identity === undefined) return { headers: shown };
  const { principal, scopes, claims } = identity;
  return {
    headers: shown,
    principal,
    ...(scopes === undefined ? undefined : { scopes }),
    ...(claims === undefined ? undefined : { claims }),
  };
}

function withoutSecrets(headers: RequestHeaders): Readonly<Record<string, string>> {
  const all = headers as Readonly<Record<string, string>>;
  if (!SECRETS.some((name) => name in all)) return all;
  return Object.fromEntries(Object.entries(all).filter(([name]) => !SECRETS.includes(name)));
}

/** Whatever ended a visit, as its answer. */
export function sendError(way: Reply, error: unknown, report: ErrorReporter): void {
  if (error instanceof HttpError) {
    answer(way, error.status, error.message, error.headers, error.kind);
  } else if (error instanceof AuthError) {
    const status = [400, 401, 403].includes(error.status) ? error.status : 401;
    answer(way, status, error.message, challengeHeaders(error.challenge));
  } else {
    report(error, "a request could not be answered");
    answer(way, 500, "Internal error", {});
  }
}

function answer(
  way: Reply,
  status: number,
  message: string,
  headers: Readonly<Record<string, string>>,
  kind?: ErrorKind,
): void {
  way.headers = { ...way.headers, ...headers };
  way.whole({ ...errorResponse(status, message, kind), id: way.id }, status);
}

// What one POST brought, once its body has been read: a message, or several in an array.


export type ParsedBody =
  | { readonly kind: "message"; readonly message: Message }
  | { readonly kind: "batch"; readonly items: readonly BatchItem[] };

/** Whether anything in it wants an answer. */
export function expectsResponse(taken: ParsedBody): boolean {
  if (taken.kind === "message") return isRequest(taken.message);
  return taken.items.some((item) => "fault" in item || isRequest(item.message));
}

/** As a connection takes it. */
export function toInbound(taken: ParsedBody): Pick<Inbound, "kind" | "message" | "batch"> {
  return taken.kind === "message" ? taken : { kind: "batch", batch: taken.items };
}

/** The way back of what is still waited for. */
export const NEVER_ABORTED: AbortSignal = new AbortController().signal;

// Which error becomes which HTTP status, and how what is refused before any message is looked at is put into words.
// Exchange style has statuses for a few errors; everything else, and all of session style, is a 200 whose body says
// what went wrong.


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

/** The body of an answer with this status, where there is no message that it could answer. */
export function errorResponse(status: number, message: string, kind?: ErrorKind): ErrorMessage {
  const known = kind ?? KINDS.get(status) ?? "invalid_request";
  return { jsonrpc: "2.0", id: null, error: McpError.of(known, message).toBody() };
}

// How much is worked on at once, over all callers of a front: one request too many is told to come again. What keeps
// work from ending must always get in (the answers to our questions, cancellations), and a listen has a bound of its
// own, because it is no work.


/** To be called when the work is over, or is wanted by nobody any more and still runs. Only the first call counts. */
export type Release = (running?: Promise<unknown>) => void;

export class RequestLimiter {
  readonly #most: number;
  #count = 0;
  #disowned = 0;
  #closed = false;

  constructor(most: number) {
    this.#most = most;
  }

  /** Throws a HttpError where there is no room; otherwise gives what must be called when the work is over. */
  begin(taken: ParsedBody): Release {
    // Looked at here again: the body may have come in after the end had begun.
    this.check();
    const size = sizeOf(taken);
    if (size === 0) return () => undefined;
    // A batch that is larger than all that may be there at once is let in where nothing else is.
    if (this.#count > 0 && this.#count + size > this.#most) {
      throw new HttpError(503, "Too many requests are in flight; try again soon", { "retry-after": "1" });
    }
    this.#count += size;
    let isOver = false;
    return (running) => {
      if (isOver) return;
      isOver = true;
      const give = (): void => {
        this.#count -= size;
      };
      if (running === undefined) give();
      else this.#disown(size, running, give);
    };
  }

  /** Nobody waits for it any more, but it goes on: up to a bound of their own, such give up their room at once. */
  #disown(size: number, running: Promise<unknown>, give: () => void): void {
    const fits = this.#disowned + size <= this.#most;
    if (fits) {
      give();
      this.#disowned += size;
    }
    const ended = (): void => {
      if (fits) this.#disowned -= size;
      else give();
    };
    running.then(ended, ended);
  }

  /** Throws a HttpError where nothing begins any more. */
  check(): void {
    if (this.#closed) throw shuttingDown();
  }

  /** Nothing more begins. */
  close(): void {
    this.#closed = true;
  }
}

export function shuttingDown(): HttpError {
  return new HttpError(503, "The server is shutting down", { "retry-after": "5" }, "shutting_down");
}

/** How many requests of it are work. */
function sizeOf(taken: ParsedBody): number {
  if (!expectsResponse(taken)) return 0;
  if (taken.kind === "batch") return taken.items.filter((item) => "message" in item && isRequest(item.message)).length;
  const { method } = taken.message as RequestMessage;
  return method === "subscriptions/listen" || method === "ping" ? 0 : 1;
}
