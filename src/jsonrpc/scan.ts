// One pass over a message beside JSON.parse: it checks the nesting depth and finds tokens that must be sent back byte for
// byte. It is not a parser: for invalid JSON it may find nonsense, but then JSON.parse fails. It does not recurse, reads
// each character a bounded number of times, and allocates little. It takes as long as JSON.parse, so two quick looks tell
// whether a message can do without: most can.

import { BACKSLASH, BRACE, CLOSE, COLON, COMMA, MINUS, QUOTE } from "./characters.ts";

const STREAM = "io.modelcontextprotocol/subscriptionId";
const EXACT_PATHS: readonly (readonly string[])[] = [
  ["id"],
  ["params", "requestId"],
  ["params", "progressToken"],
  ["params", "_meta", "progressToken"],
  ["params", "_meta", STREAM],
  ["result", "_meta", "progressToken"],
  ["result", "_meta", STREAM],
];
const EXACT_NAMES: ReadonlySet<string | undefined> = new Set(EXACT_PATHS.map((path) => path.at(-1)));
/** The names on exact paths, and those that tell requests from responses. */
const NAMES: readonly string[] = [...new Set([...EXACT_PATHS.flat(), "method", "error"])];
/** A key of more characters cannot be one of the names, even if each of its characters is an escape. */
const MAX_KEY_LENGTH = Math.max(...NAMES.map((name) => 6 * name.length));

/** A token that JavaScript might write differently: `text.slice(start, end)`, at `path` in item `item` of a batch. */
export interface Token {
  readonly item: number;
  readonly path: readonly string[];
  readonly start: number;
  readonly end: number;
}

export interface Scan {
  readonly tooDeep: boolean;
  /** Objects and arrays, the message included. */
  readonly containers: number;
  /** In the order of the text. Of tokens at the same path, only the last counts. */
  readonly tokens: readonly Token[] | undefined;
  /** Where the id is, for a message that cannot be parsed. `idEnd` is 0 if there is none, or if the text may cut it. */
  readonly idStart: number;
  readonly idEnd: number;
  /** Whether the message is a response as far as its keys tell. */
  readonly isResponse: boolean;
}

/** False if the text has too few brackets to be deeper than this. */
export function mayBeDeep(text: string, maxDepth: number): boolean {
  let brackets = 0;
  for (let at = text.indexOf("{"); at >= 0; at = text.indexOf("{", at + 1)) if (++brackets > maxDepth) return true;
  for (let at = text.indexOf("["); at >= 0; at = text.indexOf("[", at + 1)) if (++brackets > maxDepth) return true;
  return false;
}

type Values = { readonly [key: string]: Values } | null | undefined;

/**
 * Whether the tokens of a message are surely written as JavaScript writes them. `value` is the parsed text. Clients and
 * servers write the id at the beginning or at the end, as a number, and other tokens as strings.
 */
export function hasPlainTokens(text: string, value: unknown): boolean {
  if (Array.isArray(value)) return false;
  const { id, params, result } = (value ?? {}) as NonNullable<Values>;
  // No valid message has both, so it need not be fast.
  if (params !== undefined && result !== undefined) return false;
  const meta = params?._meta ?? result?._meta;
  const arePlain =
    (typeof id === "number" || isPlainToken(text, id)) &&
    isPlainToken(text, params?.requestId) &&
    isPlainToken(text, params?.progressToken) &&
    isPlainToken(text, meta?.progressToken) &&
    isPlainToken(text, meta?.[STREAM]);
  return arePlain && (typeof id !== "number" || isPlainId(text, id));
}

function isPlainToken(text: string, token: unknown): boolean {
  return token === undefined || (typeof token === "string" && !text.includes("\\"));
}

const HEAD = '{"jsonrpc":"2.0",';

function isPlainId(text: string, id: number): boolean {
  if (!Number.isSafeInteger(id)) return false;
  const field = `"id":${id}`;
  if (text.endsWith(`,${field}}`)) return true;
  const next = text.charCodeAt(HEAD.length + field.length);
  if (!text.startsWith(field, HEAD.length) || (next !== COMMA && next !== CLOSE) || !text.startsWith(HEAD))
    return false;
  // Of two ids the last counts, and may be written differently. Few names end so, and there are fewer `i` than quotes.
  return !text.includes('id"', HEAD.length + field.length);
}

/** The name of the last key at each depth, from 1 on. Scans are synchronous, so they can share it. */
const keys: (string | undefined)[] = [];
/** How many objects and arrays the current scan has seen. */
let containers = 0;

