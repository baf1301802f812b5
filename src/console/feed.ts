// The feed: server-sent events to pages, by topic. What many pages get is made JSON once, changed rows are sent together
// four times a second, and nothing is made if nobody listens. A page that does not read is cut, so that it slows nobody.

import { unref } from "../core/async.ts";
import { filterRows, filterSteps, type BodySearch, type Filter } from "./filter.ts";
import type { EventSink } from "./route.ts";
import type { Row } from "./call-row.ts";
import type { FeedEvents, FeedTopic } from "./types.ts";

const BATCH_MS = 250;
/** Rows in one event. */
const MAX_ROWS = 5_000;
const KEEP_ALIVE_MS = 15_000;
/** More streams are not opened. */
const MAX_LISTENERS = 64;
/** A search in bodies gives way to calls after this time. */
const TURN_MS = 8;
/** A page that has not read so much is cut. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

/** Where the rows come from. */
export interface RowSource {
  /** Called with each row that is new or has changed; undefined if nobody wants that. */
  onRow: ((row: Row) => void) | undefined;
  /** The row as it is now. */
  refreshed(row: Row): Row;
  row(id: number): Row | undefined;
  readonly hasText: BodySearch;
}

export interface FeedListener {
  readonly topics: ReadonlySet<FeedTopic>;
  /** Of the rows. */
  readonly filter: Filter;
  readonly sink: EventSink;
}

/** What a topic needs to know of who follows it. */
export interface FeedSource<Topic extends FeedTopic> {
  /** The first page follows the topic, or the last one has left. */
  readonly onWatched?: (isWatched: boolean) => void;
  /** What a page that begins to follow the topic gets at once. */
  readonly first?: () => FeedEvents[Topic] | Promise<FeedEvents[Topic]> | undefined;
}

/** The pages with one filter, and the logical calls that they have and that were not over. */
interface Channel {
  readonly filter: Filter;
  readonly listeners: Set<FeedListener>;
  readonly open: Set<number>;
}

export class Feed {
  readonly #rows: RowSource;
  readonly #maxUnreadBytes: number;
  readonly #listeners = new Set<FeedListener>();
  readonly #channels = new Map<string, Channel>();
  readonly #sources = new Map<FeedTopic, FeedSource<FeedTopic>>();
  readonly #changed = new Set<Row>();
  #batch: NodeJS.Timeout | undefined;
  #keepAlive: NodeJS.Timeout | undefined;

  constructor(rows: RowSource, maxUnreadBytes: number = MAX_UNREAD_BYTES) {
    this.#rows = rows;
    this.#maxUnreadBytes = maxUnreadBytes;
  }

  /** Says what a topic needs. Each has one source. */
  addSource<Topic extends FeedTopic>(topic: Topic, source: FeedSource<Topic>): void {
    this.#sources.set(topic, source);
  }

