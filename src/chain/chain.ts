// `chain`: puts middleware in front of upstreams. `to` takes one upstream, or several by name. A handler is used as it
// is, and an object with `getMetadata` and `handleRequest` becomes one. A URL, a command or a transport is passed to
// `upstream()`. The router turns several upstreams into one handler. It is loaded only if it is needed; a single
// upstream has none, unless its names always have a label or callers see parts of it.

import type { Context, Handler, Middleware } from "../core/handler.ts";
import { isUnfinishedChain } from "../core/handler-marks.ts";
import { boolean, field, func, refine, type OptionsOf } from "../core/fields.ts";
import { checkFields, kindOf, OptionPlace } from "../core/options.ts";
import { defined, isObject } from "../core/values.ts";
import type { Implementation } from "../protocol/model/index.ts";
import { META } from "../protocol/model/base.ts";
import { Item, type ItemKind, type ItemSource } from "./item.ts";
import type { ItemHandler } from "./layer.ts";
import { checkMiddleware, createGateway, type Gateway, type GatewayUpstream } from "./gateway.ts";
import { checkPrefixes, createNaming, NAMING, type SelectPart } from "./router/naming.ts";
import { ShownNames } from "./router/shown-names.ts";
import { singleUpstream } from "./router/single.ts";
import { handlerOf, isMetadataServer, type MetadataServer } from "./transform.ts";
import type { TransportSource } from "../transport/transport.ts";
import { upstream } from "./upstream/upstream.ts";
import { checkTarget, type UpstreamTarget } from "./upstream/options.ts";

export const GATEWAY = {
  ...NAMING,
  info: refine(
    field(
      'The name and version of the gateway. Default: those of its only upstream, or those of Catenary if there are several or `names` is "always".',
      undefined,
      "an object",
      (value): value is Implementation => isObject(value),
    ),
    ({ name, version }, place) => {
      const isNamed = typeof name === "string" && typeof version === "string";
      if (!isNamed) throw place.error("must have a `name` and a `version`");
    },
  ),
  instructions: field(
    "How to use the gateway, for models. The instructions of several upstreams follow it.",
    { type: "string" },
    "a string",
    (value): value is string => typeof value === "string",
    (value) => `, not ${kindOf(value)}`,
  ),
  /** Which part of the gateway a caller sees: some upstreams, each with its handler or another one. Default: all. */
  select: func<SelectPart>(),
  changing: boolean(
    "Whether callers can subscribe to changes of the lists even if no upstream offers that, because `update` may change the upstreams.",
  ).or(false),
};

/** Options of `chain(...).to()`. */
export type GatewayOptions = OptionsOf<typeof GATEWAY>;

/**
 * What a chain can stand in front of. A source of transports needs `upstream()` around it: `{ transport: ... }` could
 * also be a server with the name `transport`.
 */
export type ChainTarget = Exclude<UpstreamTarget, TransportSource> | MetadataServer;

/** Middleware without a server yet; `to` adds what it stands in front of. */
export interface Chain {
  /** Returns a new chain with more middleware, nearer to the upstreams. */
  use(...middleware: readonly Middleware[]): Chain;
  /**
   * Puts the chain in front of one upstream, or of several by name.
   *
   * @example
   * const gateway = chain(log()).to({ notes: { command: "npx", args: ["-y", "notes-mcp"] }, mine: server });
   * await serve(gateway);
   */
  to(upstreams: ChainTarget | Readonly<Record<string, ChainTarget>>, options?: GatewayOptions): Gateway;
}

/** Starts a chain. Middleware gets the name of its function; if that is taken, it gets a number, such as `log-2`. */
export function chain(...middleware: readonly Middleware[]): Chain {
  for (const layer of middleware) checkMiddleware(layer, "chain()");
  return {
    use: (...more) => chain(...middleware, ...more),
    to: (targets, options = {}) => {
      const isMany = isRecord(targets);
      checkFields(options, GATEWAY, new OptionPlace("to()"));
      checkPrefixes(options, isMany ? Object.keys(targets) : []);
      const upstreams = isMany ? upstreamsFrom(targets) : new Map([[ONLY, upstreamFrom(targets, "to()")]]);
      if (!isMany && options.names === "always") {
        throw new TypeError('to(): `names: "always"` needs an upstream with a name: to({ notes: ... })');
      }
      return createGateway({
        middleware,
        upstreams,
        handler: handlerFor(upstreams, options),
        select: options.select,
        isNameless: !isMany,
        isChanging: options.changing === true,
        onClose: async () => (await ShownNames.open(options.rememberNames)).saved(),
      });
    },
  };
}

