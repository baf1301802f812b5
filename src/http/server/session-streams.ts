// The streams of one session: one for each POST that needed a stream, and those opened by GET for unsolicited messages.
// Each message is sent on one stream only. While no GET is open, unsolicited messages wait for the next GET.

import { ReplayStream, type ReplayStore } from "./replay-stream.ts";

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
    this.#unsolicited.push(this.open(UNSOLICITED));
  }

  /** Whether any stream has a connection. */
  get isAttached(): boolean {
    for (const stream of this.#streams.values()) if (stream.isAttached) return true;
    return false;
  }

  /** By default the stream of a POST. */
  open(prefix = ""): ReplayStream {
    const name = `${prefix}${(this.#names++).toString(36)}`;
    const stream = new ReplayStream(name, this.#store);
    this.#streams.set(name, stream);
    this.#dropFinished();
    return stream;
  }

  /** Sends on the newest attached stream for unsolicited messages. */
  sendUnsolicited(data: string): void {
    const stream = this.#unsolicited.findLast((candidate) => candidate.isAttached) ?? this.#unsolicited.at(-1);
    stream?.send(data);
  }

  /** The stream for a new GET, with the messages that were not sent yet. */
  openUnsolicited(): ReplayStream {
    const last = this.#unsolicited.at(-1);
    if (last?.hasStarted === false) return last;
    const stream = this.open(UNSOLICITED);
    this.#collect(stream);
    if (this.#unsolicited.length >= MAX_UNSOLICITED) {
      const oldest = Math.max(
        0,
        this.#unsolicited.findIndex((stream) => !stream.isAttached),
      );
      for (const stream of this.#unsolicited.splice(oldest, 1)) stream.finish();
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