  isWatched(topic: FeedTopic): boolean {
    return [...this.#listeners].some(({ topics }) => topics.has(topic));
  }

  /** Sends an event to the pages that follow the topic. The data is made JSON once, and only if there are some. */
  publish<Topic extends FeedTopic>(topic: Topic, data: FeedEvents[Topic]): void {
    if (!this.isWatched(topic)) return;
    const json = JSON.stringify(data);
    for (const listener of this.#listeners) if (listener.topics.has(topic)) this.#send(listener, topic, json);
  }

  /** Sends events until the signal aborts. */
  add(listener: FeedListener, signal: AbortSignal): void {
    if (signal.aborted) return;
    const { topics } = listener;
    const begun = [...topics].filter((topic) => !this.isWatched(topic));
    this.#listeners.add(listener);
    signal.addEventListener("abort", () => this.#remove(listener), { once: true });
    if (topics.has("calls")) this.#addToChannel(listener);
    this.#keepAlive ??= unref(setInterval(() => this.#sendKeepAlive(), KEEP_ALIVE_MS));
    for (const topic of begun) this.#sources.get(topic)?.onWatched?.(true);
    for (const topic of topics) void this.#sendFirst(listener, topic);
  }

  get isFull(): boolean {
    return this.#listeners.size >= MAX_LISTENERS;
  }

  /** Sends rows that are there already, to one page. */
  async sendRows(listener: FeedListener, rows: readonly Row[]): Promise<void> {
    const steps = filterSteps(rows, listener.filter, this.#rows.hasText);
    let turnEndsAt = performance.now() + TURN_MS;
    let step = steps.next();
    for (; step.done !== true; step = steps.next()) {
      if (performance.now() < turnEndsAt) continue;
      await new Promise((resolve) => setImmediate(resolve));
      if (!this.#listeners.has(listener)) return;
      turnEndsAt = performance.now() + TURN_MS;
    }
    const wanted = step.value;
    // A page that does not read is cut on the way.
    for (let at = 0; at < wanted.length && this.#listeners.has(listener); at += MAX_ROWS) {
      this.#send(listener, "calls", JSON.stringify(wanted.slice(at, at + MAX_ROWS)));
    }
  }

  /** Ends all streams. */
  close(): void {
    for (const listener of this.#listeners) {
      this.#remove(listener);
      listener.sink.end();
    }
  }

  #addToChannel(listener: FeedListener): void {
    const { filter } = listener;
    const channel = this.#channels.get(filter.text) ?? { filter, listeners: new Set(), open: new Set() };
    channel.listeners.add(listener);
    this.#channels.set(filter.text, channel);
    this.#rows.onRow ??= (row) => {
      this.#changed.add(row);
      this.#batch ??= unref(setTimeout(() => this.#sendBatch(), BATCH_MS));
    };
  }

  #remove(listener: FeedListener): void {
    if (!this.#listeners.delete(listener)) return;
    const channel = this.#channels.get(listener.filter.text);
    channel?.listeners.delete(listener);
    if (channel?.listeners.size === 0) this.#channels.delete(listener.filter.text);
    if (this.#channels.size === 0) {
      this.#rows.onRow = undefined;
      this.#changed.clear();
      clearTimeout(this.#batch);
      this.#batch = undefined;
    }
    if (this.#listeners.size === 0) {
      clearInterval(this.#keepAlive);
      this.#keepAlive = undefined;
    }
    for (const topic of listener.topics) if (!this.isWatched(topic)) this.#sources.get(topic)?.onWatched?.(false);
  }

  async #sendFirst(listener: FeedListener, topic: FeedTopic): Promise<void> {
    try {
      const data = await this.#sources.get(topic)?.first?.();
      if (data !== undefined && this.#listeners.has(listener)) this.#send(listener, topic, JSON.stringify(data));
    } catch {
      // The page asks for the document, and is told there what is wrong.
    }
  }

  #sendBatch(): void {
    this.#batch = undefined;
    const changed = [...this.#changed];
    this.#changed.clear();
    for (const row of changed) this.#rows.refreshed(row);
    for (const channel of this.#channels.values()) {
      const rows = channel.filter.isEmpty ? changed : this.#wanted(channel, changed);
      if (rows.length === 0) continue;
      const json = JSON.stringify(rows);
      for (const listener of channel.listeners) this.#send(listener, "calls", json);
    }
  }

  /** All rows of the logical calls that match, or did so before: the page removes those. */
  #wanted({ filter, open }: Channel, changed: readonly Row[]): readonly Row[] {
    const logical = new Map<number, Row>();
    for (const row of changed) {
      const call = row.parent === undefined ? row : (this.#rows.row(row.parent) ?? row);
      logical.set(call.id, call);
    }
    return [...logical.values()].flatMap((call) => {
      const all = [call, ...call.nested];
      const isWanted = filterRows(all, filter, this.#rows.hasText).length > 0;
      const wasWanted = open.delete(call.id);
      if (isWanted && call.endedAt === undefined) open.add(call.id);
      return isWanted || wasWanted ? all : [];
    });
  }

  #sendKeepAlive(): void {
    for (const listener of this.#listeners) this.#send(listener, "alive", "{}");
  }

  #send(listener: FeedListener, event: string, json: string): void {
    const { sink } = listener;
    if (sink.bufferedBytes <= this.#maxUnreadBytes) return sink.sendJson(event, json);
    this.#remove(listener);
    sink.sendJson("cut", "{}");
    sink.end();
  }
}
