// Reads JSON-RPC messages from an HTTP response (a JSON body or an SSE stream), and passes them to the receiver of the
// transport. An HTTP response without messages becomes a ConnectionError that describes what was received instead. If a
// JSON-RPC response arrives on the stream of another HTTP request, the transport finds the request that it answers.

import { ConnectionError } from "../../core/errors.ts";
import { readHead, decode, type Decoded, type Limits, tooLong } from "../../jsonrpc/codec.ts";
import { decodeLong, LONG_MESSAGE_BYTES } from "../../jsonrpc/long-message.ts";
import { type ErrorBody, ExactId, isRequest, isResponse, type Id, type Message } from "../../jsonrpc/message.ts";
import { isObject } from "../../core/values.ts";
import { readSse, type ServerSentEvent } from "./sse-reader.ts";
import { decodeBody, decodeUtf8 } from "./growable-buffer.ts";
import type { HttpResponse } from "./requester.ts";
import { quote, type HttpConnection } from "./http-connection.ts";
import type { Inbound } from "../../transport/transport.ts";

/** The position in an SSE stream, to resume it after a break. */
export class StreamPosition {
  /** The last event id, encoded for a header. */
  lastId: string | undefined;
  retryMs: number | undefined;
  readonly #seen = new Set<string>();

  advance(id: string): void {
    this.lastId = encodeEventId(id);
    // An empty id resets the last id. It does not identify an event.
    if (id === "") return;
    this.#seen.add(id);
    if (this.#seen.size > MAX_SEEN) for (const oldest of this.#seen) if (this.#seen.delete(oldest)) break;
  }

  /** The ids received so far, to skip repeated events: some servers resume earlier than requested. */
  seenIds(): ReadonlySet<string> {
    return new Set(this.#seen);
  }
}

/** How many event ids are remembered. */
const MAX_SEEN = 1_000;

/** Encodes an id for a header as UTF-8 bytes, as in the HTML standard; undefined if a header cannot contain it. */
function encodeEventId(id: string): string | undefined {
  const bytes = Buffer.from(id).toString("latin1");
  return id === "" || /[^\t\x20-\x7e\x80-\xff]/.test(bytes) ? undefined : bytes;
}

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\b/i;
const SSE_TYPE = /^text\/event-stream\b/i;

export function isEventStream({ headers }: HttpResponse): boolean {
  return SSE_TYPE.test(headers["content-type"] ?? "");
}

export function isJson({ headers }: HttpResponse): boolean {
  return JSON_TYPE.test(headers["content-type"] ?? "");
}

export function isSuccess({ status }: HttpResponse): boolean {
  return status >= 200 && status < 300;
}

export function readJson(response: HttpResponse, limits: Limits): Promise<Decoded> {
  return response.read(limits.messageBytes, (bytes) => decodeBytes(bytes, limits));
}

/**
 * Passes each event to `take` until `take` returns true. Resolves with false if the stream ends first. After requests of
 * the server, it reads on when the server has taken our answers.
 */
export function readEvents(
  http: HttpConnection,
  response: HttpResponse,
  position: StreamPosition,
  take: (decoded: Decoded | undefined, event: ServerSentEvent) => boolean,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    let done = false;
    let isAsked = false;
    const seen = position.seenIds();
    const onEvent = (event: ServerSentEvent): void => {
      const { id } = event;
      if (done || (id !== undefined && seen.has(id))) return;
      if (id !== undefined) position.advance(id);
      const decoded = decodeEvent(event, http.limits);
      isAsked ||= decoded?.kind === "batch" || (decoded?.kind === "message" && isRequest(decoded.message));
      if (!take(decoded, event)) return;
      done = true;
      // The server may keep the stream open after its last message.
      resolve(true);
      response.discard();
    };
    readSse(response.body, {
      maxBytes: http.limits.messageBytes,
      onEvent,
      onRetry: (ms) => {
        position.retryMs = ms;
      },
      afterChunk: () => {
        if (done || !isAsked) return undefined;
        isAsked = false;
        return http.canAnswer();
      },
    }).then(() => resolve(false), reject);
  });
}

