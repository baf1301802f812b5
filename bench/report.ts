// Reads what a child said that it cost (see cost.js). A child that said nothing is an error, never a cost of nothing.

export interface Cost {
  readonly cpuMs: number;
  readonly maxRssKb: number;
}

/** The last line of a child's stderr. */
export function costIn(stderr: string): Cost {
  const line = stderr.trim().split("\n").at(-1) ?? "";
  let cost: Partial<Cost> | null;
  try {
    cost = JSON.parse(line) as Partial<Cost> | null;
  } catch {
    cost = null;
  }
  const { cpuMs, maxRssKb } = cost ?? {};
  if (!isCost(cpuMs) || !isCost(maxRssKb)) throw new Error(`The child did not say what it cost: ${stderr.trim()}`);
  return { cpuMs, maxRssKb };
}

const isCost = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value) && value > 0;
