// Text of strangers, made fit for a terminal. What an end sends may hold escape sequences that move the cursor, rename
// the window or paste into the shell, and letters that turn the reading direction round: each is written out instead.
// Only a terminal needs it; to a pipe or a file the bytes go as they came.

/** All but the newline and the tab of what is not printed: controls, direction marks, and what nobody can see. */
const HARMFUL = /(?![\n\t])[\p{Cc}\p{Cs}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;

export function harmless(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(HARMFUL, written);
}

/** The same on one line, however many it had. */
export function oneLine(text: string): string {
  return harmless(text).replace(/\s+/g, " ").trim();
}

/** JSON for a terminal: still JSON, and of the same value. */
export function harmlessJson(json: string): string {
  return json.replace(HARMFUL, (found) =>
    Array.from({ length: found.length }, (_, at) => unicode(found.charCodeAt(at))).join(""),
  );
}

export function isTerminal(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true;
}

/** As it may be written to this stream. */
export function fitFor(stream: { readonly isTTY?: boolean }, text: string): string {
  return isTerminal(stream) ? harmless(text) : text;
}

function written(found: string): string {
  const code = found.codePointAt(0) ?? 0;
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return `\\u{${code.toString(16)}}`;
}

function unicode(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, "0")}`;
}
