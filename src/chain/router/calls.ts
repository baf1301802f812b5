// Sends requests that name a tool, a prompt or a resource to the upstream that has it. A known name takes one lookup.
// For an unknown name, the lists of all upstreams are read once.

import { ConnectionError } from "../../core/errors.ts";
import type { Context, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { invalidParams, McpError } from "../../protocol/errors.ts";
import { sendTo } from "../observe.ts";
import { withUpstreamName, isNoAnswer, isNotFound, withRequestedName } from "./failures.ts";
import type { Route, RoutedUpstream } from "./names.ts";
import type { NamedKind } from "./shown-names.ts";
import type { AddressRoutes } from "./addresses.ts";
import type { UpstreamView } from "./upstream-view.ts";
import type { IsFound, View } from "./view.ts";
import type { CompleteParams } from "../../protocol/model/index.ts";
import { Item, type ItemKind } from "../catalogue.ts";
import type { ItemHandler } from "../layer.ts";

const NOUNS = {
  tools: { noun: "tool", errorKind: "tool_not_found", field: "toolName" },
  prompts: { noun: "prompt", errorKind: "prompt_not_found", field: "promptName" },
} as const;

/** Calls a tool or gets a prompt. A request or result that needs no change is not copied. */
export async function call(request: Request, context: Context, view: View): Promise<Result> {
  const { method, params } = request;
  const kind: NamedKind = method === "tools/call" ? "tools" : "prompts";
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
interface ViewRoute {
  readonly view: View;
  readonly route: Route;
}

/** The route of the item that the driver has found, so that its name is looked up once. */
function routeOf(item: unknown, requested: string, view: View): Route | undefined {
  if (!(item instanceof Item) || item.name !== requested) return undefined;
  const found = item.route as ViewRoute | undefined;
  return found?.view === view ? found.route : undefined;
}

/** What a name leads to, for `context.item`. Lists the upstreams if necessary, as a request with the name would. */
export function findItem(kind: ItemKind, name: string, context: Context, view: View): Item | Promise<Item> {
  // Only a name in the lists leads to the same item until they change.
  const item = (route: Route, until = 0): Item | Promise<Item> => {
    const { name: upstream, handler } = view.at(route);
    return itemAt(upstream, handler, kind, name, route.name, context, { route: { view, route }, until });
  };
  const unknown = (): Item => new Item({ kind, name });
  if (kind === "tasks") {
    const route = view.addresses.taskRoute(name);
    return route === undefined ? unknown() : item(route);
  }
  const index = view.indexes[kind];
  const known = index.isStale ? undefined : index.names.route(name);
  if (known !== undefined) return item(known, Infinity);
  const find = async (): Promise<Item> => {
    if (kind === "tools" || kind === "prompts") return item(await routeFor(kind, name, context, view));
    if (kind === "templates") return item(await templateRoute(name, context, view));
    const [route] = (await routesFor(name, context, view)).routes;
    return route === undefined ? unknown() : item(route);
  };
  // Why there is none is the answer to the request itself.
  return find().catch(unknown);
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
  throw new ConnectionError("protocol", `The upstream answered ${method} without a result`);
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
  more?: { readonly route: unknown; readonly until: number },
): Item | Promise<Item> {
  const create = (inner: Item | undefined): Item => {
    const ownNames = [ownName, ...(inner?.ownNames ?? [])];
    const labelled = upstream === undefined ? [] : [`${upstream}_${ownName}`];
    if (inner?.upstream !== undefined && upstream !== undefined) {
      labelled.push(`${upstream}.${inner.upstream}_${inner.ownName}`);
    }
    const isKnown = inner?.isKnown ?? true;
    const behind = (inner?.upstreams ?? []).map((one) => (upstream === undefined ? one : `${upstream}.${one}`));
    const upstreams = upstream === undefined ? behind : [upstream, ...behind];
    const otherNames = [...ownNames, ...labelled];
    return new Item({ kind, name, upstream, upstreams, ownNames, otherNames, isKnown, ...more });
  };
  const inner = handler.items?.find(kind, ownName, context);
  return inner instanceof Promise ? inner.then(create) : create(inner);
}

/** Finds the upstream that has the name. Throws if there is none, or more than one. */
async function routeFor(kind: NamedKind, name: string, context: Context, view: View): Promise<Route> {
  const found = await view.find(kind, name, context);
  if (found !== undefined) return found;
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
  const { noun, errorKind, field } = NOUNS[kind];
  const shown = indexes[kind].shownFor(name);
  const owned = names.owners(name).map((upstream) => names.shown(upstream, name));
  const candidates = owned.length === 0 && shown !== undefined ? [shown] : owned;
  if (candidates.length > 1) {
    const message = `Several upstreams have a ${noun} named ${name}; use one of ${candidates.join(", ")}`;
    return invalidParams(message, { [field]: name, candidates });
  }
  const [only] = candidates;
  if (only !== undefined) return otherName(kind, name, only);
  const missing = problems.length === 0 ? "" : `; not all upstreams could be asked: ${problems.join("; ")}`;
  return McpError.of(errorKind, `${notFoundText(kind, name)}${missing}`, { [field]: name });
}

/** The error for an upstream's own name of an item that is shown with another name. */
export function otherName(kind: NamedKind, name: string, shown: string): McpError {
  const { errorKind, field } = NOUNS[kind];
  const message = `${notFoundText(kind, name)}; it is called ${shown} here`;
  return McpError.of(errorKind, message, { [field]: name, candidates: [shown] });
}

function notFoundText(kind: NamedKind, name: string): string {
  return `${kind === "tools" ? "Tool" : "Prompt"} not found: ${name}`;
}

// The rest handles requests that name a resource URI, and completions. A URI from our own list or with a label belongs
// to one upstream. To read any other URI, the upstreams with a matching template are tried, then all others with
// resources, until one has it.

/** The upstreams that may have the resource, the most likely first. Throws if several upstreams list it. */
export async function routesFor(uri: string, context: Context, view: View): Promise<AddressRoutes> {
  const { addresses, indexes } = view;
  let known = addresses.routes(uri);
  const isCold = !known.isCertain && (indexes.resources.isCold || indexes.templates.isCold);
  if (isCold || known.routes.length === 0) {
    const isFound: IsFound = () => addresses.routes(uri).routes.length > 0 && "unless others have it";
    await Promise.all([view.list("resources", context, isFound), view.list("templates", context, isFound)]);
    known = addresses.routes(uri);
  }
  const candidates = known.isCertain ? [] : addresses.candidates(uri);
  if (candidates.length > 0) {
    const message = `Several upstreams have the resource ${uri}; use one of ${candidates.join(", ")}`;
    throw invalidParams(message, { uri, candidates });
  }
  return known;
}

export async function read(request: Request, context: Context, view: View): Promise<Result> {
  const requested = request.params["uri"] as string;
  const { isCertain, routes } = await routesFor(requested, context, view);
  const tried = isCertain ? routes : withOthers(routes, requested, view);
  let failure: Error | undefined;
  for (const route of tried) {
    try {
      const result = await readAt(route, request, context, view);
      if (!isCertain) view.addresses.remember(requested, route);
      return result;
    } catch (error) {
      if (isCertain || context.signal.aborted) throw error;
      const isElsewhere = isNotFound(error);
      if (!isElsewhere && !isNoAnswer(error)) throw error;
      // An upstream that did not answer may have the resource, so its error is more useful than a "not found".
      if (failure === undefined || !isElsewhere) failure = error as Error;
    }
  }
  throw failure ?? McpError.of("resource_not_found", `Resource not found: ${requested}`, { uri: requested });
}

async function readAt(route: Route, request: Request, context: Context, view: View): Promise<Result> {
  const { method, params } = request;
  const requested = params["uri"] as string;
  const uri = route.name;
  try {
    const sent = uri === requested ? request : { method, params: { ...params, uri } };
    return view.addresses.rewriteUris(route.upstream, await send(view.at(route), sent, context), uri, requested);
  } catch (error) {
    throw withRequestedName(error, "uri", uri, requested);
  }
}

/** Adds routes to all other upstreams that may have resources. */
export function withOthers(routes: readonly Route[], uri: string, { upstreams }: View): readonly Route[] {
  const first = new Map(routes.map((route) => [route.upstream, route]));
  const others = upstreams.filter((view) => !first.has(view.upstream.index) && view.mayHave("resources"));
  return [...first.values(), ...others.map(({ upstream }) => ({ upstream: upstream.index, name: uri }))];
}

/** Sends a completion to the upstream that has the prompt, template or resource. */
export async function complete(request: Request, context: Context, view: View): Promise<Result> {
  const { method, params } = request;
  const { ref } = params as unknown as CompleteParams;
  const isPrompt = ref.type === "ref/prompt";
  const route = isPrompt
    ? await routeFor("prompts", ref.name, context, view)
    : await templateRoute(ref.uri, context, view);
  const own = isPrompt ? { ...ref, name: route.name } : { ...ref, uri: route.name };
  return send(view.at(route), { method, params: { ...params, ref: own } }, context);
}

/** A completion usually names a template, but may also name a resource. */
async function templateRoute(uri: string, context: Context, view: View): Promise<Route> {
  const { templates } = view.indexes;
  const found = await view.find("templates", uri, context);
  if (found !== undefined) return found;
  const candidates = templates.names.owners(uri).map((upstream) => templates.names.shown(upstream, uri));
  if (candidates.length > 0) {
    const message = `Several upstreams have the template ${uri}; use one of ${candidates.join(", ")}`;
    throw invalidParams(message, { uri, candidates });
  }
  const [route] = (await routesFor(uri, context, view)).routes;
  if (route === undefined) throw invalidParams(`There is no resource or template ${uri} to complete`, { uri });
  return route;
}
