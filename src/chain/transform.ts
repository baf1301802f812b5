// `transform`: middleware from functions. One changes single items, one what a server says about itself (its metadata), and
// one what happens to requests. This is the model of the Python library mcp-chain (docs/reference/mcp-chain.md). Also turns an
// object with `getMetadata` and `handleRequest` into a handler.

import type { CalledItem, Caller, Context, Handler, Middleware, Request, Result } from "../core/handler.ts";
import { checkOptions, kindOf, type OptionNames, optionNames } from "../core/options.ts";
import { defined, isObject } from "../core/values.ts";
import { methodNotFound } from "../protocol/errors.ts";
import { LIST_CAPABILITIES, LISTS, type List, type ListKind } from "../protocol/lists.ts";
import { page } from "../protocol/pages.ts";
import { META } from "../protocol/model/base.ts";
import type { Implementation, Prompt, Resource, ResourceTemplate, Tool } from "../protocol/model/index.ts";
import type { ItemDefinition } from "./item.ts";
import { layered } from "./driver.ts";
import type { GatewayUpstream } from "./gateway.ts";
import { kindsOf, type LayeredMiddleware, type Transform } from "./layer.ts";
import { LISTS_BY_METHOD } from "./result-items.ts";
import { isMethodNotFound } from "./router/failures.ts";
import { readAllPages } from "./router/pages.ts";

/** What a server says about itself: the answers to `server/discover` and to the lists, all pages of a list in one. */
export interface Metadata {
  /** The name and version of the server. */
  readonly info?: Implementation;
  /** How to use the server, for models. */
  readonly instructions?: string;
  /** The tools. */
  readonly tools?: readonly Tool[];
  /** The prompts. */
  readonly prompts?: readonly Prompt[];
  /** The resources that have a URI of their own. */
  readonly resources?: readonly Resource[];
  /** The templates of other resources. */
  readonly resourceTemplates?: readonly ResourceTemplate[];
}

/** An item as `transform()` gets it. */
export interface TransformedItem {
  readonly kind: "tools" | "prompts" | "resources" | "templates";
  /** The name, URI or URI template, as callers see it here. That of a tool or prompt may be changed. */
  readonly name: string;
  /** As it is listed; undefined for an item that is in no list. */
  readonly definition: { readonly [field: string]: unknown } | undefined;
  /** The name of its upstream; undefined if the gateway has only one, or does not know it. */
  readonly upstream: string | undefined;
  /** Its name at the upstream. */
  readonly ownName: string;
  /** What the definition of a tool says about calls of it. */
  readonly facts?: CalledItem["facts"];
}

/** Options of `transform()`. Each may be left out, or be null: then nothing is changed. */
export interface TransformOptions {
  /**
   * Gets each tool, prompt, resource and template, and returns what callers see of it: the same item, a copy with another
   * name or definition, or nothing, to hide it. What it hides or renames is so in lists, calls, completions and
   * subscriptions alike. It must be pure: the same item gives the same answer. If the function has only the parameter
   * `item`, answers are shared by all callers.
   */
  readonly item?:
    | ((item: TransformedItem, view: { readonly caller: Caller }) => TransformedItem | null | undefined)
    | null
    | undefined;
  /**
   * Gets the metadata of what is behind it, and returns what callers see. Runs for each request that asks for metadata,
   * and gets only what was asked for: `{ tools }` for `tools/list`, `{ info, instructions }` for `server/discover`.
   * A list that it returns for `server/discover` is not sent: if it has items, the gateway declares its capability.
   */
  readonly metadata?:
    | ((metadata: Metadata, context: Context, next: Handler) => Metadata | Promise<Metadata>)
    | null
    | undefined;
  /**
   * Gets all other requests, except for subscriptions. Like any middleware, it may answer itself, or call `next` once
   * or several times, with any request.
   */
  readonly request?:
    | ((request: Request, context: Context, next: Handler) => Result | Promise<Result>)
    | null
    | undefined;
}

/** A server as an object, for example an instance of your own class. `chain().to()` takes it. */
export interface MetadataServer {
  /** What the server offers to this caller. Runs for each request that asks for metadata. */
  getMetadata(context: Context): Metadata | Promise<Metadata>;
  /** Answers all other requests, such as `tools/call`. */
  handleRequest(request: Request, context: Context): Result | Promise<Result>;
  /** Called when the gateway is closed. */
  close?(): void | Promise<void>;
}

const OPTIONS: OptionNames<TransformOptions> = optionNames("item metadata request");

/**
 * Creates middleware that changes metadata, requests, or both.
 *
 * @example
 * transform({
 *   metadata: ({ tools = [], ...rest }) => ({ ...rest, tools: tools.filter(({ name }) => name !== "erase") }),
 *   request: (request, context, next) => next(request, context),
 * });
 */
