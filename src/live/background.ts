// What a process prints while nothing runs in it: the last of it is kept for the next evaluation, and who prints
// without end waits until then.

import type { Guest } from "./guest.ts";

/** Of what is printed while nothing runs, the last so many characters are kept. */
const MOST_BACKGROUND = 4_000;
/** Of such, so many characters are read until the next evaluation; then the process waits. */
const MOST_UNASKED = 1_000_000;

export class Background {
  #text = "";
  #length = 0;

  /** From now on it is heard here. */
  listen(guest: Guest): void {
    guest.hearRaw = (text) => {
      this.#text = (this.#text + text).slice(-MOST_BACKGROUND);
      this.#length += text.length;
      if (this.#length > MOST_UNASKED) guest.silence(true);
    };
  }

  /** What there was; the process may go on. */
  take(guest: Guest): string {
    const text = this.#text;
    if (this.#length > MOST_UNASKED) guest.silence(false);
    this.#text = "";
    this.#length = 0;
    return text;
  }
}
