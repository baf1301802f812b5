// Gives tools, prompts and resources other names and descriptions. Callers see the new names in lists, results and
// notifications, and use them in requests. A new name belongs to the renamed item, even if that is not there. Another
// tool or prompt with this name is shown with the name of its upstream and a checksum; another resource is hidden.

import { copyContext } from "../../core/cancel.ts";
import type { Context, Handler, Middleware, Notification, Params, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { object, stringMap, type OptionsOf } from "../../core/fields.ts";
import { McpError } from "../../protocol/errors.ts";
import {
  checksum,
  RESOURCE_UPDATED,
  SUBSCRIPTION_ACKNOWLEDGED,
  type List,
  type ListCapability,
} from "../../protocol/lists.ts";
import { define, type DefinedMiddleware, type DefinitionPlace } from "../define.ts";
import {
  LISTS_BY_METHOD,
  mapItems,
  NAMING_PARAMS,
  notFound,
  nothingToComplete,
  readRef,
  mapResultUris,
} from "../result-items.ts";
import { withChecksum } from "../router/names.ts";
import { VALID_NAME } from "../router/shown-names.ts";
import { UPSTREAM } from "../../protocol/lists.ts";

const OPTIONS = {
  tools: stringMap("Maps the upstream's names to new names."),
  prompts: stringMap("Maps the upstream's names to new names."),
  resources: stringMap("Maps the upstream's URIs to new URIs. Both may end with `*`."),
  descriptions: object("Maps the names that callers see to new descriptions.", {
    tools: stringMap("The descriptions of tools, by name."),
    prompts: stringMap("The descriptions of prompts, by name."),
    resources: stringMap("The descriptions of resources, by URI."),
  }),
};

/** Options of `rename()`. */
export type RenameOptions = OptionsOf<typeof OPTIONS>;

interface Renames {
  readonly names: NameMap;
  readonly descriptions: ReadonlyMap<string, string>;
}

/**
 * Gives tools, prompts and resources other names and descriptions.
 *
 * @example
 * rename({ tools: { read_graph: "memories" }, descriptions: { tools: { memories: "Reads all memories" } } })
 */
export const rename: DefinedMiddleware<[options: RenameOptions]> = define({
  name: "rename",
  summary: "Gives tools, prompts and resources other names and descriptions.",
  options: OPTIONS,
  middleware: createRename,
});

function createRename(options: RenameOptions, { error }: DefinitionPlace): Middleware {
  const of = (capability: ListCapability): Renames => ({
    names: new NameMap(options[capability], capability, capability === "resources", error),
    descriptions: new Map(Object.entries(options.descriptions?.[capability] ?? {})),
  });
  const renamer = new Renamer({ tools: of("tools"), prompts: of("prompts"), resources: of("resources") });
  return function rename(request, context, next) {
    return renamer.run(request, context, next);
  };
}

class Renamer {
  readonly #renames: Readonly<Record<ListCapability, Renames>>;

  constructor(renames: Readonly<Record<ListCapability, Renames>>) {
    this.#renames = renames;
  }

  run(request: Request, context: Context, next: Handler): Promise<Result> {
    const { method, params } = request;
    const list = LISTS_BY_METHOD.get(method);
    if (list !== undefined) return next(request, context).then((result) => this.#renameItems(result, list));
    const naming = NAMING_PARAMS.get(method);
    if (naming !== undefined) {
      const name = params[naming.param];
      if (typeof name !== "string") return next(request, context);
      const { capability } = naming;
      const own = this.#ownName(capability, name);
      if (own === undefined) return Promise.reject(notFound(capability, name));
      const sent = own === name ? request : { ...request, params: { ...params, [naming.param]: own } };
      const checked = this.#checkRoute(capability, name, own, context, () => notFound(capability, name));
      const outcome = this.#renameUris(next(sent, checked));
      return own === name ? outcome : outcome.catch((error: unknown) => this.#rethrow(error, name));
    }
    if (method === "completion/complete") return this.#complete(request, context, next);
    if (method === "subscriptions/listen") return this.#listen(request, context, next);
    return this.#renameUris(next(request, context));
  }

  #ownName(capability: ListCapability, name: string): string | undefined {
    return this.#renames[capability].names.own(name);
  }

  #renameItems(result: Result, list: List): Result {
    const { names, descriptions } = this.#renames[list.capability];
    if (names.isEmpty && descriptions.size === 0) return result;
    return mapItems(result, list, (item, own) => {
      const isTaken = names.isTaken(own);
      if (isTaken && (list.capability === "resources" || names.displaced(own) !== undefined)) return undefined;
      const name = isTaken ? displacedName(own, upstreamOf(item)) : names.shown(own);
      const description = descriptions.get(name);
      if (name === own && description === undefined) return item;
      return { ...item, [list.key]: name, ...(description === undefined ? undefined : { description }) };
    });
  }

  /** The name of a displaced item contains its upstream. Whether it is the right one is known when it is routed. */
  #checkRoute(
    capability: ListCapability,
    name: string,
    own: string,
    context: Context,
    refuse: () => McpError,
  ): Context {
    if (this.#renames[capability].names.displaced(name) === undefined) return context;
    let isChecked = false;
    const onRoute: Context["onRoute"] = (upstream, sent) => {
      if (!isChecked && displacedName(own, upstream) !== name) throw refuse();
      isChecked = true;
      context.onRoute?.(upstream, sent);
    };
    return copyContext(context, { onRoute });
  }

  /** Replaces the upstream's "not found" error by one with the name that the caller used. */
  #rethrow(error: unknown, name: string): never {
    const kind = error instanceof McpError ? error.kind : undefined;
    if (kind === "tool_not_found") throw notFound("tools", name);
    if (kind === "prompt_not_found") throw notFound("prompts", name);
    if (kind === "resource_not_found") throw notFound("resources", name);
    throw error;
  }

  #complete(request: Request, context: Context, next: Handler): Promise<Result> {
    const { ref } = request.params;
    const about = readRef(ref);
    if (about === undefined || !isObject(ref)) return next(request, context);
    const own = this.#ownName(about.capability, about.name);
    if (own === undefined) return Promise.reject(nothingToComplete(about.capability, about.name, ref));
    if (own === about.name) return next(request, context);
    const { capability, name } = about;
    const refuse = (): McpError => nothingToComplete(capability, name, ref);
    const checked = this.#checkRoute(capability, name, own, context, refuse);
    return next({ ...request, params: { ...request.params, ref: { ...ref, [about.field]: own } } }, checked);
  }

  #listen(request: Request, context: Context, next: Handler): Promise<Result> {
    if (this.#renames.resources.names.isEmpty) return next(request, context);
    const params = mapSubscribedUris(request.params, (uri) => this.#ownName("resources", uri));
    const notify = (notification: Notification): void => context.notify(this.#renameNotification(notification));
    return next({ ...request, params }, { ...context, notify });
  }

  #renameNotification(notification: Notification): Notification {
    const { method, params } = notification;
    const { names } = this.#renames.resources;
    if (method === SUBSCRIPTION_ACKNOWLEDGED && params !== undefined) {
      return { ...notification, params: mapSubscribedUris(params, (uri) => names.shown(uri)) };
    }
    if (method === "notifications/tasks" && params !== undefined) {
      return { ...notification, params: mapResultUris(params, (uri) => names.shown(uri)) };
    }
    const uri = method === RESOURCE_UPDATED ? params?.["uri"] : undefined;
    return typeof uri === "string" ? { ...notification, params: { ...params, uri: names.shown(uri) } } : notification;
  }

  #renameUris(outcome: Promise<Result>): Promise<Result> {
    const { names } = this.#renames.resources;
    return names.isEmpty ? outcome : outcome.then((result) => mapResultUris(result, (uri) => names.shown(uri)));
  }
}

