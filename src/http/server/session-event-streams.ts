// The event streams of one session, by their names: one for each POST that needed one, and those for what comes
// unasked, of which each GET opens a new one. Every message goes out on one stream only. What was unasked while
// nobody listened waits for the next GET. How a stream lives on without its connection is known in replay.ts.

import { readEventId, ReplayStream, type ReplayStore } from "./replay.ts";

/** Streams that have ended and whose last events went out: kept for callers whom they may not have reached. */
const MOST_FINISHED = 32;
/** Streams that have ended while nobody was there: kept for callers who come back for their answers. */
const MOST_MISSED = 512;
/** Streams for what comes unasked, with a connection or waiting for one to come back. */
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
