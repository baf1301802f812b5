// A long message out of its bytes, without a text of the whole. Such a text would be as long as the message, and V8,
// which keeps what JSON.parse reads until it has parsed it, is in no hurry to collect it: five messages of 10 MB in a
// row took up to 8 times the bytes of one, and 17 times where a character beyond Latin-1 doubles the text. What makes
// a message long is nearly always a few strings; so those are cut out and read by themselves, and the rest, which is
// short, is decoded as every message is. Where that would not do, the whole text is decoded after all.

import { decode } from "./codec.ts";
import type { Decoded, Limits } from "./codec.ts";
import { parseError } from "./fault.ts";
import { Exact } from "./message.ts";
import { readString } from "./string-bytes.ts";

/** Shorter ones are read faster as a text. */
export const LONG_MESSAGE: number = 1024 * 1024;
const LONG_STRING = 64 * 1024;
/** So many strings are looked at: a message that is made of short ones is long for another reason. */
const MOST_STRINGS = 4096;
const SCRATCH_BYTES = 4096;

const TAB = 9;
const NEWLINE = 10;
const RETURN = 13;
const SPACE = 32;
const QUOTE = 34;
const COLON = 58;
const BACKSLASH = 92;

/** Of the bytes of a string without its quotes. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/** Where in the parsed message a string is missing. */
interface Gap {
  readonly holder: Record<string, unknown>;
  readonly key: string;
  readonly span: Span;
}

/** What `decode` gives for their text. The bytes are written over. `longString`: strings from that length are cut out. */
export function decodeLong(bytes: Buffer, limits: Limits, longString: number = LONG_STRING): Decoded {
  const whole = (): Decoded => decode(bytes.toString("utf8"), limits);
  const spans = bytes.length > limits.messageBytes ? [] : longStrings(bytes, longString);
  if (spans.length === 0) return whole();
  // Made anew each time, so nobody can write it in advance.
  const mark = crypto.randomUUID();
  const decoded = decode(withoutStrings(bytes, spans, mark), limits);
  // What is wrong with it, or with one of many, must be told of the message as it is.
  if (decoded.kind !== "message") return whole();
  const gaps = gapsIn(decoded.message as unknown as Record<string, unknown>, spans, mark);
  // One that is not there was replaced by a key that came twice, and may have been no string at all.
  if (gaps?.length !== spans.length) return whole();
  try {
    for (const { holder, key, span } of gaps) holder[key] = readString(bytes, span.start, span.end);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "Not JSON";
    return { kind: "fault", fault: parseError(reason.slice(0, 100)), answerable: true };
  }
  return decoded;
}

function longStrings(bytes: Buffer, length: number): Span[] {
  const spans: Span[] = [];
  const scratch = new Uint8Array(SCRATCH_BYTES);
  let open = bytes.indexOf(QUOTE);
  for (let seen = 0; open !== -1 && seen < MOST_STRINGS; seen += 1) {
    const end = stringEnd(bytes, open, scratch);
    if (end === -1) break;
    const start = open + 1;
    if (end - start >= length && !isKey(bytes, end + 1)) spans.push({ start, end });
    open = bytes.indexOf(QUOTE, end + 1);
  }
  return spans;
}

/** The closing quote, or -1. */
function stringEnd(bytes: Buffer, open: number, scratch: Uint8Array): number {
  const quote = bytes.indexOf(QUOTE, open + 1);
  if (quote === -1 || bytes[quote - 1] !== BACKSLASH) return quote;
  // With many quotes inside, to look at each byte of a copy is faster than to search for each quote.
  for (let from = open + 1; from < bytes.length;) {
    const length = bytes.copy(scratch, 0, from);
    let at = 0;
    while (at < length && scratch[at] !== QUOTE) at += scratch[at] === BACKSLASH ? 2 : 1;
    from += at;
    if (at < length) return from;
  }
  return -1;
}

function isKey(bytes: Buffer, after: number): boolean {
  let at = after;
  for (let c = bytes[at]; c === SPACE || c === TAB || c === NEWLINE || c === RETURN; c = bytes[at]) at += 1;
  return bytes[at] === COLON;
}

/** The text of the rest, with a mark for each string that is missing. */
function withoutStrings(bytes: Buffer, spans: readonly Span[], mark: string): string {
  let text = "";
  let from = 0;
  spans.forEach(({ start, end }, at) => {
    // Nobody writes an A like this, so a mark in the place of an id becomes Exact, and is seen to stand for one.
    text += `${bytes.toString("utf8", from, start)}\\u0041${mark}:${at}`;
    from = end;
  });
  return text + bytes.toString("utf8", from);
}

/** Undefined where a long string stands for an id: that must come back as it was written. */
function gapsIn(message: Record<string, unknown>, spans: readonly Span[], mark: string): Gap[] | undefined {
  const prefix = `A${mark}:`;
  const spanOf = (value: unknown): Span | undefined =>
    typeof value === "string" && value.startsWith(prefix) ? spans[Number(value.slice(prefix.length))] : undefined;
  const gaps: Gap[] = [];
  const holders = [message];
  for (let holder = holders.pop(); holder !== undefined; holder = holders.pop()) {
    for (const key of Object.keys(holder)) {
      const value = holder[key];
      const span = spanOf(value);
      if (span !== undefined) gaps.push({ holder, key, span });
      else if (value instanceof Exact) {
        if (spanOf(value.value) !== undefined) return undefined;
      } else if (typeof value === "object" && value !== null) holders.push(value as Record<string, unknown>);
    }
  }
  return gaps;
}
