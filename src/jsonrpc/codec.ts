// Converts between strings and JSON-RPC messages. `decode` never throws: it returns a message, a batch, or the error
// response for a string that is neither. `encode` writes a message on one line. A decoded message is the parsed object
// itself, so nothing is copied and unknown fields survive.

import { Buffer } from "node:buffer";
import { type ErrorMessage, ExactId, type Id, isId, type Message, stringify } from "./message.ts";

/** Limits of a message. */
export interface Limits {
  /** Bytes of UTF-8 in one message. */
  readonly messageBytes: number;
  /** Levels of objects and arrays, including the message itself. */
  readonly depth: number;
  /** Messages in one batch. */
  readonly batch: number;
}

/** The size holds in both directions, on every transport. */
export const DEFAULT_LIMITS: Limits = { messageBytes: 64 * 1024 * 1024, depth: 128, batch: 100 };

/** The error response for an invalid message. It is sent only if `answerable`: a response must not be answered. */
export interface Fault {
  readonly fault: ErrorMessage;
  readonly answerable: boolean;
}

export type Decoded =
  | { readonly kind: "message"; readonly message: Message }
  | { readonly kind: "batch"; readonly items: readonly ({ readonly message: Message } | Fault)[] }
  | ({ readonly kind: "fault" } & Fault);

type Parsed = { [key: string]: unknown };

export function decode(text: string, limits: Limits = DEFAULT_LIMITS): Decoded {
  if (isTooLong(text, limits.messageBytes)) return refuse(tooLong(limits.messageBytes));
  const body = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  let scanned = mayBeDeep(body, limits.depth) ? scan(body, limits.depth, limits.batch) : undefined;
  // Reject it before JSON.parse or any later code can recurse into it.
  if (scanned?.tooDeep === true) {
    const details = `Nested deeper than ${limits.depth} levels (limits.depth)`;
    return refuse(invalidRequest(readId(body, scanned), details), !scanned.isResponse);
  }

  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch (error) {
    // The error of V8 quotes about twenty characters of the input. Other engines may quote more, so it is cut.
    const reason = error instanceof Error ? error.message : "Not JSON";
    return refuse(parseError(reason.slice(0, 100)));
  }

  if (!hasPlainTokens(body, value)) scanned ??= scan(body, limits.depth, limits.batch);
  const tokens = scanned?.tokens;
  if (!Array.isArray(value)) {
    if (tokens !== undefined) restore([value], body, tokens);
    const fault = check(value);
    return fault === undefined ? { kind: "message", message: value as Message } : { kind: "fault", ...fault };
  }
  if (value.length === 0) return refuse(invalidRequest(null, "Empty batch"));
  if (value.length > limits.batch) {
    const details = `Batch of ${value.length} messages is over the limit of ${limits.batch} (limits.batch)`;
    return refuse(invalidRequest(null, details));
  }
  if (tokens !== undefined) restore(value, body, tokens);
  return { kind: "batch", items: value.map((item: unknown) => check(item) ?? { message: item as Message }) };
}

/**
 * Returns one line without a newline. Throws a TypeError if JSON cannot express the message (a cycle, a BigInt), and a
 * RangeError if it is longer than `maxBytes`.
 */
export function encode(message: Message | readonly Message[], maxBytes: number = Infinity): string {
  let text: string;
  try {
    text = isBatch(message) ? `[${message.map(encodeOne).join(",")}]` : encodeOne(message);
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    throw new TypeError(`Message cannot be written as JSON: ${reason}`, { cause: error });
  }
  if (isTooLong(text, maxBytes)) throw new RangeError(tooLongText(maxBytes));
  return text;
}

function encodeOne(message: Message): string {
  if ("method" in message) {
    const id = "id" in message ? `"id":${idToJson(message.id)},` : "";
    const head = `{"jsonrpc":"2.0",${id}"method":${JSON.stringify(message.method)}`;
    return message.params === undefined ? `${head}}` : `${head},"params":${toJson("params", message.params)}}`;
  }
  const head = `{"jsonrpc":"2.0","id":${message.id === null ? "null" : idToJson(message.id)}`;
  if ("error" in message) return `${head},"error":${toJson("error", message.error)}}`;
  return `${head},"result":${toJson("result", message.result)}}`;
}

function toJson(name: string, value: unknown): string {
  const text = stringify(value);
  if (text === undefined) throw new TypeError(`${name} has no JSON form`);
  return text;
}

function idToJson(id: Id): string {
  if (id instanceof ExactId) return id.raw;
  if (typeof id === "string" || Number.isFinite(id)) return JSON.stringify(id);
  throw new TypeError("id must be a string or a finite number");
}

function isBatch(message: Message | readonly Message[]): message is readonly Message[] {
  return Array.isArray(message);
}

function isTooLong(text: string, maxBytes: number): boolean {
  // One UTF-16 unit is one to three bytes of UTF-8, so most strings need no counting.
  if (text.length * 3 <= maxBytes) return false;
  return text.length > maxBytes || Buffer.byteLength(text, "utf8") > maxBytes;
}

