// What is kept of one call, as one text: a line that says what is where, and a line of JSON for each value. The request of
// the client, that of the handler and that of the upstream are often the same value, which is then there once.

import type { ObservedCall } from "../chain/observe.ts";
import { NO_STEPS, type Step } from "../chain/steps.ts";
import type { HttpHead, Request, Result, StepKind, WirePassage } from "../core/handler.ts";
import { headText } from "../core/http-head.ts";
import { defined, errorMessage, isObject } from "../core/values.ts";
import { McpError, toMcpError } from "../protocol/errors.ts";
import { estimateLength, heldBytes } from "./lengths.ts";
import type { KeptText } from "./chunked-log.ts";

/** So many messages of one call are kept, and about so many characters of them: the first and the last. */
const MAX_PASSAGES = 200;
const MAX_PASSAGES_LENGTH = 1024 * 1024;
const FIRST_PASSAGES = 50;
/** More messages than a usual call has. */
const USUAL_PASSAGES = 6;
/** Longer values are kept as they are, since writing them would take long. */
const MAX_WRITTEN = 32 * 1024;

/** What the log reads of a call. */
export type LoggedCall = Pick<ObservedCall, "request" | "result" | "error" | "steps" | "upstream" | "sent" | "item">;

/** A question or a call, while it runs and when it is read again. A class, since objects made by spreads take long. */
export class CallRecord {
  readonly id: number;
  /** In milliseconds since 1970, and by the clock of `performance.now()`. */
  readonly at: number;
  readonly startedAt: number;
  readonly request: Request;
  /** While it runs. */
  call: LoggedCall | undefined;
  result: Result | undefined = undefined;
  error: unknown = undefined;
  steps: readonly Step[] = NO_STEPS;
  /** The messages, and when each passed, in milliseconds since 1970. */
  wire: WirePassage[] = [];
  times: number[] = [];
  /** Whether messages were dropped from the middle of a call with many. */
  isWireCut = false;
  /** How long params and result are as JSON, if that was counted. */
  readonly lengths: [params?: number | undefined, result?: number | undefined] = [];
  #wireLength = 0;

  constructor(id: number, at: number, request: Request, startedAt: number, call?: LoggedCall) {
    this.call = call;
    this.id = id;
    this.at = at;
    this.request = request;
    this.startedAt = startedAt;
  }

  /** It is over. */
  end({ result, error, steps }: LoggedCall, length: number | undefined): void {
    this.call = undefined;
    this.lengths[1] = length;
    this.result = result;
    this.error = error;
    this.steps = steps;
  }

  passed(passage: WirePassage, at: number): void {
    const { wire, times } = this;
    wire.push(passage);
    times.push(at);
    if (wire.length <= USUAL_PASSAGES) return;
    this.#wireLength += estimateLength(passage.message);
    if (wire.length <= MAX_PASSAGES && this.#wireLength <= MAX_PASSAGES_LENGTH) return;
    const first = Math.min(FIRST_PASSAGES, wire.length >> 1);
    const [cut] = wire.splice(first, 1);
    times.splice(first, 1);
    this.#wireLength -= estimateLength(cut?.message);
    this.isWireCut = true;
  }
}

type Ref = number;
type StepText = [
  StepKind,
  name: string,
  method: string,
  params: Ref,
  result: Ref,
  error: Ref,
  startedAt: number,
  endedAt: number,
  steps: StepText[],
];
type ErrorText = [code: number, message: Ref, data: Ref];
/** `false` in the place of an id says that there is none. A message of another kind is one value. */
type MessageText = [id: unknown, method: string | 0, params: Ref, result: Ref, error: Ref] | Ref;
type PassageText = [sides: number, at: number, message: MessageText, head: Ref, revision: string, upstream?: string];
interface RecordText {
  /** When it began. Times of steps are relative to it, in microseconds, and those of messages to the time of the row. */
  readonly t: number;
  readonly m: string;
  readonly p: Ref;
  readonly r: Ref;
  readonly e: ErrorText | 0;
  readonly s: StepText[];
  readonly w: PassageText[];
  readonly c: 0 | 1;
  /** Which values are not written, but kept as they are. */
  readonly l: Ref[] | 0;
}

const NONE = -1;
const NOT_SERIALIZABLE = "(not serializable)";
/** Stands for a value with too many values in it. */
export const NOT_KEPT = "(too many values to keep)";

export interface EncodedRecord extends KeptText {
  /** About how many bytes the large values take. */
  readonly largeBytes: number;
}

/** Never throws, whatever the values of user code are. */
export function encodeRecord(record: CallRecord): EncodedRecord {
  try {
    return new RecordWriter(record).write();
  } catch {
    const { id, at, request, startedAt } = record;
    const bare = new CallRecord(id, at, { method: request.method, params: NOT_SERIALIZABLE as never }, startedAt);
    return new RecordWriter(bare).write();
  }
}

/** Puts the text together itself: JSON.stringify of what is where would take as long as all values. */
class RecordWriter {
  readonly #record: CallRecord;
  readonly #values: unknown[] = [];
  readonly #large: unknown[] = [];
  #lines = "";
  #largeAt = "";
  #largeBytes = 0;

