// Decodes a long message from its bytes without converting all of it to one string, which V8 would free late: five
// messages of 10 MB in a row took up to 8 times the memory of one, and 17 times if a character beyond Latin-1 doubles
// the string. A message is nearly always long because of a few strings, so these are cut out and decoded separately.
// The short rest is decoded like any other message. If that fails, the whole message is decoded as one string.

import { decode, type Decoded, type Limits, parseError } from "./codec.ts";
import { ExactId } from "./message.ts";

/** The length from which a message is decoded here. A shorter message is decoded faster as one string. */
export const LONG_MESSAGE_BYTES: number = 1024 * 1024;
const LONG_STRING_BYTES = 64 * 1024;
/** How many strings are examined. A message with more strings is long because of their number. */
const MAX_STRINGS = 4096;
const SCRATCH_BYTES = 4096;

const TAB = 9;
const NEWLINE = 10;
const RETURN = 13;
const SPACE = 32;
const QUOTE = 34;
const COLON = 58;
const BACKSLASH = 92;

/** The bytes of a string without its quotes. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/** A place in the parsed message where a string was cut out. */
interface Gap {
  readonly holder: Record<string, unknown>;
  readonly key: string;
  readonly span: Span;
}

/** Returns the same as `decode` of the string. Overwrites the bytes. Cuts out strings of `longString` bytes or more. */
export function decodeLong(bytes: Buffer, limits: Limits, longString: number = LONG_STRING_BYTES): Decoded {
  const whole = (): Decoded => decode(bytes.toString("utf8"), limits);
  const spans = bytes.length > limits.messageBytes ? [] : findLongStrings(bytes, longString);
  if (spans.length === 0) return whole();
  // Random, so that no message can contain it.
  const mark = crypto.randomUUID();
  const decoded = decode(withoutStrings(bytes, spans, mark), limits);
  // An error must describe the original message. Batches are not handled here.
  if (decoded.kind !== "message") return whole();
  const gaps = findGaps(decoded.message as unknown as Record<string, unknown>, spans, mark);
  // A mark is missing if a duplicate key replaced its value. `gaps` is undefined if a long string is an id.
  if (gaps?.length !== spans.length) return whole();
  try {
    for (const { holder, key, span } of gaps) holder[key] = readString(bytes, span.start, span.end);
  } catch (error) {
    const reason = error instanceof Error ? error.message : "Not JSON";
    return { kind: "fault", fault: parseError(reason.slice(0, 100)), answerable: true };
  }
  return decoded;
}

function findLongStrings(bytes: Buffer, length: number): Span[] {
  const spans: Span[] = [];
  const scratch = new Uint8Array(SCRATCH_BYTES);
  let open = bytes.indexOf(QUOTE);
  for (let seen = 0; open !== -1 && seen < MAX_STRINGS; seen += 1) {
    const end = findStringEnd(bytes, open, scratch);
    if (end === -1) break;
    const start = open + 1;
    if (end - start >= length && !isKey(bytes, end + 1)) spans.push({ start, end });
    open = bytes.indexOf(QUOTE, end + 1);
  }
  return spans;
}

/** Returns the index of the closing quote, or -1. */
function findStringEnd(bytes: Buffer, open: number, scratch: Uint8Array): number {
  const quote = bytes.indexOf(QUOTE, open + 1);
  if (quote === -1 || bytes[quote - 1] !== BACKSLASH) return quote;
  // With many quotes inside, scanning a copy byte by byte is faster than searching for each quote.
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

/** Returns the rest of the message, with a mark for each string that was cut out. */
function withoutStrings(bytes: Buffer, spans: readonly Span[], mark: string): string {
  let text = "";
  let from = 0;
  spans.forEach(({ start, end }, at) => {
    // `\u0041` is never the canonical spelling of A, so a mark in place of an id becomes an ExactId; see findGaps.
    text += `${bytes.toString("utf8", from, start)}\\u0041${mark}:${at}`;
    from = end;
  });
  return text + bytes.toString("utf8", from);
}

/** Finds the marks. Returns undefined if a long string is an id, since an id must be sent back exactly as received. */
function findGaps(message: Record<string, unknown>, spans: readonly Span[], mark: string): Gap[] | undefined {
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
      else if (value instanceof ExactId) {
        if (spanOf(value.value) !== undefined) return undefined;
      } else if (typeof value === "object" && value !== null) holders.push(value as Record<string, unknown>);
    }
  }
  return gaps;
}

