// The streams of a session that may break and be taken up again: that of a request, until its answer has come, and
// the one that belongs to no request, for as long as the session lasts. A stream is taken up where it broke by the id
// of its last event, after the time that the end asked for (last session-style specification, basic/transports, resumability).

import { ConnectionError } from "../../core/errors.ts";
import type { Decoded } from "../../jsonrpc/codec.ts";
import type { Id } from "../../jsonrpc/message.ts";
import type { HttpResponse } from "./requester.ts";
import { isEvents, readMessages, Cursor } from "./read-response.ts";
import type { HttpConnection } from "./http-connection.ts";
import { backoffMs, pause } from "../../dialogue/calls/backoff.ts";

/** Tries in a row that fail before an answer is given up. */
const MOST_FAILURES = 5;
/** Between two tries, however little the end asks for. */
const LEAST_MS = 50;
/** Where the end asks for nothing. */
const DEFAULT_MS = 1_000;

/** Too many requests; or a stream before this one that the end still takes for open. */
const PASSING: ReadonlySet<number> = new Set([409, 429]);

const GET: Readonly<Record<string, string>> = { accept: "text/event-stream" };

interface AnswerStream {
  readonly id: Id;
  readonly method: string;
  readonly signal: AbortSignal;
  readonly headers: () => Record<string, string>;
  readonly hand: (decoded: Decoded, about: Id) => boolean;
  /** The end has forgotten the session, and the stream with it. */
  readonly onLost: () => void;
  /** It has ended the stream in good order and said when to come again. */
  readonly onHangUp: (retryMs: number) => void;
}

/** Resolves when the answer has been handed on. */
export async function readAnswerStream(link: HttpConnection, first: HttpResponse, stream: AnswerStream): Promise<void> {
  const { id, method, signal, headers, hand, onLost, onHangUp } = stream;
  const cursor = new Cursor();
  let answer: HttpResponse | undefined = first;
  let failures = 0;
  for (;;) {
    if (answer !== undefined) {
      const end = await readOn(link, answer, cursor, (decoded) => hand(decoded, id), signal);
      if (end === "answered") return;
      if (cursor.lastId === undefined) throw broken(method, "and gave its events no ids to go on from");
      if (end === "ended" && cursor.retryMs !== undefined) onHangUp(cursor.retryMs);
    }
    await pause(waitMs(cursor, failures), signal);
    const resumed = await reach(link, { ...headers(), "last-event-id": cursor.lastId ?? "" }, signal);
    if (resumed instanceof ConnectionError) {
      failures += 1;
      if (failures >= MOST_FAILURES) throw broken(method, `and could not be reached again: ${resumed.message}`);
      answer = undefined;
    } else if (isOpen(resumed)) {
      failures = 0;
      answer = resumed;
    } else {
      resumed.discard();
      if (resumed.status === 404) onLost();
      throw broken(method, `and does not take it up again (HTTP ${resumed.status})`);
    }
  }
}

interface Listening {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly hand: (decoded: Decoded) => boolean;
  /** The stream is open, or there is none for now. */
  readonly onHead: () => void;
  /** It is open again, but not from where it broke: its events have no ids. */
  readonly onGap: () => void;
}

/** Why nobody listens any more: there is nothing to listen to, or the end has forgotten the session, or refuses us. */
type Over = "over" | "lost" | "refused";

/** Until the session is over or the end offers no such stream. */
export async function keepListening(
  link: HttpConnection,
  { headers, signal, hand, onHead, onGap }: Listening,
): Promise<Over> {
  const cursor = new Cursor();
  let opened = false;
  let failures = 0;
  const onEach = (decoded: Decoded): boolean => {
    hand(decoded);
    return false;
  };
  try {
    for (;;) {
      const resume = cursor.lastId === undefined ? undefined : { "last-event-id": cursor.lastId };
      const answer = await reach(link, { ...headers, ...resume }, signal);
      onHead();
      if (answer instanceof ConnectionError) failures += 1;
      else if (isOpen(answer)) {
        if (opened && resume === undefined) onGap();
        opened = true;
        failures = 0;
        await readOn(link, answer, cursor, onEach, signal);
      } else {
        answer.discard();
        const { status } = answer;
        if (opened ? status === 404 : !PASSING.has(status)) return opened ? "lost" : "over";
        failures += 1;
      }
      await pause(waitMs(cursor, failures), signal);
    }
  } catch (error) {
    // Who is no longer accepted is not asked to sign in for this: the next call says so.
    return error instanceof ConnectionError && error.kind === "unauthorized" ? "refused" : "over";
  } finally {
    onHead();
  }
}

/** A connection that broke is as good as a stream that ended: what counts is from where to go on. */
async function readOn(
  link: HttpConnection,
  answer: HttpResponse,
  cursor: Cursor,
  take: (decoded: Decoded) => boolean,
  signal: AbortSignal,
): Promise<"answered" | "ended" | "broken"> {
  try {
    return (await readMessages(answer, link.limits, cursor, take)) ? "answered" : "ended";
  } catch (error) {
    if (signal.aborted || !(error instanceof ConnectionError) || error.kind !== "closed") throw error;
    return "broken";
  }
}

/** An end that cannot be reached, or that has trouble of its own, may be there again later. */
async function reach(
  link: HttpConnection,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<HttpResponse | ConnectionError> {
  try {
    const answer = await link.ask({ method: "GET", headers: { ...GET, ...headers }, signal });
    if (answer.status < 500 || answer.status === 501) return answer;
    answer.discard();
    return new ConnectionError("http", `The end answered GET with HTTP ${answer.status}`, { status: answer.status });
  } catch (error) {
    if (signal.aborted || !(error instanceof ConnectionError) || error.kind === "unauthorized") throw error;
    return error;
  }
}

function isOpen(answer: HttpResponse): boolean {
  return answer.status === 200 && isEvents(answer);
}

function waitMs({ retryMs }: Cursor, failures: number): number {
  if (failures > 0) return Math.max(backoffMs(failures - 1), retryMs ?? 0);
  return Math.max(retryMs ?? DEFAULT_MS, LEAST_MS);
}

function broken(method: string, why: string): ConnectionError {
  return new ConnectionError(
    "closed",
    `The end broke off the stream of ${method} before it had answered, ${why}; it may have run: look before you call it again`,
  );
}
