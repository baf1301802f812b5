// Presents many upstreams as one server. Each request goes to the upstream it belongs to, and lists combine all
// upstreams. A failure of one upstream is reported and does not affect the others. Does not start or close upstreams.

import { ownInfo } from "../../client/connect.ts";
import { within } from "../../core/async.ts";
import { ExpiringMap } from "../../core/expiring-map.ts";
import type { Caller, Context, Handler, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { methodNotFound } from "../../protocol/errors.ts";
import type { Implementation } from "../../protocol/model/index.ts";
import { checkParams } from "../../protocol/params.ts";
import { hasTasks } from "../../protocol/tasks.ts";
import { Item, type ItemSource } from "../item.ts";
import type { ItemHandler } from "../layer.ts";
import { namedIn } from "../named-items.ts";
import { asPrivate } from "../result-items.ts";
import { unknownTask } from "./addresses.ts";
import { call, send } from "./calls.ts";
import { findItem } from "./items.ts";
import { complete, read } from "./resources.ts";
import { isMethodNotFound, isNoAnswer, withRequestedName } from "./failures.ts";
import { combine, discover, listItems, readLists, type RouterInfo } from "./lists.ts";
import { SEPARATOR, type RoutedUpstream } from "./names.ts";
import { createNaming, type GatewayPart, type NamingOptions, type SelectPart } from "./naming.ts";
import type { ShownNames } from "./shown-names.ts";
import { listen } from "./subscriptions.ts";
import type { OfferedList } from "./upstream-view.ts";
import { View } from "./view.ts";

export interface RouterOptions extends Omit<NamingOptions, "rememberNames"> {
  readonly select?: SelectPart | undefined;
  /** The names that were shown before. */
  readonly shownNames?: ShownNames | undefined;
  /** The name and version of the router. */
  readonly info?: Implementation | undefined;
  /** Instructions for the model, placed before those of the upstreams. */
  readonly instructions?: string | undefined;
}

const MAX_VIEWS = 1_000;
/** How long a list of tools waits for the lists of resources, which decide how the URIs of views are shown. */
const READ_URIS_MS = 2_000;

type RoutedHandler = (request: Request, context: Context, view: View, ours: RouterInfo) => Promise<Result>;

export function createRouter(upstreams: Readonly<Record<string, Handler>>, options: RouterOptions = {}): ItemHandler {
  const names = Object.keys(upstreams);
  const optionsByName = new Map(Object.entries(options.upstreams ?? {}));
  const naming = createNaming(names, options);
  const routed = names.map((name, index): RoutedUpstream => {
    const [label, handler] = [naming.labels.get(name), upstreams[name]];
    if (label === undefined || typeof handler !== "function") {
      throw new TypeError(`The upstream ${name} is not a handler`);
    }
    const isUp = (): boolean => isRunning(handler);
    return {
      index,
      name,
      label,
      names: optionsByName.get(name)?.names ?? options.names ?? "when-needed",
      handler,
      isUp,
    };
  });
  // Callers of one principal share a view, whatever their styles and capabilities.
  const all = new ExpiringMap<string | undefined, View>({ maxEntries: MAX_VIEWS });
  /** The views of callers that see only a part, by the key of the part. */
  const parts = new Map<string, ExpiringMap<string | undefined, View>>();
  const ours = { info: options.info ?? ownInfo(), instructions: options.instructions };
  const viewOf = ({ principal }: Caller, part: GatewayPart | undefined): View => {
    const views = part === undefined ? all : (parts.get(part.key) ?? new ExpiringMap({ maxEntries: MAX_VIEWS }));
    if (part !== undefined) parts.set(part.key, views);
    let view = views.get(principal);
    if (view === undefined) {
      view = new View(part === undefined ? routed : selectUpstreams(routed, part), naming);
      views.set(principal, view);
    }
    return view;
  };
  const route = async (request: Request, context: Context, isRecorded = false): Promise<Result> => {
    if (!isRecorded) {
      const recorded = context.observer?.recorder?.record("router", "router", request, context, routeRecorded);
      if (recorded !== undefined) return recorded;
    }
    checkParams(request.method, request.params);
    const part = options.select?.(context.caller);
    const handler = HANDLERS.get(request.method) ?? sendVendor;
    const result = handler(request, context, viewOf(context.caller, part), ours);
    return part === undefined ? result : result.then(asPrivate);
  };
  const routeRecorded: Handler = (request, context) => route(request, context, true);
  const run: ItemHandler = route;
  /** Undefined if the caller sees nothing, which is the answer to its request. */
  const knownView = (caller: Caller): View | undefined => {
    try {
      return viewOf(caller, options.select?.(caller));
    } catch {
      return undefined;
    }
  };
  const items: ItemSource = {
    find: (kind, name, context) => {
      const view = knownView(context.caller);
      return view === undefined ? new Item({ kind, name }) : findItem(kind, name, context, view);
    },
    version: (caller) => {
      const view = knownView(caller);
      let sum = view?.version ?? 0;
      // Those that are gateways.
      for (const { upstream } of view?.upstreams ?? []) {
        sum += (upstream.handler as ItemHandler).items?.version(caller) ?? 0;
      }
      return sum;
    },
    readUris: async (context) => {
      const view = knownView(context.caller);
      if (view?.indexes.resources.isCold !== true) return;
      await within(
        READ_URIS_MS,
        view.list("resources", context, () => false),
      );
    },
    shownUri: (upstream, uri, caller) => {
      const view = knownView(caller);
      const index = view?.upstreams.findIndex((candidate) => candidate.upstream.name === upstream) ?? -1;
      return view === undefined || index === -1 ? uri : view.addresses.shownUri(index, uri);
    },
  };
  run.items = items;
  return run;
}

/** Whether the upstream is running; also true if it does not say. */
function isRunning(upstream: Handler & { status?(): unknown }): boolean {
  const current = upstream.status?.();
  const state = isObject(current) ? current["state"] : undefined;
  return typeof state !== "string" || state === "running";
}

/** The upstreams of a part. Nothing in a view can reach the others. */
function selectUpstreams(routed: readonly RoutedUpstream[], { handlerOf }: GatewayPart): readonly RoutedUpstream[] {
  const selected = routed.flatMap((upstream) => {
    const { name, label } = upstream;
    const handler = handlerOf(name, upstream.handler, (innerName) => `${label.name}${SEPARATOR}${innerName}`);
    return handler === undefined ? [] : [{ ...upstream, handler }];
  });
  return selected.map((upstream, index) => ({ ...upstream, index }));
}

/** Sends a request about a task to the upstream that its id names. */
async function handleTask(request: Request, context: Context, view: View): Promise<Result> {
  const { method, params } = request;
  const requested = params["taskId"] as string;
  const route = view.addresses.taskRoute(requested);
  if (route === undefined) throw unknownTask(requested);
  try {
    const result = await send(view.at(route), { method, params: { ...params, taskId: route.name } }, context);
    return view.addresses.rewrite(route.upstream, result);
  } catch (error) {
    throw withRequestedName(error, "taskId", route.name, requested);
  }
}

const TASK_LIST: OfferedList = { method: "tasks/list", field: "tasks", key: "taskId", isOffered: hasTasks };

/** Lists the tasks of all upstreams. Only older revisions have this method. */
async function listTasks(request: Request, context: Context, view: View, { info }: RouterInfo): Promise<Result> {
  const lists = await readLists(view.upstreams, TASK_LIST, request.params, context);
  const isKnown = lists.some(({ answer, failure }) => answer !== undefined || failure !== undefined);
  if (!isKnown) throw methodNotFound(request.method);
  const tasks = lists.flatMap(({ upstream, answer }) =>
    (answer?.items ?? []).map((task) => view.addresses.rewrite(upstream.index, task)),
  );
  const { rest, meta } = combine(lists, info);
  return { ...rest, tasks, resultType: "complete", _meta: meta };
}

/** Sets the level of every upstream that logs. Failures are ignored, since only the log level would be wrong. */
async function setLevel(request: Request, context: Context, { upstreams }: View): Promise<Result> {
  const isOffered = (capabilities: { readonly [key: string]: unknown }): boolean => isObject(capabilities["logging"]);
  const sent = upstreams.map(async (view) => {
    if (await view.offers(context, isOffered)) await send(view.upstream, request, context);
  });
  await Promise.allSettled(sent);
  context.signal.throwIfAborted();
  return { resultType: "complete" };
}

/**
 * Sends a request with a method that the specification does not define. If it names an item, it goes where that is, else
 * to the first upstream that knows the method. A notification has no answer, so it goes to all upstreams.
 */
async function sendVendor(request: Request, context: Context, view: View): Promise<Result> {
  const { upstreams } = view;
  if (context.isNotification === true) {
    await Promise.allSettled(upstreams.map(({ upstream }) => send(upstream, request, context)));
    return {};
  }
  const named = namedIn(request);
  if (named !== undefined)
    return named.kind === "resources" ? read(request, context, view) : call(request, context, view);
  let failure: Error | undefined;
  for (const { upstream } of upstreams) {
    try {
      return await send(upstream, request, context);
    } catch (error) {
      if (context.signal.aborted || !(isMethodNotFound(error) || isNoAnswer(error))) throw error;
      if (!isMethodNotFound(error)) failure ??= error as Error;
    }
  }
  throw failure ?? methodNotFound(request.method);
}

const HANDLERS: ReadonlyMap<string, RoutedHandler> = new Map<string, RoutedHandler>([
  ["server/discover", discover],
  ["tools/list", listItems],
  ["prompts/list", listItems],
  ["resources/list", listItems],
  ["resources/templates/list", listItems],
  ["tools/call", call],
  ["prompts/get", call],
  ["resources/read", read],
  ["completion/complete", complete],
  ["subscriptions/listen", listen],
  ["tasks/get", handleTask],
  ["tasks/update", handleTask],
  ["tasks/cancel", handleTask],
  ["tasks/result", handleTask],
  ["tasks/list", listTasks],
  ["logging/setLevel", setLevel],
]);