/** Passes each message to `take` until `take` returns true. Resolves with false if the stream ends first. */
export function readMessages(
  http: HttpConnection,
  response: HttpResponse,
  position: StreamPosition,
  take: (decoded: Decoded) => boolean,
): Promise<boolean> {
  return readEvents(http, response, position, (decoded) => decoded !== undefined && take(decoded));
}

/** The message in an event. An event with an id and no data only marks a position. */
function decodeEvent({ event, data, isCut }: ServerSentEvent, limits: Limits): Decoded | undefined {
  if (isCut) {
    const { id, answerable } = readHead(decodeUtf8(data));
    return { kind: "fault", fault: { ...tooLong(limits.messageBytes), id }, answerable };
  }
  return data.length > 0 && (event === undefined || event === "message") ? decodeBytes(data, limits) : undefined;
}

function decodeBytes(bytes: Buffer, limits: Limits): Decoded {
  return bytes.length < LONG_MESSAGE_BYTES ? decode(decodeBody(bytes), limits) : decodeLong(bytes, limits);
}

const MAX_QUOTED_BYTES = 64 * 1024;

/** Returns the JSON-RPC error in an HTTP error response or, without one, a ConnectionError with the status. */
export async function readFailure(
  response: HttpResponse,
  what: string,
): Promise<{ body: ErrorBody } | { error: ConnectionError }> {
  const { status } = response;
  const text = await response.text(MAX_QUOTED_BYTES).catch(() => "");
  const body = isJson(response) ? parseErrorBody(text) : undefined;
  if (body !== undefined) return { body };
  const message = `The server answered ${what} with HTTP ${status}${quote(text)}${adviceFor(status)}`;
  // A 4xx means that the request did not run, except for 408.
  return { error: new ConnectionError("http", message, { status, mayHaveRun: status >= 500 || status === 408 }) };
}

function adviceFor(status: number): string {
  if (status === 404 || status === 405) return "; check the path of the address";
  if (status === 413) return "; the message is longer than the server accepts";
  if (status === 429) return "; send fewer requests";
  if (status === 400 || status === 422) return "; it rejects the request as invalid: ask its operator";
  if (status === 500) return "; see the server's log for the cause";
  if (status === 502 || status === 503 || status === 504)
    return "; the server behind it is not available: try again later";
  return "";
}

/** The id is not checked, since it is null or missing if the server could not read the request. */
function parseErrorBody(text: string): ErrorBody | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const error: unknown = isObject(value) ? value["error"] : undefined;
    if (!isObject(error) || !Number.isInteger(error["code"]) || typeof error["message"] !== "string") return undefined;
    return error as unknown as ErrorBody;
  } catch {
    return undefined;
  }
}

/** The error for a success response that cannot contain a message. */
export function noMessages(response: HttpResponse, what: string): ConnectionError {
  const { status, headers } = response;
  const type = headers["content-type"];
  const received =
    type === undefined ? `HTTP ${status} and no content type` : `the content type ${quote(type).slice(2)}`;
  response.discard();
  const advice = "expected application/json or text/event-stream: is this the address of an MCP endpoint?";
  return new ConnectionError("http", `The server answered ${what} with ${received}; ${advice}`, { status });
}

export const TOOLS_CHANGED = "notifications/tools/list_changed";

/** The error for a JSON body that is not the response to the request. */
export function notTheResponse(decoded: Decoded, what: string): ConnectionError {
  const why =
    decoded.kind === "fault"
      ? `with an invalid message: ${decoded.fault.error.message}`
      : "with a message that is not the response";
  return new ConnectionError("protocol", `The server answered ${what} ${why}`);
}

