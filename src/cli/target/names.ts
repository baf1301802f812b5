// Names on a command line against the names that there are: what is said where one is missing, unknown or too many.

import { isObject } from "../../core/objects.ts";
import { NotFoundError, UsageError } from "../exit-codes.ts";
import { oneLine } from "../terminal/harmless.ts";
import { nearest } from "../../core/options.ts";

/** How far off a name may be and still be taken for a slip: a letter in three. */
const SLIP = 3;
/** As many names fit into a sentence. */
const MOST_NAMES = 12;

/** The members of a list that have a name at all; an end may write anything where they should be. */
export function sound<T>(list: unknown, key: keyof T & string): T[] {
  if (!Array.isArray(list)) return [];
  return list.filter((one: unknown): one is T => isObject(one) && typeof one[key] === "string");
}

/** There is no such tool, or prompt; those that were perhaps meant are named. */
export function notFound(what: string, name: string, names: readonly string[]): NotFoundError {
  // A gateway puts the names of its ends before what several of them have.
  const several = names.filter((one) => one.endsWith(`.${name}`));
  if (several.length > 0) {
    return new NotFoundError(`There is no ${what} ${name} alone; name one in full: ${listing(several)}`);
  }
  const near = nearest(name, names, Math.min(Math.ceil(name.length / SLIP), SLIP));
  const hint =
    near.length > 0
      ? `did you mean ${near.slice(0, 3).map(oneLine).join(" or ")}?`
      : names.length === 0
        ? "the server has none"
        : `there are ${listing(names)}`;
  return new NotFoundError(`There is no ${what} ${name}; ${hint}`);
}

function listing(names: readonly string[]): string {
  const rest = names.length > MOST_NAMES ? ` and ${names.length - MOST_NAMES} more` : "";
  return `${names.slice(0, MOST_NAMES).map(oneLine).join(", ")}${rest}`;
}

export function surplus(command: string, words: readonly string[], usage: string): UsageError {
  return new UsageError(`${command} does not know what to do with ${words.join(" ")}\n\n${usage}`);
}
