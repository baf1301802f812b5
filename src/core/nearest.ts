// The name that was probably meant, where a person wrote one that there is not.

/** The names that are near, the nearest first; one that begins with what was written is nearest of all. */
export function nearest(name: string, names: Iterable<string>, most = 2): string[] {
  const wanted = name.toLowerCase();
  return [...names]
    .map((candidate) => ({ candidate, distance: from(wanted, candidate.toLowerCase()) }))
    .filter(({ distance }) => distance <= most)
    .toSorted((a, b) => a.distance - b.distance)
    .map(({ candidate }) => candidate);
}

function from(name: string, candidate: string): number {
  return candidate.startsWith(name) ? 0 : distance(name, candidate);
}

/** Letters to put in, take out or change (Levenshtein). */
function distance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...to].entries()) {
      next.push(Math.min((row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1, (row[j] ?? 0) + (letter === other ? 0 : 1)));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