/** Passes the messages of HTTP responses to a transport's receiver, with the request that they belong to. */
export class MessageReceiver {
  readonly #send: Inbound["reply"];
  readonly #gone: AbortSignal;
  readonly #onToolsChanged: () => void;
  #receive: (inbound: Inbound) => void = () => undefined;

  /** `gone` is aborted when the transport is closed. `onToolsChanged` is called when the tools may have changed. */
  constructor(send: Inbound["reply"], gone: AbortSignal, onToolsChanged: () => void) {
    this.#send = send;
    this.#gone = gone;
    this.#onToolsChanged = onToolsChanged;
  }

  start(receive: (inbound: Inbound) => void): void {
    this.#receive = receive;
  }

  /** Delivers a message; returns whether it contains the response to `about`. */
  deliver(decoded: Decoded, about?: Id): boolean {
    if (decoded.kind === "fault") {
      this.#pass({ kind: "fault", fault: decoded.fault }, about);
      return about !== undefined && decoded.fault.id !== null && sameId(decoded.fault.id, about);
    }
    if (decoded.kind === "message") {
      const { message } = decoded;
      // An error without an id can only belong to the request whose HTTP response contains it.
      if (about !== undefined && "error" in message && message.id === null) {
        this.fail(about, message.error);
        return true;
      }
      this.#pass({ kind: "message", message: decoded.message }, about);
      return isResponseTo(decoded.message, about);
    }
    const batch = decoded.items.map((item) => ("message" in item ? item : { fault: item.fault }));
    this.#pass({ kind: "batch", batch }, about);
    return batch.some((item) => "message" in item && isResponseTo(item.message, about));
  }

  /** Delivers a JSON body; throws if it does not contain the response to `about`. */
  deliverResponse(decoded: Decoded, about: Id, what: string): void {
    if (!this.deliver(decoded, about)) throw notTheResponse(decoded, what);
  }

  fail(id: Id, error: ErrorBody): void {
    this.#pass({ kind: "message", message: { jsonrpc: "2.0", id, error } }, id);
  }

  /** Reports that the server has dropped the session. */
  sessionLost(): void {
    this.#pass({ kind: "lost" }, undefined);
  }

  /** Reports that unsolicited messages may have been missed. */
  gap(): void {
    this.#pass({ kind: "gap" }, undefined);
  }

  /** Reports that the server closed the stream of this request and wants us to reconnect. */
  hangUp(about: Id, retryMs: number): void {
    this.#pass({ kind: "hang-up", retryMs }, about);
  }

  #pass(what: Pick<Inbound, "kind" | "message" | "batch" | "fault" | "retryMs">, about: Id | undefined): void {
    if (this.#gone.aborted) return;
    const { kind, message } = what;
    const isToolChange = message !== undefined && "method" in message && message.method === TOOLS_CHANGED;
    if (isToolChange || kind === "lost" || kind === "gap") this.#onToolsChanged();
    const reply: Inbound["reply"] = (message) => this.#send(message);
    this.#receive({ ...what, ...(about === undefined ? undefined : { about }), gone: this.#gone, reply });
  }
}

function isResponseTo(message: Message, id: Id | undefined): boolean {
  return id !== undefined && isResponse(message) && message.id !== null && sameId(message.id, id);
}

/** Compares ids by value, since some servers write our id 1 as 1.0. */
export function sameId(given: Id, ours: Id): boolean {
  return (given instanceof ExactId ? given.value : given) === ours;
}

/**
 * Sends, and retries once if the connection failed and `mayRetry` is true. Meant for responses: a duplicate is
 * harmless, but the server would wait for a lost one.
 */
export async function sendWithRetry(send: () => Promise<void>, mayRetry: boolean): Promise<void> {
  try {
    await send();
  } catch (error) {
    const isBroken = error instanceof ConnectionError && (error.kind === "closed" || error.kind === "refused");
    if (!mayRetry || !isBroken) throw error;
    await send();
  }
}
