// What people put into a chain, made into links that have names of their own: a bare middleware gets the name of its
// function, and of two links with one name the second is called `log-2`. Also who still holds a link: one link object
// may stand in many gateways, and is closed when the last has let go of it.

import type { Link, Middleware } from "../core/handler.ts";
import { attempt } from "../core/async.ts";

/** A link in its place in a chain. */
export interface Place extends Link {
  /** As it was given. */
  readonly link: Link;
}

/** Throws a TypeError where it is neither. */
export function checkMiddleware(given: unknown, where: string): void {
  if (typeof given === "function") return;
  const link = (typeof given === "object" && given !== null ? given : {}) as Partial<Link>;
  if (typeof link.run !== "function") {
    throw new TypeError(
      `${where} takes links ({ name, run }) and middleware ((request, context, next) => result), not ${kind(given)}`,
    );
  }
  if (typeof link.name !== "string" || link.name === "") throw new TypeError(`${where}: a link must have a \`name\``);
  if (link.close !== undefined && typeof link.close !== "function") {
    throw new TypeError(`${where}: \`close\` of the link ${link.name} must be a function`);
  }
}

/** Names are those of the links, and each but once. */
export function placesOf(given: readonly (Link | Middleware)[]): Place[] {
  const taken = new Set<string>();
  return given.map((one) => {
    const wanted = one.name === "" ? "link" : one.name;
    let name = wanted;
    for (let count = 2; taken.has(name); count += 1) name = `${wanted}-${count}`;
    taken.add(name);
    return place(name, one);
  });
}

export function place(name: string, given: Link | Middleware): Place {
  const link: Link = typeof given === "function" ? { name, run: given } : given;
  return {
    name,
    link,
    // By its own object, which may be of a class.
    run: (request, context, next) => link.run(request, context, next),
    ...(link.close === undefined ? undefined : { close: async () => link.close?.() }),
  };
}

/** What is thrown where a link is to be replaced that there is not. */
export function missing(name: string, places: readonly Place[]): TypeError {
  const names = places.map((one) => one.name).join(", ");
  return new TypeError(`There is no link ${JSON.stringify(name)} in the chain; there are ${names}`);
}

const holders = new WeakMap<Link, number>();

export function hold({ link }: Place): void {
  holders.set(link, (holders.get(link) ?? 0) + 1);
}

/** Closes the link where nobody else holds it. */
export async function letGo({ link }: Place): Promise<void> {
  const left = (holders.get(link) ?? 1) - 1;
  holders.set(link, left);
  if (left === 0) await attempt(async () => link.close?.());
}

export function kind(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (typeof value === "object") return Array.isArray(value) ? "an array" : "an object";
  return typeof value === "string" ? JSON.stringify(value) : `a ${typeof value}`;
}
