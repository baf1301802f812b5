// A middleware that passes on copies: of the request, the context and the result, and of all that goes through the
// context. Copies have only the own enumerable string keys of the original, at every depth, so that whatever is hidden
// anywhere else (under symbols, by identity) is lost.

import type { Middleware, Notification, Request } from "../../../src/core/handler.ts";

/** Objects of a class, such as signals, and functions are passed on as they are. */
function plainCopy<T>(value: T): T {
  if (Array.isArray(value)) return value.map(plainCopy) as T;
  if (typeof value !== "object" || value === null) return value;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, plainCopy<unknown>(field)])) as T;
}

export const copying: Middleware = async (request, context, next) => {
  const copy = {
    ...plainCopy(context),
    notify: (notification: Notification) => context.notify(plainCopy(notification)),
    ask: async (question: Request, options?: object) =>
      plainCopy(await context.ask(plainCopy(question), plainCopy(options))),
  };
  return plainCopy(await next(plainCopy(request), copy));
};
