// The mark of a handler that evaluates code from its callers. An HTTP server requires authentication for such a handler,
// so wrappers must carry the mark on. It is in core because live/ sets it, chain/ carries it and http/ looks for it.

/** Shared by all copies of this package in a process. */
export const EVALUATES_CODE: unique symbol = Symbol.for("catenary.evaluatesCode");

export function evaluatesCode(handler: object): boolean {
  return (handler as { readonly [EVALUATES_CODE]?: unknown })[EVALUATES_CODE] === true;
}
