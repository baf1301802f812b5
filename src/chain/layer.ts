// What a declared middleware is to the driver of a chain (driver.ts): a transform, which changes or hides what callers see,
// a middleware, which acts around requests, or both.

import type { Caller, Context, Handler, Middleware } from "../core/handler.ts";
import type { McpError } from "../protocol/errors.ts";
import { LISTS, type ListCapability, type ListKind } from "../protocol/lists.ts";
import type { ItemDefinition, Item, ItemKind, ItemSource } from "./item.ts";

/** What a transform may look at beside the item. */
export interface TransformView {
  readonly caller: Caller;
  readonly context: Context;
  /** What is inside of the transform. */
  readonly next: Handler;
}

/** Changes or hides items. Transforms apply in the order of the chain, the innermost first. */
export interface Transform {
  /** The kinds of items that it changes or hides. */
  readonly kinds: ReadonlySet<ItemKind>;
  /** The item as callers see it outside of the transform; undefined if they do not see it. */
  readonly item: (item: Item, view: TransformView) => Item | undefined | Promise<Item | undefined>;
  /** If it changes names: the name inside of it. Undefined if no item can have the name. */
  readonly innerName?: (kind: ItemKind, name: string) => string | undefined;
  /** Whether it changes names in a way that only its answers tell, so that the list is searched for the name inside. */
  readonly searchesNames?: boolean;
  /** If it searches names: called if items of a list have the same name outside of it. Only the first is shown. */
  readonly onSameName?: (kind: ListKind, name: string) => void;
  /** If it changes URIs: the URI outside of it, for those in results. */
  readonly outerUri?: (uri: string) => string;
  /** Items of its own. Others with their names are hidden. Its middleware answers requests that name them. */
  readonly added?: { readonly [Kind in ListKind]?: readonly ItemDefinition[] };
  /** Whether its middleware answers list requests, so that the driver must not change them again. */
  readonly answersLists?: boolean;
  /** Whether the definition of the item must be known. Then lists are read for it. Default: no. */
  readonly needs?: (kind: ItemKind, name: string) => boolean;
  /** Whether it hides items by rules about names, so that errors must not list other names. */
  readonly hides?: boolean;
  /** The error for a hidden item. Default: that for one that does not exist. */
  readonly refuse?: (item: Item, view: TransformView) => McpError;
  /** Whether its answers depend on the caller. */
  readonly dependsOnCaller?: boolean;
  /** Whether its answers may be promises, and others the next time, so that it is asked for every request. */
  readonly isLive?: boolean;
}

/** The kinds of items that capabilities announce. */
export function kindsOf(capabilities: readonly ListCapability[]): ReadonlySet<ItemKind> {
  return new Set(
    capabilities.flatMap((capability): ItemKind[] =>
      capability === "resources" ? ["resources", "templates"] : [capability],
    ),
  );
}

/** What a declared middleware is to the driver. Middleware without this may do anything to lists and names. */
export interface Layer {
  readonly transform?: Transform | undefined;
  /** What acts around requests. */
  readonly middleware?: Middleware | undefined;
  /** Whether the middleware needs the definition of an item. If it is there, definitions in lists are remembered. */
  readonly needs?: ((kind: ItemKind, name: string) => boolean) | undefined;
  /** Whether it requests lists itself. */
  readonly readsLists?: boolean;
}

/** Middleware that tells the driver what it is. */
export type LayeredMiddleware = Middleware & {
  layer?: Layer;
  /** What takes its place in a chain, the outermost first: what is known of items is that of a place. */
  parts?: readonly Middleware[];
};

/** A handler that knows what the names of its callers lead to: a router, or a gateway. */
export type ItemHandler = Handler & { items?: ItemSource | undefined };

/** The definition that a transform has added under a name. */
export function addedBy({ added }: Transform, kind: ItemKind, name: string): ItemDefinition | undefined {
  if (added === undefined || kind === "tasks") return undefined;
  return added[kind]?.find((definition) => definition[LISTS[kind].key] === name);
}
