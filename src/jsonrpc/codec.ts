// Converts between strings and JSON-RPC messages. `decode` never throws: it returns a message, a batch, or the error
// response for a string that is neither. `encode` writes a message on one line. A decoded message is the parsed object
// itself, so nothing is copied and unknown fields survive.

import { Buffer } from "node:buffer";
import { type ErrorMessage, ExactId, type Id, isId, type Message, stringify } from "./message.ts";
import { hasPlainTokens, mayBeDeep, scan, type Scan, type Token } from "./scan.ts";

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
export const DEFAULT_LIMITS = { messageBytes: 67_108_864, depth: 128, batch: 100 } as const satisfies Limits;

/** Objects and arrays in one message. Small ones need many times their text in memory. */
const MAX_CONTAINERS = 1_000_000;

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
  // One UTF-16 unit is one to three bytes of UTF-8, so most strings need no counting.
  if (text.length * 3 > limits.messageBytes && isTooLong(text, limits.messageBytes)) {
    return refuse(tooLong(limits.messageBytes));
  }
  const body = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  const hasRoom = body.length > 2 * limits.depth;
  let scanned = hasRoom && mayBeDeep(body, limits.depth) ? scan(body, limits.depth, limits.batch) : undefined;
  // Reject it before JSON.parse or any later code can recurse into it.
  if (scanned?.tooDeep === true) {
    const details = `Nested deeper than ${limits.depth} levels (limits.depth)`;
    return refuse(invalidRequest(readId(body, scanned), details), !scanned.isResponse);
  }

  if (scanned !== undefined && scanned.containers > MAX_CONTAINERS) {
    const details = `More than ${MAX_CONTAINERS} objects and arrays`;
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
    text = "jsonrpc" in message ? encodeOne(message) : `[${message.map(encodeOne).join(",")}]`;
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    throw new TypeError(`Message cannot be written as JSON: ${reason}`, { cause: error });
  }
  if (text.length * 3 > maxBytes && isTooLong(text, maxBytes)) throw new RangeError(tooLongText(maxBytes));
  return text;
}

function encodeOne(message: Message): string {
  if ("method" in message) {
    const id = "id" in message ? `"id":${idToJson(message.id)},` : "";
    const head = `{"jsonrpc":"2.0",${id}"method":${JSON.stringify(message.method)}`;
    return message.params === undefined ? `${head}}` : `${head},"params":${stringify("params", message.params)}}`;
  }
  const id = message.id === null ? "null" : idToJson(message.id);
  return "error" in message
    ? `{"jsonrpc":"2.0","id":${id},"error":${stringify("error", message.error)}}`
    : `{"jsonrpc":"2.0","id":${id},"result":${stringify("result", message.result)}}`;
}

function idToJson(id: Id): string {
  if (id instanceof ExactId) return id.raw;
  if (typeof id === "string") return JSON.stringify(id);
  if (Number.isFinite(id)) return String(id);
  throw new TypeError("id must be a string or a finite number");
}

function isTooLong(text: string, maxBytes: number): boolean {
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
    if (!isObject(holder)) continue;
    const value = holder[name];
    if (typeof value === "string" || typeof value === "number") holder[name] = toId(text.slice(start, end), value);
  }
}

/** Returns undefined for a valid message. JSON has no undefined, so an undefined field is a missing field. */
function check(value: unknown): Fault | undefined {
  if (Array.isArray(value))
    return { fault: invalidRequest(null, "A batch inside a batch is not a message"), answerable: true };
  if (!isObject(value)) return { fault: invalidRequest(null, "A message must be an object"), answerable: true };
  const { jsonrpc, id, method, params, result, error } = value;
  const isResponse = method === undefined && (result !== undefined || error !== undefined);
  let data: FaultData | string | undefined;
  let problem: string | undefined;
  // The `data` of the error for a missing field is a plain string, which existing clients expect.
  if (jsonrpc === undefined) data = "Missing required field: jsonrpc";
  else if (jsonrpc !== "2.0") problem = "Invalid jsonrpc version";
  else if (isResponse) problem = responseProblem(value);
  else if (method === undefined) data = "Missing required field: method";
  else if (typeof method !== "string") problem = "Invalid field: method must be a string";
  else if (id !== undefined && typeof id !== "number" && typeof id !== "string" && !(id instanceof ExactId)) {
    problem = "Invalid field: id must be a string or a number";
  } else if (params !== undefined && !isObject(params)) {
    problem = "Invalid field: params must be an object (JSON-RPC also allows an array, MCP does not)";
  } else if (result !== undefined) problem = "Invalid field: result is not allowed with method";
  else if (error !== undefined) problem = "Invalid field: error is not allowed with method";
  if (problem !== undefined) data = { kind: "invalid_request", details: problem };
  if (data === undefined) return undefined;
  return { fault: invalid(isId(id) ? id : null, data), answerable: !isResponse };
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
  const details = isObject(data) ? String(data["details"]) : String(data);
  return details === message ? message : `${message}: ${details}`;
}

function invalid(id: Id | null, data: FaultData | string): ErrorMessage {
  return { jsonrpc: "2.0", id, error: { code: -32600, message: "Invalid Request", data } };
}
