// The bytes of one long string of JSON as the string that they stand for. Escapes are resolved in the bytes themselves,
// where what they stand for is always shorter, so that nothing as long as the string is made but the string. What is
// no string of JSON, and the rare half of a character that no UTF-8 can say, is left to JSON.parse.

const BACKSLASH = 92;
const LOWER_U = 117;
const FIRST_PLAIN = 32;
/** Bytes are looked at in a block of this size, where the engine is faster than in memory that can grow. */
const BLOCK_BYTES = 64 * 1024;

/** By the character behind the backslash. */
const ESCAPES = new Uint8Array(128);
for (const [name, meant] of ['""', "\\\\", "//", "b\b", "f\f", "n\n", "r\r", "t\t"].map((pair) => Buffer.from(pair))) {
  ESCAPES[name as number] = meant as number;
}

/** From behind the one quote to before the other; the bytes are written over. Throws what JSON.parse throws. */
export function readString(bytes: Buffer, start: number, end: number): string {
  const scratch = new Uint8Array(Math.min(BLOCK_BYTES, end - start));
  let from = start;
  let to = start;
  while (from < end) {
    const block = scratch.subarray(0, bytes.copy(scratch, 0, from, end));
    const { read, written } = resolve(block);
    if (read === 0) break;
    bytes.set(block.subarray(0, written), to);
    from += read;
    to += written;
  }
  const text = bytes.toString("utf8", start, to);
  return from === end ? text : text + String(JSON.parse(`"${bytes.toString("utf8", from, end)}"`));
}

/** Up to the end, or to what cannot be resolved: the next block begins with it, if it only was cut. */
function resolve(block: Uint8Array): { read: number; written: number } {
  const { length } = block;
  let read = 0;
  let written = 0;
  while (read < length) {
    const c = block[read] as number;
    if (c < FIRST_PLAIN) break;
    if (c !== BACKSLASH) {
      block[written++] = c;
      read += 1;
    } else if (block[read + 1] !== LOWER_U) {
      const meant = ESCAPES[block[read + 1] ?? 0] ?? 0;
      if (meant === 0) break;
      block[written++] = meant;
      read += 2;
    } else {
      const unit = unitAt(block, read);
      const isHigh = unit >= 0xd800 && unit < 0xdc00;
      const low = isHigh ? unitAt(block, read + 6) : 0;
      const isHalf = isHigh ? low < 0xdc00 || low > 0xdfff : unit >= 0xdc00 && unit <= 0xdfff;
      if (unit < 0 || isHalf) break;
      written = write(block, written, isHigh ? 0x10000 + ((unit - 0xd800) << 10) + low - 0xdc00 : unit);
      read += isHigh ? 12 : 6;
    }
  }
  return { read, written };
}

/** The number of an escape by a number, or -1. */
function unitAt(block: Uint8Array, at: number): number {
  if (block[at] !== BACKSLASH || block[at + 1] !== LOWER_U || at + 6 > block.length) return -1;
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

/** UTF-8; gives where it ends. */
function write(block: Uint8Array, at: number, point: number): number {
  let to = at;
  if (point < 0x80) block[to++] = point;
  else {
    if (point < 0x800) block[to++] = 0xc0 | (point >> 6);
    else {
      if (point < 0x10000) block[to++] = 0xe0 | (point >> 12);
      else {
        block[to++] = 0xf0 | (point >> 18);
        block[to++] = 0x80 | ((point >> 12) & 63);
      }
      block[to++] = 0x80 | ((point >> 6) & 63);
    }
    block[to++] = 0x80 | (point & 63);
  }
  return to;
}
