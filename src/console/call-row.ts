// One row of Traffic as the log keeps it: the document that is sent, with its fields still changing, and what is nested
// under it. 100,000 of them are kept, so texts that repeat are kept once.

import { copyFirstChars } from "../core/text.ts";
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
  const short = copyFirstChars(text, MAX_NAME_LENGTH);
  texts.set(short, short);
  return short;
}
