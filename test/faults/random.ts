// Chance that can be repeated: numbers that look random and follow from a seed.

export interface Chance {
  /** From 0 up to but not including 1. */
  next(): number;
  /** True so often of a hundred times. */
  percent(of: number): boolean;
  /** One of several; there must be one. */
  pick<T>(of: readonly T[]): T;
}

/** The generator mulberry32, which is enough to choose moments. */
export function chanceOf(seed: number): Chance {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    percent: (of) => next() * 100 < of,
    pick: (of) => {
      const one = of[Math.floor(next() * of.length)];
      if (one === undefined) throw new RangeError("There is nothing to pick from");
      return one;
    },
  };
}
