// The filter language of Traffic: `server:github tool:create_* status:error dur:>500ms -method:ping since:10m`. The pages,
// the routes and `catenary watch` use this one file, so it imports nothing of Node. docs/reference/console-api.md
// describes the language.

import { OPERATOR } from "../core/authentication.ts";
import { nearest } from "../core/options.ts";
import { globMatcher } from "../core/text.ts";
import type { CallRow, RowKind, RowStatus } from "./types.ts";

/** Whether the request, the result or the error of a row has a text, without regard to case. */
export type BodySearch = (row: CallRow, text: string) => boolean;

/** A filter that was read. */
export interface Filter {
  /** As it was written. */
  readonly text: string;
  /** Whether it matches every row. */
  readonly isEmpty: boolean;
  /** Whether it looks into requests and results (`text:`), which only the gateway has. */
  readonly needsBodies: boolean;
  /** Whether this row matches by itself. Without `bodies`, no row matches `text:`. */
  matches(row: CallRow, bodies?: BodySearch): boolean;
  /** Whether a word with `-` excludes this row. Such a logical call is not shown whatever is nested under it. */
  excludes(row: CallRow, bodies?: BodySearch): boolean;
}

/** A filter that cannot be read: what is wrong, where, and what to write. */
export class FilterError extends Error {
  /** Where the word begins, and how long it is. */
  readonly at: number;
  readonly length: number;

  constructor(message: string, at: number, length: number) {
    super(`${message} (character ${at + 1} of the filter)`);
    this.name = "FilterError";
    this.at = at;
    this.length = length;
  }
}

/** A key of the language, for completion and help. */
export interface FilterKey {
  readonly key: string;
  readonly about: string;
  readonly example: string;
  /** All values, if there are only a few. */
  readonly values?: readonly string[];
}

const STATUSES: readonly RowStatus[] = ["running", "asked", "ok", "error", "cancelled"];
const KINDS: readonly RowKind[] = ["call", "retry", "poll", "question", "code"];

export const FILTER_KEYS: readonly FilterKey[] = [
  { key: "server", about: "The server that got it", example: "server:github" },
  { key: "tool", about: "The tool", example: "tool:create_*" },
  { key: "status", about: "How it ended", example: "status:error", values: STATUSES },
  { key: "dur", about: "How long it took", example: "dur:>500ms" },
  { key: "client", about: "What the client calls itself", example: "client:cursor" },
  { key: "text", about: "What the request or the result has in it", example: 'text:"not found"' },
  { key: "method", about: "The method", example: "-method:ping" },
  { key: "since", about: "When it began", example: "since:10m" },
  { key: "size", about: "The length of the request and the result", example: "size:>1mb" },
  { key: "error", about: "The kind of error, or what the message says", example: "error:timeout" },
  { key: "name", about: "The tool, prompt, URI or task", example: "name:file:*" },
  { key: "kind", about: "What kind of row it is", example: "kind:question", values: KINDS },
  { key: "principal", about: "Who called", example: "principal:console" },
  { key: "revision", about: "The client's revision of the protocol", example: "revision:2025*" },
  { key: "id", about: "The number of the row", example: "id:120" },
];

type Test = (row: CallRow, bodies: BodySearch | undefined) => boolean;

interface Word {
  readonly at: number;
  readonly length: number;
  readonly isNegated: boolean;
  readonly key: string | undefined;
  readonly values: readonly string[];
}

/** Each is looked for in all that is kept. */
const MAX_TEXT_WORDS = 4;

