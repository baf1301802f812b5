// The names of all methods, as values: what a person writes in code or in a config file is looked up here, so that a
// slip of the pen is told when it is made and not silently never met. By the types of protocol/methods, so that a
// method which is added there must be added here.

import { nearest, type OptionReader } from "../core/options.ts";
import type { Asks, MethodName, Notifications } from "../protocol/methods.ts";

export type AskName = keyof Asks;
/** A cancellation is no notification here: it is the context's `signal`. */
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

const ASKS = {
  "elicitation/create": true,
  "sampling/createMessage": true,
  "roots/list": true,
} as const satisfies Record<AskName, true>;

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
export const ASK_NAMES: ReadonlySet<string> = new Set(Object.keys(ASKS));
export const NOTIFICATION_NAMES: ReadonlySet<string> = new Set(Object.keys(NOTIFICATIONS));

/** What is wrong with a name that is none of these. */
export function noSuchMethod(method: unknown, names: Iterable<string>): string {
  if (typeof method !== "string") return "must be the name of a method";
  const [near] = nearest(method, names);
  return `${JSON.stringify(method)} is no method${near === undefined ? "" : `; did you mean ${JSON.stringify(near)}?`}`;
}

/** Reads an option that lists request methods; each must exist. */
export function methodsOption(read: OptionReader, name: string = "methods"): ReadonlySet<string> | undefined {
  const methods = read.strings(name);
  const wrong = methods?.find((method) => !REQUEST_NAMES.has(method));
  if (wrong !== undefined) throw read.error(name, `has a wrong name: ${noSuchMethod(wrong, REQUEST_NAMES)}`);
  return methods && new Set(methods);
}
