// Marks a handler that evaluates code from its callers, and recognizes a chain that is no handler yet. An HTTP server
// requires authentication for code that callers send, so wrappers must copy the mark. It is in core because live/ sets
// it, chain/ copies it and http/ checks it. Another mark gives a handler that the command line serves its pages.

import { fieldsOf } from "./values.ts";

/** A registered symbol, so that all copies of this package in a process share it. */
export const EVALUATES_CODE: unique symbol = Symbol.for("catenary.evaluatesCode");

export function evaluatesCode(handler: object): boolean {
  return EVALUATES_CODE in handler && handler[EVALUATES_CODE] === true;
}

/** On a handler that is served with pages beside its endpoint: what answers requests for them (http/server/options.ts). */
export const PAGES: unique symbol = Symbol("catenary.pages");

/** Whether the value is a chain that has no upstream yet, so that it is not a handler. */
export function isUnfinishedChain(value: unknown): boolean {
  const { use, to } = fieldsOf(value);
  return typeof use === "function" && typeof to === "function";
}

export const NO_UPSTREAM = "the chain has no upstream: write chain(...).to(...) with what it stands in front of";