const LOWER_U = 117;
const FIRST_PLAIN = 32;
/**
 * The size of the blocks that bytes are copied into, a multiple of four. The bytes may be in a resizable buffer, which
 * V8 processes more slowly than a block.
 */
const BLOCK_BYTES = 64 * 1024;

/** The byte for each escape, by the character after the backslash; 0 if there is none. */
const ESCAPES = new Uint8Array(256);
for (const [name, byte] of Object.entries({ b: 8, f: 12, n: 10, r: 13, t: 9, '"': 34, "/": 47, "\\": BACKSLASH })) {
  ESCAPES[name.charCodeAt(0)] = byte;
}

/**
 * Decodes the bytes between the quotes of a JSON string, and overwrites them. A resolved escape is always shorter, so
 * escapes are resolved in place, and only the string is allocated. Two cases are left to JSON.parse: invalid strings,
 * for which it throws, and unpaired surrogates, which UTF-8 cannot encode.
 */
export function readString(bytes: Buffer, start: number, end: number, blockBytes: number = BLOCK_BYTES): string {
  const block = new Uint8Array(blockBytes);
  let from = start;
  let to = start;
  while (from < end) {
    const { read, written } = resolveEscapes(block, bytes.copy(block, 0, from, end));
    if (read === 0) break;
    if (to < from || written < read) bytes.set(block.subarray(0, written), to);
    from += read;
    to += written;
  }
  const text = bytes.toString("utf8", start, to);
  return from === end ? text : text + String(JSON.parse(`"${bytes.toString("utf8", from, end)}"`));
}

/** Stops at an escape that cannot be resolved. If the end of the block cut it off, the next block begins with it. */
function resolveEscapes(block: Uint8Array, length: number): { read: number; written: number } {
  let read = plainBytes(block, length);
  let written = read;
  while (read < length) {
    const c = block[read] as number;
    if (c < FIRST_PLAIN) break;
    if (c !== BACKSLASH) {
      block[written] = c;
      written += 1;
      read += 1;
    } else if (block[read + 1] !== LOWER_U) {
      const byte = read + 1 < length ? (ESCAPES[block[read + 1] as number] as number) : 0;
      if (byte === 0) break;
      block[written] = byte;
      written += 1;
      read += 2;
    } else {
      const unit = codeUnitAt(block, read, length);
      const isHigh = unit >= 0xd800 && unit < 0xdc00;
      const low = isHigh ? codeUnitAt(block, read + 6, length) : 0;
      const isUnpaired = isHigh ? low < 0xdc00 || low > 0xdfff : unit >= 0xdc00 && unit <= 0xdfff;
      if (unit < 0 || isUnpaired) break;
      written = writeUtf8(block, written, isHigh ? 0x10000 + ((unit - 0xd800) << 10) + low - 0xdc00 : unit);
      read += isHigh ? 12 : 6;
    }
  }
  return { read, written };
}

/** Counts bytes at the start that need no change, four at a time. */
function plainBytes(block: Uint8Array, length: number): number {
  const words = new Int32Array(block.buffer, 0, length >> 2);
  let at = 0;
  for (; at < words.length; at += 1) {
    const word = words[at] as number;
    const other = word ^ 0x5c5c5c5c;
    // Sets the highest bit of each byte that is below 32 or a backslash.
    if ((((word - 0x20202020) & ~word) | ((other - 0x01010101) & ~other)) & 0x80808080) break;
  }
  return at * 4;
}

/** Returns the code unit of a `\u` escape, or -1. */
function codeUnitAt(block: Uint8Array, at: number, length: number): number {
  if (at + 6 > length || block[at] !== BACKSLASH || block[at + 1] !== LOWER_U) return -1;
  let unit = 0;
  for (let digit = at + 2; digit < at + 6; digit += 1) {
    const value = hexValue(block[digit] as number);
    if (value < 0) return -1;
    unit = unit * 16 + value;
  }
  return unit;
}

function hexValue(c: number): number {
  if (c >= 48 && c <= 57) return c - 48;
  const lower = c | 32;
  return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}

/** Writes a code point as UTF-8; returns the index after it. */
function writeUtf8(block: Uint8Array, at: number, point: number): number {
  if (point < 0x80) {
    block[at] = point;
    return at + 1;
  }
  const length = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  let rest = point;
  for (let last = at + length - 1; last > at; last -= 1) {
    block[last] = 0x80 | (rest & 0x3f);
    rest >>= 6;
  }
  // The first byte starts with one 1 bit for each byte.
  block[at] = rest | (0xff00 >> length);
  return at + length;
}
