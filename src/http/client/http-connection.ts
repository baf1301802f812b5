// Sends HTTP requests to one server, and adds the configured headers and credentials. A 401 or 403 is passed to the
// authorizer, which decides whether the request is repeated. Used by all styles, which read the responses themselves.

import { Semaphore, within } from "../../core/async.ts";
import { type Cancellation, signalOf } from "../../core/cancel.ts";
import type { Authorizer, OutgoingRequest } from "../../core/authentication.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { WireObserver } from "../../core/handler.ts";
import { hiderOf, withWords } from "../../core/secrets.ts";
import { addFields, asError, copyFields, defined, errorMessage, fieldsOf, type Optional } from "../../core/values.ts";
import { DEFAULT_LIMITS, encode, type Limits } from "../../jsonrpc/codec.ts";
import { type ErrorBody, type Id, isErrorBody, type Message, plainId } from "../../jsonrpc/message.ts";
import type { SendOptions } from "../../transport/transport.ts";
import { REVISION_HEADER } from "../headers.ts";
import { followRedirect, isRedirect } from "./redirects.ts";
import type { ClientHttpRequest, HttpResponse, Requester } from "./requester.ts";

export interface HttpTarget {
  readonly url: URL;
  /** Not closed by the connection. */
  readonly requester: Requester;
  readonly auth?: Authorizer | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly limits?: Optional<Limits> | undefined;
  /** Whether error messages leave out the path of the URL. */
  readonly hidesPath?: boolean | undefined;
}

export interface HttpCall extends Omit<ClientHttpRequest, "url"> {
  /** Another URL of the same server, to use instead of that of the connection. */
  readonly url?: URL;
  readonly signal: Cancellation;
  /** Headers of the caller. They may be secret. */
  readonly added?: Readonly<Record<string, string>> | undefined;
  /** Its `onWait` is called with true while the authorizer works, and with false when it is done. */
  readonly waiter?: Pick<SendOptions, "onWait"> | undefined;
  /** The id of the request in the body. A 403 with a JSON-RPC error for this id is the answer to it. */
  readonly id?: Id | undefined;
  /** The message in the body, and what wants to know that it passes. */
  readonly message?: Message;
  readonly wire?: WireObserver | undefined;
  /** Fails on 401 and 403 without calling `refused` of the authorizer, which may ask the user to sign in. */
  readonly skipSignIn?: boolean;
}

/** Answers to the server's requests that are sent at once; each is a POST. More wait, and so do the server's streams. */
const MAX_ANSWERS = 64;

/** After this many attempts a request fails even if the authorizer wants another. */
const MAX_ATTEMPTS = 8;

