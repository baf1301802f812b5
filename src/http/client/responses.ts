// Reads JSON-RPC messages from an HTTP response: a JSON body or an SSE stream. A response without messages becomes a
// ConnectionError that describes what was received instead.

import { Buffer } from "node:buffer";
import { ConnectionError } from "../../core/errors.ts";
import { fieldsOf } from "../../core/values.ts";
import { decode, tooLong, type Decoded, type Limits } from "../../jsonrpc/codec.ts";
import { decodeLong, LONG_MESSAGE_BYTES } from "../../jsonrpc/long-message.ts";
import { type ErrorBody, type Id, isErrorBody, isRequest, type Message, plainId } from "../../jsonrpc/message.ts";
import { decodeUtf8 } from "./growable-buffer.ts";
import { readSse, type ServerSentEvent } from "./sse-reader.ts";
import { quote, readQuotable, type HttpConnection } from "./http-connection.ts";
import type { HttpResponse } from "./requester.ts";

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

export const GET_HEADERS: Readonly<Record<string, string>> = { accept: "text/event-stream" };

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
function decodeEvent({ event, data, skipped }: ServerSentEvent, limits: Limits): Decoded | undefined {
  if (skipped !== undefined) {
    return { kind: "fault", fault: tooLong(limits.messageBytes, skipped.id), answerable: skipped.isAnswerable };
  }
  return data.length > 0 && (event === undefined || event === "message") ? decodeBytes(data, limits) : undefined;
}

function decodeBytes(bytes: Buffer, limits: Limits): Decoded {
  return bytes.length < LONG_MESSAGE_BYTES ? decode(decodeUtf8(bytes), limits) : decodeLong(bytes, limits);
}

/** An HTTP error response, and the JSON-RPC error that it contains, if any. */
export interface HttpFailure {
  readonly error: ConnectionError;
  readonly body: ErrorBody | undefined;
}

export async function readFailure(response: HttpResponse, what: string): Promise<HttpFailure> {
  const { status } = response;
  const text = await readQuotable(response);
  const body = isJson(response) ? parseErrorBody(text) : undefined;
  const details = body === undefined ? `${quote(text)}${adviceFor(status)}` : `, ${body.message}`;
  // A 4xx means that the request did not run, except for 408. Neither did a request that is answered with an error.
  const mayHaveRun = body === undefined && (status >= 500 || status === 408);
  const message = `The server answered ${what} with HTTP ${status}${details}`;
  return { error: new ConnectionError("http", message, { status, mayHaveRun }), body };
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

/** Requests that find out what the server speaks. A 403 says nothing about that, whatever its body is. */
export const PROBES: ReadonlySet<string> = new Set(["server/discover", "initialize"]);

/** The id for which a 403 may have the answer. */
export function answerableId(message: Message): Id | undefined {
  return isRequest(message) && !PROBES.has(message.method) ? message.id : undefined;
}

/** The id is not checked, since it is null or missing if the server could not read the request. */
function parseErrorBody(text: string): ErrorBody | undefined {
  try {
    const { error } = fieldsOf(JSON.parse(text));
    return isErrorBody(error) ? error : undefined;
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

/** The error for a JSON body that is not the response to the request. */
export function notTheResponse(decoded: Decoded, what: string): ConnectionError {
  const why =
    decoded.kind === "fault"
      ? `with an invalid message: ${decoded.fault.error.message}`
      : "with a message that is not the response";
  return new ConnectionError("protocol", `The server answered ${what} ${why}`);
}

/** Compares ids by value, since some servers write our id 1 as 1.0. */
export function isSameId(theirs: Id | null, ours: Id | undefined): boolean {
  return ours !== undefined && theirs !== null && plainId(theirs) === ours;
}
