// The entries of a chain: middleware with a name that is unique in the chain. Also counts the gateways that use each
// middleware: one function may be in several gateways, and is closed when the last one releases it.

import { attempt } from "../core/async.ts";
import type { Middleware } from "../core/handler.ts";
import { kindOf } from "../core/options.ts";

/** A middleware of a chain, with its name. */
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

/** Gives each middleware the name of its function. The second one named `log` becomes `log-2`. */
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
