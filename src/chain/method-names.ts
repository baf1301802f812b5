// The names of all methods, so that a misspelt method name in code or in a config is an error at startup instead of a
// name that never matches.

import { refine, strings, type Field } from "../core/fields.ts";
import { nearest } from "../core/options.ts";
import { NEWEST_METHODS } from "../protocol/revisions/standard-methods.ts";

export const REQUEST_NAMES: ReadonlySet<string> = new Set(NEWEST_METHODS.requests);
export const CLIENT_METHOD_NAMES: ReadonlySet<string> = new Set(NEWEST_METHODS.clientRequests);
/** Without cancellations, which middleware gets through `context.signal`. */
export const NOTIFICATION_NAMES: ReadonlySet<string> = new Set(
  NEWEST_METHODS.serverNotifications.filter((method) => method !== "notifications/cancelled"),
);

/** The error message for an unknown name. */
export function noSuchMethod(method: unknown, names: Iterable<string>): string {
  if (typeof method !== "string") return "must be the name of a method";
  const [near] = nearest(method, names);
  const hint = near === undefined ? "" : `; did you mean ${JSON.stringify(near)}?`;
  return `${JSON.stringify(method)} is not a method${hint}`;
}

/** An option that is a list of request methods. */
export function methodNames<const Description extends string>(
  description: Description,
): Field<Description, readonly string[]> {
  return refine(
    strings(description),
    (methods, place) => {
      const wrong = methods.find((method) => !REQUEST_NAMES.has(method));
      if (wrong !== undefined) throw place.error(`has a wrong name: ${noSuchMethod(wrong, REQUEST_NAMES)}`);
    },
    { items: { enum: NEWEST_METHODS.requests } },
  );
}

/** The option of middleware that limits calls. */
export const COUNTED_METHODS = methodNames("The methods that count as calls.").or(
  ["tools/call", "prompts/get", "resources/read", "completion/complete"],
  "tools/call, prompts/get, resources/read and completion/complete",
);