/** Changes the URIs in a filter of `subscriptions/listen`. A URI for which `change` returns undefined is removed. */
function mapSubscribedUris(params: Params, change: (uri: string) => string | undefined): Params {
  const { notifications } = params;
  const uris = isObject(notifications) ? notifications["resourceSubscriptions"] : undefined;
  if (!isObject(notifications) || !Array.isArray(uris)) return params;
  const changed = (uris as readonly unknown[]).flatMap((uri) =>
    typeof uri === "string" ? (change(uri) ?? []) : [uri],
  );
  return { ...params, notifications: { ...notifications, resourceSubscriptions: changed } };
}

/** What the checksum of a displaced item is made of. It depends only on the name, so that it leads back to it. */
const summed = (name: string): string => `rename ${name}`;

/** The name of an item whose own name was given to another. */
function displacedName(name: string, upstream: string | undefined): string {
  return withChecksum(upstream === undefined ? name : `${upstream}_${name}`, summed(name));
}

function upstreamOf({ _meta: meta }: { readonly [key: string]: unknown }): string | undefined {
  const upstream = isObject(meta) ? meta[UPSTREAM] : undefined;
  return typeof upstream === "string" ? upstream : undefined;
}

/**
 * Maps the upstream's own names to the names shown to callers, and back. Callers cannot use the upstream's name
 * of a renamed item, but another item may get that name. URIs can be renamed by prefix: `file:///*` to `notes:///*`.
 */
