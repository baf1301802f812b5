// Helpers for text that may be long: cutting it between two characters, escaping what could control a terminal, matching
// it against a pattern with `*`, and reporting output at intervals while a program prints it.

/** The first `max` characters. Never ends in half a surrogate pair, which many JSON parsers refuse. */
export function firstChars(text: string, max: number): string {
  if (text.length <= max) return text;
  const code = text.charCodeAt(max - 1);
  return text.slice(0, code >= 0xd800 && code < 0xdc00 ? max - 1 : max);
}

/** The same in a string of its own: a slice keeps the whole text in memory. */
export function copyFirstChars(text: string, max: number): string {
  return text.length <= max ? text : structuredClone(firstChars(text, max));
}

/** The last `max` characters. Never begins with half a surrogate pair. */
export function lastChars(text: string, max: number): string {
  if (text.length <= max) return text;
  const at = text.length - max;
  const code = text.charCodeAt(at);
  return text.slice(code >= 0xdc00 && code < 0xe000 ? at + 1 : at);
}

/**
 * `*` matches any number of characters, even none. Every other character matches itself. Never backtracks, because
 * names come from upstreams and may be long.
 */
export function matchesGlob(glob: string, name: string): boolean {
  // The usual cases, without a copy of the parts.
  const star = glob.indexOf("*");
  if (star === -1) return glob === name;
  if (star === glob.length - 1) return star === 0 || name.startsWith(glob.slice(0, star));
  return globMatcher(glob)(name);
}

/** The same as `matchesGlob`, for a pattern that many names are compared with. */
export function globMatcher(glob: string): (name: string) => boolean {
  const [first = "", ...rest] = glob.split("*");
  const last = rest.pop();
  if (last === undefined) return (name) => name === glob;
  return (name) => {
    if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last)) return false;
    const until = name.length - last.length;
    let at = first.length;
    for (const part of rest) {
      const start = name.indexOf(part, at);
      if (start === -1 || start + part.length > until) return false;
      at = start + part.length;
    }
    return true;
  };
}

const REPORT_INTERVAL_MS = 100;
/** If more was printed since the last report, only its end is sent. */
const MAX_REPORT_LENGTH = 2_000;

export type ProgressListener = (text: string, total: number) => void;

/** Passes on output while a program prints it, at most ten times a second. */
export class OutputReports {
  readonly #onProgress: ProgressListener;
  readonly #isPrompt: boolean;
  #total = 0;
  #unreported = "";
  #timer: NodeJS.Timeout | undefined;

  /**
   * `onProgress` gets the recent output, and how much there was in all. If `isPrompt` is false, the first report waits
   * too, so that there is none for a program that ends at once.
   */
  constructor(onProgress: ProgressListener, isPrompt = true) {
    this.#onProgress = onProgress;
    this.#isPrompt = isPrompt;
  }

  /** `amount` is what the text adds to the total. */
  write(text: string, amount: number = text.length): void {
    this.#total += amount;
    this.#unreported = lastChars(this.#unreported + text, MAX_REPORT_LENGTH);
    if (this.#timer !== undefined) return;
    if (this.#isPrompt) this.#flush();
    const next = (): void => {
      this.#timer = undefined;
      if (this.#unreported === "") return;
      this.#flush();
      this.#timer = setTimeout(next, REPORT_INTERVAL_MS);
    };
    this.#timer = setTimeout(next, REPORT_INTERVAL_MS);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#unreported = "";
  }

  #flush(): void {
    const text = this.#unreported;
    this.#unreported = "";
    this.#onProgress(text, this.#total);
  }
}

/** Truncates the text, and escapes control and format characters. */
export function sanitize(text: string, maxLength: number): string {
  const cut = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;
  return cut.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (character) => {
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}
