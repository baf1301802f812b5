// SSE streams that outlive their connections. Each event has an id and is kept for a while, so that a client that lost
// its connection can resume after the last id it saw, and gets each event once and in order. The number of events is
// limited per stream, and their size in total. A client that asks for dropped events gets an error.

import { formatEvent, type SseWriter } from "./reply.ts";

/** The connection that a stream is attached to. */
export type StreamOutput = Pick<SseWriter, "send" | "end">;

interface LoggedEvent {
  readonly number: number;
  readonly data: string;
}

/** Limits the total size of all logs; a character counts as a byte. Above it, whole logs are dropped, oldest first. */
export class ReplayStore {
  readonly maxEvents: number;
  readonly #maxBytes: number;
  readonly #streams = new Set<ReplayStream>();
  #bytes = 0;

  constructor(maxBytes: number, maxEvents: number) {
    this.#maxBytes = maxBytes;
    this.maxEvents = maxEvents;
  }

  keep(stream: ReplayStream, bytes: number): void {
    this.#bytes += bytes;
    this.#streams.add(stream);
    for (const oldest of this.#streams) {
      if (this.#bytes <= this.#maxBytes) break;
      oldest.dropLog();
    }
  }

  release(stream: ReplayStream, bytes: number, isEmpty: boolean): void {
    this.#bytes -= bytes;
    if (isEmpty) this.#streams.delete(stream);
  }
}

export class ReplayStream {
  readonly #name: string;
  readonly #store: ReplayStore;
  #log: LoggedEvent[] = [];
  /** Number of the newest event. */
  #newest = 0;
  /** Number of the newest event that was sent on some connection. */
  #sent = 0;
  /** Number of the newest event that is no longer in the log. */
  #dropped = 0;
  /** Whether the client has seen an event id, and so can resume. */
  #isResumable = false;
  #hasStarted = false;
  #isFinished = false;
  #output: StreamOutput | undefined;

  constructor(name: string, store: ReplayStore) {
    this.#name = name;
    this.#store = store;
  }

  /** Whether the stream has ever had a connection. */
  get hasStarted(): boolean {
    return this.#hasStarted;
  }

  get isFinished(): boolean {
    return this.#isFinished;
  }

  /** Whether the stream has ended and all its events were sent on some connection. */
  get isDelivered(): boolean {
    return this.#isFinished && this.#sent === this.#newest;
  }

  get isAttached(): boolean {
    return this.#output !== undefined;
  }

  /** Whether the client is connected or can resume. */
  get isReachable(): boolean {
    return this.#isResumable || this.isAttached;
  }

