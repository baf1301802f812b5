// What a process prints while no evaluation runs in it: the last of it is kept for the next one, and who prints without
// end waits until something is asked of the process.

import { last } from "./capture.ts";
import type { Guest, Hear } from "./guest.ts";

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