function refuse(fault: ErrorMessage, answerable = true): Decoded {
  return { kind: "fault", fault, answerable };
}

/** Reads the id of a message that is not UTF-8, and whether to answer it, from the first bytes of its line. */
export function readHead(head: string): { readonly id: Id | null; readonly answerable: boolean } {
  const scanned = scan(head, DEFAULT_LIMITS.depth, 1);
  return { id: readId(head, scanned), answerable: !scanned.isResponse };
}

function readId(text: string, { idStart, idEnd }: Scan): Id | null {
  return readToken(text.slice(idStart, idEnd));
}

/** An id from its JSON; null if it is not a string or a number. */
export function readToken(raw: string): Id | null {
  // Nothing, or bytes that are not UTF-8.
  if (raw === "" || raw.includes("\ufffd")) return null;
  try {
    const value: unknown = JSON.parse(raw);
    return typeof value === "string" || typeof value === "number" ? toId(raw, value) : null;
  } catch {
    return null;
  }
}

function toId(raw: string, value: string | number): Id {
  if ((typeof value === "number" ? String(value) : JSON.stringify(value)) === raw) return value;
  // UTF-8 cannot encode an unpaired surrogate. So keep the plain value, because JSON.stringify escapes the surrogate.
  return /[\ud800-\udfff]/u.test(raw) ? value : new ExactId(raw, value);
}

/** Replaces tokens by ExactIds if necessary. Of duplicate keys JSON.parse keeps the last, so the last token counts. */
function restore(items: readonly unknown[], text: string, tokens: readonly Token[]): void {
  const last = new Map(tokens.map((token) => [`${token.item} ${token.path.join()}`, token]));
  for (const { item, path, start, end } of last.values()) {
    const name = path.at(-1) ?? "";
    const holder = path.slice(0, -1).reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), items[item]);
    const value = isObject(holder) ? holder[name] : undefined;
    if (typeof value !== "string" && typeof value !== "number") continue;
    (holder as Parsed)[name] = toId(text.slice(start, end), value);
  }
}

/** Returns undefined for a valid message. JSON has no undefined, so an undefined field is a missing field. */
function check(value: unknown): Fault | undefined {
  if (Array.isArray(value)) return faultOf(null, "A batch inside a batch is not a message");
  if (!isObject(value)) return faultOf(null, "A message must be an object");
  const { jsonrpc, id, method, params, result, error } = value;
  const readable = isId(id) ? id : null;
  const isResponse = method === undefined && (result !== undefined || error !== undefined);
  const answerable = !isResponse;
  if (jsonrpc === undefined) return { fault: missingField(readable, "jsonrpc"), answerable };
  if (jsonrpc !== "2.0") return faultOf(readable, "Invalid jsonrpc version", answerable);
  if (method === undefined && !isResponse) return { fault: missingField(readable, "method"), answerable };
  const details = isResponse ? responseProblem(value) : requestProblem(method, id, params, result, error);
  return details === undefined ? undefined : faultOf(readable, details, answerable);
}

function requestProblem(
  method: unknown,
  id: unknown,
  params: unknown,
  result: unknown,
  error: unknown,
): string | undefined {
  if (typeof method !== "string") return "Invalid field: method must be a string";
  if (id !== undefined && !isId(id)) return "Invalid field: id must be a string or a number";
  if (params !== undefined && !isObject(params)) {
    return "Invalid field: params must be an object (JSON-RPC also allows an array, MCP does not)";
  }
  if (result !== undefined) return "Invalid field: result is not allowed with method";
  if (error !== undefined) return "Invalid field: error is not allowed with method";
  return undefined;
}

function responseProblem(response: Parsed): string | undefined {
  const { id, result, error } = response;
  if (result !== undefined) {
    if (error !== undefined) return "Invalid field: result and error exclude each other";
    if (!isObject(result)) return "Invalid field: result must be an object";
    if (id === undefined) return "Missing required field: id";
    return isId(id) ? undefined : "Invalid field: id must be a string or a number";
  }
  if (!isObject(error)) return "Invalid field: error must be an object";
  if (!Number.isInteger(error["code"])) return "Invalid field: error.code must be an integer";
  if (typeof error["message"] !== "string") return "Invalid field: error.message must be a string";
  // An error response may leave out the id if the request's id could not be read. Such an id is null from here on.
  if (id === undefined) response["id"] = null;
  else if (id !== null && !isId(id)) return "Invalid field: id must be a string, a number or null";
  return undefined;
}

function faultOf(id: Id | null, details: string, answerable = true): Fault {
  return { fault: invalidRequest(id, details), answerable };
}

function isObject(value: unknown): value is Parsed {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactId);
}

/** The `data` of JSON-RPC's own errors: -32700 for invalid JSON, and -32600 for JSON that is not a valid message. */
interface FaultData {
  readonly kind: "parse_error" | "invalid_request";
  readonly details: string;
}

export const PARSE_ERROR = -32700;

