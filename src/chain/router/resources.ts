// Requests that name a resource URI, and completions. A URI from our own list or with a label belongs to one upstream. To
// read any other URI, the upstreams with a matching template are tried, then all others with resources, until one has it.

import type { Context, Request, Result } from "../../core/handler.ts";
import { invalidParams } from "../../protocol/errors.ts";
import type { CompleteParams } from "../../protocol/model/index.ts";
import { notFound } from "../named-items.ts";
import type { AddressRoutes } from "./addresses.ts";
import { routeFor, send, severalHave } from "./calls.ts";
import { isNoAnswer, isNotFound, withRequestedName } from "./failures.ts";
import type { Route } from "./names.ts";
import type { IsFound, View } from "./view.ts";

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
  if (candidates.length > 0) throw severalHave("resources", uri, candidates);
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
  throw failure ?? notFound("resources", requested);
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
  const ownRef = isPrompt ? { ...ref, name: route.name } : { ...ref, uri: route.name };
  return send(view.at(route), { method, params: { ...params, ref: ownRef } }, context);
}

/** A completion usually names a template, but may also name a resource. */
export async function templateRoute(uri: string, context: Context, view: View): Promise<Route> {
  const { templates } = view.indexes;
  const template = await view.find("templates", uri, context);
  if (template !== undefined) return template;
  const candidates = templates.names.owners(uri).map((upstream) => templates.names.shownName(upstream, uri));
  if (candidates.length > 0) throw severalHave("templates", uri, candidates);
  const [route] = (await routesFor(uri, context, view)).routes;
  if (route === undefined) throw invalidParams(`There is no resource or template ${uri} to complete`, { uri });
  return route;
}
