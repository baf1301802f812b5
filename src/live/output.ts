// What an evaluation prints: its first characters are kept, the rest only counted, and all of it is told to whoever
// listens, in pieces that come no faster than somebody could read them.

import type { Hear, OutputStream, Guest } from "./guest.ts";

export interface Captured {
  readonly text: string;
  /** Characters there were in all. */
  readonly total: number;
}

/** Pieces come this far apart; what lies between two of them is told together. */
const PACE_MS = 100;
/** Of what is told together, the last so many characters. */
const MOST_TOLD = 2_000;

export class Capture {
  readonly #most: number;
  readonly #kept: Record<OutputStream, string> = { stdout: "", stderr: "" };
  readonly #totals: Record<OutputStream, number> = { stdout: 0, stderr: 0 };
  readonly #tell: ((text: string, total: number) => void) | undefined;
  readonly #also: Hear | undefined;
  #untold = "";
  #pace: NodeJS.Timeout | undefined;

  /** `tell` gets the pieces, `also` everything at once. */
  constructor(mostChars: number, tell?: (text: string, total: number) => void, also?: Hear) {
    this.#most = mostChars;
    this.#tell = tell;
    this.#also = also;
  }

  readonly hear: Hear = (text, stream) => {
    const room = this.#most - this.#totals[stream];
    if (room > 0) this.#kept[stream] += first(text, room);
    this.#totals[stream] += text.length;
    if (this.#tell !== undefined) this.#pass(text);
    this.#also?.(text, stream);
  };

  /** With `dropped`: characters that the guest has counted and not sent. */
  of(stream: OutputStream, dropped = 0): Captured {
    return { text: this.#kept[stream], total: this.#totals[stream] + dropped };
  }

  /** Nothing more is told. */
  close(): void {
    clearTimeout(this.#pace);
    this.#untold = "";
  }

  #pass(text: string): void {
    this.#untold = last(this.#untold + text, MOST_TOLD);
    if (this.#pace !== undefined) return;
    this.#flush();
    const next = (): void => {
      this.#pace = undefined;
      if (this.#untold === "") return;
      this.#flush();
      this.#pace = setTimeout(next, PACE_MS);
    };
    this.#pace = setTimeout(next, PACE_MS);
  }

  #flush(): void {
    const text = this.#untold;
    this.#untold = "";
    this.#tell?.(text, this.#totals.stdout + this.#totals.stderr);
  }
}

/** The first so many characters, without half of one: many who read JSON refuse a whole answer that has one in it. */
export function first(text: string, most: number): string {
  if (text.length <= most) return text;
  const code = text.charCodeAt(most - 1);
  return text.slice(0, code >= 0xd800 && code < 0xdc00 ? most - 1 : most);
}

/** The same of the last. */
export function last(text: string, most: number): string {
  if (text.length <= most) return text;
  const at = text.length - most;
  const code = text.charCodeAt(at);
  return text.slice(code >= 0xdc00 && code < 0xe000 ? at + 1 : at);
}

// What a process prints while no evaluation runs in it: the last of it is kept for the next one, and who prints without
// end waits until something is asked of the process.

/** Of what is printed while nothing runs, the last so many characters are kept. */
const MOST_BACKGROUND = 4_000;
/** Of such, so many characters are read until something is asked; then the process waits. */
const MOST_UNASKED = 1_000_000;

export class Background {
  #text = "";
  #length = 0;

  /** From now on it is heard here. */
  listen(guest: Guest): void {
    guest.hearRaw = (text, stream) => {
      this.keep(text, stream);
      if (this.#length > MOST_UNASKED) guest.silence(true);
    };
  }

  readonly keep: Hear = (text) => {
    this.#text = last(this.#text + text, MOST_BACKGROUND);
    this.#length += text.length;
  };

  /** The process may go on. */
  release(guest: Guest): void {
    if (this.#length > MOST_UNASKED) guest.silence(false);
    this.#length = 0;
  }

  /** What there was. */
  take(): string {
    const text = this.#text;
    this.#text = "";
    return text;
  }
}
