// The lists that servers have: how each is requested, how its items are identified, which capability announces it, and
// the notifications about it. Also which results may be cached, and what a subscription grants.

import { isObject } from "../core/values.ts";

/** `field` holds the items of a result; `key` is the field of an item that identifies it. */
export const LISTS = {
  tools: { method: "tools/list", field: "tools", key: "name", capability: "tools" },
  prompts: { method: "prompts/list", field: "prompts", key: "name", capability: "prompts" },
  resources: { method: "resources/list", field: "resources", key: "uri", capability: "resources" },
  templates: {
    method: "resources/templates/list",
    field: "resourceTemplates",
    key: "uriTemplate",
    capability: "resources",
  },
} as const;

export type ListKind = keyof typeof LISTS;
export type List = (typeof LISTS)[ListKind];

/** The capabilities that stand for lists; `resources` stands for two. */
export type ListCapability = List["capability"];

export const LIST_CAPABILITIES: readonly ListCapability[] = ["tools", "prompts", "resources"];

/** The flag in the filter of `subscriptions/listen` that asks for changes of the lists. */
export function changedFlag(capability: ListCapability): `${ListCapability}ListChanged` {
  return `${capability}ListChanged`;
}

/** The notification that the lists have changed. */
export function changedMethod(capability: ListCapability): `notifications/${ListCapability}/list_changed` {
  return `notifications/${capability}/list_changed`;
}

export const SUBSCRIPTION_ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
export const RESOURCE_UPDATED = "notifications/resources/updated";

/** Requests whose results say how long they may be cached, and for whom. */
export const CACHEABLE: ReadonlySet<string> = new Set([
  "server/discover",
  ...Object.values(LISTS).map(({ method }) => method),
  "resources/read",
]);

/** Whether a subscription was granted nothing, so that no notification can ever come on its stream. */
export function grantsNothing(granted: unknown): boolean {
  return (
    !isObject(granted) ||
    Object.values(granted).every((value) => value === false || (Array.isArray(value) && value.length === 0))
  );
}
