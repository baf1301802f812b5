// Shows how one text became another, by lines. One block is enough for a small edit: what is equal at the beginning and at
// the end is left out, but for some lines around the block.

/**
 * The lines of the block: "- " before an old one, "+ " before a new one, two spaces before one that is in both. `gap` is put
 * where equal lines are left out.
 */
export function diffLines(
  old: readonly string[],
  now: readonly string[],
  contextLines: number,
  gap: readonly string[] = [],
): string[] {
  const shorter = Math.min(old.length, now.length);
  let head = 0;
  while (head < shorter && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  return [
    ...(head > contextLines ? gap : []),
    ...old.slice(Math.max(head - contextLines, 0), head).map((line) => `  ${line}`),
    ...old.slice(head, old.length - tail).map((line) => `- ${line}`),
    ...now.slice(head, now.length - tail).map((line) => `+ ${line}`),
    ...old.slice(old.length - tail, old.length - tail + contextLines).map((line) => `  ${line}`),
    ...(tail > contextLines ? gap : []),
  ];
}
