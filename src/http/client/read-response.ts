// What an HTTP answer says, told apart by its status and its type: messages in a JSON body or in a stream of events,
// or none at all. Whoever sent the request is handed each message as it comes; an answer that has none is a ConnectionError
// that says what came instead. Which message answers which request, and what to do when none did, is for the wires.

import { ConnectionError } from "../../core/errors.ts";
import { beginning, decode, type Decoded, type Limits } from "../../jsonrpc/codec.ts";
import { tooLong } from "../../jsonrpc/fault.ts";
import { decodeLong, LONG_MESSAGE } from "../../jsonrpc/long-message.ts";
import { type ErrorBody, Exact, isResponse, type Id, type Message } from "../../jsonrpc/message.ts";
import { isObject } from "../../core/objects.ts";
import { readSse, type ServerSentEvent } from "./sse-reader.ts";
import { textOf } from "./growable-buffer.ts";
import type { HttpResponse } from "./requester.ts";
import { quote } from "./http-connection.ts";
import type { Inbound, Transport } from "../../transport/transport.ts";

/** What a stream of events has told of itself so far, for whoever wants to go on where it broke. */
export class Cursor {
  /** The last event's, as a header says it. */
  lastId: string | undefined;
  retryMs: number | undefined;
  readonly #seen = new Set<string>();

