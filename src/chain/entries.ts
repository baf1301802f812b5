// The entries of a chain: middleware with a name that is unique in the chain. Also counts the gateways that use a
// middleware, because one function may be part of many and is closed when the last of them lets go of it.

import { attempt } from "../core/async.ts";
import type { Middleware } from "../core/handler.ts";
import { kindOf } from "../core/options.ts";

/** Middleware in its place in a chain. */
export interface ChainEntry {
  /** Unique in its chain; `replace` and errors use it. */
  readonly name: string;
  readonly middleware: Middleware;
}

/** Throws a TypeError if the value is not middleware. */
export function checkMiddleware(given: unknown, where: string): void {
  if (typeof given !== "function") {
    throw new TypeError(`${where} takes middleware, (request, context, next) => result, not ${kindOf(given)}`);
  }
  const { close } = given as Partial<Middleware>;
  if (close !== undefined && typeof close !== "function") {
    throw new TypeError(`${where}: \`close\` of the middleware ${given.name} must be a function`);
  }
}

/** Names each middleware by its function; of two that are called `log`, the second becomes `log-2`. */
export function entriesFor(all: readonly Middleware[]): ChainEntry[] {
  const taken = new Set<string>();
  return all.map((middleware) => {
    const own = middleware.name === "" ? "middleware" : middleware.name;
    let name = own;
    for (let count = 2; taken.has(name); count += 1) name = `${own}-${count}`;
    taken.add(name);
    return { name, middleware };
  });
}

/** The error of `replace` for a name that the chain does not have. */
export function noSuchEntry(name: string, entries: readonly ChainEntry[]): TypeError {
  const names = entries.map((entry) => entry.name).join(", ");
  return new TypeError(`The chain has no middleware ${JSON.stringify(name)}; it has ${names}`);
}

/** How many gateways use a middleware. */
const users = new WeakMap<Middleware, number>();

export function retain({ middleware }: ChainEntry): void {
  users.set(middleware, (users.get(middleware) ?? 0) + 1);
}

/** Closes the middleware if no other gateway uses it. */
export async function release({ middleware }: ChainEntry): Promise<void> {
  const left = (users.get(middleware) ?? 1) - 1;
  users.set(middleware, left);
  if (left === 0) await attempt(async () => middleware.close?.());
}
