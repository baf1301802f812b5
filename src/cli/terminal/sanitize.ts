// Escapes control characters in untrusted text before printing it. Text of a server may contain escape sequences that
// move the cursor, rename the window or paste into the shell, and characters that reverse the reading direction. Only
// terminals need this; to a pipe or a file the bytes go unchanged.

/** Control characters but newline and tab, direction marks, and invisible characters. */
const UNSAFE = /(?![\n\t])[\p{Cc}\p{Cs}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu;

export function sanitize(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(UNSAFE, escaped);
}

/** Sanitizes and joins all lines into one. */
export function oneLine(text: string): string {
  return sanitize(text).replace(/\s+/g, " ").trim();
}

/** Sanitizes JSON so that it stays JSON of the same value. */
export function sanitizeJson(json: string): string {
  return json.replace(UNSAFE, (found) =>
    Array.from({ length: found.length }, (_, at) => jsonEscape(found.charCodeAt(at))).join(""),
  );
}

export function isTerminal(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true;
}

/** Sanitizes only if the stream is a terminal. */
export function sanitizeFor(stream: { readonly isTTY?: boolean }, text: string): string {
  return isTerminal(stream) ? sanitize(text) : text;
}

function escaped(found: string): string {
  const code = found.codePointAt(0) ?? 0;
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return `\\u{${code.toString(16)}}`;
}

function jsonEscape(unit: number): string {
  return `\\u${unit.toString(16).padStart(4, "0")}`;
}
