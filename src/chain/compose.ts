// `compose()`: middleware around a handler, without the rest of a gateway (upstreams, names, replacing, status). For
// handlers that are used inside a program, and for tests of middleware.

import type { Handler, Middleware } from "../core/handler.ts";
import { EVALUATES_CODE, evaluatesCode } from "../core/handler-marks.ts";
import { kindOf } from "../core/options.ts";
import { errorMessage } from "../core/values.ts";
import { Driver } from "./driver.ts";
import { checkMiddleware, namedEntries } from "./gateway.ts";

/** A handler with middleware around it. */
export interface ComposedHandler extends Handler {
  /** Set if the handler evaluates code that callers send. */
  [EVALUATES_CODE]?: true;
  /** Closes the middleware, and then the handler. */
  close(budgetMs?: number): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Wraps a handler in middleware, the first outermost. The result is a handler. Use `chain(...).to(...)` for upstreams
 * that are not handlers, for several of them, or to replace middleware later.
 *
 * @example
 * const slowly = compose([log(), timeout(30_000)], server);
 * const result = await slowly({ method: "tools/list", params: {} }, context);
 */
export function compose(
  middleware: readonly Middleware[],
  handler: Handler & { close?(budgetMs?: number): Promise<void> | void },
): ComposedHandler {
  const isList: boolean = Array.isArray(middleware);
  if (!isList) {
    throw new TypeError(`compose() takes an array of middleware and a handler, not ${kindOf(middleware)}`);
  }
  for (const layer of middleware) checkMiddleware(layer, "compose()");
  if (typeof handler !== "function") {
    throw new TypeError(`compose(): the second argument must be a handler, not ${kindOf(handler)}`);
  }
  const { run } = new Driver(namedEntries(middleware), handler);
  const composed = ((request, context) => run(request, context)) as ComposedHandler;
  if (evaluatesCode(handler)) composed[EVALUATES_CODE] = true;
  composed.close = async (budgetMs) => {
    const outcomes = await Promise.allSettled(middleware.map(async (layer) => layer.close?.()));
    outcomes.push(...(await Promise.allSettled([(async () => handler.close?.(budgetMs))()])));
    const errors = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason as unknown] : []));
    if (errors.length > 1) throw new AggregateError(errors, `Closing failed: ${errors.map(errorMessage).join("; ")}`);
    if (errors.length === 1) throw errors[0];
  };
  composed[Symbol.asyncDispose] = () => composed.close();
  return composed;
}
