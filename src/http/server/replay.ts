// Event streams that outlive their connections: each event has an id that names its stream and its place in it, and
// is kept for a while, so that a caller whose connection broke comes back with the last id it saw and gets the rest,
// once and in order. What is kept is bounded, for each stream by number and in all by bytes; what was let go of is
// said to be lost, never left out in silence. Nothing here knows of sessions or messages.

import { eventText } from "./event-stream.ts";

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
    this.#outlet.send(eventText({ id: this.#id(this.#taken), retry: retryMs, data: "" }));
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
    this.#outlet?.send(eventText({ retry: retryMs }));
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
    return eventText({ id: this.#id(number), data });
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
