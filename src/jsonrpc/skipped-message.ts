// Reads the id of a message that is too long to keep, from its bytes as they pass, wherever the id is. So the call that
// the message belongs to can fail with the reason, and nothing of the message is kept but its id.

import { Buffer } from "node:buffer";
import { BACKSLASH, BRACE, CLOSE, COLON, COMMA, NEWLINE, QUOTE, RETURN, SPACE, TAB } from "./characters.ts";
import { readToken } from "./codec.ts";
import { type Id, plainId } from "./message.ts";

/** A longer id is not read. */
const MAX_TOKEN_BYTES = 1024;

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

export class SkippedMessage {
  id: Id | null = null;
  #hasMethod = false;
  #hasOutcome = false;
  /** Whether nothing more can be learned: the message has ended, or it is not an object. */
  #isOver = false;
  #depth = 0;
  #isInString = false;
  /** Inside a string: whether the next byte is escaped. */
  #isEscaped = false;
  /** The last key of the message; undefined until its colon has passed. */
  #key: string | undefined;
  /** The key or the id that is being read, as latin1. */
  #token = "";

  /** Whether the id is known, and what the message is. More bytes cannot change this, so they need not be pushed. */
  get isKnown(): boolean {
    return this.#isOver || (this.id !== null && (this.#hasMethod || this.#hasOutcome));
  }

  /** Whether to answer the message with an error. A response must not be answered, and neither must a notification. */
  get isAnswerable(): boolean {
    return this.#hasMethod ? this.id !== null : !this.#hasOutcome;
  }

  push(bytes: Buffer, start: number = 0, end: number = bytes.length): void {
    const part = start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);
    for (let at = 0; at < part.length && !this.isKnown;) {
      if (this.#isInString) at = this.#skipString(part, at);
      else this.#take(part[at++] ?? 0);
    }
  }

  /** Returns where the string ends, or the length of the bytes. */
  #skipString(bytes: Buffer, from: number): number {
    const quote = bytes.indexOf(QUOTE, from);
    const end = quote === -1 ? bytes.length : quote;
    let first = end;
    while (first > from && bytes[first - 1] === BACKSLASH) first -= 1;
    const isOdd = (end - first) % 2 === 1;
    this.#isEscaped = first === from ? isOdd !== this.#isEscaped : isOdd;
    if (this.#depth === 1) this.#keep(bytes, from, end);
    if (quote === -1) return end;
    if (this.#depth === 1) this.#keep(bytes, end, end + 1);
    if (!this.#isEscaped) this.#isInString = false;
    this.#isEscaped = false;
    return end + 1;
  }

  /** Takes a byte outside of strings. */
  #take(byte: number): void {
    if (byte === SPACE || byte === NEWLINE || byte === RETURN || byte === TAB) return;
    if (this.#depth === 0) {
      if (byte === BRACE) this.#depth = 1;
      else if (!BYTE_ORDER_MARK.includes(byte)) this.#isOver = true;
      return;
    }
    if (byte === QUOTE) this.#isInString = true;
    else if ((byte | SPACE) === BRACE) this.#depth += 1;
    else if ((byte | SPACE) === CLOSE) this.#depth -= 1;
    if (this.#depth > 1 || (byte | SPACE) === BRACE) return;
    if ((byte | SPACE) === CLOSE) {
      // The end of the message, or of a value in it.
      if (this.#depth === 0) this.#endValue();
      this.#isOver = this.#depth === 0;
    } else if (byte === COMMA) this.#endValue();
    else if (byte === COLON && this.#key === undefined) this.#endKey();
    else if (this.#token.length <= MAX_TOKEN_BYTES && (this.#key === undefined || this.#key === "id")) {
      this.#token += String.fromCharCode(byte);
    }
  }

  #keep(bytes: Buffer, from: number, end: number): void {
    if (this.#key !== undefined && this.#key !== "id") return;
    // One byte more than the maximum shows that it is too long.
    const room = MAX_TOKEN_BYTES + 1 - this.#token.length;
    this.#token += bytes.toString("latin1", from, Math.min(end, from + Math.max(room, 0)));
  }

  #endKey(): void {
    const key = plainId(readToken(this.#token));
    this.#key = typeof key === "string" ? key : "";
    this.#hasMethod ||= key === "method";
    this.#hasOutcome ||= key === "result" || key === "error";
    this.#token = "";
  }

  #endValue(): void {
    if (this.#key === "id" && this.#token.length <= MAX_TOKEN_BYTES) {
      this.id = readToken(Buffer.from(this.#token, "latin1").toString());
    }
    this.#key = undefined;
    this.#token = "";
  }
}
