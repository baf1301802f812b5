// The mark of a handler that evaluates what its callers send. A front over HTTP asks whoever calls such a handler for
// a token, so whoever wraps one carries the mark on. Here, because the live room sets it, the chain carries it, and the
// fronts look for it, and they do not import each other.

/** Known to all copies of this package that a process may have. */
export const EVALUATES_CODE: unique symbol = Symbol.for("catenary.live");

/** Whether who may call it may run code. */
export function evaluatesCode(handler: object): boolean {
  return (handler as { readonly [EVALUATES_CODE]?: unknown })[EVALUATES_CODE] === true;
}
