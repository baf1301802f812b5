// The lists that servers have: how each is requested, how its items are identified, which capability announces it, and
// the notifications about it. Also which results may be cached.

import type { Result } from "../core/handler.ts";
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

/** The capabilities that announce lists. `resources` announces two: resources and templates. */
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

/** The `_meta` key of a listed item that holds the name of its upstream. */
export const UPSTREAM = "catenary/upstream";
/** The `_meta` key of a listed item that holds its names at the upstreams, the nearest first, if some differ. */
export const OWN_NAMES = "catenary/names";
/** The `_meta` key of a result that lists the upstreams missing from it. */
export const UNAVAILABLE = "catenary/unavailable";

export interface Unavailable {
  readonly upstream: string;
  readonly message: string;
}

/** The upstreams that a result says are missing from it. */
export function unavailableIn(result: Result | undefined): readonly Unavailable[] {
  const listed = result?._meta?.[UNAVAILABLE];
  const isEntry = (entry: unknown): entry is Unavailable =>
    isObject(entry) && typeof entry["upstream"] === "string" && typeof entry["message"] === "string";
  return Array.isArray(listed) ? listed.filter(isEntry) : [];
}

/** Sent by session-style clients. */
export const ROOTS_LIST_CHANGED = "notifications/roots/list_changed";

/** Requests whose results say how long they may be cached, and for whom. */
export const CACHEABLE: ReadonlySet<string> = new Set([
  "server/discover",
  ...Object.values(LISTS).map(({ method }) => method),
  "resources/read",
]);
