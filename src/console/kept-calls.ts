// What the log keeps of calls, within its limits: the last rows, and what the last calls had and did, as bytes within a
// budget. A call that runs is kept as it is, and written soon after it is over; the oldest are dropped first.

import { hasText } from "./call-facts.ts";
import { decodeRecord, encodeRecord, type CallRecord } from "./call-record.ts";
import type { Row } from "./call-row.ts";
import { ChunkedLog } from "./chunked-log.ts";
import { errorMessage } from "../core/values.ts";

/** How much the log keeps. */
export interface KeptLimits {
  readonly rows: number;
  readonly bytes: number;
}

export const KEPT: KeptLimits = { rows: 100_000, bytes: 64 * 1024 * 1024 };

/** More calls that are over do not wait. */
const MAX_ENDED = 200;
/** So many characters are written before other work goes on. */
const TURN_LENGTH = 512 * 1024;

export class KeptCalls {
  readonly limits: KeptLimits;
  readonly #rows: (Row | undefined)[] = [];
  /** Of calls that run, or are not written yet. */
  readonly #running: (CallRecord | undefined)[] = [];
  readonly #written: ChunkedLog;
  /** Calls that are over. */
  #ended: CallRecord[] = [];
  #next = 1;

  constructor(limits: KeptLimits) {
    this.limits = limits;
    this.#written = new ChunkedLog(limits.bytes);
  }

  /** The id of the next row. */
  get next(): number {
    return this.#next;
  }

  /** The id of the oldest row that is kept. */
  get oldest(): number {
    return Math.max(1, this.#next - this.limits.rows);
  }

  /** How many bytes are written and kept. */
  get bytes(): number {
    return this.#written.bytes;
  }

  /** A call begins to run. */
  add(row: Row, record: CallRecord): void {
    const slot = row.id % this.limits.rows;
    this.#next = row.id + 1;
    this.#rows[slot] = row;
    this.#running[slot] = record;
    this.#written.forget(slot);
  }

  /** A call is over, or a question has been asked. It is written when what goes on now is done, such as its response. */
  end(id: number): void {
    const record = this.running(id);
    if (record === undefined) return;
    const count = this.#ended.push(record);
    if (count === 1) setImmediate(this.#writeEnded);
    else if (count >= MAX_ENDED) this.#writeEnded();
  }

  /** A call that runs or is not written yet, to be added to. */
  running(id: number): CallRecord | undefined {
    const record = this.#running[id % this.limits.rows];
    return record?.id === id ? record : undefined;
  }

  /** What there is more of a call: it runs, or is written anew. */
  change(id: number, change: (record: CallRecord) => void): void {
    const running = this.running(id);
    if (running !== undefined) return change(running);
    const record = this.record(id);
    if (record === undefined) return;
    change(record);
    this.#write(record);
  }

  row(id: number): Row | undefined {
    const row = this.#rows[id % this.limits.rows];
    return row?.id === id ? row : undefined;
  }

  /** What is kept of a call, as it is now. Undefined if it was dropped. */
  record(id: number): CallRecord | undefined {
    const row = this.row(id);
    const running = this.running(id);
    const text = running === undefined ? this.#written.read(id % this.limits.rows) : encodeRecord(running);
    return row === undefined || text === undefined ? undefined : decodeRecord(id, row.at, text);
  }

  /** Whether the request, the result or the error has the text, without regard to case. */
  hasText(id: number, text: string): boolean {
    if (this.row(id) === undefined) return false;
    const wanted = text.toLowerCase();
    if (this.running(id) === undefined) {
      const kept = this.#written.read(id % this.limits.rows);
      if (kept === undefined) return false;
      // Most are ruled out without being parsed.
      const written = JSON.stringify(wanted).slice(1, -1);
      if (kept.large.length === 0 && !kept.text.toLowerCase().includes(written)) return false;
    }
    const record = this.record(id);
    if (record === undefined) return false;
    const { request, result, error } = record;
    return (
      hasText(request.params, wanted) ||
      hasText(result, wanted) ||
      (error !== undefined && errorMessage(error).toLowerCase().includes(wanted))
    );
  }

  /** All rows, oldest first; those from this one on. */
  rows(from: number = this.oldest): Row[] {
    const rows: Row[] = [];
    for (let id = Math.max(from, this.oldest); id < this.#next; id += 1) {
      const row = this.row(id);
      if (row !== undefined) rows.push(row);
    }
    return rows;
  }

  readonly #writeEnded = (): void => {
    const ended = this.#ended;
    this.#ended = [];
    let length = 0;
    for (const [index, record] of ended.entries()) {
      if (this.running(record.id) === record) length += this.#write(record);
      if (length < TURN_LENGTH || index === ended.length - 1) continue;
      this.#ended = ended.slice(index + 1);
      setImmediate(this.#writeEnded);
      return;
    }
  };

  /** Returns the length of the text. */
  #write(record: CallRecord): number {
    const slot = record.id % this.limits.rows;
    this.#running[slot] = undefined;
    const { text, large, largeBytes } = encodeRecord(record);
    this.#written.write(slot, text, large, largeBytes);
    return text.length;
  }
}
