// Text <-> messages. `decode` gives for any text exactly one thing: a message, a batch, or the one
// answer that the faulty text gets; it never throws. `encode` writes a message on one line. The parsed
// object itself is the message: unknown fields survive, nothing is copied. What the methods and their
// params mean is not known here; how messages follow each other on a wire is framing's matter.

import { invalidRequest, missingField, parseError, tooLong } from "./fault.ts";
import { Exact, isId, stringify } from "./message.ts";
import type { ErrorMessage, Id, Message } from "./message.ts";
import { compilePaths, glimpse, scan } from "./scan.ts";
import type { Paths, Token } from "./scan.ts";

export interface Limits {
  /** Bytes of UTF-8 in one message. */
  readonly messageBytes: number;
  /** Objects and arrays inside each other; the message itself is the first. */
  readonly depth: number;
  /** Messages in one batch. */
  readonly batch: number;
}

export const DEFAULT_LIMITS: Limits = { messageBytes: 4 * 1024 * 1024, depth: 128, batch: 100 };

/** `answerable` is false for a broken answer: an error sent back for it would be an answer to an answer. */
export interface Fault {
  readonly fault: ErrorMessage;
  readonly answerable: boolean;
}

export type Decoded =
  | { readonly kind: "message"; readonly message: Message }
  | { readonly kind: "batch"; readonly items: readonly ({ readonly message: Message } | Fault)[] }
  | ({ readonly kind: "fault" } & Fault);

// Tokens besides the id by which one side names something to the other, so that each must come back as
// it was written: the id of a call being cancelled, and the marks of a progress or event stream.
const EXACT_PATHS: Paths = compilePaths([
  ["params", "requestId"],
  ["params", "progressToken"],
  ["params", "_meta", "progressToken"],
  ["params", "_meta", "io.modelcontextprotocol/subscriptionId"],
  ["result", "_meta", "progressToken"],
  ["result", "_meta", "io.modelcontextprotocol/subscriptionId"],
]);

type Parsed = { [key: string]: unknown };

/** `paths` says which tokens besides the id are kept as Exact where JavaScript would write them differently. */
export function decode(text: string, limits: Limits = DEFAULT_LIMITS, paths: Paths = EXACT_PATHS): Decoded {
  if (isTooLong(text, limits.messageBytes)) return refuse(tooLong(limits.messageBytes));
  const body = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
  const { tooDeep, batch, tokens } = scan(body, paths, limits.depth, limits.batch);
  // Nothing that might recurse has seen the text yet.
  if (tooDeep) return refuseDeep(body, batch, limits, paths);

  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch (error) {
    // The engine's message quotes some twenty characters of the text; the cut guards against one that quotes more.
    const reason = error instanceof Error ? error.message : "Not JSON";
    return refuse(parseError(reason.slice(0, 100)));
  }

  if (!Array.isArray(value)) {
    tokens?.forEach((token) => restore(value as Parsed, body, token));
    const fault = check(value);
    return fault === undefined ? { kind: "message", message: value as Message } : { kind: "fault", ...fault };
  }
  if (value.length === 0) return refuse(invalidRequest(null, "Empty batch"));
  if (value.length > limits.batch) {
    const details = `Batch of ${value.length} messages is over the limit of ${limits.batch} (limits.batch)`;
    return refuse(invalidRequest(null, details));
  }
  tokens?.forEach((token) => restore(value[token.item] as Parsed, body, token));
  return { kind: "batch", items: value.map((item: unknown) => check(item) ?? { message: item as Message }) };
}

/** One line without its newline. Throws a TypeError for what JSON cannot say (a cycle, a BigInt, no end of depth). */
export function encode(message: Message | readonly Message[]): string {
  try {
    if (isList(message)) return `[${message.map(encodeOne).join(",")}]`;
    return encodeOne(message);
  } catch (error) {
    const reason = error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error);
    throw new TypeError(`Message cannot be written as JSON: ${reason}`, { cause: error });
  }
}

function encodeOne(message: Message): string {
  if ("method" in message) {
    const id = "id" in message ? `"id":${idText(message.id)},` : "";
    const head = `{"jsonrpc":"2.0",${id}"method":${JSON.stringify(message.method)}`;
    return message.params === undefined ? `${head}}` : `${head},"params":${written("params", message.params)}}`;
  }
  const head = `{"jsonrpc":"2.0","id":${message.id === null ? "null" : idText(message.id)}`;
  if ("error" in message) return `${head},"error":${written("error", message.error)}}`;
  return `${head},"result":${written("result", message.result)}}`;
}

function written(name: string, value: unknown): string {
  const text = stringify(value);
  if (text === undefined) throw new TypeError(`${name} has no JSON form`);
  return text;
}

function idText(id: Id): string {
  if (id instanceof Exact) return id.raw;
  if (typeof id === "string" || Number.isFinite(id)) return JSON.stringify(id);
  throw new TypeError("id must be a string or a finite number");
}

