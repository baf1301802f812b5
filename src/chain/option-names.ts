// Options that there are not, refused by name: who writes without types would otherwise find out by what does not happen.

import { nearest } from "../core/nearest.ts";

/** Throws a TypeError; `known` has a member for each option. */
export function checkNames(owner: string, given: object, known: object): void {
  const stray = Object.entries(given).find(([name, value]) => value !== undefined && !Object.hasOwn(known, name))?.[0];
  if (stray === undefined) return;
  const names = Object.keys(known);
  const [near] = nearest(stray, names);
  const hint = near === undefined ? `there are ${names.join(", ")}` : `did you mean \`${near}\`?`;
  throw new TypeError(`${owner} has no option \`${stray}\`; ${hint}`);
}