/** The name of an upstream that was given without one. */
const ONLY = "upstream";

function handlerFor(upstreams: ReadonlyMap<string, GatewayUpstream>, options: GatewayOptions): ItemHandler {
  const [[name, only] = []] = upstreams;
  const when = options.upstreams?.[name ?? ""]?.names ?? options.names;
  if (
    name === undefined ||
    only === undefined ||
    upstreams.size > 1 ||
    when === "always" ||
    options.select !== undefined
  ) {
    return lazyRouter(upstreams, options);
  }
  const { rememberNames } = options;
  const naming =
    rememberNames === undefined
      ? createNaming([name], options)
      : async () => createNaming([name], { ...options, shownNames: await ShownNames.open(rememberNames) });
  const handler = singleUpstream(name, only, naming);
  return options.info === undefined && options.instructions === undefined ? handler : withInfo(handler, options);
}

/** Loads the router with the first request, so that a program whose chains have one upstream never loads it. */
function lazyRouter(upstreams: ReadonlyMap<string, GatewayUpstream>, options: GatewayOptions): ItemHandler {
  let handler: ItemHandler | undefined;
  const load = async (): Promise<ItemHandler> => {
    const [{ createRouter }, shownNames] = await Promise.all([
      import("./router/router.ts"),
      ShownNames.open(options.rememberNames),
    ]);
    return (handler ??= createRouter(Object.fromEntries(upstreams), { ...options, shownNames }));
  };
  const run: ItemHandler = (request, context) =>
    handler === undefined ? load().then((loaded) => loaded(request, context)) : handler(request, context);
  const find = async (loaded: ItemHandler, kind: ItemKind, name: string, context: Context): Promise<Item> =>
    loaded.items?.find(kind, name, context) ?? new Item({ kind, name });
  const items: ItemSource = {
    find: (kind, name, context) =>
      handler?.items?.find(kind, name, context) ?? load().then((loaded) => find(loaded, kind, name, context)),
    version: (caller) => handler?.items?.version(caller) ?? -1,
    readUris: async (context) => handler?.items?.readUris?.(context),
    shownUri: (upstream, uri, caller) => handler?.items?.shownUri?.(upstream, uri, caller) ?? uri,
  };
  run.items = items;
  return run;
}

/** Replaces the info or the instructions of a single upstream. */
function withInfo(only: ItemHandler, { info, instructions }: GatewayOptions): ItemHandler {
  const run: ItemHandler = async (request, context) => {
    const result = await only(request, context);
    if (request.method !== "server/discover") return result;
    const _meta = info && { ...result._meta, [META.serverInfo]: info };
    return { ...result, ...defined({ instructions, _meta }) };
  };
  run.items = only.items;
  return run;
}

function upstreamsFrom(targets: Readonly<Record<string, ChainTarget>>): Map<string, GatewayUpstream> {
  const entries = Object.entries(targets);
  if (entries.length === 0) throw new TypeError("to() takes at least one upstream; the object it was given is empty");
  return new Map(
    entries.map(([name, target]) => {
      if (name.trim() === "") throw new TypeError("to(): the name of an upstream must not be empty");
      const upstream = upstreamFrom(target, `to(): the upstream ${JSON.stringify(name)}`);
      upstream.called?.(name);
      return [name, upstream];
    }),
  );
}

function upstreamFrom(target: unknown, where: string): GatewayUpstream {
  if (typeof target === "function") return target as GatewayUpstream;
  if (isMetadataServer(target)) return handlerOf(target);
  checkTarget(target, where);
  return upstream(target);
}

function isRecord(
  targets: ChainTarget | Readonly<Record<string, ChainTarget>>,
): targets is Readonly<Record<string, ChainTarget>> {
  if (typeof targets !== "object" || targets === null || Array.isArray(targets) || isTarget(targets)) return false;
  if (isMetadataServer(targets) || isUnfinishedChain(targets)) return false;
  // An object with the key `command` describes one command, unless the value is an upstream with the name `command`.
  return !("command" in targets) || typeof targets.command === "function" || isTarget(targets.command);
}

function isTarget(target: unknown): target is Exclude<UpstreamTarget, Handler> {
  if (typeof target === "string") return target.trim() !== "";
  if (typeof target !== "object" || target === null) return false;
  if (target instanceof URL) return true;
  if ("command" in target) return typeof target.command === "string";
  return (
    "start" in target && "send" in target && typeof target.start === "function" && typeof target.send === "function"
  );
}
