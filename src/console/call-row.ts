// One row of Traffic as the log keeps it: the document that is sent, with its fields still changing, and what is nested
// under it. 100,000 of them are kept, so texts that repeat are kept once.

import { firstChars } from "../core/text.ts";
import type { CallRow, RowKind, RowStatus } from "./types.ts";

const MAX_NAME_LENGTH = 300;

/** All own fields are those of the document, so that JSON.stringify needs no help. */
export class Row implements CallRow {
  readonly id: number;
  readonly parent: number | undefined;
  readonly kind: RowKind;
  readonly at: number;
  ms: number | undefined = undefined;
  waitMs: number | undefined = undefined;
  endedAt: number | undefined = undefined;
  readonly method: string;
  readonly name: string | undefined;
  server: string | undefined = undefined;
  readonly client: string | undefined;
  readonly principal: string | undefined;
  readonly revision: string | undefined;
  status: RowStatus = "running";
  error: string | undefined = undefined;
  errorText: string | undefined = undefined;
  sent: number | undefined = undefined;
  received: number | undefined = undefined;
  #nested: Row[] | undefined = undefined;

  constructor(fields: {
    readonly id: number;
    readonly parent: Row | undefined;
    readonly kind: RowKind;
    readonly at: number;
    readonly method: string;
    readonly name: string | undefined;
    readonly client: string | undefined;
    readonly principal: string | undefined;
    readonly revision: string | undefined;
  }) {
    this.id = fields.id;
    this.parent = fields.parent?.id;
    this.kind = fields.kind;
    this.at = fields.at;
    this.method = kept(fields.method);
    this.name = fields.name === undefined ? undefined : kept(fields.name);
    this.client = fields.client;
    this.principal = fields.principal;
    this.revision = fields.revision;
    fields.parent?.nest(this);
  }

  /** What is nested under it, in the order in which it began. */
  get nested(): readonly Row[] {
    return this.#nested ?? NO_ROWS;
  }

  /** A call that is polled or retried without end keeps the first ones. */
  nest(row: Row): void {
    if (this.#nested === undefined) this.#nested = [row];
    else if (this.#nested.length < MAX_NESTED) this.#nested.push(row);
  }
}

const MAX_NESTED = 1_000;

const NO_ROWS: readonly Row[] = [];

const MAX_TEXTS = 10_000;
const texts = new Map<string, string>();

/** The same string for equal strings, without what nobody reads. */
function kept(text: string): string {
  const known = texts.get(text);
  if (known !== undefined) return known;
  if (texts.size >= MAX_TEXTS) texts.clear();
  const short = firstChars(text, MAX_NAME_LENGTH);
  texts.set(short, short);
  return short;
}

/** So many values are looked at; what follows them is taken to be like them. */
const MAX_VALUES = 100;

/** About how long a value is as JSON. Takes a bounded time and never throws, whatever the value is. */
export function estimateLength(value: unknown): number {
  if (typeof value === "string") return value.length + 2;
  try {
    return lengthOf(value, { values: MAX_VALUES });
  } catch {
    // A getter or a Proxy of user code.
    return 2;
  }
}

function lengthOf(value: unknown, left: { values: number }): number {
  left.values -= 1;
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return 5;
  let length = 2;
  let seen = 0;
  if (Array.isArray(value)) {
    for (const item of value) {
      if (left.values <= 0) break;
      length += lengthOf(item, left) + 1;
      seen += 1;
    }
    return seen === 0 ? length + value.length : Math.round((length * value.length) / seen);
  }
  for (const key in value) {
    length += key.length + 4;
    // Names without their values say too little to go on from them.
    if (left.values > 0) length += lengthOf((value as Record<string, unknown>)[key], left);
    else if ((seen += 1) > MAX_VALUES) break;
  }
  return length;
}
