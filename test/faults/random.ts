// Repeatable random numbers, generated from a seed.

export interface Random {
  /** From 0 up to but not including 1. */
  next(): number;
  /** True with this probability. */
  percent(probability: number): boolean;
  /** One element of an array, which must not be empty. */
  pick<T>(items: readonly T[]): T;
}

/** The generator mulberry32, which is good enough to choose moments. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    percent: (probability) => next() * 100 < probability,
    pick: (items) => {
      const item = items[Math.floor(next() * items.length)];
      if (item === undefined) throw new RangeError("Cannot pick from an empty array");
      return item;
    },
  };
}