  constructor(record: CallRecord) {
    this.#record = record;
  }

  write(): EncodedRecord {
    const { request, result, error, wire, startedAt, isWireCut, call, lengths } = this.#record;
    const { steps } = call ?? this.#record;
    const { method, params } = request;
    const first =
      `{"t":${startedAt},"m":${quoted(method)},"p":${this.#ref(params, lengths[0])},"r":${this.#ref(result, lengths[1])}` +
      `,"e":${error === undefined ? 0 : this.#error(error)},"s":${this.#steps(steps)},"w":${this.#passages(wire)}` +
      `,"c":${isWireCut ? 1 : 0},"l":${this.#largeAt === "" ? 0 : `[${this.#largeAt}]`}}`;
    return { text: first + this.#lines, large: this.#large, largeBytes: this.#largeBytes };
  }

  #ref(value: unknown, known?: number): Ref {
    if (value === undefined) return NONE;
    const same = this.#values.indexOf(value);
    if (same !== -1) return same;
    const bytes = known ?? heldBytes(value);
    if (bytes === undefined) return this.#add(value, JSON.stringify(NOT_KEPT));
    if (bytes <= MAX_WRITTEN) {
      const equal = typeof value === "object" ? this.#equalTo(value) : -1;
      return equal === -1 ? this.#add(value, jsonOf(value)) : equal;
    }
    this.#large.push(value);
    this.#largeBytes += bytes;
    const at = this.#add(value, "0");
    this.#largeAt += this.#largeAt === "" ? at : `,${at}`;
    return at;
  }

  /** A copy of params with the same content, as for an upstream, takes less time to compare than to write. */
  #equalTo(value: unknown): Ref {
    const values = this.#values;
    try {
      for (let at = 0; at < values.length; at += 1) {
        if (isEqual(values[at], value, MAX_COMPARED_DEPTH)) return at;
      }
    } catch {
      // A getter of user code.
    }
    return NONE;
  }

  #add(value: unknown, json: string): Ref {
    this.#lines += `\n${json}`;
    return this.#values.push(value) - 1;
  }

  #error(error: unknown): string {
    const { code, message, data } = toMcpError(error);
    return `[${code},${this.#ref(message)},${this.#ref(data)}]`;
  }

  #steps(steps: readonly Step[]): string {
    let text = "";
    for (const step of steps) text += text === "" ? this.#step(step) : `,${this.#step(step)}`;
    return `[${text}]`;
  }

  #step({ kind, name, request, result, error, startedAt, endedAt, steps }: Step): string {
    const failure = this.#ref(error === undefined ? undefined : errorMessage(error));
    return (
      `["${kind}",${quoted(name)},${quoted(request.method)},${this.#ref(request.params)},${this.#ref(result)},${failure}` +
      `,${this.#us(startedAt)},${endedAt === undefined ? NONE : this.#us(endedAt)},${this.#steps(steps)}]`
    );
  }

  #us(time: number): number {
    return Math.max(0, Math.round((time - this.#record.startedAt) * 1_000));
  }

  #passages(wire: readonly WirePassage[]): string {
    const { at, times } = this.#record;
    let text = "";
    for (let index = 0; index < wire.length; index += 1) {
      if (index > 0) text += ",";
      text += this.#passage(wire[index]!, (times[index] ?? at) - at);
    }
    return `[${text}]`;
  }

  #passage({ side, sender, upstream, revision = "", message, http }: WirePassage, passedAt: number): string {
    const sides = (side === "client" ? 0 : 1) + (sender === "client" ? 0 : 2);
    const head = http === undefined ? NONE : this.#add(http, headText(http));
    const text = message === undefined ? NONE : this.#message(message);
    const from = upstream === undefined ? "" : `,${quoted(upstream)}`;
    return `[${sides},${passedAt},${text},${head},${quoted(revision)}${from}]`;
  }

  #message(message: object): string | Ref {
    const fields = message as Readonly<Record<string, unknown>>;
    let id = "false";
    let method = "0";
    let params: Ref = NONE;
    let result: Ref = NONE;
    let error: Ref = NONE;
    for (const name in fields) {
      const value = fields[name];
      if (name === "jsonrpc" || value === undefined) continue;
      if (name === "id") id = typeof value === "number" ? String(value) : jsonOf(value);
      else if (name === "method" && typeof value === "string") method = quoted(value);
      else if (name === "params") params = this.#ref(value);
      else if (name === "result") result = this.#ref(value);
      else if (name === "error") error = this.#ref(value);
      else return this.#ref(message);
    }
    return `[${id},${method},${params},${result},${error}]`;
  }
}