/** Reads a filter. Throws a FilterError. `now`: what `since:10m` counts from. */
export function parseFilter(text: string, now: number = Date.now()): Filter {
  const wanted: Test[] = [];
  const unwanted: Test[] = [];
  let needsBodies = false;
  // What takes longest is tested last.
  const words = wordsOf(text).toSorted((one, other) => Number(one.key === "text") - Number(other.key === "text"));
  const [, , , , tooMuch] = words.filter(({ key }) => key === "text");
  if (tooMuch !== undefined) {
    throw new FilterError(`A filter has at most ${MAX_TEXT_WORDS} text:`, tooMuch.at, tooMuch.length);
  }
  for (const word of words) {
    if (word.key === "text") needsBodies = true;
    (word.isNegated ? unwanted : wanted).push(testOf(word, now));
  }
  const excludes: Filter["excludes"] = (row, bodies) => unwanted.some((test) => test(row, bodies));
  const matches: Filter["matches"] = (row, bodies) => {
    return wanted.every((test) => test(row, bodies)) && !excludes(row, bodies);
  };
  return { text, isEmpty: words.length === 0, needsBodies, matches, excludes };
}

/**
 * The rows of logical calls that match: those that match themselves, or have a nested row that does, with all that is
 * nested under them. The order stays. A nested row whose call is no longer kept stands for itself.
 */
export function filterRows<R extends CallRow>(rows: readonly R[], filter: Filter, bodies?: BodySearch): readonly R[] {
  const steps = filterSteps(rows, filter, bodies);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** The same one row at a time, since a search in bodies takes long. Returns the rows. */
export function* filterSteps<R extends CallRow>(
  rows: readonly R[],
  filter: Filter,
  bodies?: BodySearch,
): Generator<void, readonly R[]> {
  if (filter.isEmpty) return rows;
  const found = new Set<number>();
  const excluded = new Set<number>();
  for (const row of rows) {
    const logical = row.parent ?? row.id;
    if (row.parent === undefined && filter.excludes(row, bodies)) excluded.add(row.id);
    else if (!found.has(logical) && filter.matches(row, bodies)) found.add(logical);
    yield;
  }
  return rows.filter(({ id, parent = id }) => found.has(parent) && !excluded.has(parent));
}

/** `-key:value,"other value"`, `word` or `"some words"`. */
const WORD = /(-?)(?:([A-Za-z]+):)?((?:"(?:[^"\\]|\\.)*"?|[^\s"])*)/y;
const VALUE = /"((?:[^"\\]|\\.)*)("?)|[^,"]+|,/g;

function wordsOf(text: string): Word[] {
  const words: Word[] = [];
  let at = 0;
  while (at < text.length) {
    if (/\s/.test(text.charAt(at))) {
      at += 1;
      continue;
    }
    WORD.lastIndex = at;
    const [whole = "", minus = "", name, rest = ""] = WORD.exec(text) ?? [];
    const length = Math.max(1, whole.length);
    const fail = (message: string): never => {
      throw new FilterError(message, at, length);
    };
    const key = name?.toLowerCase();
    if (key !== undefined && !FILTER_KEYS.some((known) => known.key === key)) fail(unknownKey(key, whole));
    const values = valuesOf(rest, key !== undefined, fail);
    if (values.length === 0)
      fail(key === undefined ? `${minus} needs a word behind it` : `${key}: needs a value, such as ${exampleOf(key)}`);
    words.push({ at, length, isNegated: minus === "-", key, values });
    at += length;
  }
  return words;
}

function valuesOf(text: string, isList: boolean, fail: (message: string) => never): string[] {
  const values: string[] = [];
  let value: string | undefined;
  for (const [part, quoted, end] of text.matchAll(VALUE)) {
    if (part === "," && isList) {
      if (value !== undefined) values.push(value);
      value = undefined;
      continue;
    }
    if (quoted !== undefined && end === "") fail('a " is missing at the end');
    // A star between quotes is a star.
    value =
      (value ?? "") + (quoted === undefined ? part : quoted.replaceAll(/\\(.)/g, "$1").replaceAll("*", QUOTED_STAR));
  }
  return value === undefined ? values : [...values, value];
}

/** Stands for a star that was quoted, until the pattern is made. */
const QUOTED_STAR = "\u{F0000}";

