// Requests that name a tool or a prompt, sent to the upstream that has it. A known name needs one lookup; for an unknown
// one all upstreams are listed once.

import type { Context, Request, Result } from "../../core/handler.ts";
import { invalidParams, McpError } from "../../protocol/errors.ts";
import { withUpstreamName } from "./failures.ts";
import type { Route, RoutedUpstream } from "./names.ts";
import type { UpstreamView, View } from "./view.ts";

export type NamedKind = "tools" | "prompts";

const NOUNS = {
  tools: { noun: "tool", errorKind: "tool_not_found", field: "toolName" },
  prompts: { noun: "prompt", errorKind: "prompt_not_found", field: "promptName" },
} as const;

/** A known name needs no listing, and a result that needs no change is not copied. */
export async function call(kind: NamedKind, request: Request, context: Context, view: View): Promise<Result> {
  const { method, params } = request;
  const requested = params["name"] as string;
  const index = view.indexes[kind];
  const known = index.isStale ? undefined : index.names.route(requested);
  const route = known ?? (await routeFor(kind, requested, context, view));
  const { name } = route;
  const { upstream, rewriter } = view.at(route);
  const result = await send(upstream, name === requested ? request : { method, params: { ...params, name } }, context);
  return kind === "tools" ? rewriter.toolResult(result) : rewriter.promptResult(result);
}

/** Sends a request to an upstream; failures get its name. */
export async function send({ name, handler }: RoutedUpstream, request: Request, context: Context): Promise<Result> {
  try {
    return await handler(request, context);
  } catch (error) {
    throw context.signal.aborted ? error : withUpstreamName(name, error);
  }
}

/** Throws if the name leads to no upstream, or to several. */
export async function routeFor(kind: NamedKind, name: string, context: Context, view: View): Promise<Route> {
  const found = await view.find(kind, name, context);
  if (found !== undefined) return found;
  const owners = view.indexes[kind].names.owners(name);
  // An upstream may have items that it does not list, so if it is the only one, it gets the request.
  const only = owners.length > 1 ? undefined : onlyRoute(kind, name, view);
  if (only !== undefined) return only;
  throw unknownName(kind, name, view);
}

/** If one upstream alone has such items, it decides about the name. */
function onlyRoute(kind: NamedKind, name: string, { upstreams, indexes }: View): Route | undefined {
  const isUnknown = ({ upstream, capabilities }: UpstreamView): boolean =>
    capabilities === undefined || !indexes[kind].isKnown(upstream.index);
  if (upstreams.some(isUnknown)) return undefined;
  const [only, ...others] = upstreams.filter((upstream) => upstream.has(kind));
  // If every name has a label, a name without one leads nowhere.
  if (only === undefined || others.length > 0 || indexes[kind].isAlways) return undefined;
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
  const message = `${noun === "tool" ? "Tool" : "Prompt"} not found: ${name}`;
  if (candidates.length === 1) {
    const hint = `; it is called ${candidates.join()} here`;
    return McpError.of(errorKind, message + hint, { [field]: name, candidates });
  }
  const missing = problems.length === 0 ? "" : `; not all upstreams could be asked: ${problems.join("; ")}`;
  return McpError.of(errorKind, message + missing, { [field]: name });
}
