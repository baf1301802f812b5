// The bytes of one long string of JSON as the string that they stand for. Escapes are resolved in the bytes themselves,
// where what they stand for is always shorter, so that nothing is made but the string: not only would anything else
// take memory, it would also set off collections, which keep for long what is only seen to be in use just then. What is
// no string of JSON, and the rare half of a character that no UTF-8 can say, is left to JSON.parse.

const BACKSLASH = 92;
const LOWER_U = 117;
const FIRST_PLAIN = 32;
/** The engine is faster in such a copy than in memory that can grow. A multiple of four. */
const BLOCK_BYTES = 64 * 1024;

/** By the character behind the backslash. */
const ESCAPES = new Uint8Array(256);
for (const [name, meant] of Object.entries({ b: 8, f: 12, n: 10, r: 13, t: 9, '"': 34, "/": 47, "\\": BACKSLASH })) {
  ESCAPES[name.charCodeAt(0)] = meant;
}

/** From behind the one quote to before the other; the bytes are written over. Throws what JSON.parse throws. */
export function readString(bytes: Buffer, start: number, end: number, blockBytes: number = BLOCK_BYTES): string {
  const block = new Uint8Array(blockBytes);
  let from = start;
  let to = start;
  while (from < end) {
    const { read, written } = resolve(block, bytes.copy(block, 0, from, end));
    if (read === 0) break;
    if (to < from || written < read) bytes.set(block.subarray(0, written), to);
    from += read;
    to += written;
  }
  const text = bytes.toString("utf8", start, to);
  return from === end ? text : text + String(JSON.parse(`"${bytes.toString("utf8", from, end)}"`));
}

/** Up to the length, or to what cannot be resolved: if that only was cut, it is whole at the beginning of the next. */
function resolve(block: Uint8Array, length: number): { read: number; written: number } {
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
      const meant = read + 1 < length ? (ESCAPES[block[read + 1] as number] as number) : 0;
      if (meant === 0) break;
      block[written] = meant;
      written += 1;
      read += 2;
    } else {
      const unit = unitAt(block, read, length);
      const isHigh = unit >= 0xd800 && unit < 0xdc00;
      const low = isHigh ? unitAt(block, read + 6, length) : 0;
      const isHalf = isHigh ? low < 0xdc00 || low > 0xdfff : unit >= 0xdc00 && unit <= 0xdfff;
      if (unit < 0 || isHalf) break;
      written = write(block, written, isHigh ? 0x10000 + ((unit - 0xd800) << 10) + low - 0xdc00 : unit);
      read += isHigh ? 12 : 6;
    }
  }
  return { read, written };
}

/** At least so many at the beginning stand for themselves; four at a time are looked at. */
function plainBytes(block: Uint8Array, length: number): number {
  const words = new Int32Array(block.buffer, 0, length >> 2);
  let at = 0;
  for (; at < words.length; at += 1) {
    const word = words[at] as number;
    const other = word ^ 0x5c5c5c5c;
    // The highest bit of a byte is set where it is below 32, or is a backslash.
    if ((((word - 0x20202020) & ~word) | ((other - 0x01010101) & ~other)) & 0x80808080) break;
  }
  return at * 4;
}

/** The number of an escape by a number, or -1. */
function unitAt(block: Uint8Array, at: number, length: number): number {
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
  const letter = c | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}

/** As UTF-8; gives where it ends. */
function write(block: Uint8Array, at: number, point: number): number {
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
  // As many ones before a zero as there are bytes.
  block[at] = rest | (0xff00 >> length);
  return at + length;
}
