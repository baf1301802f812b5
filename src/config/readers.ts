// Small readers for the values of a config. Each returns the value, or reports a problem and returns undefined, and
// carries the JSON Schema of what it reads (schema.json is made of these). A value from a variable is read like any
// other, but no message shows it.

import { resolve } from "node:path";
import type { DefinedMiddleware, Place } from "../chain/define.ts";
import type { Middleware } from "../core/handler.ts";
import { nearest, type Field, type Fields as OptionFields } from "../core/options.ts";
import { defined, isObject } from "../core/values.ts";
import { type Node, membersOf, type Position, type Problems } from "./document.ts";
import { resolvePath, type Expanded, type Variables } from "./variables.ts";

export type Schema = Readonly<Record<string, unknown>>;

/**
 * Returns undefined if it reported a problem. If the value refers to an input that has no answer yet, the reader
 * returns undefined or an unchecked value.
 */
export interface Reader<T> {
  (cursor: Cursor): T | undefined;
  readonly schema: Schema;
  /** The same reader, with a description for editors. */
  describe(description: string): Reader<T>;
}
export type Fields = Readonly<Record<string, Reader<unknown>>>;
/** The fields that were read; missing and invalid ones are absent. */
export type FieldValues<F extends Fields> = { readonly [K in keyof F]?: F[K] extends Reader<infer T> ? T & {} : never };

export function reader<T>(schema: Schema, read: (cursor: Cursor) => T | undefined): Reader<T> {
  const copy = (cursor: Cursor): T | undefined => read(cursor);
  copy.schema = schema;
  copy.describe = (description: string): Reader<T> => reader({ ...schema, description }, read);
  return copy;
}

const AFTER_EXPANSION = ", after its variables are expanded";
/** In the schema, a string with a variable fits everywhere. */
const WITH_VARIABLE = "\\$\\{";
export const STRING_WITH_VARIABLE: Schema = { type: "string", pattern: WITH_VARIABLE };

/** Reports a value of the wrong type. */
export function wrongType(cursor: Cursor, expected: string, hint?: string): undefined {
  const { kind } = cursor;
  const actual = kind === "null" ? kind : `${/^[ao]/.test(kind) ? "an" : "a"} ${kind}`;
  return cursor.error(`expected ${expected}, got ${actual}`, hint);
}

function expand(cursor: Cursor, expected: string): Expanded | undefined {
  return cursor.kind === "string" ? cursor.expand() : wrongType(cursor, expected);
}

export const anyString: Reader<string> = reader({ type: "string" }, (cursor) => expand(cursor, "a string")?.text);

/** A string that must meet a condition; `problem` is reported if it does not. `pattern` is for the schema. */
export function stringThat(
  fits: (text: string) => boolean,
  problem: string,
  hint: string,
  pattern?: string,
): Reader<string> {
  return reader({ type: "string", ...(pattern !== undefined && { pattern }) }, (cursor) => {
    const read = expand(cursor, "a string");
    if (read === undefined || read.isPending || fits(read.text)) return read?.text;
    return cursor.error(`${problem}${read.secrets.length > 0 ? AFTER_EXPANSION : ""}`, hint);
  });
}

export const nonEmptyString: Reader<string> = stringThat(
  (text) => text.trim() !== "",
  "must not be empty",
  "write something, or remove it",
  "\\S",
);

/** `advise` returns the hint for a string that is not one of the choices. */
export function oneOf<const T extends string>(
  choices: readonly T[],
  advise: (text: string) => string | undefined = (text) => suggest(text, choices),
): Reader<T> {
  const list = choices.map((choice) => JSON.stringify(choice)).join(", ");
  return reader({ anyOf: [{ enum: choices }, STRING_WITH_VARIABLE] }, (cursor) => {
    const read = expand(cursor, `one of ${list}`);
    if (read === undefined || read.isPending) return undefined;
    const choice = choices.find((known) => known === read.text);
    if (choice !== undefined) return choice;
    return cursor.error(`expected one of ${list}`, read.secrets.length > 0 ? undefined : advise(read.text));
  });
}

export const flag: Reader<boolean> = reader({ type: "boolean" }, (cursor) =>
  cursor.kind === "boolean" ? cursor.value === true : wrongType(cursor, "true or false"),
);

/** The bounds of a number, as in JSON Schema. */
interface Bounds {
  readonly type?: "integer";
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
}

