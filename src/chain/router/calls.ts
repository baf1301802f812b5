// Sends requests that name a tool or a prompt to the upstream that has it. A known name takes one lookup. For an unknown
// name, the lists of all upstreams are read once.

import { ConnectionError, THE_UPSTREAM } from "../../core/errors.ts";
import type { Context, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { invalidParams, type McpError } from "../../protocol/errors.ts";
import type { ListKind } from "../../protocol/lists.ts";
import { Item } from "../item.ts";
import { notFound } from "../named-items.ts";
import { sendTo } from "../observe.ts";
import { withUpstreamName } from "./failures.ts";
import type { Route, RoutedUpstream } from "./names.ts";
import type { NamedKind } from "./shown-names.ts";
import type { UpstreamView } from "./upstream-view.ts";
import type { View } from "./view.ts";

/** Calls a tool or gets a prompt. A request or result that needs no change is not copied. */
export async function call(request: Request, context: Context, view: View): Promise<Result> {
  const { method, params } = request;
  const kind: NamedKind = method.startsWith("tools/") ? "tools" : "prompts";
  const requested = params["name"] as string;
  const index = view.indexes[kind];
  const known = routeOf(context.item, requested, view) ?? (index.isStale ? undefined : index.names.route(requested));
  const route = known ?? (await routeFor(kind, requested, context, view));
  const { name, upstream } = route;
  const sent = name === requested ? request : { method, params: { ...params, name } };
  const result = await send(view.at(route), sent, context);
  const { addresses } = view;
  return result.resultType === "task" ? addresses.rewrite(upstream, result) : addresses.rewriteUris(upstream, result);
}

/** A route, and the view for which it was found. */
export interface ViewRoute {
  readonly view: View;
  readonly route: Route;
}

/** The route of the item that the driver has found, so that its name is looked up once. */
function routeOf(item: unknown, requested: string, view: View): Route | undefined {
  if (!(item instanceof Item) || item.name !== requested) return undefined;
  const viewRoute = item.route as ViewRoute | undefined;
  return viewRoute?.view === view ? viewRoute.route : undefined;
}

/** Sends a request to an upstream, and adds the upstream's name to failures. */
export async function send({ name, handler }: RoutedUpstream, request: Request, context: Context): Promise<Result> {
  try {
    return checkResult(await sendTo(name, handler, request, context), request);
  } catch (error) {
    throw context.signal.aborted ? error : withUpstreamName(name, error);
  }
}

/** Checks what an upstream answered before middleware gets it, so that an invalid result is not blamed on middleware. */
export function checkResult(result: unknown, { method }: Request): Result {
  if (isObject(result)) return result;
  throw new ConnectionError("protocol", `The upstream answered ${method} without a result`, THE_UPSTREAM);
}

/** Finds the upstream that has the name. Throws if there is none, or more than one. */
export async function routeFor(kind: NamedKind, name: string, context: Context, view: View): Promise<Route> {
  const route = await view.find(kind, name, context);
  if (route !== undefined) return route;
  const owners = view.indexes[kind].names.owners(name);
  // An upstream may have items that it does not list. If it is the only one with this kind, it gets the request.
  const only = owners.length > 0 ? undefined : onlyRoute(kind, name, view);
  if (only !== undefined) return only;
  throw unknownName(kind, name, view);
}

/** The route to the only upstream with items of this kind; undefined if there are several, or a list was never read. */
function onlyRoute(kind: NamedKind, name: string, { upstreams, indexes }: View): Route | undefined {
  const isUnknown = ({ upstream, capabilities }: UpstreamView): boolean =>
    capabilities === undefined || !indexes[kind].isKnown(upstream.index);
  if (upstreams.some(isUnknown)) return undefined;
  const [only, ...others] = upstreams.filter((upstream) => upstream.has(kind));
  // If all its names have a label, a name without a label is unknown.
  if (only === undefined || others.length > 0 || only.upstream.names === "always") return undefined;
  return { upstream: only.upstream.index, name };
}

function unknownName(kind: NamedKind, name: string, { indexes }: View): McpError {
  const { names, problems } = indexes[kind];
  const shownOwner = indexes[kind].shownFor(name);
  const owned = names.owners(name).map((upstream) => names.shownName(upstream, name));
  const candidates = owned.length === 0 && shownOwner !== undefined ? [shownOwner] : owned;
  if (candidates.length > 1) return severalHave(kind, name, candidates);
  const [only] = candidates;
  if (only !== undefined) return otherName(kind, name, only);
  return notFound(
    kind,
    name,
    problems.length === 0 ? "" : `; not all upstreams could be asked: ${problems.join("; ")}`,
  );
}

/** The error for a name that several upstreams have. Callers see each of these items under another name. */
export function severalHave(kind: ListKind, name: string, candidates: readonly string[]): McpError {
  const [what, field] = ITEMS[kind];
  const message = `Several upstreams have ${what} ${name}; use one of ${candidates.join(", ")}`;
  return invalidParams(message, { [field]: name, candidates });
}

const ITEMS = {
  tools: ["a tool named", "toolName"],
  prompts: ["a prompt named", "promptName"],
  resources: ["the resource", "uri"],
  templates: ["the template", "uri"],
} as const;

/** The error for an upstream's own name of an item that is shown with another name. */
export function otherName(kind: NamedKind, name: string, shownName: string): McpError {
  return notFound(kind, name, `; it is called ${shownName} here`, { candidates: [shownName] });
}
