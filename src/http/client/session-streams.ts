// Reads the resumable streams of a session: the stream of a request until its response arrives, and the stream for
// unsolicited messages as long as the session lives. A broken stream is resumed from its last event id, after the
// delay that the server asked for (last session-style specification, basic/transports, resumability).

import { ConnectionError } from "../../core/errors.ts";
import type { Decoded } from "../../jsonrpc/codec.ts";
import type { Id } from "../../jsonrpc/message.ts";
import type { HttpResponse } from "./requester.ts";
import { isEventStream, readMessages, StreamPosition } from "./read-response.ts";
import type { HttpConnection } from "./http-connection.ts";
import { backoffMs, pause } from "../../core/async.ts";

/** After this many consecutive failures to resume its stream, a request fails. */
const MAX_FAILURES = 5;
/** Minimum delay between attempts, even if the server asks for less. */
const MIN_RETRY_MS = 50;
/** Delay if the server does not ask for one. */
const DEFAULT_RETRY_MS = 1_000;

/** Statuses of a server that considers the previous stream still open, or limits the rate of requests. */
const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([409, 429]);

const GET_HEADERS: Readonly<Record<string, string>> = { accept: "text/event-stream" };

interface ResponseStream {
  readonly id: Id;
  readonly method: string;
  readonly signal: AbortSignal;
  readonly headers: () => Record<string, string>;
  readonly deliver: (decoded: Decoded, about: Id) => boolean;
  /** Called when the server has dropped the session and its streams. */
  readonly onLost: () => void;
  /** Called when the server has closed the stream and has told us how long to wait before reconnecting. */
  readonly onHangUp: (retryMs: number) => void;
}

/** Resolves when the response has been delivered. */
export async function readResponseStream(
  http: HttpConnection,
  first: HttpResponse,
  stream: ResponseStream,
): Promise<void> {
  const { id, method, signal, headers, deliver, onLost, onHangUp } = stream;
  const position = new StreamPosition();
  let response: HttpResponse | undefined = first;
  let failures = 0;
  for (;;) {
    if (response !== undefined) {
      const outcome = await readUntilBreak(http, response, position, (decoded) => deliver(decoded, id), signal);
      if (outcome === "answered") return;
      if (position.lastId === undefined) throw brokenStream(method, "and no event had an id to resume from");
      if (outcome === "ended" && position.retryMs !== undefined) onHangUp(position.retryMs);
    }
    await pause(retryDelayMs(position, failures), signal);
    const resumed = await openStream(http, { ...headers(), "last-event-id": position.lastId ?? "" }, signal);
    if (resumed instanceof ConnectionError) {
      failures += 1;
      if (failures >= MAX_FAILURES) throw brokenStream(method, `and could not be reached again: ${resumed.message}`);
      response = undefined;
    } else if (isOpen(resumed)) {
      failures = 0;
      response = resumed;
    } else {
      resumed.discard();
      if (resumed.status === 404) onLost();
      throw brokenStream(method, `and refuses to resume it (HTTP ${resumed.status})`);
    }
  }
}

interface UnsolicitedStream {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly deliver: (decoded: Decoded) => boolean;
  /** Called when the stream is open or the attempt to open it has failed. */
  readonly onHead: () => void;
  /** Called when the stream is open again, but messages may be missing because its events have no ids. */
  readonly onGap: () => void;
}

/**
 * Why the stream is not opened again. "over": the session is closed, or the server does not offer the stream. "lost":
 * the server has dropped the session. "refused": we are not authorized.
 */
type StreamEnd = "over" | "lost" | "refused";

/** Reads the stream for unsolicited messages, and opens it again when it breaks. Never rejects. */
export async function readUnsolicited(
  http: HttpConnection,
  { headers, signal, deliver, onHead, onGap }: UnsolicitedStream,
): Promise<StreamEnd> {
  const position = new StreamPosition();
  let hasOpened = false;
  let failures = 0;
  const onEach = (decoded: Decoded): boolean => {
    deliver(decoded);
    return false;
  };
  try {
    for (;;) {
      const resume = position.lastId === undefined ? undefined : { "last-event-id": position.lastId };
      const response = await openStream(http, { ...headers, ...resume }, signal);
      onHead();
      if (response instanceof ConnectionError) failures += 1;
      else if (isOpen(response)) {
        if (hasOpened && resume === undefined) onGap();
        hasOpened = true;
        failures = 0;
        await readUntilBreak(http, response, position, onEach, signal);
      } else {
        response.discard();
        const { status } = response;
        if (hasOpened ? status === 404 : !TRANSIENT_STATUSES.has(status)) return hasOpened ? "lost" : "over";
        failures += 1;
      }
      await pause(retryDelayMs(position, failures), signal);
    }
  } catch (error) {
    // Not an error, since the stream is optional. A refused stream is opened again when the server accepts a call.
    return error instanceof ConnectionError && error.kind === "unauthorized" ? "refused" : "over";
  } finally {
    onHead();
  }
}

/** Resolves even if the connection breaks, since a broken stream is resumed just like one that has ended. */
async function readUntilBreak(
  http: HttpConnection,
  response: HttpResponse,
  position: StreamPosition,
  take: (decoded: Decoded) => boolean,
  signal: AbortSignal,
): Promise<"answered" | "ended" | "broken"> {
  try {
    return (await readMessages(http, response, position, take)) ? "answered" : "ended";
  } catch (error) {
    if (signal.aborted || !(error instanceof ConnectionError) || error.kind !== "closed") throw error;
    return "broken";
  }
}

/** Returns an error if a later attempt may succeed: the server cannot be reached, or answers with a 5xx except 501. */
async function openStream(
  http: HttpConnection,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<HttpResponse | ConnectionError> {
  try {
    const response = await http.send({ method: "GET", headers: { ...GET_HEADERS, ...headers }, signal });
    if (response.status < 500 || response.status === 501) return response;
    response.discard();
    return new ConnectionError("http", `The server answered GET with HTTP ${response.status}`, {
      status: response.status,
    });
  } catch (error) {
    if (signal.aborted || !(error instanceof ConnectionError) || error.kind === "unauthorized") throw error;
    return error;
  }
}

function isOpen(response: HttpResponse): boolean {
  return response.status === 200 && isEventStream(response);
}

function retryDelayMs({ retryMs }: StreamPosition, failures: number): number {
  if (failures > 0) return Math.max(backoffMs(failures - 1), retryMs ?? 0);
  return Math.max(retryMs ?? DEFAULT_RETRY_MS, MIN_RETRY_MS);
}

function brokenStream(method: string, why: string): ConnectionError {
  return new ConnectionError(
    "closed",
    `The server closed the stream of ${method} before it answered, ${why}; ` +
      "the request may have run, so check before you call it again",
  );
}