/** Finds tokens only in the first `maxItems` items of a batch, since a longer batch is refused. */
export function scan(text: string, maxDepth: number, maxItems: number): Scan {
  containers = 0;
  let tokens: Token[] | undefined;
  let tooDeep = false;
  let depth = 0;
  let outside = 0; // the depth around a message: 1 in a batch
  let item = 0;
  let idStart = 0;
  let idEnd = 0;
  let hasMethod = false;
  let hasOutcome = false;

  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) {
      const open = i;
      i = stringEnd(text, open);
      if (depth <= outside) continue;
      const start = valueStart(text, i + 1);
      if (start < 0) continue;
      const name = nameOf(text, open, i);
      keys[depth] = name;
      if (name === undefined) continue;
      if (depth === 1) {
        hasMethod ||= name === "method";
        hasOutcome ||= name === "result" || name === "error";
        if (name === "id") idEnd = 0;
      }
      const path = EXACT_NAMES.has(name) ? findPath(outside, depth) : undefined;
      if (path === undefined || (outside === 1 && item >= maxItems)) continue;
      const end = tokenEnd(text, start);
      if (end === start) continue;
      if (depth === 1 && end < text.length) [idStart, idEnd] = [start, end];
      // After a token, a plain one may be a duplicate that replaces it.
      if (tokens !== undefined || !isPlain(text, start, end)) (tokens ??= []).push({ item, path, start, end });
      i = end - 1;
    } else if ((c | 32) === BRACE) {
      if (depth === 0 && c !== BRACE) outside = 1;
      else if (c !== BRACE || (depth > outside && !leadsOn(keys[depth], depth - outside))) {
        const close = skip(text, i, maxDepth - depth);
        if (close < 0) tooDeep = true;
        i = close < 0 ? ~close : close;
        continue;
      }
      containers++;
      depth++;
      keys[depth] = undefined;
      if (depth > maxDepth) tooDeep = true;
    } else if ((c | 32) === BRACE + 2) depth--;
    else if (c === COMMA && depth === outside) item++;
  }
  return { tooDeep, containers, tokens, idStart, idEnd, isResponse: hasOutcome && !hasMethod };
}

/** Returns the index of the closing bracket, or the length of the text; complemented (`~`) if the value is too deep. */
function skip(text: string, open: number, maxDepth: number): number {
  let depth = 0;
  let deepest = 0;
  let i = open;
  for (; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c > QUOTE && c <= COLON) continue; // numbers, and what is between them
    if (c === QUOTE) i = stringEnd(text, i);
    else if ((c | 32) === BRACE) {
      containers++;
      if (++depth > deepest) deepest = depth;
    } else if ((c | 32) === BRACE + 2 && --depth === 0) break;
  }
  return deepest > maxDepth ? ~i : i;
}

/** Whether an object under this key, in an object at this depth, may contain an exact token. */
function leadsOn(key: string | undefined, depth: number): boolean {
  return depth === 1 ? key === "params" || key === "result" : depth === 2 && key === "_meta";
}

function findPath(outside: number, depth: number): readonly string[] | undefined {
  const length = depth - outside;
  return EXACT_PATHS.find(
    (path) => path.length === length && path.every((name, at) => name === keys[outside + at + 1]),
  );
}

/** The index of the closing quote, or the length of the text. Each backslash is read twice at most. */
function stringEnd(text: string, open: number): number {
  for (let close = text.indexOf('"', open + 1); close !== -1; close = text.indexOf('"', close + 1)) {
    let before = close - 1;
    while (text.charCodeAt(before) === BACKSLASH) before--;
    if ((close - before) % 2 === 1) return close;
  }
  return text.length;
}

/** Where the value of a key begins, or -1 if the string that ends before `at` is not a key. */
function valueStart(text: string, at: number): number {
  const colon = skipSpaces(text, at);
  return text.charCodeAt(colon) === COLON ? skipSpaces(text, colon + 1) : -1;
}

function skipSpaces(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) <= 32) at++;
  return at;
}

/** The end of a string or a number; `start` if there is something else. */
function tokenEnd(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return Math.min(stringEnd(text, start) + 1, text.length);
  let end = start;
  if (first !== MINUS && !isDigit(first)) return end;
  for (let c = first; isDigit(c) || c === 43 || c === MINUS || c === 46 || (c | 32) === 101; c = text.charCodeAt(end)) {
    end++;
  }
  return end;
}

function isDigit(c: number): boolean {
  return c >= 48 && c <= 57;
}

/** Which of the names a key is. */
function nameOf(text: string, open: number, close: number): string | undefined {
  const length = close - open - 1;
  for (const name of NAMES) if (name.length === length && text.startsWith(name, open + 1)) return name;
  if (length > MAX_KEY_LENGTH) return undefined;
  let at = open + 1;
  while (at < close && text.charCodeAt(at) !== BACKSLASH) at++;
  if (at === close) return undefined;
  try {
    const key: unknown = JSON.parse(text.slice(open, close + 1));
    return NAMES.find((name) => name === key);
  } catch {
    return undefined;
  }
}

/** Whether JavaScript certainly writes the token unchanged: a string without escapes, or an integer up to 15 digits. */
function isPlain(text: string, start: number, end: number): boolean {
  if (text.charCodeAt(start) === QUOTE) return !text.slice(start, end).includes("\\");
  const first = text.charCodeAt(start) === MINUS ? start + 1 : start;
  if (end - first > 15) return false;
  if (text.charCodeAt(first) === 48) return first === start && end === start + 1;
  for (let i = first; i < end; i++) if (!isDigit(text.charCodeAt(i))) return false;
  return true;
}
