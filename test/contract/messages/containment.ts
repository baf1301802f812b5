// Whether an answer has all that a seed shows: objects by key (more keys are fine), arrays by element (as many as
// shown), everything else by value. What is missing comes back by its path, so that an exception can name it.

export interface Difference {
  /** A JSON pointer into the message. */
  readonly path: string;
  readonly shown: unknown;
  readonly found: unknown;
}

export function missing(shown: unknown, found: unknown, path = ""): Difference[] {
  if (Array.isArray(shown)) {
    if (!Array.isArray(found)) return [{ path, shown, found }];
    if (found.length !== shown.length) return [{ path: `${path}/length`, shown: shown.length, found: found.length }];
    return shown.flatMap((element, index) => missing(element, found[index], `${path}/${index}`));
  }
  if (typeof shown === "object" && shown !== null) {
    if (typeof found !== "object" || found === null || Array.isArray(found)) return [{ path, shown, found }];
    return Object.entries(shown).flatMap(([key, value]) =>
      missing(value, Object.hasOwn(found, key) ? (found as Record<string, unknown>)[key] : undefined, `${path}/${key}`),
    );
  }
  return Object.is(shown, found) ? [] : [{ path, shown, found }];
}
