// The name that was probably meant, where a person wrote one that there is not. Options that there are not are refused
// with it: who writes without types would otherwise find out by what does not happen.

const LONGEST = 100;

/** The names that are near, the nearest first; one that begins with what was written is nearest of all. */
export function nearest(name: string, names: Iterable<string>, most = 2): string[] {
  // What is so long is no slip, and would be dear to compare.
  if (name.length > LONGEST) return [];
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

/** Letters to put in, take out or change, and neighbours to exchange (Levenshtein; Damerau's in its plain form). */
function distance(from: string, to: string): number {
  let before: readonly number[] = [];
  let row: readonly number[] = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 0; i < from.length; i += 1) {
    const next = [i + 1];
    for (let j = 0; j < to.length; j += 1) {
      const changed = (row[j] ?? 0) + (from[i] === to[j] ? 0 : 1);
      const isStateless = i > 0 && j > 0 && from[i] === to[j - 1] && from[i - 1] === to[j];
      const exchanged = isStateless ? (before[j - 1] ?? 0) + 1 : Infinity;
      next.push(Math.min((row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1, changed, exchanged));
    }
    before = row;
    row = next;
  }
  return row.at(-1) ?? 0;
}

/** Throws a TypeError; `known` has a member for each option. */
export function checkNames(owner: string, given: object, known: object): void {
  const stray = Object.entries(given).find(([name, value]) => value !== undefined && !Object.hasOwn(known, name))?.[0];
  if (stray === undefined) return;
  const names = Object.keys(known);
  const [near] = nearest(stray, names);
  const hint = near === undefined ? `there are ${names.join(", ")}` : `did you mean \`${near}\`?`;
  throw new TypeError(`${owner} has no option \`${stray}\`; ${hint}`);
}