  /** Sends an event with an id and no data, which makes the stream resumable. */
  prime(retryMs: number): void {
    if (this.#output === undefined) return;
    this.#isResumable = true;
    this.#output.send(formatEvent({ id: this.#id(this.#sent), retry: retryMs, data: "" }));
  }

  send(data: string, last = false): void {
    if (this.#isFinished) return;
    const number = (this.#newest += 1);
    this.#log.push({ number, data });
    if (this.#log.length > this.#store.maxEvents) this.#drop(1);
    this.#store.keep(this, data.length);
    this.#isFinished = last;
    const output = this.#output;
    if (output === undefined) return;
    this.#sent = number;
    this.#isResumable = true;
    output.send(this.#text({ number, data }));
    if (last) this.#end();
  }

  /** Ends the stream without a further event. */
  finish(): void {
    this.#isFinished = true;
    this.#end();
  }

  /** Continues the stream on this connection after the event `after`, by default after the last event that was sent. */
  attach(output: StreamOutput, after: number = this.#sent): void {
    // The previous connection may be broken without our having noticed.
    this.#end();
    this.#hasStarted = true;
    this.#output = output;
    // Sent in one write, so that a long backlog does not make the client look like a slow reader.
    const missed = this.#log.filter(({ number }) => number > after);
    if (missed.length > 0) output.send(missed.map((event) => this.#text(event)).join(""));
    this.#sent = this.#newest;
    this.#isResumable ||= missed.length > 0;
    if (this.#isFinished) this.#end();
  }

  /** Whether every event after this one is still in the log. */
  canResumeAfter(after: number): boolean {
    return after >= this.#dropped && after <= this.#newest;
  }

  /** Whether this is the last event of a finished stream. */
  endsAt(after: number): boolean {
    return this.#isFinished && after === this.#newest;
  }

  detach(output: StreamOutput): void {
    if (this.#output === output) this.#output = undefined;
  }

  /** Closes the connection but not the stream, if the client can resume it. */
  hangUp(retryMs: number): void {
    if (!this.#isResumable || this.#isFinished) return;
    this.#output?.send(formatEvent({ retry: retryMs }));
    this.#end();
  }

  /** Removes and returns the events that no connection has sent, for a stream that replaces this one. */
  takeUnsent(): readonly string[] {
    const unsent = this.#log.filter(({ number }) => number > this.#sent);
    this.#log.length -= unsent.length;
    // No client has seen their numbers, so they can be reused.
    this.#newest = Math.max(this.#sent, this.#dropped);
    this.#release(unsent);
    return unsent.map(({ data }) => data);
  }

  /** Drops all events from the log. */
  dropLog(): void {
    this.#drop(this.#log.length);
  }

  #drop(count: number): void {
    const dropped = this.#log.splice(0, count);
    this.#dropped = dropped.at(-1)?.number ?? this.#dropped;
    this.#release(dropped);
  }

  #release(events: readonly LoggedEvent[]): void {
    const bytes = events.reduce((sum, { data }) => sum + data.length, 0);
    this.#store.release(this, bytes, this.#log.length === 0);
  }

  #end(): void {
    const output = this.#output;
    this.#output = undefined;
    output?.end();
  }

  #text({ number, data }: LoggedEvent): string {
    return formatEvent({ id: this.#id(number), data });
  }

  #id(number: number): string {
    return `${this.#name}-${number}`;
  }
}

/** Parses an event id into stream and event number; undefined if it is not one of ours. */
export function parseEventId(id: string): { readonly stream: string; readonly number: number } | undefined {
  const [, stream, number] = /^([0-9a-z]{1,12})-(\d{1,15})$/.exec(id) ?? [];
  return stream === undefined ? undefined : { stream, number: Number(number) };
}

/** In front of the names of streams for unsolicited messages. */
const UNSOLICITED = "g";

/** Whether the event is of a stream for unsolicited messages, of this session or of one with the same id before. */
export function isUnsolicited(eventId: string): boolean {
  return parseEventId(eventId)?.stream.startsWith(UNSOLICITED) === true;
}

/** How many finished, completely sent streams are kept, for clients that did not receive the last events. */
const MAX_FINISHED = 32;
/** How many finished, incompletely sent streams are kept, for clients that resume them. */
const MAX_MISSED = 512;
/** How many streams for unsolicited messages are kept, attached or waiting for the client to resume. */
const MAX_UNSOLICITED = 8;

/**
 * The streams of one session: one for each POST that needed a stream, and those opened by GET for unsolicited messages.
 * Each message is sent on one stream only. While no GET is open, unsolicited messages wait for the next GET.
 */
export class SessionStreams {
  readonly #store: ReplayStore;
  readonly #streams = new Map<string, ReplayStream>();
  /** Oldest first; never empty. */
  readonly #unsolicited: ReplayStream[] = [];
  #names: number;

  /** `names` is the first name. A session that is opened again must not use its former names. */
  constructor(store: ReplayStore, names = 0) {
    this.#store = store;
    this.#names = names;
    this.#unsolicited.push(this.#open(UNSOLICITED));
  }

  /** Whether any stream has a connection. */
  get isAttached(): boolean {
    for (const stream of this.#streams.values()) if (stream.isAttached) return true;
    return false;
  }

  /** Opens the stream of a POST. */
  open(): ReplayStream {
    return this.#open("");
  }

  #open(prefix: string): ReplayStream {
    const name = `${prefix}${(this.#names++).toString(36)}`;
    const stream = new ReplayStream(name, this.#store);
    this.#streams.set(name, stream);
    this.#dropFinished();
    return stream;
  }

  /** Sends on the newest attached stream for unsolicited messages. */
  sendUnsolicited(data: string): void {
    const stream = this.#unsolicited.findLast((one) => one.isAttached) ?? this.#unsolicited.at(-1);
    stream?.send(data);
  }

  /** The stream for a new GET, with the messages that were not sent yet. */
  openUnsolicited(): ReplayStream {
    const last = this.#unsolicited.at(-1);
    if (last?.hasStarted === false) return last;
    const stream = this.#open(UNSOLICITED);
    this.#collect(stream);
    if (this.#unsolicited.length >= MAX_UNSOLICITED) {
      const oldest = Math.max(
        0,
        this.#unsolicited.findIndex((one) => !one.isAttached),
      );
      for (const one of this.#unsolicited.splice(oldest, 1)) one.finish();
    }
    this.#unsolicited.push(stream);
    return stream;
  }

  /** Moves messages waiting on detached streams to this one, if it is for unsolicited messages. */
  collectUnsent(stream: ReplayStream): void {
    if (this.#unsolicited.includes(stream)) this.#collect(stream);
  }

  /** The stream and number of an event id; undefined if it is unknown, or events after it are no longer in the log. */
  find(eventId: string): { readonly stream: ReplayStream; readonly after: number } | undefined {
    const parsed = parseEventId(eventId);
    const stream = parsed && this.#streams.get(parsed.stream);
    return stream?.canResumeAfter(parsed?.number ?? -1) === true && parsed
      ? { stream, after: parsed.number }
      : undefined;
  }

  #collect(stream: ReplayStream): void {
    for (const old of this.#unsolicited) {
      if (old === stream || old.isAttached) continue;
      for (const data of old.takeUnsent()) stream.send(data);
    }
  }

  close(): void {
    for (const stream of this.#streams.values()) {
      stream.finish();
      stream.dropLog();
    }
  }

  #dropFinished(): void {
    if (this.#streams.size <= MAX_FINISHED + MAX_UNSOLICITED) return;
    const finished = [...this.#streams].filter(([, stream]) => stream.isFinished);
    const delivered = finished.filter(([, stream]) => stream.isDelivered);
    const missed = finished.filter(([, stream]) => !stream.isDelivered);
    for (const [name, stream] of [...delivered.slice(0, -MAX_FINISHED), ...missed.slice(0, -MAX_MISSED)]) {
      stream.dropLog();
      this.#streams.delete(name);
    }
  }
}
