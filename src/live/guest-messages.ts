// What a guest says, as far as it is listened to. What runs in a guest can write to its channel too, so nothing that
// comes by it may cost the host more than it is worth: not many values in one message, not many messages that nobody
// asked for, and nothing for an answer that has not the shape of one. What is done with them is the guest's matter.

import { isObject } from "../core/objects.ts";
import type { Reply } from "./guest.ts";

/** A message of more characters than this has few values: it is long because a text in it is. */
const LONG = 64 * 1024;
const MOST_VALUES = 50_000;

const QUOTE = 34;
const COMMA = 44;
const BACKSLASH = 92;
const BRACKET = 91;
const BRACE = 123;

/** Throws where it is no message. */
export function understood(text: string): Reply {
  if (text.length > LONG && hasMany(text)) throw new Error("a message has too many values");
  // Half of a character has an escape in JSON, and many who read JSON refuse it.
  const message: unknown = text.includes("\\ud") ? JSON.parse(text, whole) : JSON.parse(text);
  if (!isObject(message)) throw new Error("a message is no object");
  return message;
}

function whole(_key: string, value: unknown): unknown {
  return typeof value === "string" ? value.replace(/\p{Cs}/gu, "\ufffd") : value;
}

function hasMany(text: string): boolean {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = closing(text, at);
    else if ((code === COMMA || code === BRACKET || code === BRACE) && (count += 1) > MOST_VALUES) return true;
  }
  return false;
}

/** Where the string ends that begins at `open`. */
function closing(text: string, open: number): number {
  for (let at = text.indexOf('"', open + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at - 1;
    while (text.charCodeAt(before) === BACKSLASH) before -= 1;
    if ((at - before) % 2 === 1) return at;
  }
  return text.length;
}

/** What may come unasked: so many pieces at once, so many more each second, and some with each request. */
const MOST_PIECES = 4_000;
const PIECES_A_SECOND = 400;
const PIECES_A_REQUEST = 64;
/** Characters of a piece. */
const PIECE = 4_096;

/** How much is still listened to of what no request waits for: output, news, and what means nothing. */
export class Patience {
  #left = MOST_PIECES;
  #since = performance.now();

  /** A request was sent: it may print so many characters. */
  asked(chars: number): void {
    this.#left = Math.min(MOST_PIECES, this.#left + PIECES_A_REQUEST + (4 * chars) / PIECE);
  }

  /** Throws where it is too much. */
  heard(chars: number): void {
    this.#left -= 1 + chars / PIECE;
    if (this.#left >= 0) return;
    const now = performance.now();
    this.#left += ((now - this.#since) / 1000) * PIECES_A_SECOND;
    this.#since = now;
    this.#left = Math.min(MOST_PIECES, this.#left);
    if (this.#left < 0) throw new Error("it says too much that nobody asked for");
  }
}

/** The same; throws where it is not what a guest answers to an evaluation: what it runs may have answered in its place. */
export function checkedEvaluation(said: Reply): Reply {
  if (isEvaluation(said)) return said;
  throw new Error("What came from the session's process is no answer to an evaluation; did the code write to fd 3?");
}

function isEvaluation({ status, values, warnings, condition, package: name, timing, dropped }: Reply): boolean {
  return (
    (status === "ok" || status === "error" || status === "interrupted") &&
    isList(values, isText) &&
    isList(warnings, isWarning) &&
    (condition === undefined || isCondition(condition)) &&
    (name === undefined || isText(name)) &&
    isObject(timing) &&
    isCount(timing["realMs"]) &&
    [timing["runMs"], timing["gcMs"], timing["bytes"]].every(isCountOrNone) &&
    (dropped === undefined || (isObject(dropped) && [dropped["stdout"], dropped["stderr"]].every(isCountOrNone)))
  );
}

function isList(value: unknown, is: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(is);
}

function isText(value: unknown): boolean {
  return typeof value === "string";
}

function isCount(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value);
}

function isCountOrNone(value: unknown): boolean {
  return value === undefined || isCount(value);
}

function isWarning(value: unknown): boolean {
  return isObject(value) && isText(value["type"]) && isText(value["message"]);
}

function isCondition(value: unknown): boolean {
  return (
    isWarning(value) && isObject(value) && isList(value["restarts"], isRestart) && isList(value["frames"], isFrame)
  );
}

function isRestart(value: unknown): boolean {
  return isObject(value) && (value["name"] === null || isText(value["name"])) && isText(value["description"]);
}

function isFrame(value: unknown): boolean {
  return isObject(value) && Number.isInteger(value["number"]) && isText(value["text"]);
}