function isList(message: Message | readonly Message[]): message is readonly Message[] {
  return Array.isArray(message);
}

function isTooLong(text: string, maxBytes: number): boolean {
  // One UTF-16 unit is one to three bytes of UTF-8, so most texts need no counting.
  if (text.length * 3 <= maxBytes) return false;
  return text.length > maxBytes || Buffer.byteLength(text, "utf8") > maxBytes;
}

function refuse(fault: ErrorMessage, answerable = true): Decoded {
  return { kind: "fault", fault, answerable };
}

function refuseDeep(text: string, batch: boolean, limits: Limits, paths: Paths): Decoded {
  const details = `Nested deeper than ${limits.depth} levels (limits.depth)`;
  if (batch) return refuse(invalidRequest(null, details));
  const seen = glimpse(text, paths);
  return refuse(invalidRequest(readToken(seen.id), details), seen.method || !seen.answer);
}

/** Who sent a line, from its beginning alone: for a line that cannot be read whole. */
export function beginning(head: string): { readonly id: Id | null; readonly answerable: boolean } {
  const { batch } = scan(head, EXACT_PATHS, DEFAULT_LIMITS.depth, 1);
  const seen = batch ? undefined : glimpse(head, EXACT_PATHS);
  if (seen === undefined) return { id: null, answerable: true };
  const id = seen.id?.includes("\ufffd") === true ? null : readToken(seen.id);
  return { id, answerable: seen.method || !seen.answer };
}

function readToken(raw: string | undefined): Id | null {
  if (raw === undefined) return null;
  try {
    const value: unknown = JSON.parse(raw);
    return typeof value === "string" || typeof value === "number" ? exactly(raw, value) : null;
  } catch {
    return null;
  }
}

function exactly(raw: string, value: string | number): Id {
  if ((typeof value === "number" ? String(value) : JSON.stringify(value)) === raw) return value;
  // Half a surrogate pair, not escaped, has no UTF-8; written anew by JSON.stringify it survives.
  return /[\ud800-\udfff]/u.test(raw) ? value : new Exact(raw, value);
}

/** The scan saw every name of the path as an own key, so the walk meets no prototype. */
function restore(root: Parsed, text: string, token: Token): void {
  const last = token.path.length - 1;
  let holder = root;
  for (let at = 0; at < last; at++) holder = holder[token.path[at] ?? ""] as Parsed;
  const name = token.path[last] ?? "";
  const value = holder[name];
  if (typeof value === "string" || typeof value === "number") {
    holder[name] = exactly(text.slice(token.start, token.end), value);
  }
}

/** The fault of a parsed value as a message, or undefined where it is one. JSON has no undefined: that is "absent". */
function check(value: unknown): Fault | undefined {
  if (Array.isArray(value)) return wrong(null, "A batch inside a batch is not a message");
  if (!isObject(value)) return wrong(null, "A message must be an object");
  const { jsonrpc, id, method, params, result, error } = value;
  const readable = isId(id) ? id : null;
  const isAnswer = method === undefined && (result !== undefined || error !== undefined);
  const answerable = !isAnswer;
  if (jsonrpc === undefined) return { fault: missingField(readable, "jsonrpc"), answerable };
  if (jsonrpc !== "2.0") return wrong(readable, "Invalid jsonrpc version", answerable);
  if (method === undefined && !isAnswer) return { fault: missingField(readable, "method"), answerable };
  const details = isAnswer ? answerFault(value) : requestFault(method, id, params, result, error);
  return details === undefined ? undefined : wrong(readable, details, answerable);
}

function requestFault(
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
  if (result !== undefined) return "Invalid field: result cannot stand beside method";
  if (error !== undefined) return "Invalid field: error cannot stand beside method";
  return undefined;
}

function answerFault(answer: Parsed): string | undefined {
  const { id, result, error } = answer;
  if (result !== undefined) {
    if (error !== undefined) return "Invalid field: result and error exclude each other";
    if (!isObject(result)) return "Invalid field: result must be an object";
    if (id === undefined) return "Missing required field: id";
    return isId(id) ? undefined : "Invalid field: id must be a string or a number";
  }
  if (!isObject(error)) return "Invalid field: error must be an object";
  if (!Number.isInteger(error["code"])) return "Invalid field: error.code must be an integer";
  if (typeof error["message"] !== "string") return "Invalid field: error.message must be a string";
  // An error may leave out the id that it could not read; inside the house it is null then.
  if (id === undefined) answer["id"] = null;
  else if (id !== null && !isId(id)) return "Invalid field: id must be a string, a number or null";
  return undefined;
}

function wrong(id: Id | null, details: string, answerable = true): Fault {
  return { fault: invalidRequest(id, details), answerable };
}

function isObject(value: unknown): value is Parsed {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Exact);
}