export function parseError(details: string): ErrorMessage {
  const data: FaultData = { kind: "parse_error", details };
  return { jsonrpc: "2.0", id: null, error: { code: PARSE_ERROR, message: "Parse error", data } };
}

function invalidRequest(id: Id | null, details: string): ErrorMessage {
  return invalid(id, { kind: "invalid_request", details });
}

/** The `data` of this error is a plain string, which existing clients expect. */
function missingField(id: Id | null, field: "jsonrpc" | "method"): ErrorMessage {
  return invalid(id, `Missing required field: ${field}`);
}

/** The reason why a message over the limit is neither read nor sent. */
export function tooLongText(maxBytes: number): string {
  return `Message longer than ${maxBytes} bytes (limits.messageBytes)`;
}

/** The error has the reason in its message too, since callers often see nothing else. */
export function tooLong(maxBytes: number, id: Id | null = null): ErrorMessage {
  const { error, ...fault } = invalidRequest(id, tooLongText(maxBytes));
  return { ...fault, error: { ...error, message: tooLongText(maxBytes) } };
}

/** Describes a fault in one line, for a person. */
export function faultText({ error }: ErrorMessage): string {
  const { message, data } = error;
  const details = typeof data === "string" ? data : (data as FaultData).details;
  return details === message ? message : `${message}: ${details}`;
}

function invalid(id: Id | null, data: FaultData | string): ErrorMessage {
  return { jsonrpc: "2.0", id, error: { code: -32600, message: "Invalid Request", data } };
}

// One pass over a message beside JSON.parse: it checks the nesting depth and finds tokens that must be sent back byte for
// byte. It is not a parser: for invalid JSON it may find nonsense, but then JSON.parse fails. It does not recurse, reads
// each character a bounded number of times, and allocates little. It takes as long as JSON.parse, so two quick looks tell
// whether a message can do without: most can.

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
  readonly batch: boolean;
  /** In the order of the text. Of tokens at the same path, only the last counts. */
  readonly tokens: readonly Token[] | undefined;
  /** Where the id is, for a message that cannot be parsed. `idEnd` is 0 if there is none, or if the text may cut it. */
  readonly idStart: number;
  readonly idEnd: number;
  /** Whether the message is a response as far as its keys tell. */
  readonly isResponse: boolean;
}

/** False if the text has too few brackets to be deeper than this. */
function mayBeDeep(text: string, maxDepth: number): boolean {
  if (text.length <= 2 * maxDepth) return false;
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
function hasPlainTokens(text: string, value: unknown): boolean {
  if (Array.isArray(value)) return false;
  const { id, params, result } = (value ?? {}) as NonNullable<Values>;
  // No valid message has both, so it need not be fast.
  if (params !== undefined && result !== undefined) return false;
  const meta = params?._meta ?? result?._meta;
  const others: readonly unknown[] = [params?.requestId, params?.progressToken, meta?.progressToken, meta?.[STREAM]];
  if (typeof id === "number" ? !isPlainId(text, id) : !isPlainString(text, id)) return false;
  for (const token of others) if (!isPlainString(text, token)) return false;
  return true;
}

const HEAD = '{"jsonrpc":"2.0",';

function isPlainId(text: string, id: number): boolean {
  if (!Number.isSafeInteger(id)) return false;
  const field = `"id":${id}`;
  if (text.endsWith(`,${field}}`)) return true;
  const next = text.charCodeAt(HEAD.length + field.length);
  if (!text.startsWith(field, HEAD.length) || (next !== COMMA && next !== CLOSE) || !text.startsWith(HEAD))
    return false;
  // Of two ids the last counts, and may be written differently.
  return !text.includes('"id"', HEAD.length + field.length);
}

/** Also true for what is no token. */
function isPlainString(text: string, token: unknown): boolean {
  return token === undefined || (typeof token === "string" && !text.includes("\\"));
}

const QUOTE = 34;
const COMMA = 44;
const MINUS = 45;
const COLON = 58;
const BACKSLASH = 92;
const CLOSE = 125;
const BRACE = 123; // with bit 32 set, `[` and `{` both have this code, and `]` and `}` both have this code plus 2

/** The name of the last key at each depth, from 1 on. Scans are synchronous, so they can share it. */
const keys: (string | undefined)[] = [];

/** Finds tokens only in the first `maxItems` items of a batch, since a longer batch is refused. */
function scan(text: string, maxDepth: number, maxItems: number): Scan {
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
      depth++;
      keys[depth] = undefined;
      if (depth > maxDepth) tooDeep = true;
    } else if ((c | 32) === BRACE + 2) depth--;
    else if (c === COMMA && depth === outside) item++;
  }
  return { tooDeep, batch: outside === 1, tokens, idStart, idEnd, isResponse: hasOutcome && !hasMethod };
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
  for (let at = 0; at < NAMES.length; at++) {
    const name = NAMES[at] as string;
    if (name.length === length && text.startsWith(name, open + 1)) return name;
  }
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
