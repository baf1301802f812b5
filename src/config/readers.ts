// Small readers for the values of a config. Each returns the value, or reports a problem and returns undefined. A value
// from a variable is read like any other, but no message shows it.

import { resolve } from "node:path";
import { nearest } from "../core/options.ts";
import type { Value, Member, Position, Problems } from "./document.ts";
import type { Expanded, Variables } from "./variables.ts";
import type { MiddlewareFactory } from "../chain/middleware/index.ts";

/**
 * Returns undefined if it reported a problem. If the value refers to an input (inputs.ts) that has no answer yet, the
 * reader returns undefined or an unchecked value.
 */
export type Reader<T> = (cursor: Cursor) => T | undefined;
export type Fields = Readonly<Record<string, Reader<unknown>>>;
/** The fields that were read; missing and invalid ones are absent. */
export type FieldValues<F extends Fields> = { readonly [K in keyof F]?: F[K] extends Reader<infer T> ? T & {} : never };

const KIND_NAMES: Readonly<Record<Value["kind"], string>> = {
  string: "a string",
  object: "an object",
  array: "an array",
  number: "a number",
  boolean: "a boolean",
  null: "null",
};

const AFTER_EXPANSION = ", after its variables are expanded";

/** Reports a value of the wrong type. */
export function wrongType(cursor: Cursor, expected: string, hint?: string): undefined {
  return cursor.error(`expected ${expected}, got ${KIND_NAMES[cursor.value.kind]}`, hint);
}

function expand(cursor: Cursor, expected: string): Expanded | undefined {
  return cursor.value.kind === "string" ? cursor.context.variables.expand(cursor.value) : wrongType(cursor, expected);
}

export const anyString: Reader<string> = (cursor) => expand(cursor, "a string")?.text;

/** A string that must meet a condition; `problem` is reported if it does not. */
export function stringThat(fits: (given: string) => boolean, problem: string, hint?: string): Reader<string> {
  return (cursor) => {
    const read = expand(cursor, "a string");
    if (read === undefined || read.isPending || fits(read.text)) return read?.text;
    return cursor.error(`${problem}${read.secrets.length > 0 ? AFTER_EXPANSION : ""}`, hint);
  };
}

export const nonEmptyString: Reader<string> = stringThat(
  (given) => given.trim() !== "",
  "must not be empty",
  "write something, or remove it",
);

/** `advise` returns the hint for a string that is not one of the choices. */
export function oneOf<const T extends string>(
  choices: readonly T[],
  advise: (given: string) => string | undefined = (given) => suggest(given, choices),
): Reader<T> {
  const list = choices.map((choice) => JSON.stringify(choice)).join(", ");
  return (cursor) => {
    const read = expand(cursor, `one of ${list}`);
    if (read === undefined || read.isPending) return undefined;
    const choice = choices.find((known) => known === read.text);
    if (choice !== undefined) return choice;
    return cursor.error(`expected one of ${list}`, read.secrets.length > 0 ? undefined : advise(read.text));
  };
}

export const flag: Reader<boolean> = (cursor) =>
  cursor.value.kind === "boolean" ? cursor.value.scalar === true : wrongType(cursor, "true or false");

/** Also accepts a string with variables that expands to a number, such as "${PORT:-3000}". */
export function numberThat(fits: (given: number) => boolean, expected: string): Reader<number> {
  return (cursor) => {
    const { value } = cursor;
    if (value.kind === "number") {
      return fits(Number(value.scalar)) ? Number(value.scalar) : cursor.error(`expected ${expected}`);
    }
    if (value.kind !== "string") return wrongType(cursor, expected);
    if (!value.text.includes("${")) {
      return wrongType(cursor, expected, /\d/.test(value.text) ? "remove the quotes" : undefined);
    }
    const read = cursor.context.variables.expand(value);
    if (read === undefined || read.isPending) return undefined;
    const given = read.text.trim() === "" ? Number.NaN : Number(read.text);
    return fits(given) ? given : cursor.error(`expected ${expected}${AFTER_EXPANSION}`);
  };
}

export const positiveInteger: Reader<number> = numberThat(
  (given) => Number.isSafeInteger(given) && given > 0,
  "a whole number above 0",
);

/** The longest delay that setTimeout accepts. */
const MAX_MS = 2 ** 31 - 1;

export const milliseconds: Reader<number> = numberThat(
  (given) => given >= 0 && given <= MAX_MS,
  `milliseconds from 0 to ${MAX_MS}`,
);

/** A shorter timeout was probably meant to be in seconds. */
const MIN_PLAUSIBLE_MS = 1_000;

export function warnIfSeconds(cursor: Cursor, given: number | undefined): void {
  if (cursor.value.kind !== "number" || given === undefined || given <= 0 || given >= MIN_PLAUSIBLE_MS) return;
  cursor.warn("less than a second", `the unit is milliseconds: write ${given}000 for ${given} seconds`);
}

export function arrayOf<T>(reader: Reader<T>, expected: string): Reader<readonly T[]> {
  return (cursor) =>
    cursor.value.kind === "array" ? cursor.items().flatMap((item) => reader(item) ?? []) : wrongType(cursor, expected);
}

/** An object with any keys and values of one type. */
export function recordOf<T>(reader: Reader<T>, expected: string): Reader<Readonly<Record<string, T>>> {
  return (cursor) => {
    if (cursor.value.kind !== "object") return wrongType(cursor, expected);
    const read = cursor.members().map((member) => [member.name, reader(cursor.member(member))] as const);
    return Object.fromEntries(read.filter((one): one is readonly [string, T & {}] => one[1] !== undefined));
  };
}

