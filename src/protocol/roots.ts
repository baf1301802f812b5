// That a caller's roots have changed is told in the session-style revisions by a notification of the caller, for which
// the newest has no word: there an end asks whenever it wants to know. Between two sessions in one process it travels
// under symbols, which no wire shows: who tells says so among its capabilities, and a listen's context is the way.

import { isObject } from "../core/objects.ts";

export const ROOTS_NOTIFICATION = "notifications/roots/list_changed";

/** On `roots` among a caller's capabilities: it tells when they change. */
export const TELLS_ROOTS: unique symbol = Symbol("catenary.tellsRoots");
/** On the context of a listen: calls back whenever the caller's roots have changed; returns how to stop that. */
export const ROOTS_CHANGED: unique symbol = Symbol("catenary.rootsChanged");

export type TellingRoots = { readonly [ROOTS_CHANGED]?: (changed: () => void) => () => void };

export function tellsRoots(capabilities: { readonly [key: string]: unknown }): boolean {
  const { roots } = capabilities;
  return isObject(roots) && (roots as { readonly [TELLS_ROOTS]?: unknown })[TELLS_ROOTS] === true;
}