function unknownKey(key: string, word: string): string {
  const keys = FILTER_KEYS.map((known) => known.key);
  const [near] = nearest(key, keys);
  const hint = near === undefined ? `there are ${keys.join(", ")}.` : `did you mean ${near}:?`;
  return `There is no key ${key}; ${hint} To search for the words, write "${word.replaceAll('"', "")}"`;
}

function exampleOf(key: string | undefined): string {
  return FILTER_KEYS.find((known) => known.key === key)?.example ?? "";
}

function testOf(word: Word, now: number): Test {
  const { key, values } = word;
  switch (key) {
    case undefined:
      return anyField(values[0] ?? "");
    case "status": {
      const has = oneOf(word, key, STATUSES);
      // Those that have asked have the mark too.
      return values.includes("asked") ? (row, bodies) => has(row, bodies) || row.waitMs !== undefined : has;
    }
    case "kind":
      return oneOf(word, key, KINDS);
    case "dur":
      return comparison(word, "ms", DURATIONS, durationOf);
    case "size":
      return comparison(word, "b", SIZES, ({ sent, received }) =>
        sent === undefined && received === undefined ? undefined : (sent ?? 0) + (received ?? 0),
      );
    case "id":
      return comparison(word, "", { "": 1 }, ({ id }) => id, "=");
    case "since": {
      const from = Math.min(...values.map((value) => timeOf(word, value, now)));
      return ({ at }) => at >= from;
    }
    case "text": {
      const texts = values.map(plain);
      return (row, bodies) => bodies !== undefined && texts.some((text) => bodies(row, text));
    }
    case "tool":
      return anyOf(values, whole, ({ method, name }) => (method === "tools/call" ? (name ?? "") : undefined));
    case "client":
      // The operator is shown as "you".
      return anyOf(values, part, ({ client = "", principal }) => (principal === OPERATOR ? `you ${client}` : client));
    case "error": {
      const kinds = anyOf(values, whole, ({ error }) => error);
      const texts = anyOf(values, part, ({ errorText }) => errorText);
      return (row, bodies) => kinds(row, bodies) || texts(row, bodies);
    }
    default:
      return anyOf(values, whole, (row) => row[key as "server" | "method" | "name" | "principal" | "revision"] ?? "");
  }
}

const FIELDS = ["name", "server", "client", "method", "error", "errorText", "principal"] as const;

/** A word without a key: in any of these fields. */
function anyField(value: string): Test {
  const matches = remembered(part(value));
  return (row) =>
    FIELDS.some((field) => {
      const text = row[field];
      return text !== undefined && matches(text);
    });
}

type Pattern = (value: string) => (text: string) => boolean;

/** All of the text, without regard to case. */
const whole: Pattern = (value) => {
  if (!value.includes("*")) {
    const wanted = plain(value).toLowerCase();
    return (text) => text.toLowerCase() === wanted;
  }
  const matches = globMatcher(value.toLowerCase());
  // A quoted star is one that the text must have.
  const isQuoted = value.includes(QUOTED_STAR);
  return (text) => matches(isQuoted ? text.toLowerCase().replaceAll("*", QUOTED_STAR) : text.toLowerCase());
};

/** Anywhere in the text. */
const part: Pattern = (value) => whole(`*${value}*`);

function anyOf(values: readonly string[], pattern: Pattern, field: (row: CallRow) => string | undefined): Test {
  const matchers = values.map(pattern);
  const matches = remembered((text) => matchers.some((matcher) => matcher(text)));
  return (row) => {
    const text = field(row);
    return text !== undefined && matches(text);
  };
}

const MAX_REMEMBERED = 10_000;

/** Rows have few different names, so each is compared once. */
function remembered(matches: (text: string) => boolean): (text: string) => boolean {
  const known = new Map<string, boolean>();
  return (text) => {
    let answer = known.get(text);
    if (answer === undefined) {
      answer = matches(text);
      if (known.size >= MAX_REMEMBERED) known.clear();
      known.set(text, answer);
    }
    return answer;
  };
}

