// Makes texts of servers and tools harmless: escape sequences of terminals are left out, and characters that would not be
// seen become marks. inert-text.tsx shows the result.

/** CSI, OSC and other escape sequences. */
// oxlint-disable-next-line no-control-regex
const ANSI = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\^_])/g;
/**
 * Control characters but tab and newline; soft hyphen; characters of no width, of directions and of tags; variation
 * selectors that follow no emoji; noncharacters.
 */
const HIDDEN =
  // oxlint-disable-next-line no-control-regex, no-misleading-character-class
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\uffff]|[\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/gu;

export interface InertPart {
  readonly text: string;
  /** Whether it is the code point of a character that would not be seen. */
  readonly isMark: boolean;
}

/** Splits a text into what is shown as it is, and marks for what would not be seen. */
export function inertParts(text: string): readonly InertPart[] {
  const clean = text.replaceAll("\r\n", "\n").replace(ANSI, "");
  const parts: InertPart[] = [];
  let end = 0;
  for (const match of clean.matchAll(HIDDEN)) {
    if (match.index > end) parts.push({ text: clean.slice(end, match.index), isMark: false });
    parts.push({ text: codePoint(match[0]), isMark: true });
    end = match.index + match[0].length;
  }
  if (end < clean.length) parts.push({ text: clean.slice(end), isMark: false });
  return parts;
}

/** The same as one string, for titles and other places that cannot have elements. */
export function inertString(text: string): string {
  return inertParts(text)
    .map((part) => (part.isMark ? `[${part.text}]` : part.text))
    .join("");
}

function codePoint(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}