class NameMap {
  readonly #shown: ReadonlyMap<string, string>;
  readonly #own = new Map<string, string>();
  readonly #prefixes: readonly (readonly [own: string, shown: string])[];
  /** New names by the checksum with which another item of this name is shown. */
  readonly #displaced = new Map<string, string>();

  constructor(
    names: Readonly<Record<string, string>> = {},
    option: string,
    allowsPrefixes: boolean,
    error: DefinitionPlace["error"],
  ) {
    const pairs = Object.entries(names);
    const isPrefix = ([own, shown]: readonly [string, string]): boolean => {
      const stars = [own, shown].filter((name) => name.endsWith("*")).length;
      if (allowsPrefixes && stars === 1) {
        throw error(`${option}.${own}`, "must end with `*` on both sides, or on neither");
      }
      return allowsPrefixes && stars === 2;
    };
    const prefixes = pairs.filter(isPrefix);
    this.#prefixes = prefixes.map(([own, shown]) => [own.slice(0, -1), shown.slice(0, -1)]);
    this.#shown = new Map(pairs.filter((pair) => !prefixes.includes(pair)));
    for (const [own, shown] of pairs) {
      const other = pairs.find((pair) => pair[0] !== own && pair[1] === shown)?.[0];
      if (other !== undefined) {
        throw error(`${option}.${own}`, `and \`${other}\` cannot both become ${JSON.stringify(shown)}`);
      }
    }
    for (const [own, shown] of this.#shown) {
      this.#own.set(shown, own);
      if (allowsPrefixes) continue;
      if (!VALID_NAME.test(shown)) {
        throw error(`${option}.${own}`, "must become 1 to 64 letters, digits, _ and -: model APIs refuse others");
      }
      if (!this.#shown.has(shown)) this.#displaced.set(checksum(summed(shown)), shown);
    }
  }

  get isEmpty(): boolean {
    return this.#shown.size === 0 && this.#prefixes.length === 0;
  }

  shown(own: string): string {
    const name = this.#shown.get(own);
    if (name !== undefined) return name;
    const found = this.#prefixes.find(([prefix]) => own.startsWith(prefix));
    return found === undefined ? own : found[1] + own.slice(found[0].length);
  }

  /** The upstream's own name; undefined if no item is shown under this name. */
  own(shown: string): string | undefined {
    const name = this.#own.get(shown) ?? this.displaced(shown);
    if (name !== undefined) return name;
    const found = this.#prefixes.find(([, prefix]) => shown.startsWith(prefix));
    const own = found === undefined ? shown : found[0] + shown.slice(found[1].length);
    return this.shown(own) === shown ? own : undefined;
  }

  /** The own name of an item that is shown under this name because another item was renamed to its own. */
  displaced(shown: string): string | undefined {
    return shown.at(-8) === "-" ? this.#displaced.get(shown.slice(-7)) : undefined;
  }

  /** Whether this item keeps its name, but another item is renamed to the same name. */
  isTaken(own: string): boolean {
    return this.shown(own) === own && this.own(own) !== own;
  }
}
