// Where types were taken out of a line, and what followed moved to the left: the way back to the columns that were
// written, as far as there is one. What stands before the first gap and behind the last is found again; of what is
// between them only the line is known. Apart from edits.ts, because who takes out the types does not say where.

interface Gap {
  /** Characters at the beginning of the line that were kept. */
  readonly before: number;
  /** Where the end that was kept begins, from 0, and how far it has moved. */
  readonly behind: number;
  readonly moved: number;
}

/** By line, counted from 1; those that stayed as they were are absent. */
export type TypeGaps = ReadonlyMap<number, Gap>;

/** Both have the same lines. */
export function typeGaps(written: string, bare: string): TypeGaps {
  const gaps = new Map<number, Gap>();
  if (written === bare) return gaps;
  const lines = bare.split("\n");
  for (const [at, line] of written.split("\n").entries()) {
    const other = lines[at] ?? "";
    // Where it is as long as before, types have become blanks.
    if (other.length !== line.length) gaps.set(at + 1, gapOf(line, other));
  }
  return gaps;
}

function gapOf(written: string, bare: string): Gap {
  const most = Math.min(written.length, bare.length);
  let before = 0;
  while (before < most && written[before] === bare[before]) before += 1;
  let kept = 0;
  while (kept < most - before && written.at(-1 - kept) === bare.at(-1 - kept)) kept += 1;
  return { before, behind: bare.length - kept, moved: written.length - bare.length };
}

/** Undefined where it cannot be known. Columns are counted from 1. */
export function columnWithTypes(gaps: TypeGaps | undefined, line: number, column: number): number | undefined {
  const gap = gaps?.get(line);
  if (gap === undefined || column <= gap.before) return column;
  return column > gap.behind ? column + gap.moved : undefined;
}