/** Also accepts a string with variables that expands to a number, such as "${PORT:-3000}". */
export function numberIn(bounds: Bounds, expected: string): Reader<number> {
  const { minimum = -Infinity, exclusiveMinimum = -Infinity, maximum = Number.MAX_SAFE_INTEGER } = bounds;
  const { type = "number" } = bounds;
  const fits = (value: number): boolean =>
    value >= minimum && value > exclusiveMinimum && value <= maximum && (type === "number" || Number.isInteger(value));
  return reader({ ...bounds, type: [type, "string"], pattern: WITH_VARIABLE }, (cursor) => {
    const { kind, value } = cursor;
    if (kind === "number") return fits(Number(value)) ? Number(value) : cursor.error(`expected ${expected}`);
    if (kind !== "string") return wrongType(cursor, expected);
    if (!String(value).includes("${")) {
      return wrongType(cursor, expected, /^[\d.]+$/.test(String(value)) ? "remove the quotes" : undefined);
    }
    const read = cursor.expand();
    if (read === undefined || read.isPending) return undefined;
    const expanded = read.text.trim() === "" ? Number.NaN : Number(read.text);
    return fits(expanded) ? expanded : cursor.error(`expected ${expected}${AFTER_EXPANSION}`);
  });
}

/** The longest delay that setTimeout accepts. */
const MAX_MS = 2 ** 31 - 1;

export const anyMilliseconds: Reader<number> = numberIn(
  { minimum: 0, maximum: MAX_MS },
  `milliseconds from 0 to ${MAX_MS}`,
);

/** Many fields have this schema, so it is defined once. */
const milliseconds: Reader<number> = reader({ $ref: "#/definitions/milliseconds" }, anyMilliseconds);

/** A shorter timeout was probably meant to be in seconds. */
const MIN_PLAUSIBLE_MS = 1_000;

/** Warns of a duration that was probably meant to be in seconds. */
function timeoutIn(inner: Reader<number>): Reader<number> {
  return reader(inner.schema, (cursor) => {
    const ms = inner(cursor);
    if (cursor.kind === "number" && ms !== undefined && ms > 0 && ms < MIN_PLAUSIBLE_MS) {
      cursor.warn("less than a second", `the unit is milliseconds: write ${ms}000 for ${ms} seconds`);
    }
    return ms;
  });
}

export function arrayOf<T>(item: Reader<T>, expected: string): Reader<readonly T[]> {
  return reader({ type: "array", items: item.schema }, (cursor) =>
    cursor.kind === "array" ? cursor.items().flatMap((cursor) => item(cursor) ?? []) : wrongType(cursor, expected),
  );
}

/** An object with any keys and values of one type. */
export function recordOf<T>(value: Reader<T>, expected: string): Reader<Readonly<Record<string, T>>> {
  return reader({ type: "object", additionalProperties: value.schema }, (cursor) => {
    if (cursor.kind !== "object") return wrongType(cursor, expected);
    const read = cursor.members().map((member) => [member.name, value(member)] as const);
    return Object.fromEntries(read.filter((entry): entry is readonly [string, T & {}] => entry[1] !== undefined));
  });
}

/** Any JSON value, with the variables in its strings expanded. */
export const anything: Reader<unknown> = reader({}, (cursor) => readAs(cursor, undefined));

/** Any JSON value. A string with a variable becomes a number where the schema wants one. */
export function readAs(cursor: Cursor, schema: unknown): unknown {
  if (cursor.kind === "string") {
    const text = anyString(cursor);
    const isNumber = isNumeric(schema) && String(cursor.value).includes("${") && /\d/.test(text ?? "");
    return isNumber && Number.isFinite(Number(text)) ? Number(text) : text;
  }
  const { anyOf = [schema] } = isObject(schema) ? schema : {};
  const form = (anyOf as readonly unknown[]).find((form) => isObject(form) && form["type"] === cursor.kind);
  const { items, properties, additionalProperties } = isObject(form) ? form : {};
  if (cursor.kind === "array") return cursor.items().map((item) => readAs(item, items));
  if (cursor.kind !== "object") return cursor.value;
  const known = isObject(properties) ? properties : {};
  return Object.fromEntries(
    cursor.members().map((member) => [member.name, readAs(member, known[member.name] ?? additionalProperties)]),
  );
}

function isNumeric(schema: unknown): boolean {
  const { type, anyOf, oneOf: forms = anyOf } = isObject(schema) ? schema : {};
  return type === "number" || type === "integer" || (forms as readonly unknown[] | undefined)?.some(isNumeric) === true;
}

/** The secrets in all strings of a value, and whether one of the strings needs an input that has no answer yet. */
export function scanStrings(cursor: Cursor | undefined): Pick<Expanded, "secrets" | "isPending"> {
  if (cursor?.kind === "string") return cursor.expand() ?? { secrets: [], isPending: true };
  const parts = [...(cursor?.items() ?? []), ...(cursor?.members() ?? [])].map(scanStrings);
  return { secrets: parts.flatMap(({ secrets }) => secrets), isPending: parts.some(({ isPending }) => isPending) };
}

