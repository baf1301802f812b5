// A position in a config while it is read: the value, its path as people write it (`mcpServers.notes.timeoutMs`), and
// where to report problems. The readers in readers.ts say what a value must be.

import type { MiddlewareFactory } from "../chain/middleware/index.ts";
import type { Member, Value } from "./document.ts";
import type { Position, Problems } from "./problems.ts";
import type { Variables } from "./variables.ts";

/** Middleware by name; a factory throws a TypeError that says what is wrong with its options. */
export type MiddlewareFactories = ReadonlyMap<string, MiddlewareFactory>;

/** A path to check on disk once the whole config is read. */
export interface FileCheck {
  readonly path: string;
  readonly kind: "file" | "folder";
  readonly severity: "error" | "warning";
  readonly cursor: Cursor;
  /** The path contains the value of a variable. */
  readonly isSecret: boolean;
}

/** Shared by all cursors of one config. */
export interface ReadContext {
  readonly problems: Problems;
  readonly variables: Variables;
  /** Relative paths start here. */
  readonly folder: string;
  readonly middleware: MiddlewareFactories;
  /** Filled while reading. */
  readonly files: FileCheck[];
}

export class Cursor {
  readonly context: ReadContext;
  readonly value: Value;
  readonly path: string;
  /** The offset of the key; of the value itself in an array. */
  readonly keyOffset: number;

  constructor(context: ReadContext, value: Value, path: string, keyOffset: number = value.offset) {
    this.context = context;
    this.value = value;
    this.path = path;
    this.keyOffset = keyOffset;
  }

  member({ name, offset, value }: Member): Cursor {
    const step = /^[\w$-]+$/.test(name) ? `${this.path === "" ? "" : "."}${name}` : `[${JSON.stringify(name)}]`;
    return new Cursor(this.context, value, `${this.path}${step}`, offset);
  }

  /** Empty if the value is not an object; the reader has reported that. */
  members(): readonly Member[] {
    return this.value.kind === "object" ? this.value.members : [];
  }

  get(name: string): Cursor | undefined {
    const found = this.members().find((member) => member.name === name);
    return found && this.member(found);
  }

  items(): Cursor[] {
    if (this.value.kind !== "array") return [];
    return this.value.items.map((item, index) => new Cursor(this.context, item, `${this.path}[${index}]`));
  }

  get position(): Position {
    return this.context.problems.position(this.value.offset);
  }

  /** Reports `path: message` at the value. */
  error(message: string, hint?: string): undefined {
    this.context.problems.error(this.value.offset, `${this.path}: ${message}`, hint);
  }

  warn(message: string, hint?: string): void {
    this.context.problems.warn(this.value.offset, `${this.path}: ${message}`, hint);
  }

  /** Reports `path: message` at the key. */
  errorAtKey(message: string, hint?: string): undefined {
    this.context.problems.error(this.keyOffset, `${this.path}: ${message}`, hint);
  }

  warnAtKey(message: string, hint?: string): void {
    this.context.problems.warn(this.keyOffset, `${this.path}: ${message}`, hint);
  }
}
