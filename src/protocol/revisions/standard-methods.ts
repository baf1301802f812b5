// Which methods the specification defines. All others are vendors' own: they pass through unchanged in every revision. It
// is separate from index.ts so that a server can check names without loading the codecs.

import type { Vocabulary } from "../revision.ts";
import { newest } from "./2026-07-28.ts";

/** The methods of the newest revision, by sender. */
export const NEWEST_METHODS: Vocabulary = newest.vocabulary;

/** Task requests that only session-style revisions have, in both directions. */
const SESSION_TASKS = ["tasks/result", "tasks/list"];

/** The methods of session-style revisions that the newest revision lacks. */
export const SESSION_METHODS: Vocabulary = {
  requests: [
    ...["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"],
    ...SESSION_TASKS,
  ],
  clientRequests: ["ping", "tasks/get", "tasks/cancel", ...SESSION_TASKS],
  clientNotifications: [
    "notifications/initialized",
    "notifications/progress",
    "notifications/roots/list_changed",
    "notifications/tasks/status",
  ],
  serverNotifications: ["notifications/elicitation/complete", "notifications/tasks/status"],
};

/** The requests that may change something at each attempt. A repeated update or cancellation of a task is ignored. */
const CHANGING = ["tools/call", "subscriptions/listen", "initialize", "resources/subscribe", "resources/unsubscribe"];

/** The methods whose requests may be sent again although they may have run. */
export const READ_ONLY_METHODS: ReadonlySet<string> = new Set(
  [...newest.vocabulary.requests, ...SESSION_METHODS.requests].filter((method) => !CHANGING.includes(method)),
);

/** Not in the specification, but handled by our fronts for some clients. */
const OTHERS = ["shutdown", "exit", "initialized"];

const STANDARD: ReadonlySet<string> = new Set([
  ...[newest.vocabulary, SESSION_METHODS].flatMap((names) => [
    ...[...names.requests, ...names.clientRequests, ...names.clientNotifications, ...names.serverNotifications],
  ]),
  ...OTHERS,
]);

/** Whether no revision defines the method, neither as a request nor as a notification. */
export function isVendorMethod(method: string): boolean {
  return !STANDARD.has(method);
}
