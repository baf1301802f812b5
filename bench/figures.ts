// Figures: what was measured of several implementations in turns, as ratios to a baseline, and the bound of each.

/** The names of results: what the others are compared with, ours, and ours without work that cannot be left out. */
export const BASELINE = "Baseline";
export const OURS = "Catenary";
export const BEYOND = "Beyond own work";

export type Unit = "µs" | "ms" | "MB";

export interface Result {
  /** In the unit of the figure, the median of all rounds. */
  readonly value: number;
  /** To the baseline of the same round, the median of all rounds. */
  readonly ratio: number;
  /** Beyond the baseline of the same round, the median of all rounds. */
  readonly extra: number;
}

/** The most that ours may take: as a ratio to the baseline, or in the figure's unit beyond the baseline. */
export type Bound = { readonly ratio: number } | { readonly extra: number };

export interface Figure {
  /** The table in docs/reference/performance.md. */
  readonly table: string;
  readonly name: string;
  readonly unit: Unit;
  /** By implementation. The first is the baseline, with the ratio 1. */
  readonly results: Readonly<Record<string, Result>>;
  readonly bound?: Bound | undefined;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** The values of each implementation, one for each round. */
export type Rounds = Readonly<Record<string, readonly number[]>>;

export function createFigure(table: string, name: string, unit: Unit, rounds: Rounds, bound?: Bound): Figure {
  const base = rounds[BASELINE] ?? [];
  const results = Object.entries(rounds).map(([who, values]) => {
    const ratio = median(values.map((value, round) => value / (base[round] ?? Number.NaN)));
    const extra = median(values.map((value, round) => value - (base[round] ?? Number.NaN)));
    return [who, { value: median(values), ratio, extra }] as const;
  });
  return { table, name, unit, results: Object.fromEntries(results), bound };
}

/** Runs each function once a round, every other round in reverse order, and returns their values. */
export async function takeTurns<T>(
  subjects: Readonly<Record<string, () => T | Promise<T>>>,
  rounds: number,
): Promise<Record<string, T[]>> {
  const order = Object.entries(subjects).map(([who, measure]) => ({ who, measure, values: [] as T[] }));
  for (let round = 0; round < rounds; round += 1) {
    for (const { measure, values } of round % 2 === 0 ? order : order.toReversed()) values.push(await measure());
  }
  return Object.fromEntries(order.map(({ who, values }) => [who, values]));
}

/** A line for each figure over its bound. */
export function findOverBound(figures: readonly Figure[]): string[] {
  return figures.flatMap(({ table, name, unit, results, bound }) => {
    if (bound === undefined) return [];
    const { ratio, extra } = results[BEYOND] ?? results[OURS] ?? { ratio: Number.NaN, extra: Number.NaN };
    // A figure that is not a number is over its bound too.
    const isWithin = "ratio" in bound ? ratio <= bound.ratio : extra <= bound.extra;
    if (isWithin) return [];
    const measured = "ratio" in bound ? formatRatio(ratio) : formatExtra(extra, unit);
    return [`${table}: ${name}: ${measured}, over its bound of ${formatBound(bound, unit)}`];
  });
}

export function formatBound(bound: Bound, unit: Unit): string {
  return "ratio" in bound ? formatRatio(bound.ratio) : formatExtra(bound.extra, unit);
}

export function formatRatio(ratio: number): string {
  return `${ratio.toFixed(2)}x`;
}

export function formatExtra(extra: number, unit: Unit): string {
  return `${extra < 0 ? "" : "+"}${extra.toFixed(Math.abs(extra) < 10 ? 2 : 0)} ${unit}`;
}
