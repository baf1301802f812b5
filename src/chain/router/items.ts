// What the names of callers lead to: items, with the upstream that has them and their names there.

import type { Context } from "../../core/handler.ts";
import { Item, type ItemKind } from "../item.ts";
import type { ItemHandler } from "../layer.ts";
import { routeFor, type ViewRoute } from "./calls.ts";
import type { Route } from "./names.ts";
import { routesFor, templateRoute } from "./resources.ts";
import type { View } from "./view.ts";

/** What a name leads to, for `context.item`. Lists the upstreams if necessary, as a request with the name would. */
export function findItem(kind: ItemKind, name: string, context: Context, view: View): Item | Promise<Item> {
  // Only a name in the lists leads to the same item until they change.
  const item = (route: Route, isListed?: boolean, validUntil = 0): Item | Promise<Item> => {
    const { name: upstream, handler } = view.at(route);
    const viewRoute: ViewRoute = { view, route };
    return itemAt(upstream, handler, kind, name, route.name, context, { route: viewRoute, isListed, validUntil });
  };
  const unknown = (): Item => new Item({ kind, name });
  if (kind === "tasks") {
    const route = view.addresses.taskRoute(name);
    return route === undefined ? unknown() : item(route);
  }
  const index = view.indexes[kind];
  const known = index.isStale ? undefined : index.names.route(name);
  if (known !== undefined) return item(known, true, Infinity);
  const find = async (): Promise<Item> => {
    if (kind === "tools" || kind === "prompts") {
      const route = await routeFor(kind, name, context, view);
      return item(route, index.names.route(name) !== undefined);
    }
    if (kind === "templates") return item(await templateRoute(name, context, view));
    const [route] = (await routesFor(name, context, view)).routes;
    return route === undefined ? unknown() : item(route);
  };
  // Why there is none is the answer to the request itself.
  return find().catch(unknown);
}

/**
 * The item that an upstream has under a name of its own. If the upstream is a gateway, the item also has the names at the
 * upstreams of that.
 */
export function itemAt(
  upstream: string | undefined,
  handler: ItemHandler,
  kind: ItemKind,
  name: string,
  ownName: string,
  context: Context,
  more?: Pick<Item, "validUntil"> & Partial<Pick<Item, "route" | "isListed">>,
): Item | Promise<Item> {
  const create = (inner: Item | undefined): Item => {
    const ownNames = [ownName, ...(inner?.ownNames ?? [])];
    const labelled = upstream === undefined ? [] : [`${upstream}_${ownName}`];
    if (inner?.upstream !== undefined && upstream !== undefined) {
      labelled.push(`${upstream}.${inner.upstream}_${inner.ownName}`);
    }
    const isKnown = inner?.isKnown ?? true;
    const innerUpstreams = (inner?.upstreams ?? []).map((innerUpstream) =>
      upstream === undefined ? innerUpstream : `${upstream}.${innerUpstream}`,
    );
    const upstreams = upstream === undefined ? innerUpstreams : [upstream, ...innerUpstreams];
    const otherNames = [...ownNames, ...labelled];
    return new Item({ kind, name, upstream, upstreams, ownNames, otherNames, isKnown, ...more });
  };
  const inner = handler.items?.find(kind, ownName, context);
  return inner instanceof Promise ? inner.then(create) : create(inner);
}