export class HttpConnection {
  readonly url: URL;
  readonly limits: Limits;
  readonly #answers = new Semaphore(MAX_ANSWERS);
  readonly #target: HttpTarget;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(target: HttpTarget) {
    this.#target = target;
    this.url = target.url;
    this.limits = { ...DEFAULT_LIMITS, ...defined(target.limits ?? {}) };
    const entries = Object.entries(target.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value] as const);
    // Some servers and proxies reject requests without a user agent.
    this.#headers = { "user-agent": "catenary", ...Object.fromEntries(entries) };
  }

  /** The body of a POST. Throws a ConnectionError if the message cannot be sent. */
  encode(message: Message): string {
    try {
      return encode(message, this.limits.messageBytes);
    } catch (cause) {
      throw new ConnectionError("protocol", errorMessage(cause), { cause, mayHaveRun: false });
    }
  }

  /**
   * Resolves with the response, unless its status is 401 or 403. Rejects on these, except for a 403 that answers the
   * request, and if no response arrives. Redirects are followed within the server.
   */
  async send(call: HttpCall): Promise<HttpResponse> {
    const { auth, requester } = this.#target;
    const { method, url = this.url, body, signal, added } = call;
    if (auth !== undefined) return this.#sendAuthorized(auth, call, url);
    const headers = addFields(addFields(copyFields(this.#headers), added), call.headers);
    const request: ClientHttpRequest = { method, url, headers, body, signal };
    if (call.wire !== undefined) return this.#sendReported(call.wire, call, request);
    const response = await requester(request);
    return response.status < 300 ? response : this.#checked(call, request, response);
  }

  /** Reports the heads. Apart, so that a request that nothing observes takes no longer. */
  async #sendReported(wire: WireObserver, call: HttpCall, request: ClientHttpRequest): Promise<HttpResponse> {
    const response = await this.#reporting(wire, call, request);
    return response.status < 300 ? response : this.#checked(call, request, response);
  }

  async #reporting(wire: WireObserver, call: HttpCall, request: ClientHttpRequest): Promise<HttpResponse> {
    const { method, url, headers } = request;
    const { message } = call;
    const revision = call.headers[REVISION_HEADER];
    const path = url.pathname.replaceAll(/[^/]+/g, (segment) => (isKey(segment) ? "..." : segment));
    const http = {
      line: `${method} ${path}`,
      headers: { host: url.host, ...headers },
      isShown: isShownAmong(call.headers),
    };
    wire.passed({ side: "upstream", sender: "client", message, revision, http });
    const response = await this.#target.requester(request);
    const { status } = response;
    wire.passed({ side: "upstream", sender: "server", revision, http: { line: status, headers: response.headers } });
    return response;
  }

  async #checked(call: HttpCall, request: ClientHttpRequest, first: HttpResponse): Promise<HttpResponse> {
    const { requester } = this.#target;
    const { url } = request;
    let response = first;
    if (isRedirect(response)) response = await followRedirect(requester, request, response);
    if (response.status < 400) return response;
    const safe = this.#redact(response, { ...this.#headers, ...call.added }, url);
    return isDenial(response) ? readDenial(url, safe, call.id, false, undefined) : safe;
  }

  /** Sends a request again for as long as the authorizer gets other credentials. */
  async #sendAuthorized(auth: Authorizer, call: HttpCall, url: URL): Promise<HttpResponse> {
    const { method, body, added, waiter } = call;
    const signal = signalOf(call.signal);
    const { requester } = this.#target;
    const outgoing: OutgoingRequest = { method, url, signal };
    for (let attempt = 1; ; attempt += 1) {
      const sent = await whileWaiting(waiter, auth.authorize(outgoing));
      const headers = addFields(addFields(addFields(copyFields(this.#headers), added), call.headers), sent);
      const request: ClientHttpRequest = { method, url, headers, body, signal: call.signal };
      let response = await (call.wire === undefined ? requester(request) : this.#reporting(call.wire, call, request));
      if (isRedirect(response)) response = await followRedirect(requester, request, response);
      const safe = (): HttpResponse => this.#redact(response, { ...this.#headers, ...added, ...sent }, url);
      if (!isDenial(response)) {
        auth.answered?.(outgoing, response.headers);
        return response.status < 400 ? response : safe();
      }
      const { status } = response;
      const challenge = { ...outgoing, status, headers: response.headers, sent, attempt };
      let refusal: Error | undefined;
      const shouldRetry =
        attempt < MAX_ATTEMPTS &&
        call.skipSignIn !== true &&
        (await whileWaiting(waiter, auth.refused(challenge)).catch((error: unknown) => {
          refusal = asError(error);
          return false;
        }));
      if (!shouldRetry) return readDenial(url, safe(), call.id, true, refusal);
      response.discard();
    }
  }

  #redact(response: HttpResponse, headers: Readonly<Record<string, string>>, url: URL): HttpResponse {
    return redact(response, findSecrets(headers, url, this.#target.hidesPath));
  }

  /** Runs `send`, which sends the answer to a request of the server, when fewer than MAX_ANSWERS are being sent. */
  async sendAnswer(send: () => Promise<void>): Promise<void> {
    await this.#answers.acquire();
    try {
      await send();
    } finally {
      this.#answers.release();
    }
  }

  /** Resolves when an answer could be sent at once. A stream with requests of the server waits for it. */
  canAnswer(): Promise<void> {
    return this.sendAnswer(async () => undefined);
  }
}

function isDenial(response: HttpResponse): response is HttpResponse & { readonly status: 401 | 403 } {
  return response.status === 401 || response.status === 403;
}

async function whileWaiting<T>(waiter: HttpCall["waiter"], work: Promise<T>): Promise<T> {
  waiter?.onWait?.(true);
  try {
    return await work;
  } finally {
    waiter?.onWait?.(false);
  }
}

const PUBLIC_HEADERS: ReadonlySet<string> = new Set(["user-agent", "accept", "content-type"]);
/** Shorter strings are unlikely to be secrets, and may occur in any text by chance. */
const MIN_SECRET_LENGTH = 6;

/** A key in a path: long, or of letters and digits. */
const SECRET_SEGMENT = /^(?:.{16,}|(?=.*\d)(?=.*[a-z]).+)$/i;

/** What is not ours was configured, or belongs to the caller, and may be secret whatever its name. */
function isShownAmong(ours: Readonly<Record<string, string>>): (name: string) => boolean {
  return (name) => name === "host" || PUBLIC_HEADERS.has(name) || Object.hasOwn(ours, name);
}

/** Whether a part of a path may be a key, and is no version such as `v1`. */
function isKey(segment: string): boolean {
  return SECRET_SEGMENT.test(segment) && !/^v\d{1,3}$/.test(segment);
}

/**
 * The header values that may be credentials, with and without their scheme, and the query of the URL. Many hosted
 * servers have a key in the path. With `hidesPath`, the whole path is secret: errors of an upstream go to callers, who
 * must not learn any part of its address. Without, only segments that look like a key are: who gave the URL to
 * `connect()` also gets the error, and must see which path is wrong.
 */
function findSecrets(
  headers: Readonly<Record<string, string>>,
  { pathname, search }: URL,
  hidesPath: boolean | undefined,
): string[] {
  return Object.entries(headers)
    .filter(([name]) => !PUBLIC_HEADERS.has(name))
    .flatMap(([, value]) => withWords(value))
    .concat(search, hidesPath === true ? [`${pathname}${search}`, pathname] : [])
    .concat(pathname.split("/").filter((segment) => SECRET_SEGMENT.test(segment)));
}

/** Removes our credentials from a body that echoes them, since error messages quote the body. */
function redact(response: HttpResponse, secrets: readonly string[]): HttpResponse {
  const { status, headers, body } = response;
  const text = async (limit: number): Promise<string> =>
    hiderOf(secrets, MIN_SECRET_LENGTH)(await response.text(limit));
  const read: HttpResponse["read"] = (limit, parse) => response.read(limit, parse);
  return { status, headers, body, text, read, discard: () => response.discard() };
}

const MAX_QUOTED_BYTES = 64 * 1024;
/** The status says enough: a body that does not end must not delay the error until the call times out. */
const MAX_QUOTED_MS = 2_000;

/** The text of an error response; empty if it cannot be read, or does not end soon. */
export async function readQuotable(response: HttpResponse): Promise<string> {
  const text = await within(
    MAX_QUOTED_MS,
    response.text(MAX_QUOTED_BYTES).catch(() => ""),
  );
  if (text === undefined) response.discard();
  return text ?? "";
}

/** What servers say to a Host header that they do not accept, which no other credentials would change. */
const HOST_REFUSED = /\b(?:Host "[^"]*" is not allowed|Invalid Host\b)/i;

/**
 * Resolves with a 403 whose body is a JSON-RPC error for the request: the server has read the request, and the error
 * says more than the status. Rejects otherwise.
 *
 * @param refusal What the authorizer has thrown, if it could not get other credentials.
 */
async function readDenial(
  url: URL,
  response: HttpResponse,
  id: Id | undefined,
  hasAuthorizer: boolean,
  refusal: Error | undefined,
): Promise<HttpResponse> {
  const { status } = response;
  if (refusal !== undefined && !(isAboutRights(refusal) && status === 403)) {
    response.discard();
    throw refusal;
  }
  const text = await readQuotable(response);
  const answer = status === 403 && id !== undefined ? parseAnswer(text, id) : undefined;
  if (answer === undefined) throw refusal ?? accessError(url, status, text, hasAuthorizer);
  // Without a status, the authorizer has tried to get more rights, and says why that failed.
  const reason = refusal === undefined || refusal.status !== undefined ? "" : `; ${refusal.message}`;
  const message = `${answer.error.message}${reason}`;
  const body = JSON.stringify({ ...answer, error: { ...answer.error, message } });
  return { ...response, text: () => Promise.resolve(body) };
}

function isAboutRights(refusal: Error): refusal is ConnectionError {
  return refusal instanceof ConnectionError && refusal.kind === "unauthorized";
}

/** The JSON-RPC error for the request with this id, if the text is one. */
function parseAnswer(text: string, id: Id): { readonly error: ErrorBody } | undefined {
  try {
    const answer = fieldsOf(JSON.parse(text));
    const { id: answered, error } = answer;
    return answered === plainId(id) && isErrorBody(error) ? { ...answer, error } : undefined;
  } catch {
    return undefined;
  }
}

function accessError(url: URL, status: number, text: string, hasAuthorizer: boolean): ConnectionError {
  if (status === 403 && HOST_REFUSED.test(text.replaceAll('\\"', '"'))) {
    const advice = `allow it with --allow-host ${url.hostname}, or in listen.allowedHosts of its config`;
    const message = `${url.origin} does not accept the host ${url.host} (403): if it is a gateway, ${advice}`;
    return new ConnectionError("http", message, { mayHaveRun: false, status });
  }
  const message = `${url.origin} refused access (${status}${quote(text)})`;
  if (!hasAuthorizer && status === 401) {
    const hint = { text: "set `auth` or an authorization header", flags: "set CATENARY_TOKEN or --header" };
    return new ConnectionError("unauthorized", message, { mayHaveRun: false, status, hint });
  }
  const why = hasAuthorizer
    ? "the credentials were not accepted"
    : "the caller, or its network address, is not allowed";
  return new ConnectionError("unauthorized", `${message}: ${why}`, { mayHaveRun: false, status });
}

const MAX_QUOTE_LENGTH = 200;
/** How much of a body is searched for text. Pages may begin with long styles. */
const MAX_QUOTED_BODY = 20_000;

/** The beginning of a response body for an error message: on one line, without markup. */
export function quote(text: string): string {
  const plain = text
    .slice(0, MAX_QUOTED_BODY)
    .replaceAll(/<(style|script)[\s\S]*?<\/\1>|<[^<>]*>/gi, " ")
    // Control characters could manipulate a terminal.
    .replaceAll(/[\s\p{Cc}]+/gu, " ")
    .trim();
  if (plain === "") return "";
  return `, ${plain.length > MAX_QUOTE_LENGTH ? `${plain.slice(0, MAX_QUOTE_LENGTH)}...` : plain}`;
}
