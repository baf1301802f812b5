// One word to many, a slice at a time: between two slices everybody else gets a turn, so that ten thousand listeners
// do not keep one caller waiting. Who is to hear several words hears them in their order, because each word reaches
// its last hearer before the next one begins.

/** So many hear in one go: a few milliseconds' work. */
const SLICE = 64;

interface Word<Hearer> {
  readonly hearers: readonly Hearer[];
  readonly tell: (hearer: Hearer) => void;
  told: number;
}

export class FanOut<Hearer> {
  readonly #words: Word<Hearer>[] = [];

  /** The first slice hears at once, unless an earlier word is still on its way. */
  say(hearers: readonly Hearer[], tell: (hearer: Hearer) => void): void {
    this.#words.push({ hearers, tell, told: 0 });
    if (this.#words.length === 1) this.#go();
  }

  #go(): void {
    let left = SLICE;
    for (let word = this.#words[0]; word !== undefined; word = this.#words[0]) {
      const end = Math.min(word.hearers.length, word.told + left);
      left -= end - word.told;
      while (word.told < end) attempt(word.tell, word.hearers[word.told++] as Hearer);
      if (word.told < word.hearers.length) break;
      this.#words.shift();
    }
    if (this.#words.length > 0) setImmediate(() => this.#go());
  }
}

/** Who cannot be told keeps the word from nobody else. */
function attempt<Hearer>(tell: (hearer: Hearer) => void, hearer: Hearer): void {
  try {
    tell(hearer);
  } catch {
    // Its way back is broken, and whoever holds that way knows.
  }
}