const MAX_COMPARED_DEPTH = 20;

function isEqual(one: unknown, other: unknown, depth: number): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null || depth === 0)
    return false;
  if (Array.isArray(one) !== Array.isArray(other) || "toJSON" in one || "toJSON" in other) return false;
  const fields = one as Readonly<Record<string, unknown>>;
  let left = 0;
  for (const name in one) if (fields[name] !== undefined) left += 1;
  for (const name in other) {
    const field = (other as Readonly<Record<string, unknown>>)[name];
    if (field === undefined) continue;
    left -= 1;
    if (!isEqual(fields[name], field, depth - 1)) return false;
  }
  return left === 0;
}

const MAX_QUOTED = 1_000;
const quotedTexts = new Map<string, string>();

/** Names repeat. */
function quoted(text: string): string {
  const known = quotedTexts.get(text);
  if (known !== undefined) return known;
  const json = JSON.stringify(text);
  if (text.length > 100) return json;
  if (quotedTexts.size >= MAX_QUOTED) quotedTexts.clear();
  quotedTexts.set(text, json);
  return json;
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "null";
  } catch {
    return `"${NOT_SERIALIZABLE}"`;
  }
}

export function decodeRecord(id: number, at: number, { text, large }: KeptText): CallRecord {
  const [first = "", ...lines] = text.split("\n");
  const { t, m, p, r, e, s, w, c, l } = JSON.parse(first) as RecordText;
  const values = lines.map((line): unknown => JSON.parse(line));
  // What was not written may have changed since, and may be what cannot be written at all.
  if (l !== 0) for (const [index, ref] of l.entries()) values[ref] = JSON.parse(jsonOf(large[index]));
  const valueOf = (ref: Ref): unknown => (ref === NONE ? undefined : values[ref]);
  const stepOf = ([kind, name, method, params, result, error, startedAt, endedAt, steps]: StepText): Step => ({
    ...{ kind, name, request: { method, params: valueOf(params) as Request["params"] } },
    ...{ result: valueOf(result) as Result | undefined, error: valueOf(error) },
    startedAt: t + startedAt / 1_000,
    endedAt: endedAt === NONE ? undefined : t + endedAt / 1_000,
    steps: steps.map(stepOf),
  });
  const messageOf = (message: MessageText): object | undefined => {
    if (typeof message === "number") {
      const whole = valueOf(message);
      return whole === undefined || isObject(whole) ? whole : { jsonrpc: "2.0", message: whole };
    }
    const [messageId, method, params, result, error] = message;
    const fields = { params: valueOf(params), result: valueOf(result), error: valueOf(error) };
    return {
      jsonrpc: "2.0",
      ...(messageId !== false && { id: messageId }),
      ...(method !== 0 && { method }),
      ...defined(fields),
    };
  };
  const passageOf = ([sides, , message, head, revision, upstream = ""]: PassageText): WirePassage => ({
    side: sides % 2 === 0 ? "client" : "upstream",
    sender: sides < 2 ? "client" : "server",
    ...defined({ message: messageOf(message), http: valueOf(head) as HttpHead | undefined }),
    ...(revision !== "" && { revision }),
    ...(upstream !== "" && { upstream }),
  });
  const record = new CallRecord(id, at, { method: m, params: valueOf(p) as Request["params"] }, t);
  record.result = valueOf(r) as Result | undefined;
  record.error = e === 0 ? undefined : new McpError(e[0], String(valueOf(e[1])), valueOf(e[2]));
  record.steps = s.map(stepOf);
  record.wire = w.map(passageOf);
  record.times = w.map(([, passedAt]) => at + passedAt);
  record.isWireCut = c === 1;
  return record;
}
