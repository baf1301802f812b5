// Gives tools, prompts and resources other names and descriptions. Callers see the new names in lists, results and
// notifications, and use them in requests. If a new name is also the name of an item that is not renamed, listing the
// items fails.

import type { Context, Handler, Middleware, Notification, Params, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { OptionReader } from "../../core/options.ts";
import { McpError } from "../../protocol/errors.ts";
import {
  LIST_CAPABILITIES,
  RESOURCE_UPDATED,
  SUBSCRIPTION_ACKNOWLEDGED,
  type List,
  type ListCapability,
} from "../../protocol/lists.ts";
import {
  LISTS_BY_METHOD,
  mapItems,
  NAMING_PARAMS,
  notFound,
  nothingToComplete,
  readRef,
  mapResultUris,
} from "../result-items.ts";

type Names = Readonly<Record<string, string>>;

export interface RenameOptions {
  /** Maps the upstream's names to new names. */
  readonly tools?: Names;
  readonly prompts?: Names;
  /** Maps the upstream's URIs to new URIs. If both end with `*`, the URIs are renamed by prefix. */
  readonly resources?: Names;
  /** Maps the names that callers see to new descriptions. */
  readonly descriptions?: { readonly tools?: Names; readonly prompts?: Names; readonly resources?: Names };
}

interface Renames {
  readonly names: NameMap;
  readonly descriptions: ReadonlyMap<string, string>;
}

export function rename(options: RenameOptions): Middleware {
  const read = new OptionReader("rename", options, [...LIST_CAPABILITIES, "descriptions"]);
  const descriptions = read.inner("descriptions", LIST_CAPABILITIES);
  const of = (capability: ListCapability): Renames => ({
    names: new NameMap(read, capability, capability === "resources"),
    descriptions: descriptions.stringMap(capability),
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

  async run(request: Request, context: Context, next: Handler): Promise<Result> {
    const { method, params } = request;
    const list = LISTS_BY_METHOD.get(method);
    if (list !== undefined) return this.#renameItems(await next(request, context), list);
    const naming = NAMING_PARAMS.get(method);
    if (naming !== undefined) {
      const name = params[naming.param];
      if (typeof name !== "string") return next(request, context);
      const own = this.#ownName(naming.capability, name);
      if (own === undefined) throw notFound(naming.capability, name);
      const sent = own === name ? request : { ...request, params: { ...params, [naming.param]: own } };
      return this.#renameUris(await next(sent, context).catch((error: unknown) => this.#rethrow(error, name, own)));
    }
    if (method === "completion/complete") return this.#complete(request, context, next);
    if (method === "subscriptions/listen") return this.#listen(request, context, next);
    return this.#renameUris(await next(request, context));
  }

  #ownName(capability: ListCapability, name: string): string | undefined {
    return this.#renames[capability].names.own(name);
  }

  #renameItems(result: Result, list: List): Result {
    const { names, descriptions } = this.#renames[list.capability];
    if (names.isEmpty && descriptions.size === 0) return result;
    return mapItems(result, list, (item, own) => {
      if (names.isTaken(own)) throw collision(list.capability, names.own(own) ?? "", own);
      const name = names.shown(own);
      const description = descriptions.get(name);
      if (name === own && description === undefined) return item;
      return { ...item, [list.key]: name, ...(description === undefined ? undefined : { description }) };
    });
  }

  /** Replaces the upstream's "not found" error by one with the name that the caller used. */
  #rethrow(error: unknown, name: string, own: string): never {
    const kind = name === own || !(error instanceof McpError) ? undefined : error.kind;
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
    if (own === undefined) throw nothingToComplete(about.capability, about.name, ref);
    if (own === about.name) return next(request, context);
    return next({ ...request, params: { ...request.params, ref: { ...ref, [about.field]: own } } }, context);
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

  #renameUris(result: Result): Result {
    const { names } = this.#renames.resources;
    return names.isEmpty ? result : mapResultUris(result, (uri) => names.shown(uri));
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

function collision(capability: ListCapability, own: string, name: string): McpError {
  const problem = `cannot rename ${JSON.stringify(own)} to ${JSON.stringify(name)}`;
  const reason = `the upstream already has that name in its ${capability}; choose another`;
  const message = `The middleware rename ${problem}: ${reason}`;
  return McpError.of("internal_error", message, { middlewareName: "rename", capability, name });
}

/**
 * Maps the upstream's own names to the names shown to callers, and back. Callers cannot use the upstream's name
 * of a renamed item, but another item may get that name. URIs can be renamed by prefix: `file:///*` to `notes:///*`.
 */
class NameMap {
  readonly #shown: ReadonlyMap<string, string>;
  readonly #own = new Map<string, string>();
  readonly #prefixes: readonly (readonly [own: string, shown: string])[];

  constructor(read: OptionReader, option: string, allowsPrefixes: boolean) {
    const pairs = [...read.stringMap(option)];
    const isPrefix = ([own, shown]: readonly [string, string]): boolean => {
      const stars = [own, shown].filter((name) => name.endsWith("*")).length;
      if (allowsPrefixes && stars === 1) {
        throw read.error(`${option}.${own}`, "must end with `*` on both sides, or on neither");
      }
      return allowsPrefixes && stars === 2;
    };
    const prefixes = pairs.filter(isPrefix);
    this.#prefixes = prefixes.map(([own, shown]) => [own.slice(0, -1), shown.slice(0, -1)]);
    this.#shown = new Map(pairs.filter((pair) => !prefixes.includes(pair)));
    for (const [own, shown] of pairs) {
      const other = pairs.find((pair) => pair[0] !== own && pair[1] === shown)?.[0];
      if (other !== undefined) {
        throw read.error(`${option}.${own}`, `and \`${other}\` cannot both become ${JSON.stringify(shown)}`);
      }
    }
    for (const [own, shown] of this.#shown) this.#own.set(shown, own);
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
    const name = this.#own.get(shown);
    if (name !== undefined) return name;
    const found = this.#prefixes.find(([, prefix]) => shown.startsWith(prefix));
    const own = found === undefined ? shown : found[0] + shown.slice(found[1].length);
    return this.shown(own) === shown ? own : undefined;
  }

  /** Whether this item keeps its name, but another item is renamed to the same name. */
  isTaken(own: string): boolean {
    return this.shown(own) === own && this.own(own) !== own;
  }
}