export function transform(options: TransformOptions): Middleware {
  checkOptions("transform()", options, OPTIONS);
  const { item, metadata, request: run } = options;
  for (const [name, hook] of Object.entries({ item, metadata, request: run })) {
    if (hook === undefined || hook === null || typeof hook === "function") continue;
    throw new TypeError(`transform(): \`${name}\` must be a function or null, not ${kindOf(hook)}`);
  }
  const owner = "transform(): `metadata`";
  const warn = warner(owner);
  const change = async (request: Request, context: Context, next: Handler): Promise<Result> => {
    const inner = await readMetadata(request, context, next);
    const changed = await metadata?.(inner.metadata, context, next);
    return answer(request, checkMetadata(changed, owner, warn), inner.result);
  };
  const ofItems = item ? layered("transform", { transform: itemTransform(item), readsLists: true }) : undefined;
  if (ofItems !== undefined && !metadata && !run) return ofItems;
  const middleware: Middleware = (request, context, next) => {
    const { method } = request;
    if (isAboutMetadata(method)) return metadata ? change(request, context, next) : next(request, context);
    return run && method !== "subscriptions/listen"
      ? Promise.resolve(run(request, context, next))
      : next(request, context);
  };
  if (ofItems === undefined) return Object.defineProperty(middleware, "name", { value: "transform" });
  const both: LayeredMiddleware = (request, context, next) =>
    middleware(request, context, (inner, passed) => ofItems(inner, passed, next));
  both.parts = [middleware, ofItems];
  return Object.defineProperty(both, "name", { value: "transform" });
}

type ChangeItem = NonNullable<TransformOptions["item"]>;

/** The function of a user as a transform of the chain. */
function itemTransform(change: ChangeItem): Transform {
  const warn = warner("transform(): `item`");
  const dependsOnCaller = change.length !== 1;
  return {
    kinds: kindsOf(LIST_CAPABILITIES),
    // Its answers tell which item has a name.
    searchesNames: true,
    onSameName: (kind, name) => warn(sameName(LISTS[kind].field, LISTS[kind].key, name)),
    needs: () => true,
    hides: true,
    // Nothing of a caller is too small to decide by, so the answer for one request does not count for the next.
    dependsOnCaller,
    isLive: dependsOnCaller,
    item: (item, { caller }) => {
      const { name, definition, upstream, ownName, facts } = item;
      const kind = item.kind as ListKind;
      const transformed: TransformedItem = { kind, name, definition, upstream, ownName, facts };
      // One that seems to have no second parameter gets none, since its answers are kept for all callers.
      const changed: unknown = dependsOnCaller
        ? change(transformed, { caller })
        : (change as (item: TransformedItem) => unknown)(transformed);
      if (changed === undefined || changed === null) return undefined;
      if (changed === transformed) return item;
      return item.change(checkItem(changed, transformed));
    },
  };
}

function checkItem(
  changed: unknown,
  { kind, name: before }: TransformedItem,
): { name: string; definition?: ItemDefinition } {
  const { name, definition } = isObject(changed) ? changed : {};
  if (typeof name !== "string" || name === "" || (definition !== undefined && !isObject(definition))) {
    throw new TypeError("`item` must return an item with a `name`, or nothing to hide it");
  }
  if (name !== before && kind !== "tools" && kind !== "prompts") {
    throw new TypeError("`item` must not change URIs; use rename() for that");
  }
  return { name, ...defined({ definition }) };
}

export function isMetadataServer(value: unknown): value is MetadataServer {
  if (typeof value !== "object" || value === null) return false;
  const { getMetadata, handleRequest } = value as Partial<MetadataServer>;
  return typeof getMetadata === "function" && typeof handleRequest === "function";
}

/** Turns a server that is an object into a handler. */
export function handlerOf(server: MetadataServer): GatewayUpstream {
  const owner = "getMetadata()";
  const warn = warner(owner);
  const handler: GatewayUpstream = async (request, context) => {
    const { method } = request;
    if (method === "subscriptions/listen") throw methodNotFound(method);
    if (!isAboutMetadata(method)) return server.handleRequest(request, context);
    return answer(request, checkMetadata(await server.getMetadata(context), owner, warn), undefined);
  };
  handler.close = () => server.close?.();
  return handler;
}

/** How a server is recognized among the exports of a module (modules/load-module.ts). */
export const SERVER_RECOGNIZER = {
  toHandler: (value: unknown): GatewayUpstream | undefined =>
    typeof value === "function" ? (value as GatewayUpstream) : isMetadataServer(value) ? handlerOf(value) : undefined,
  /** All our handlers can be closed, and take no third argument as middleware does. Other functions may be anything. */
  isServer: (value: unknown): boolean =>
    isMetadataServer(value) ||
    (typeof value === "function" && value.length < 3 && typeof (value as GatewayUpstream).close === "function"),
} as const;

function isAboutMetadata(method: string): boolean {
  return method === "server/discover" || LISTS_BY_METHOD.has(method);
}

interface FoundMetadata {
  readonly metadata: Metadata;
  /** The result that it is from, whose other fields are passed on. Undefined if the server has no such list. */
  readonly result: Result | undefined;
}

