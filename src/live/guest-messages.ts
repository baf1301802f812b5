// Validates messages from the guest process. The user's code can write to the guest's channel too, so no message may
// take much of the host's time or memory. Checks the number of values, the rate of unrequested messages and the shape
// of an evaluation.

import { isObject } from "../core/values.ts";

/** A message from the guest, or the result in it. */
export type GuestReply = { readonly [key: string]: unknown };

/** Values are counted only in longer messages. Counting skips strings, which a normal long message mostly consists of. */
const MIN_SCANNED_LENGTH = 64 * 1024;
const MAX_VALUES = 50_000;

const QUOTE = 34;
const COMMA = 44;
const BACKSLASH = 92;
const BRACKET = 91;
const BRACE = 123;

/** Throws if the text is not a valid message. */
export function parseGuestMessage(text: string): GuestReply {
  if (text.length > MIN_SCANNED_LENGTH && hasTooManyValues(text)) throw new Error("a message has too many values");
  // JSON can contain an escaped half of a surrogate pair, which many clients refuse.
  const message: unknown = /\\ud/i.test(text) ? JSON.parse(text, replaceLoneSurrogates) : JSON.parse(text);
  if (!isObject(message)) throw new Error("a message is not an object");
  return message;
}

function replaceLoneSurrogates(_key: string, value: unknown): unknown {
  return typeof value === "string" ? value.replace(/\p{Cs}/gu, "\ufffd") : value;
}

function hasTooManyValues(text: string): boolean {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if ((code === COMMA || code === BRACKET || code === BRACE) && (count += 1) > MAX_VALUES) return true;
  }
  return false;
}

/** The index of the closing quote of the string that begins at `open`. */
function endOfString(text: string, open: number): number {
  for (let at = text.indexOf('"', open + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at - 1;
    while (text.charCodeAt(before) === BACKSLASH) before -= 1;
    if ((at - before) % 2 === 1) return at;
  }
  return text.length;
}

/** A token bucket for unrequested messages: its size, its refill per second, and its refill per request. */
const MAX_TOKENS = 4_000;
const TOKENS_PER_SECOND = 400;
const TOKENS_PER_REQUEST = 64;
/** Characters that cost one token. */
const CHARS_PER_TOKEN = 4_096;

/** Limits messages that answer no request: output, events, and anything unknown. */
export class UnrequestedLimit {
  #tokens = MAX_TOKENS;
  #since = performance.now();

  /** Call it when a request is sent that may print this many characters. */
  onRequest(chars: number): void {
    this.#tokens = Math.min(MAX_TOKENS, this.#tokens + TOKENS_PER_REQUEST + (4 * chars) / CHARS_PER_TOKEN);
  }

  /** Throws if there have been too many messages. */
  onMessage(chars: number): void {
    this.#tokens -= 1 + chars / CHARS_PER_TOKEN;
    if (this.#tokens >= 0) return;
    const now = performance.now();
    this.#tokens += ((now - this.#since) / 1000) * TOKENS_PER_SECOND;
    this.#since = now;
    this.#tokens = Math.min(MAX_TOKENS, this.#tokens);
    if (this.#tokens < 0) throw new Error("it sent too many unrequested messages");
  }
}

/** Returns the reply; throws if it does not have the shape of an evaluation. */
export function checkEvaluation(reply: GuestReply): GuestReply {
  if (isEvaluation(reply)) return reply;
  throw new Error("The session's process sent an invalid evaluation result; did the code write to file descriptor 3?");
}

function isEvaluation({ status, values, warnings, condition, package: name, timing, dropped }: GuestReply): boolean {
  return (
    (status === "ok" || status === "error" || status === "interrupted") &&
    isArrayOf(values, isString) &&
    isArrayOf(warnings, isWarning) &&
    (condition === undefined || isCondition(condition)) &&
    (name === undefined || isString(name)) &&
    isObject(timing) &&
    isFiniteNumber(timing["realMs"]) &&
    [timing["runMs"], timing["gcMs"], timing["bytes"]].every(isOptionalNumber) &&
    (dropped === undefined || (isObject(dropped) && [dropped["stdout"], dropped["stderr"]].every(isOptionalNumber)))
  );
}

function isArrayOf(value: unknown, is: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(is);
}

function isString(value: unknown): boolean {
  return typeof value === "string";
}

function isFiniteNumber(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value);
}

function isOptionalNumber(value: unknown): boolean {
  return value === undefined || isFiniteNumber(value);
}

function isWarning(value: unknown): boolean {
  return isObject(value) && isString(value["type"]) && isString(value["message"]);
}

function isCondition(value: unknown): boolean {
  return (
    isWarning(value) &&
    isObject(value) &&
    isArrayOf(value["restarts"], isRestart) &&
    isArrayOf(value["frames"], isFrame)
  );
}

function isRestart(value: unknown): boolean {
  return isObject(value) && (value["name"] === null || isString(value["name"])) && isString(value["description"]);
}

function isFrame(value: unknown): boolean {
  return isObject(value) && Number.isInteger(value["number"]) && isString(value["text"]);
}
