// One line of a file as it is shown to whoever wrote it, with the place that is meant: cut where it is too long, fit for
// a terminal, and with stars where a secret stands. What a client writes into its log must not be a key, so what looks
// like one is covered; whoever wants to see it has the file.

import { harmless } from "../terminal/harmless.ts";
import { cutTo, widthOf } from "../terminal/text-width.ts";

export interface Excerpt {
  readonly text: string;
  /** Columns in front of the place. */
  readonly before: number;
}

const SECRET_KEY = /token|secret|password|passwd|passphrase|credential|auth|cookie|api_?key|private|_key$|^key$/i;
/** A name and the text behind it, which may have been left without its end. */
const PAIR = /("(?:[^"\\]|\\.)*"\s*:\s*")((?:[^"\\]|\\.)*)/g;
/** Behind these words, or by its looks: long, with digits in it, and no path and no word of any language. */
const KEYS =
  /((?:bearer|basic)\s+|--?[a-z-]*(?:token|secret|password|key)(?:[= ]|"\s*,\s*"))([^\s"]+)|[A-Za-z0-9_+=-]{24,}/gi;

/** `column` counts the units of the text from 1. */
export function excerpt(line: string, column: number, width: number): Excerpt {
  const covered = withoutSecrets(line);
  const at = Math.max(0, Math.min(column - 1, covered.length));
  const front = shown(covered.slice(0, at));
  const rest = shown(covered.slice(at));
  // What stands in front has half of the room at most, and what it does not need is the other's.
  const most = Math.max(Math.floor(width / 2), width - widthOf(rest));
  const cut = widthOf(front) <= most ? front : `...${endOf(front, most - 3)}`;
  return { text: cut + cutTo(width - widthOf(cut), rest), before: widthOf(cut) };
}

function shown(text: string): string {
  return harmless(text).replaceAll("\t", "  ");
}

function endOf(text: string, columns: number): string {
  const letters = [...text];
  let width = 0;
  let from = letters.length;
  while (from > 0 && width + widthOf(letters[from - 1] ?? "") <= columns) {
    from -= 1;
    width += widthOf(letters[from] ?? "");
  }
  return letters.slice(from).join("");
}

/** As long as it was, so that all places stay where they are. */
function withoutSecrets(line: string): string {
  const pairs = line.replace(PAIR, (whole, name: string, value: string) =>
    SECRET_KEY.test(name) && !isReference(value) ? name + stars(value) : whole,
  );
  return pairs.replace(KEYS, (whole, word: string | undefined, key: string | undefined) => {
    if (word !== undefined && key !== undefined) return isReference(key) ? whole : word + stars(key);
    return /\d/.test(whole) && /[A-Za-z]/.test(whole) ? stars(whole) : whole;
  });
}

/** The name of a secret, and not the secret. */
function isReference(text: string): boolean {
  return /\$\{[^}]*\}?/.test(text);
}

function stars(text: string): string {
  return "*".repeat(text.length);
}