/** Whether one of these values of an object depends on an input that has no answer yet. */
export function isPending(cursor: Cursor, ...keys: readonly string[]): boolean {
  return keys.some((key) => scanStrings(cursor.get(key)).isPending);
}

/** The path of a file or folder that should exist. It may be relative to the folder of the config. */
export function pathTo(kind: FileCheck["kind"], severity: FileCheck["severity"]): Reader<string> {
  return reader(nonEmptyString.schema, (cursor) => {
    const read = expand(cursor, `the path of a ${kind}`);
    if (read === undefined || read.isPending) return read?.text;
    if (read.text.trim() === "" || read.text.includes("\0")) return cursor.error("not a valid path");
    const path = resolvePath(cursor.context.folder, read.text);
    cursor.context.files.push({ path, kind, severity, cursor, isSecret: read.secrets.length > 0 });
    return path;
  });
}

/** Reads the known fields of an object and calls `onUnknown` for every other key. */
export function readFields<F extends Fields>(
  cursor: Cursor,
  fields: F,
  onUnknown: (unknown: Cursor, known: readonly string[]) => void = rejectUnknown,
): FieldValues<F> {
  const known = Object.keys(fields);
  const read = cursor.members().flatMap((member) => {
    const field = Object.hasOwn(fields, member.name) ? fields[member.name] : undefined;
    if (field === undefined) onUnknown(member, known);
    const value = field?.(member);
    return value === undefined ? [] : [[member.name, value] as const];
  });
  return Object.fromEntries(read) as FieldValues<F>;
}

export function objectOf<F extends Fields>(fields: F, expected: string): Reader<FieldValues<F>> {
  const schema = { type: "object", additionalProperties: false, properties: schemasOf(fields) };
  return reader(schema, (cursor) =>
    cursor.kind === "object" ? readFields(cursor, fields) : wrongType(cursor, expected),
  );
}

export function schemasOf(fields: Fields): Readonly<Record<string, Schema>> {
  return Object.fromEntries(Object.entries(fields).map(([name, { schema }]) => [name, schema]));
}

/** A path relative to the folder of the config, which need not exist. */
const path: Reader<string> = reader(nonEmptyString.schema, (cursor) => {
  const path = nonEmptyString(cursor);
  return path === undefined ? undefined : resolve(cursor.context.folder, path);
});

/** The reader of an option, from the field that declares it for code. */
export function readerOf<T>(field: Field<string, T>): Reader<T> {
  const inner = readerWithoutDescription(field) as Reader<T>;
  const { description, default: usual } = field;
  return description === "" ? inner : reader({ ...inner.schema, ...defined({ description, default: usual }) }, inner);
}

interface FieldSchema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly items?: Schema;
  readonly pattern?: string;
}

/** Does not use the check of the field, since errors about a config have positions, hints and no secrets. */
function readerWithoutDescription(field: Partial<Field>): Reader<unknown> {
  const { schema = {}, expected, problem, fields, forms, isPath } = field;
  const { type, enum: choices, items, pattern = "" } = schema as FieldSchema;
  if (problem !== undefined) {
    return stringThat((text) => new RegExp(pattern).test(text), ...problem, `${pattern}|${WITH_VARIABLE}`);
  }
  if (fields !== undefined) return objectOf(readersOf(fields), expected ?? "an object");
  if (forms !== undefined) return oneForm(forms.map(readerOf), expected ?? 'true, false, or ["NAME", ...]');
  if (choices !== undefined) return oneOf(choices);
  if (type === "array") {
    if (isPath === true) return arrayOf(path, 'an array of paths, such as ["./data"]');
    return arrayOf(readerWithoutDescription({ schema: items }), expected ?? "an array of strings");
  }
  if (type === "string") return isPath === true ? path : nonEmptyString;
  if (type === "object") return recordOf(nonEmptyString, "an object of strings");
  if (type === "boolean") return flag;
  const { description: _, ...bounds } = schema as Bounds & Schema;
  if (type === "number" && bounds.minimum === 0 && bounds.maximum === MAX_MS) return milliseconds;
  return numberIn(bounds, expected ?? (type === "integer" ? "a whole number above 0" : "a number"));
}

/** The readers of fields; those that only code can set have none. */
export function readersOf<Of extends OptionFields>(
  fields: Of,
): { readonly [Name in keyof Of]: Of[Name] extends Field<string, infer T> ? Reader<T> : never } {
  const inConfig = Object.entries(fields).filter(([, { schema }]) => schema !== undefined);
  const readerAt = (name: string, field: Field): Reader<unknown> =>
    name === "timeoutMs" ? timeoutIn(readerOf(field) as Reader<number>) : readerOf(field);
  return Object.fromEntries(inConfig.map(([name, field]) => [name, readerAt(name, field)])) as never;
}

