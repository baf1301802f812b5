// The bytes of one long string of JSON as the string that they stand for. It is parsed piece by piece, and each piece
// is written back over its own bytes, where it is never longer than it was, so that nothing as long as the string is
// made but the string. Where a piece cannot be written back, all that is left is parsed at once.

/** What is made of a piece is gone before it could count. */
const PIECE_BYTES = 32 * 1024;

const LOWER_D = 100;
const LOWER_U = 117;
const BACKSLASH = 92;

/** From behind the one quote to before the other; the bytes are written over. Throws what JSON.parse throws. */
export function readString(bytes: Buffer, start: number, end: number, pieceBytes: number = PIECE_BYTES): string {
  let from = start;
  let to = start;
  while (from < end) {
    const cut = cutBefore(bytes, from, Math.min(end, from + pieceBytes), end);
    const piece = parse(bytes, from, cut);
    // Half a surrogate pair has no UTF-8, and what was no UTF-8 has become longer.
    if (/[\ud800-\udfff]/u.test(piece) || Buffer.byteLength(piece) > cut - from) break;
    to += bytes.write(piece, to);
    from = cut;
  }
  const text = bytes.toString("utf8", start, to);
  return from === end ? text : text + parse(bytes, from, end);
}

function parse(bytes: Buffer, start: number, end: number): string {
  return JSON.parse(`"${bytes.toString("utf8", start, end)}"`) as string;
}

/** The last place up to there that is within no character, or the end. */
function cutBefore(bytes: Buffer, start: number, wanted: number, end: number): number {
  if (wanted === end) return end;
  let cut = wanted;
  while ((bytes[cut] as number) >> 6 === 0b10 && cut > start) cut -= 1;
  for (let at = cut - 1; at >= start && at > cut - 6; at -= 1) {
    if (!isEscape(bytes, start, at)) continue;
    if (at + (bytes[at + 1] === LOWER_U ? 6 : 2) > cut) cut = at;
    break;
  }
  const first = cut - 6;
  const isHalf = first >= start && isEscape(bytes, start, first) && isHighSurrogate(bytes, first);
  if (isHalf) cut = first;
  return cut > start ? cut : end;
}

/** A backslash that is not itself behind one. */
function isEscape(bytes: Buffer, start: number, at: number): boolean {
  let before = at;
  while (before >= start && bytes[before] === BACKSLASH) before -= 1;
  return (at - before) % 2 === 1;
}

function isHighSurrogate(bytes: Buffer, at: number): boolean {
  const second = ((bytes[at + 3] as number) | 32) as number;
  return (
    bytes[at + 1] === LOWER_U &&
    ((bytes[at + 2] as number) | 32) === LOWER_D &&
    (second === 0x38 || second === 0x39 || second === 0x61 || second === 0x62)
  );
}
