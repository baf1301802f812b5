// Event streams that outlive their connections: each event has an id that names its stream and its place in it, and
// is kept for a while, so that a caller whose connection broke comes back with the last id it saw and gets the rest,
// once and in order. What is kept is bounded, for each stream by number and in all by bytes; what was let go of is
// said to be lost, never left out in silence. Nothing here knows of sessions or messages.

import { formatEvent } from "./sse.ts";

/** The connection that a stream goes out by at the moment. */
export interface Outlet {
  send(text: string): void;
  end(): void;
}

interface Kept {
  readonly number: number;
  readonly data: string;
}

/** The bound on all that is kept: whoever has kept the longest lets go first. */
export class ReplayStore {
  readonly maxEvents: number;
  readonly #maxBytes: number;
  readonly #keeping = new Set<ReplayStream>();
  #bytes = 0;

  constructor(maxBytes: number, maxEvents: number) {
    this.#maxBytes = maxBytes;
    this.maxEvents = maxEvents;
  }

  keep(stream: ReplayStream, bytes: number): void {
    this.#bytes += bytes;
    this.#keeping.add(stream);
    for (const oldest of this.#keeping) {
      if (this.#bytes <= this.#maxBytes) break;
      oldest.forget();
    }
  }

  letGo(stream: ReplayStream, bytes: number, empty: boolean): void {
    this.#bytes -= bytes;
    if (empty) this.#keeping.delete(stream);
  }
}

export class ReplayStream {
  readonly #name: string;
  readonly #store: ReplayStore;
  #kept: Kept[] = [];
  /** The newest event. */
  #newest = 0;
  /** The newest that some connection took. */
  #taken = 0;
  /** The newest that is no longer kept. */
  #lost = 0;
  /** Whether some caller knows an id of ours, and so can come back. */
  #known = false;
  #begun = false;
  #finished = false;
  #outlet: Outlet | undefined;

  constructor(name: string, store: ReplayStore) {
    this.#name = name;
    this.#store = store;
  }

  /** Whether it ever had a connection. */
  get begun(): boolean {
    return this.#begun;
  }

  get finished(): boolean {
    return this.#finished;
  }

  /** Whether all of it went out by some connection, as far as can be known. */
  get delivered(): boolean {
    return this.#finished && this.#taken === this.#newest;
  }

  get attached(): boolean {
    return this.#outlet !== undefined;
  }

  /** Whether anybody is there, or can come back: otherwise what is sent reaches nobody. */
  get reachable(): boolean {
    return this.#known || this.attached;
  }