/** Any JSON value, with the variables in its strings expanded. */
export const anything: Reader<unknown> = (cursor) => {
  const { value } = cursor;
  if (value.kind === "string") return anyString(cursor);
  if (value.kind === "array") return cursor.items().map(anything);
  if (value.kind !== "object") return value.scalar;
  return Object.fromEntries(value.members.map((member) => [member.name, anything(cursor.member(member))]));
};

/** The secrets in all strings of a value, and whether one of the strings needs an input that has no answer yet. */
export function scanStrings(cursor: Cursor): Pick<Expanded, "secrets" | "isPending"> {
  if (cursor.value.kind === "string") {
    return cursor.context.variables.expand(cursor.value) ?? { secrets: [], isPending: true };
  }
  const parts = [...cursor.items(), ...cursor.members().map((member) => cursor.member(member))].map(scanStrings);
  return { secrets: parts.flatMap(({ secrets }) => secrets), isPending: parts.some(({ isPending }) => isPending) };
}

/** Whether a field is present and needs an input that has no answer yet. */
export function isPending(cursor: Cursor, name: string): boolean {
  const field = cursor.get(name);
  return field !== undefined && scanStrings(field).isPending;
}

/** The path of a file or folder that should exist. It may be relative to the folder of the config. */
export function pathTo(kind: FileCheck["kind"], severity: FileCheck["severity"]): Reader<string> {
  return (cursor) => {
    const read = expand(cursor, `the path of a ${kind}`);
    if (read === undefined || read.isPending) return read?.text;
    if (read.text.trim() === "" || read.text.includes("\0")) return cursor.error("not a valid path");
    const path = resolve(cursor.context.folder, read.text);
    cursor.context.files.push({ path, kind, severity, cursor, isSecret: read.secrets.length > 0 });
    return path;
  };
}

/** Reads the known fields of an object and calls `onUnknown` for every other key. */
export function readFields<F extends Fields>(
  cursor: Cursor,
  fields: F,
  onUnknown: (unknown: Cursor, name: string, known: readonly string[]) => void = rejectUnknown,
): FieldValues<F> {
  const known = Object.keys(fields);
  const read = cursor.members().flatMap((member) => {
    const inner = cursor.member(member);
    const reader = Object.hasOwn(fields, member.name) ? fields[member.name] : undefined;
    if (reader === undefined) onUnknown(inner, member.name, known);
    const value = reader?.(inner);
    return value === undefined ? [] : [[member.name, value] as const];
  });
  return Object.fromEntries(read) as FieldValues<F>;
}

export function objectOf<F extends Fields>(
  fields: F,
  expected: string,
): Reader<FieldValues<F>> & { readonly fields: F } {
  const reader = (cursor: Cursor): FieldValues<F> | undefined =>
    cursor.value.kind === "object" ? readFields(cursor, fields) : wrongType(cursor, expected);
  reader.fields = fields;
  return reader;
}

/** For objects that only Catenary defines: an unknown key is an error. */
function rejectUnknown(unknown: Cursor, name: string, known: readonly string[]): void {
  unknown.errorAtKey("unknown key", suggest(name, known) ?? `the keys are ${known.join(", ")}`);
}

/** For objects that other programs extend: reports a key only if it looks like a misspelling of one of ours. */
export function warnIfMisspelt(unknown: Cursor, name: string, known: readonly string[]): void {
  const near = nearestKey(name, known);
  if (near !== undefined) unknown.warnAtKey("ignored", `did you mean ${near}?`);
}

/** Returns "did you mean x?". Accepts less similar names than `nearestKey`, so use it only if the name is wrong. */
export function suggest(name: string, known: Iterable<string>): string | undefined {
  const [near] = nearest(name, known, name.length < 4 ? 1 : 2);
  return near && `did you mean ${near}?`;
}

/**
 * The key that was probably meant. Stricter than `suggest`, since the name may be a correct key of another program.
 * Ignores short names.
 */
export function nearestKey(name: string, known: readonly string[]): string | undefined {
  return name.length < 3 ? undefined : nearest(name, known, Math.min(Math.floor(name.length / 3), 2))[0];
}

// A cursor is a position in a config while it is read: the value, its path for messages (`mcpServers.notes.timeoutMs`),
// and where to report problems.

/** The factories of middleware by name. A factory throws a TypeError if its options are wrong. */
export type MiddlewareFactories = ReadonlyMap<string, MiddlewareFactory>;

/** A path to check on disk once the whole config is read. */
export interface FileCheck {
  readonly path: string;
  readonly kind: "file" | "folder";
  readonly severity: "error" | "warning";
  readonly cursor: Cursor;
  /** Whether the path contains the value of a variable. */
  readonly isSecret: boolean;
}

/** Shared by all cursors of one config. */
export interface ReadContext {
  readonly problems: Problems;
  readonly variables: Variables;
  /** Relative paths are relative to this folder. */
  readonly folder: string;
  readonly middleware: MiddlewareFactories;
  /** Filled while reading. */
  readonly files: FileCheck[];
}

export class Cursor {
  readonly context: ReadContext;
  readonly value: Value;
  readonly path: string;
  /** The offset of the key, or of the value for an item of an array. */
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

  /** Empty if the value is not an object. Reporting that is left to the reader of the value. */
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
