// SSE streams that outlive their connections. Each event has an id and is kept for a while, so that a client that lost
// its connection can resume after the last id it saw, and gets each event once and in order. The number of events is
// limited per stream, and their size in total. A client that asks for dropped events gets an error.

import { formatEvent, type SseWriter } from "./sse-writer.ts";

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
  #newest = 0;
  /** Number of the newest event that was sent on some connection. */
  #sent = 0;
  /** Number of the newest event that is no longer in the log. */
  #dropped = 0;
  /** Whether the client has seen an event id, and so can resume. */
  #isResumable = false;
  /** Whether it has ever had a connection. */
  hasStarted = false;
  isFinished = false;
  #output: StreamOutput | undefined;

  constructor(name: string, store: ReplayStore) {
    this.#name = name;
    this.#store = store;
  }

  /** Whether the stream has ended and all its events were sent on some connection. */
  get isDelivered(): boolean {
    return this.isFinished && this.#sent === this.#newest;
  }

  get isAttached(): boolean {
    return this.#output !== undefined;
  }

  /** Whether the client is connected or can resume. */
  get isReachable(): boolean {
    return this.#isResumable || this.isAttached;
  }

  prime(retryMs: number): void {
    if (this.#output === undefined) return;
    this.#isResumable = true;
    this.#output.send(formatEvent({ id: this.#id(this.#sent), retry: retryMs, data: "" }));
  }

  send(data: string, last = false): void {
    if (this.isFinished) return;
    const number = (this.#newest += 1);
    this.#log.push({ number, data });
    if (this.#log.length > this.#store.maxEvents) this.#drop(1);
    this.#store.keep(this, data.length);
    this.isFinished = last;
    const output = this.#output;
    if (output === undefined) return;
    this.#sent = number;
    this.#isResumable = true;
    output.send(this.#text({ number, data }));
    if (last) this.#end();
  }

  /** Ends the stream without a further event. */
  finish(): void {
    this.isFinished = true;
    this.#end();
  }

  /** Continues the stream on this connection after the event `after`, by default after the last event that was sent. */
  attach(output: StreamOutput, after: number = this.#sent): void {
    // The previous connection may be broken without our having noticed.
    this.#end();
    this.hasStarted = true;
    this.#output = output;
    // Sent in one write, so that a long backlog does not make the client look like a slow reader.
    const missed = this.#log.filter(({ number }) => number > after);
    if (missed.length > 0) output.send(missed.map((event) => this.#text(event)).join(""));
    this.#sent = this.#newest;
    this.#isResumable ||= missed.length > 0;
    if (this.isFinished) this.#end();
  }

  /** Whether every event after this one is still in the log. */
  canResumeAfter(after: number): boolean {
    return after >= this.#dropped && after <= this.#newest;
  }

  /** Whether this is the last event of a finished stream. */
  endsAt(after: number): boolean {
    return this.isFinished && after === this.#newest;
  }

  detach(output: StreamOutput): void {
    if (this.#output === output) this.#output = undefined;
  }

  /** Closes the connection but not the stream, if the client can resume it. */
  hangUp(retryMs: number): void {
    if (!this.#isResumable || this.isFinished) return;
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
