// The names of all methods as values, so that a misspelt method name in code or in a config is an error at startup
// instead of a name that never matches. Typed against protocol/methods, so that a new method must be added here too.

import { nearest, type OptionReader } from "../core/options.ts";
import type { ClientMethods, MethodName, Notifications } from "../protocol/methods.ts";

export type ClientMethodName = keyof ClientMethods;
/** Without cancellations, which middleware gets through `context.signal`. */
export type NotificationName = Exclude<keyof Notifications, "notifications/cancelled">;

const REQUESTS = {
  "server/discover": true,
  "tools/list": true,
  "tools/call": true,
  "resources/list": true,
  "resources/templates/list": true,
  "resources/read": true,
  "prompts/list": true,
  "prompts/get": true,
  "completion/complete": true,
  "subscriptions/listen": true,
  "tasks/get": true,
  "tasks/update": true,
  "tasks/cancel": true,
} as const satisfies Record<MethodName, true>;

const CLIENT_METHODS = {
  "elicitation/create": true,
  "sampling/createMessage": true,
  "roots/list": true,
} as const satisfies Record<ClientMethodName, true>;

const NOTIFICATIONS = {
  "notifications/progress": true,
  "notifications/message": true,
  "notifications/tools/list_changed": true,
  "notifications/prompts/list_changed": true,
  "notifications/resources/list_changed": true,
  "notifications/resources/updated": true,
  "notifications/subscriptions/acknowledged": true,
  "notifications/tasks": true,
} as const satisfies Record<NotificationName, true>;

export const REQUEST_NAMES: ReadonlySet<string> = new Set(Object.keys(REQUESTS));
export const CLIENT_METHOD_NAMES: ReadonlySet<string> = new Set(Object.keys(CLIENT_METHODS));
export const NOTIFICATION_NAMES: ReadonlySet<string> = new Set(Object.keys(NOTIFICATIONS));

/** The error message for an unknown name. */
export function noSuchMethod(method: unknown, names: Iterable<string>): string {
  if (typeof method !== "string") return "must be the name of a method";
  const [near] = nearest(method, names);
  const hint = near === undefined ? "" : `; did you mean ${JSON.stringify(near)}?`;
  return `${JSON.stringify(method)} is not a method${hint}`;
}

/** Reads an option that is a list of request methods. Throws if one does not exist. */
export function methodsOption(read: OptionReader, name: string = "methods"): ReadonlySet<string> | undefined {
  const methods = read.strings(name);
  const wrong = methods?.find((method) => !REQUEST_NAMES.has(method));
  if (wrong !== undefined) throw read.error(name, `has a wrong name: ${noSuchMethod(wrong, REQUEST_NAMES)}`);
  return methods && new Set(methods);
}