/** Reads what is true, false or an object, or an array, by the form whose schema has its type. */
function oneForm(forms: readonly Reader<unknown>[], expected: string): Reader<unknown> {
  return reader({ anyOf: forms.map(({ schema }) => schema) }, (cursor) => {
    const form = forms.find(({ schema }) => schema["type"] === cursor.kind);
    return form === undefined ? wrongType(cursor, expected.replaceAll(/(?<=\{) | (?=\})/g, "")) : form(cursor);
  });
}

/** For objects that only Catenary defines: an unknown key is an error. */
function rejectUnknown(unknown: Cursor, known: readonly string[]): void {
  unknown.errorAtKey("unknown key", suggest(unknown.name, known) ?? `the keys are ${known.join(", ")}`);
}

/** For objects that other programs extend: reports a key only if it looks like a misspelling of one of ours. */
export function warnIfMisspelt(unknown: Cursor, known: readonly string[]): void {
  const near = nearestKey(unknown.name, known);
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

/** Creates middleware from the options in a config, which may be any JSON. Throws a TypeError if they are wrong. */
export type MiddlewareFactory = (options?: unknown, place?: Place) => Middleware;

/** The factories of middleware by name. */
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
  /** The built-in middleware; undefined until something turns out to need it. */
  readonly builtIn: ReadonlyMap<string, DefinedMiddleware> | undefined;
  /** Set if something could not be read without the built-in middleware. Then the config is read again with it. */
  needsBuiltIn: boolean;
  /** Other middleware, also in place of built-in ones. */
  readonly middleware: MiddlewareFactories;
  /** Filled while reading. */
  readonly files: FileCheck[];
  /** The file belongs to another client, which may have keys that we do not know. */
  readonly isForeign: boolean;
  /** What to do if the file has no servers. */
  readonly emptyHint?: string;
}

/**
 * A position in a config while it is read: the value, its path for messages (`mcpServers.notes.timeoutMs`), and where
 * to report problems.
 */
export class Cursor {
  readonly context: ReadContext;
  readonly path: string;
  /** The key of a member of an object. */
  readonly name: string;
  /** The offset of the key, or of the value for an item of an array. */
  readonly keyOffset: number;
  readonly #node: Node;
  #members: readonly Cursor[] | undefined;
  #byName: ReadonlyMap<string, Cursor> | undefined;

  constructor(context: ReadContext, node: Node, path: string, name = "", keyOffset: number = node.offset) {
    this.context = context;
    this.#node = node;
    this.path = path;
    this.name = name;
    this.keyOffset = keyOffset;
  }

  get kind(): Node["type"] {
    return this.#node.type;
  }

  /** The value of a string, number, boolean or null. */
  get value(): unknown {
    return this.#node.value;
  }

  get offset(): number {
    return this.#node.offset;
  }

  get position(): Position {
    return this.context.problems.position(this.offset);
  }

  get keyPosition(): Position {
    return this.context.problems.position(this.keyOffset);
  }

  expand(): Expanded | undefined {
    return this.context.variables.expand(String(this.value), this.offset);
  }

  /** Empty if the value is not an object. Reporting that is left to the reader of the value. */
  members(): readonly Cursor[] {
    // Kept, since `get` is called for many keys.
    return (this.#members ??= this.#readMembers());
  }

  #readMembers(): readonly Cursor[] {
    return membersOf(this.#node).map(({ key: name, keyNode: { written, offset }, value }) => {
      const isPlain = written !== undefined || /^[\w$-]+$/.test(name);
      const step = isPlain ? `${this.path === "" ? "" : "."}${written ?? name}` : `[${JSON.stringify(name)}]`;
      return new Cursor(this.context, value, `${this.path}${step}`, name, offset);
    });
  }

  get(name: string): Cursor | undefined {
    // The first, if a file of another client has several.
    this.#byName ??= new Map(
      this.members()
        .map((member) => [member.name, member] as const)
        .toReversed(),
    );
    return this.#byName.get(name);
  }

  items(): Cursor[] {
    if (this.kind !== "array") return [];
    return (this.#node.children ?? []).map((item, at) => new Cursor(this.context, item, `${this.path}[${at}]`));
  }

  /** Reports `path: message` at the value. */
  error(message: string, hint?: string): undefined {
    this.context.problems.error(this.offset, `${this.path}: ${message}`, hint);
  }

  warn(message: string, hint?: string): void {
    this.context.problems.warn(this.offset, `${this.path}: ${message}`, hint);
  }

  /** Reports `path: message` at the key. */
  errorAtKey(message: string, hint?: string): undefined {
    this.context.problems.error(this.keyOffset, `${this.path}: ${message}`, hint);
  }

  warnAtKey(message: string, hint?: string): void {
    this.context.problems.warn(this.keyOffset, `${this.path}: ${message}`, hint);
  }
}