/** Asks what is behind the middleware. A list is read to its end. */
async function readMetadata(request: Request, context: Context, next: Handler): Promise<FoundMetadata> {
  const list = LISTS_BY_METHOD.get(request.method);
  if (list === undefined) {
    const result = await next(request, context);
    const { instructions, _meta } = result;
    return { metadata: defined({ info: _meta?.[META.serverInfo], instructions }) as Metadata, result };
  }
  try {
    const { items, rest } = await readAllPages(next, list, request.params, context);
    // A copy, which the function may sort or shorten.
    return { metadata: { [list.field]: [...items] }, result: rest };
  } catch (error) {
    // The server has no such list, but the middleware may have one.
    if (isMethodNotFound(error)) return { metadata: {}, result: undefined };
    throw error;
  }
}

/** Answers `server/discover` or a list. The result may depend on the caller and the moment, so it may not be cached. */
function answer({ method, params }: Request, metadata: Metadata, discovered: Result | undefined): Result {
  const cache = { ttlMs: 0, cacheScope: "private" };
  const list = LISTS_BY_METHOD.get(method);
  if (list === undefined) {
    const { instructions: _, _meta, capabilities, ...rest } = discovered ?? {};
    const { info = _meta?.[META.serverInfo] ?? UNKNOWN, instructions } = metadata;
    return {
      resultType: "complete",
      ...rest,
      capabilities: withLists(capabilities, metadata, discovered !== undefined),
      ...defined({ instructions }),
      ...cache,
      _meta: { ..._meta, [META.serverInfo]: info },
    };
  }
  const { field, key } = list;
  const items: readonly unknown[] | undefined = metadata[field];
  if (items === undefined && discovered === undefined) throw methodNotFound(method);
  const keyed = (items ?? []).map((item, order) => ({ item, order, key: String((item as Result)[key]) }));
  const onePage = page(method, keyed, params["cursor"], PAGE_ITEMS);
  return {
    resultType: "complete",
    ...discovered,
    [field]: onePage.items.map(({ item }) => item),
    ...defined({ nextCursor: onePage.nextCursor }),
    ...cache,
  };
}

const PAGE_ITEMS = 1_000;
const UNKNOWN: Implementation = { name: "server", version: "0.0.0" };

/**
 * Declares the lists that the metadata has. Those of the server stay declared, even if they are now empty. A transformer
 * often returns an empty list for one that was not asked for, so with `needsItems`, an empty list declares nothing.
 */
function withLists(capabilities: unknown, metadata: Metadata, needsItems: boolean): Result {
  const declared = isObject(capabilities) ? capabilities : {};
  const added = Object.values(LISTS).flatMap(({ field, capability }) => {
    const items = metadata[field];
    const isAdded = items !== undefined && (items.length > 0 || !needsItems);
    return isAdded && !isObject(declared[capability]) ? [[capability, {}]] : [];
  });
  return { ...declared, ...(Object.fromEntries(added) as Result) };
}

type Warn = (message: string) => void;

const MAX_WARNINGS = 100;

/** Prints each warning once, on stderr. */
function warner(owner: string): Warn {
  const printed = new Set<string>();
  return (message) => {
    if (printed.has(message) || printed.size >= MAX_WARNINGS) return;
    printed.add(message);
    process.emitWarning(`${owner}: ${message}`);
  };
}

/** Throws if it is not metadata. Items that clients would refuse are left out, with a warning, and the others stay. */
function checkMetadata(metadata: unknown, owner: string, warn: Warn): Metadata {
  if (!isObject(metadata))
    throw new TypeError(`${owner} must return metadata, such as { tools: [] }, not ${kindOf(metadata)}`);
  const lists = Object.values(LISTS).flatMap((list) => {
    const { field } = list;
    const items = metadata[field];
    if (items === undefined || items === null) return [];
    if (!Array.isArray(items)) throw new TypeError(`${owner}: \`${field}\` must be an array, not ${kindOf(items)}`);
    return [[field, checkItems(items, list, warn)]];
  });
  const { info, instructions } = metadata as { readonly [Field in keyof Metadata]: Metadata[Field] | null };
  return {
    ...defined({ info: info ?? undefined, instructions: instructions ?? undefined }),
    ...(Object.fromEntries(lists) as Metadata),
  };
}

function checkItems(items: readonly unknown[], { field, key }: List, warn: Warn): readonly unknown[] {
  const takenNames = new Set<string>();
  return items.flatMap((item, index) => {
    const name = isObject(item) ? item[key] : undefined;
    if (!isObject(item) || typeof name !== "string" || name === "") {
      warn(`${field}[${index}] has no \`${key}\`; it is left out`);
      return [];
    }
    if (takenNames.has(name)) {
      warn(sameName(field, key, name));
      return [];
    }
    takenNames.add(name);
    // What clients require.
    if (field === "tools") return item["inputSchema"] === undefined ? { ...item, inputSchema: NO_SCHEMA } : item;
    return item["name"] === undefined ? { ...item, name } : item;
  });
}

const NO_SCHEMA = { type: "object" } as const;

function sameName(field: string, key: string, name: string): string {
  return `${field} has two items with the ${key} ${JSON.stringify(name)}; the second is left out`;
}