  /** An event with an id and nothing in it: from now on the caller can come back. */
  prime(retryMs: number): void {
    if (this.#outlet === undefined) return;
    this.#known = true;
    this.#outlet.send(formatEvent({ id: this.#id(this.#taken), retry: retryMs, data: "" }));
  }

  send(data: string, last = false): void {
    if (this.#finished) return;
    const number = (this.#newest += 1);
    this.#kept.push({ number, data });
    if (this.#kept.length > this.#store.maxEvents) this.#forget(1);
    this.#store.keep(this, data.length);
    this.#finished = last;
    const outlet = this.#outlet;
    if (outlet === undefined) return;
    this.#taken = number;
    this.#known = true;
    outlet.send(this.#text({ number, data }));
    if (last) this.#end();
  }

  /** Nothing will follow, and nothing was the answer. */
  finish(): void {
    this.#finished = true;
    this.#end();
  }

  /** Goes on by this connection, after the event that it names, or else after the last one that was taken. */
  attach(outlet: Outlet, after: number = this.#taken): void {
    // The one before may be dead without having said so.
    this.#end();
    this.#begun = true;
    this.#outlet = outlet;
    // In one piece: a reader is not slow because there is much to catch up with.
    const missed = this.#kept.filter(({ number }) => number > after);
    if (missed.length > 0) outlet.send(missed.map((event) => this.#text(event)).join(""));
    this.#taken = this.#newest;
    this.#known ||= missed.length > 0;
    if (this.#finished) this.#end();
  }

  /** Whether all that came after this event is still there to be sent. */
  reaches(after: number): boolean {
    return after >= this.#lost && after <= this.#newest;
  }

  /** Whether nothing will ever come after this event. */
  endsAt(after: number): boolean {
    return this.#finished && after === this.#newest;
  }

  detach(outlet: Outlet): void {
    if (this.#outlet === outlet) this.#outlet = undefined;
  }

  /** Ends the connection, not the stream. Only where the caller has an id to come back with. */
  hangUp(retryMs: number): void {
    if (!this.#known || this.#finished) return;
    this.#outlet?.send(formatEvent({ retry: retryMs }));
    this.#end();
  }

  /** What no connection has taken, for a stream that takes this one's place; it is no longer kept here. */
  handOver(): readonly string[] {
    const left = this.#kept.filter(({ number }) => number > this.#taken);
    this.#kept.length -= left.length;
    // Nobody has seen their numbers, so they may be used again.
    this.#newest = Math.max(this.#taken, this.#lost);
    this.#release(left);
    return left.map(({ data }) => data);
  }

  /** Lets go of everything that is kept. */
  forget(): void {
    this.#forget(this.#kept.length);
  }

  #forget(count: number): void {
    const gone = this.#kept.splice(0, count);
    this.#lost = gone.at(-1)?.number ?? this.#lost;
    this.#release(gone);
  }

  #release(gone: readonly Kept[]): void {
    const bytes = gone.reduce((sum, { data }) => sum + data.length, 0);
    this.#store.letGo(this, bytes, this.#kept.length === 0);
  }

  #end(): void {
    const outlet = this.#outlet;
    this.#outlet = undefined;
    outlet?.end();
  }

  #text({ number, data }: Kept): string {
    return formatEvent({ id: this.#id(number), data });
  }

  #id(number: number): string {
    return `${this.#name}-${number}`;
  }
}

/** The stream and the place in it that an event id names; undefined where it is none of ours. */
export function readEventId(id: string): { readonly stream: string; readonly number: number } | undefined {
  const [, stream, number] = /^([0-9a-z]{1,12})-(\d{1,15})$/.exec(id) ?? [];
  return stream === undefined ? undefined : { stream, number: Number(number) };
}

// The event streams of one session, by their names: one for each POST that needed one, and those for what comes
// unasked, of which each GET opens a new one. Every message goes out on one stream only. What was unasked while
// nobody listened waits for the next GET. How a stream lives on without its connection is known in replay.ts.


/** ReplyTimers that have ended and whose last events went out: kept for callers whom they may not have reached. */
const MOST_FINISHED = 32;
/** ReplyTimers that have ended while nobody was there: kept for callers who come back for their answers. */
const MOST_MISSED = 512;
/** ReplyTimers for what comes unasked, with a connection or waiting for one to come back. */
const MOST_UNASKED = 8;

export class SessionStreams {
  readonly #store: ReplayStore;
  readonly #streams = new Map<string, ReplayStream>();
  /** Oldest first; never empty. */
  readonly #unasked: ReplayStream[] = [];
  #names = 0;

  constructor(store: ReplayStore) {
    this.#store = store;
    this.#unasked.push(this.open());
  }

  /** Whether anybody listens on any of them. */
  get attached(): boolean {
    for (const stream of this.#streams.values()) if (stream.attached) return true;
    return false;
  }

  /** A new stream. */
  open(): ReplayStream {
    const name = (this.#names++).toString(36);
    const stream = new ReplayStream(name, this.#store);
    this.#streams.set(name, stream);
    this.#forgetFinished();
    return stream;
  }

  /** To whoever listens; of several, to the one who came last. */
  sendUnasked(data: string): void {
    const stream = this.#unasked.findLast((one) => one.attached) ?? this.#unasked.at(-1);
    stream?.send(data);
  }

  /** The stream of a new GET, with what nobody has taken yet. */
  openUnasked(): ReplayStream {
    const last = this.#unasked.at(-1);
    if (last?.begun === false) return last;
    const stream = this.open();
    this.#collect(stream);
    if (this.#unasked.length >= MOST_UNASKED) {
      const given = Math.max(
        0,
        this.#unasked.findIndex((one) => !one.attached),
      );
      for (const one of this.#unasked.splice(given, 1)) one.finish();
    }
    this.#unasked.push(stream);
    return stream;
  }

  /** What waits on streams that nobody reads comes to this one, where it is one for what comes unasked. */
  gather(stream: ReplayStream): void {
    if (this.#unasked.includes(stream)) this.#collect(stream);
  }

  /** The stream that an event id names, and the place in it; undefined where what follows is not kept any more. */
  find(eventId: string): { readonly stream: ReplayStream; readonly after: number } | undefined {
    const place = readEventId(eventId);
    const stream = place && this.#streams.get(place.stream);
    return stream?.reaches(place?.number ?? -1) === true && place ? { stream, after: place.number } : undefined;
  }

  #collect(stream: ReplayStream): void {
    for (const old of this.#unasked) {
      if (old === stream || old.attached) continue;
      for (const data of old.handOver()) stream.send(data);
    }
  }

  close(): void {
    for (const stream of this.#streams.values()) {
      stream.finish();
      stream.forget();
    }
  }

  #forgetFinished(): void {
    if (this.#streams.size <= MOST_FINISHED + MOST_UNASKED) return;
    const finished = [...this.#streams].filter(([, stream]) => stream.finished);
    const delivered = finished.filter(([, stream]) => stream.delivered);
    const missed = finished.filter(([, stream]) => !stream.delivered);
    for (const [name, stream] of [...delivered.slice(0, -MOST_FINISHED), ...missed.slice(0, -MOST_MISSED)]) {
      stream.forget();
      this.#streams.delete(name);
    }
  }
}
