// What a subscription says: the filter of its `subscriptions/listen`, the acknowledgement with what is granted, and the
// notifications of changes. Also which changes concern it; this is the only rule for the URIs of updates.

import type { Notification, Request } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { changedFlag, changedMethod, LIST_CAPABILITIES, type ListCapability } from "./lists.ts";
import type { SubscriptionFilter } from "./model/index.ts";

const SUBSCRIPTION_ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
export const RESOURCE_UPDATED = "notifications/resources/updated";
export const TASK_CHANGED = "notifications/tasks";

const LIST_OF: ReadonlyMap<string, ListCapability> = new Map(
  LIST_CAPABILITIES.map((capability) => [changedMethod(capability), capability]),
);

/** The notifications that only those get who have subscribed to them. */
export const CHANGES: ReadonlySet<string> = new Set([...LIST_OF.keys(), RESOURCE_UPDATED, TASK_CHANGED]);

/** The list that a notification reports as changed, if it does. */
export function changedList({ method }: Notification): ListCapability | undefined {
  return LIST_OF.get(method);
}

export function resourceUpdated(uri: string): Notification {
  return { method: RESOURCE_UPDATED, params: { uri } };
}

export function listenRequest(notifications: SubscriptionFilter): Request {
  return { method: "subscriptions/listen", params: { notifications } };
}

export function filterOf({ params }: Request): SubscriptionFilter {
  const filter = params["notifications"];
  return isObject(filter) ? filter : {};
}

export function acknowledgement(granted: SubscriptionFilter): Notification {
  return { method: SUBSCRIPTION_ACKNOWLEDGED, params: { notifications: granted } };
}

/** What an acknowledgement grants; undefined for any other notification. */
export function grantedIn({ method, params }: Notification): SubscriptionFilter | undefined {
  if (method !== SUBSCRIPTION_ACKNOWLEDGED) return undefined;
  const granted = params?.["notifications"];
  return isObject(granted) ? granted : {};
}

/** The resources or tasks of a filter, which may come from a server that sends anything. */
export function namesIn(filter: unknown, field: "resourceSubscriptions" | "taskIds"): readonly string[] {
  const names = isObject(filter) ? filter[field] : undefined;
  return Array.isArray(names) ? (names as readonly string[]) : [];
}

/** The lists of a filter, or those of them that are `among` others. */
export function listsIn(filter: SubscriptionFilter, among = LIST_CAPABILITIES): ListCapability[] {
  return among.filter((capability) => filter[changedFlag(capability)] === true);
}

/** The lists whose changes a server with these capabilities reports. */
export function changingLists(capabilities: unknown): ListCapability[] {
  return LIST_CAPABILITIES.filter((capability) => {
    const declared = isObject(capabilities) ? capabilities[capability] : undefined;
    return isObject(declared) && declared["listChanged"] === true;
  });
}

/** Fields without names are left out. */
export function filterFor(
  lists: Iterable<ListCapability>,
  names: { readonly resourceSubscriptions?: readonly string[]; readonly taskIds?: readonly string[] } = {},
): SubscriptionFilter {
  const flags = Array.from(lists, (list) => [changedFlag(list), true] as const);
  return Object.fromEntries<unknown>([...flags, ...Object.entries(names).filter(([, all]) => all.length > 0)]);
}

/** Whether nothing was granted, so that no notification can ever come. */
export function grantsNothing(granted: unknown): boolean {
  return (
    !isObject(granted) ||
    Object.values(granted).every((value) => value === false || (Array.isArray(value) && value.length === 0))
  );
}

/**
 * Whether an update of a resource concerns a subscription to this URI. It may name a sub-resource of what was
 * subscribed to (specification, ResourceUpdatedNotificationParams), which begins at a delimiter.
 */
export function covers(uri: string, updated: string): boolean {
  if (!updated.startsWith(uri)) return false;
  return updated.length === uri.length || uri.endsWith("/") || "/?#".includes(updated.charAt(uri.length));
}

/** Whether a subscription with this filter gets the notification of a change. */
export function isConcerned(filter: SubscriptionFilter, notification: Notification): boolean {
  const list = changedList(notification);
  if (list !== undefined) return filter[changedFlag(list)] === true;
  const updated = notification.method === RESOURCE_UPDATED ? notification.params?.["uri"] : undefined;
  return typeof updated === "string" && namesIn(filter, "resourceSubscriptions").some((uri) => covers(uri, updated));
}

/** All changes that a subscription with this grant could report. Tasks report their state themselves. */
export function possibleChanges(granted: SubscriptionFilter): Notification[] {
  return [
    ...listsIn(granted).map((list) => ({ method: changedMethod(list) })),
    ...namesIn(granted, "resourceSubscriptions").map(resourceUpdated),
  ];
}