  see(id: string): void {
    this.lastId = idInHeader(id);
    // An end that takes its id back has given none that could come again.
    if (id === "") return;
    this.#seen.add(id);
    if (this.#seen.size > MOST_SEEN) for (const oldest of this.#seen) if (this.#seen.delete(oldest)) break;
  }

  /** What came before, for whoever goes on: some ends begin further back than they were asked to. */
  past(): ReadonlySet<string> {
    return new Set(this.#seen);
  }
}

/** Ids of events that are known again. */
const MOST_SEEN = 1_000;

/** The bytes of its UTF-8, as the HTML standard sends it. One that no header can carry is as good as none. */
function idInHeader(id: string): string | undefined {
  const bytes = Buffer.from(id).toString("latin1");
  return id === "" || /[^\t\x20-\x7e\x80-\xff]/.test(bytes) ? undefined : bytes;
}

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\b/i;
const EVENTS_TYPE = /^text\/event-stream\b/i;

export function isEvents({ headers }: HttpResponse): boolean {
  return EVENTS_TYPE.test(headers["content-type"] ?? "");
}

export function isJson({ headers }: HttpResponse): boolean {
  return JSON_TYPE.test(headers["content-type"] ?? "");
}

export function isSuccess({ status }: HttpResponse): boolean {
  return status >= 200 && status < 300;
}

/** The whole body as what it is. */
export function readJson(answer: HttpResponse, limits: Limits): Promise<Decoded> {
  return answer.read(limits.messageBytes, (bytes) =>
    bytes.length < LONG_MESSAGE ? decode(textOf(bytes), limits) : decodeLong(bytes, limits),
  );
}

/** What is said in the events of a stream, one by one, until `take` says that it wants no more; true if it said so. */
export function readEvents(
  answer: HttpResponse,
  limits: Limits,
  cursor: Cursor,
  take: (decoded: Decoded | undefined, event: ServerSentEvent) => boolean,
): Promise<boolean> {
  return new Promise((resolve, reject) => {
    let done = false;
    const past = cursor.past();
    const see = (decoded: Decoded | undefined, event: ServerSentEvent): void => {
      const { id } = event;
      if (done || (id !== undefined && past.has(id))) return;
      if (id !== undefined) cursor.see(id);
      if (!take(decoded, event)) return;
      done = true;
      // An end may keep the stream open behind the last thing that it had to say.
      resolve(true);
      answer.discard();
    };
    readSse(answer.body, {
      maxBytes: limits.messageBytes,
      // An id alone says only from where to go on.
      onEvent: (event) => see(event.data !== "" && isMessage(event) ? decode(event.data, limits) : undefined, event),
      onBytes: (bytes, event) => see(isMessage(event) ? decodeLong(bytes, limits) : undefined, { ...event, data: "" }),
      onLongEvent: ({ head, ...event }) => see(overlong(head, limits), { ...event, data: "" }),
      onRetry: (ms) => {
        cursor.retryMs = ms;
      },
    }).then(() => resolve(false), reject);
  });
}

/** Each message of a stream until `take` says that it was the last one wanted; true if it said so. */
export function readMessages(
  answer: HttpResponse,
  limits: Limits,
  cursor: Cursor,
  take: (decoded: Decoded) => boolean,
): Promise<boolean> {
  return readEvents(answer, limits, cursor, (decoded) => decoded !== undefined && take(decoded));
}

function isMessage({ event }: Omit<ServerSentEvent, "data">): boolean {
  return event === undefined || event === "message";
}

function overlong(head: string, limits: Limits): Decoded {
  const { id, answerable } = beginning(head);
  return { kind: "fault", fault: { ...tooLong(limits.messageBytes), id }, answerable };
}

const QUOTED_BYTES = 64 * 1024;

/** An error of the protocol that came with a status of its own, or the bare status as a ConnectionError. */
export async function readFailure(
  answer: HttpResponse,
  what: string,
): Promise<{ body: ErrorBody } | { error: ConnectionError }> {
  const { status } = answer;
  const text = await answer.text(QUOTED_BYTES).catch(() => "");
  const body = isJson(answer) ? errorBodyIn(text) : undefined;
  if (body !== undefined) return { body };
  const message = `The end answered ${what} with HTTP ${status}${quote(text)}${adviceFor(status)}`;
  // Whoever says 4xx has not begun with it, except that a request may have come too slowly to be read to its end.
  return { error: new ConnectionError("http", message, { status, mayHaveRun: status >= 500 || status === 408 }) };
}

function adviceFor(status: number): string {
  if (status === 404 || status === 405) return "; check the path of the address";
  if (status === 413) return "; the message is longer than it takes";
  if (status === 429) return "; it wants fewer requests";
  if (status === 400 || status === 422) return "; it does not take the request as it is: ask whoever runs it";
  if (status === 500) return "; whoever runs it finds the cause in its log";
  if (status === 502 || status === 503 || status === 504)
    return "; what stands behind it is not there: try again later";
  return "";
}

/** Errors that concern no request that could be read have no id, or null. */
function errorBodyIn(text: string): ErrorBody | undefined {
  try {
    const value: unknown = JSON.parse(text);
    const error: unknown = isObject(value) ? value["error"] : undefined;
    if (!isObject(error) || !Number.isInteger(error["code"]) || typeof error["message"] !== "string") return undefined;
    return error as unknown as ErrorBody;
  } catch {
    return undefined;
  }
}

/** 200, and yet nothing that could be a message. */
export function noMessages(answer: HttpResponse, what: string): ConnectionError {
  const { status, headers } = answer;
  const type = headers["content-type"];
  const came = type === undefined ? `HTTP ${status} and no content type` : `the content type ${quote(type).slice(2)}`;
  answer.discard();
  const advice = "it must be application/json or text/event-stream: is this the address of an MCP endpoint?";
  return new ConnectionError("http", `The end answered ${what} with ${came}; ${advice}`, { status });
}

// Messages that came out of an HTTP answer, as what a wire hands on: with the request on whose answer they came, and
// a way back. Also tells a wire whether the answer that it waits for was among them, and gives our own answers a second
// chance.


const TOOLS_CHANGED = "notifications/tools/list_changed";

export class MessageReceiver {
  readonly #send: Transport["send"];
  readonly #gone: AbortSignal;
  readonly #onOtherTools: () => void;
  #receive: (inbound: Inbound) => void = () => undefined;

  /** `onOtherTools` is called when what was known of the end's tools may no longer be so. */
  constructor(send: Transport["send"], gone: AbortSignal, onOtherTools: () => void) {
    this.#send = send;
    this.#gone = gone;
    this.#onOtherTools = onOtherTools;
  }

  start(receive: (inbound: Inbound) => void): void {
    this.#receive = receive;
  }

  /** Hands it on; whether it holds the answer to `about`. What is no message is passed over. */
  hand(decoded: Decoded, about?: Id): boolean {
    if (decoded.kind === "fault") {
      this.#pass({ kind: "fault", fault: decoded.fault }, about);
      return about !== undefined && decoded.fault.id !== null && sameId(decoded.fault.id, about);
    }
    if (decoded.kind === "message") {
      const { message } = decoded;
      // An error that names no request can only be about the one on whose answer it came.
      if (about !== undefined && "error" in message && message.id === null) {
        this.fail(about, message.error);
        return true;
      }
      this.#pass({ kind: "message", message: decoded.message }, about);
      return answers(decoded.message, about);
    }
    const batch = decoded.items.map((item) => ("message" in item ? item : { fault: item.fault }));
    this.#pass({ kind: "batch", batch }, about);
    return batch.some((item) => "message" in item && answers(item.message, about));
  }

  /** The whole body of an answer to one request: that answer, or what is wrong with it. */
  handOnly(decoded: Decoded, about: Id, what: string): void {
    if (this.hand(decoded, about)) return;
    const why =
      decoded.kind === "fault" ? `with what is no message: ${decoded.fault.error.message}` : "with something else";
    throw new ConnectionError("protocol", `The end answered ${what} ${why}`);
  }

  fail(id: Id, error: ErrorBody): void {
    this.#pass({ kind: "message", message: { jsonrpc: "2.0", id, error } }, id);
  }

  /** The session is gone, but the end is not. */
  lose(): void {
    this.#pass({ kind: "lost" }, undefined);
  }

  /** Something may have been said that did not reach us. */
  miss(): void {
    this.#pass({ kind: "gap" }, undefined);
  }

  /** The end does not want to keep the stream of this request open. */
  hangUp(about: Id, retryMs: number): void {
    this.#pass({ kind: "hang-up", retryMs }, about);
  }

  #pass(what: Pick<Inbound, "kind" | "message" | "batch" | "fault" | "retryMs">, about: Id | undefined): void {
    if (this.#gone.aborted) return;
    const { kind, message } = what;
    const isChange = message !== undefined && "method" in message && message.method === TOOLS_CHANGED;
    if (isChange || kind === "lost" || kind === "gap") this.#onOtherTools();
    const reply: Inbound["reply"] = (message) => this.#send(message);
    this.#receive({ ...what, ...(about === undefined ? undefined : { about }), gone: this.#gone, reply });
  }
}

function answers(message: Message, id: Id | undefined): boolean {
  return id !== undefined && isResponse(message) && message.id !== null && sameId(message.id, id);
}

/** 1.0 is our 1, written by another hand. */
function sameId(given: Id, ours: Id): boolean {
  return (given instanceof Exact ? given.value : given) === ours;
}

/** The answer to a question of the end: to say it twice does no harm, and not to say it leaves the end waiting. */
export async function sendWithRetry(say: () => Promise<void>, mayRepeat: boolean): Promise<void> {
  try {
    await say();
  } catch (error) {
    const isBroken = error instanceof ConnectionError && (error.kind === "closed" || error.kind === "refused");
    if (!mayRepeat || !isBroken) throw error;
    await say();
  }
}