function oneOf({ values, at, length }: Word, key: "status" | "kind", all: readonly string[]): Test {
  const wanted = new Set<string>();
  for (const value of values) {
    const name = value.toLowerCase();
    if (!all.includes(name)) {
      const [near] = nearest(name, all);
      const hint = near === undefined ? `it can be ${all.join(", ")}` : `did you mean ${near}?`;
      throw new FilterError(`${key}:${plain(value)} is no ${key}; ${hint}`, at, length);
    }
    wanted.add(name);
  }
  return (row) => wanted.has(row[key]);
}

type Units = Readonly<Record<string, number>>;
const DURATIONS: Units = { ms: 1, s: 1_000, m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 };
const SIZES: Units = { b: 1, k: 1_024, kb: 1_024, m: 1_024 ** 2, mb: 1_024 ** 2, g: 1_024 ** 3, gb: 1_024 ** 3 };

const COMPARE: Readonly<Record<string, (value: number, limit: number) => boolean>> = {
  ">": (value, limit) => value > limit,
  ">=": (value, limit) => value >= limit,
  "<": (value, limit) => value < limit,
  "<=": (value, limit) => value <= limit,
  "=": (value, limit) => value === limit,
};

/** `>500ms`. Several values are alternatives. Without a sign, a duration or a size is the least one. */
function comparison(
  word: Word,
  unit: string,
  units: Units,
  measure: (row: CallRow) => number | undefined,
  usual: string = ">=",
): Test {
  const tests = word.values.map((value) => {
    const [, sign = "", digits = "", name = ""] = /^([<>]=?|=)?(\d+(?:\.\d+)?)([a-z]*)$/i.exec(value) ?? [];
    const factor = units[name.toLowerCase() || unit];
    const compare = COMPARE[sign || usual];
    if (digits === "" || factor === undefined || compare === undefined) {
      const names = Object.keys(units).filter((known) => known !== "");
      const with_ = names.length === 0 ? "a number" : `a number with a unit (${names.join(", ")})`;
      const message = `${word.key}:${plain(value)} is not ${with_}; write it like ${exampleOf(word.key)}`;
      throw new FilterError(message, word.at, word.length);
    }
    const limit = Number(digits) * factor;
    return (measured: number): boolean => compare(measured, limit);
  });
  return (row) => {
    const measured = measure(row);
    return measured !== undefined && tests.some((test) => test(measured));
  };
}

/** A call that runs has taken the time until now. */
function durationOf({ ms, at, waitMs = 0 }: CallRow): number {
  return ms ?? Date.now() - at - waitMs;
}

/** `10m` ago, `14:30`, or a date such as `2030-01-31T14:30`. */
function timeOf(word: Word, value: string, now: number): number {
  const [, digits, unit = ""] = /^(\d+(?:\.\d+)?)([a-z]+)$/i.exec(value) ?? [];
  const factor = DURATIONS[unit.toLowerCase()];
  if (digits !== undefined && factor !== undefined) return now - Number(digits) * factor;
  const [, hours, minutes, seconds = "0"] = /^(\d{1,2}):(\d{2})(?::(\d{2}))?$/.exec(value) ?? [];
  if (hours !== undefined && Number(hours) < 24 && Number(minutes) < 60) {
    const time = new Date(now).setHours(Number(hours), Number(minutes), Number(seconds), 0);
    return time <= now ? time : new Date(time).setDate(new Date(time).getDate() - 1);
  }
  const date = /^\d{4}-\d\d-\d\d/.test(value) ? Date.parse(value) : Number.NaN;
  if (!Number.isNaN(date)) return date;
  const message = `since:${plain(value)} is no time; write it like since:10m, since:14:30 or since:2030-01-31`;
  throw new FilterError(message, word.at, word.length);
}

function plain(value: string): string {
  return value.replaceAll(QUOTED_STAR, "*");
}
