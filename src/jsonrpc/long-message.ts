// Decodes a long message from its bytes without converting all of it to one string, which V8 would free late: five
// messages of 10 MB in a row took up to 8 times the memory of one, and 17 times if a character beyond Latin-1 doubles
// the string. A message is nearly always long because of a few strings, so these are cut out and decoded separately.
// The short rest is decoded like any other message. If that fails, the whole message is decoded as one string.

import { BACKSLASH, COLON, NEWLINE, QUOTE, RETURN, SPACE, TAB } from "./characters.ts";
import { decode, type Decoded, type Limits, parseError } from "./codec.ts";
import { ExactId } from "./message.ts";

/** The length from which a message is decoded here. A shorter message is decoded faster as one string. */
export const LONG_MESSAGE_BYTES: number = 1024 * 1024;
const LONG_STRING_BYTES = 64 * 1024;
/** How many strings are examined. A message with more strings is long because of their number. */
const MAX_STRINGS = 4096;

/** The length of an escape such as `\u0041`, the longest kind. */
const ESCAPE_BYTES = 6;

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
  const gaps = findGaps(decoded.message, spans, mark);
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
  let open = bytes.indexOf(QUOTE);
  for (let seen = 0; open !== -1 && seen < MAX_STRINGS; seen += 1) {
    const start = open + 1;
    let end = bytes.indexOf(QUOTE, start);
    while (end !== -1 && isEscaped(bytes, start, end)) end = bytes.indexOf(QUOTE, end + 1);
    if (end === -1) break;
    if (end - start >= length && !isKey(bytes, end + 1)) spans.push({ start, end });
    open = bytes.indexOf(QUOTE, end + 1);
  }
  return spans;
}

/** Whether an odd number of backslashes, counted from `start` on, is directly before `at`. */
function isEscaped(bytes: Buffer, start: number, at: number): boolean {
  let first = at;
  while (first > start && bytes[first - 1] === BACKSLASH) first -= 1;
  return (at - first) % 2 === 1;
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
function findGaps(message: unknown, spans: readonly Span[], mark: string): Gap[] | undefined {
  const prefix = `A${mark}:`;
  const spanOf = (value: unknown): Span | undefined =>
    typeof value === "string" && value.startsWith(prefix) ? spans[Number(value.slice(prefix.length))] : undefined;
  const gaps: Gap[] = [];
  const holders = isHolder(message) ? [message] : [];
  for (let holder = holders.pop(); holder !== undefined; holder = holders.pop()) {
    for (const key of Object.keys(holder)) {
      const value = holder[key];
      const span = spanOf(value);
      if (span !== undefined) gaps.push({ holder, key, span });
      else if (value instanceof ExactId) {
        if (spanOf(value.value) !== undefined) return undefined;
      } else if (isHolder(value)) holders.push(value);
    }
  }
  return gaps;
}

/** Whether it is an object or an array. */
function isHolder(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** Strings are decoded in pieces of this size, so that only the result is long. */
const PIECE_BYTES = 64 * 1024;
/** Characters that JSON allows only as escapes. */
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\0-\x1f]/;
const LONE_SURROGATE = /\p{Cs}/u;

/**
 * Decodes the bytes between the quotes of a JSON string. Escapes are resolved in place: each piece is parsed and written
 * back, which makes it shorter. An unpaired surrogate, or the replacement of invalid UTF-8, cannot be written back, so it
 * is parsed together with all that follows. Throws a SyntaxError if the string is invalid.
 */
export function readString(bytes: Buffer, start: number, end: number, pieceBytes: number = PIECE_BYTES): string {
  if (!bytes.subarray(start, end).includes(BACKSLASH)) {
    const text = bytes.toString("utf8", start, end);
    return CONTROL.test(text) ? parseString(bytes, start, end) : text;
  }
  let from = start;
  let written = start;
  while (from < end) {
    let to = pieceEnd(bytes, from, from + pieceBytes, end);
    if (to <= from) break;
    let piece = parseString(bytes, from, to);
    // The escapes of a surrogate pair were separated.
    if (to < end && /[\ud800-\udbff]/.test(piece.slice(-1))) [piece, to] = [piece.slice(0, -1), to - ESCAPE_BYTES];
    if (to <= from || LONE_SURROGATE.test(piece) || piece.includes("\ufffd")) break;
    written += bytes.write(piece, written);
    from = to;
  }
  const text = bytes.toString("utf8", start, written);
  return from === end ? text : text + parseString(bytes, from, end);
}

function parseString(bytes: Buffer, start: number, end: number): string {
  return String(JSON.parse(`"${bytes.toString("utf8", start, end)}"`));
}

/** The end of a piece, moved back if it would be inside a character or an escape. */
function pieceEnd(bytes: Buffer, start: number, wantedEnd: number, end: number): number {
  if (wantedEnd >= end) return end;
  let at = wantedEnd;
  while (((bytes[at] ?? 0) & 0xc0) === 0x80) at -= 1;
  for (let back = 1; back < ESCAPE_BYTES; back += 1) {
    if (isEscaped(bytes, start, at - back + 1)) return at - back;
  }
  return at;
}
