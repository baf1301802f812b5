// Other names for an end's tools, prompts and resources, and other descriptions, with the way back: what callers see in
// lists is what they call, complete, read and subscribe to, and what they are told of. Two things never get one name: a
// list that would show that is an error which says so.

import type { Context } from "../../core/handler.ts";
import type { Handler, Link, Notification, Params, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/objects.ts";
import { McpError } from "../../protocol/errors.ts";
import { FAMILIES, type Family } from "../router/kinds.ts";
import { eachItem, LISTS, NAMED, referred, uncompletable, unknown, type List } from "./listed.ts";
import { NewNames } from "./new-names.ts";
import { OptionReader } from "../../core/options.ts";
import { withAddresses } from "./addresses.ts";

type Names = Readonly<Record<string, string>>;

export interface RenameOptions {
  /** From the end's names to the callers'. */
  readonly tools?: Names;
  readonly prompts?: Names;
  /** By address; with `*` at the end of both, by how addresses begin. */
  readonly resources?: Names;
  /** By the names that callers see. */
  readonly descriptions?: { readonly tools?: Names; readonly prompts?: Names; readonly resources?: Names };
}

interface Renamed {
  readonly names: NewNames;
  readonly descriptions: ReadonlyMap<string, string>;
}

export function rename(options: RenameOptions): Link {
  const read = new OptionReader("rename", options, [...FAMILIES, "descriptions"]);
  const described = read.inner("descriptions", FAMILIES);
  const of = (family: Family): Renamed => ({
    names: new NewNames(read, family, family === "resources"),
    descriptions: described.stringMap(family),
  });
  const renaming = new Renaming({ tools: of("tools"), prompts: of("prompts"), resources: of("resources") });
  return { name: "rename", run: (request, context, next) => renaming.run(request, context, next) };
}

class Renaming {
  readonly #of: Readonly<Record<Family, Renamed>>;

  constructor(of: Readonly<Record<Family, Renamed>>) {
    this.#of = of;
  }

  async run(request: Request, context: Context, next: Handler): Promise<Result> {
    const { method, params } = request;
    const list = LISTS.get(method);
    if (list !== undefined) return this.#shown(await next(request, context), list);
    const named = NAMED.get(method);
    if (named !== undefined) {
      const name = params[named.param];
      if (typeof name !== "string") return next(request, context);
      const own = this.#own(named.family, name);
      if (own === undefined) throw unknown(named.family, name);
      const sent = own === name ? request : { ...request, params: { ...params, [named.param]: own } };
      return this.#addressed(await next(sent, context).catch((error: unknown) => this.#asked(error, name, own)));
    }
    if (method === "completion/complete") return this.#complete(request, context, next);
    if (method === "subscriptions/listen") return this.#listen(request, context, next);
    return this.#addressed(await next(request, context));
  }

  #own(family: Family, name: string): string | undefined {
    return this.#of[family].names.own(name);
  }

  #shown(result: Result, list: List): Result {
    const { names, descriptions } = this.#of[list.family];
    if (names.isEmpty && descriptions.size === 0) return result;
    return eachItem(result, list, (item, own) => {
      if (names.isTaken(own)) throw collision(list.family, names.own(own) ?? "", own);
      const name = names.shown(own);
      const description = descriptions.get(name);
      if (name === own && description === undefined) return item;
      return { ...item, [list.key]: name, ...(description === undefined ? undefined : { description }) };
    });
  }

  /** What an end does not know is told by the name that was asked for. */
  #asked(error: unknown, name: string, own: string): never {
    const kind = name === own || !(error instanceof McpError) ? undefined : error.kind;
    if (kind === "tool_not_found") throw unknown("tools", name);
    if (kind === "prompt_not_found") throw unknown("prompts", name);
    if (kind === "resource_not_found") throw unknown("resources", name);
    throw error;
  }

  #complete(request: Request, context: Context, next: Handler): Promise<Result> {
    const { ref } = request.params;
    const about = referred(ref);
    if (about === undefined || !isObject(ref)) return next(request, context);
    const own = this.#own(about.family, about.name);
    if (own === undefined) throw uncompletable(about.family, about.name, ref);
    if (own === about.name) return next(request, context);
    return next({ ...request, params: { ...request.params, ref: { ...ref, [about.field]: own } } }, context);
  }

  #listen(request: Request, context: Context, next: Handler): Promise<Result> {
    if (this.#of.resources.names.isEmpty) return next(request, context);
    const params = withUris(request.params, (uri) => this.#own("resources", uri));
    const notify = (notification: Notification): void => context.notify(this.#told(notification));
    return next({ ...request, params }, { ...context, notify });
  }

  #told(notification: Notification): Notification {
    const { method, params } = notification;
    const { names } = this.#of.resources;
    if (method === "notifications/subscriptions/acknowledged" && params !== undefined) {
      return { ...notification, params: withUris(params, (uri) => names.shown(uri)) };
    }
    if (method === "notifications/tasks" && params !== undefined) {
      return { ...notification, params: withAddresses(params, (uri) => names.shown(uri)) };
    }
    const uri = method === "notifications/resources/updated" ? params?.["uri"] : undefined;
    return typeof uri === "string" ? { ...notification, params: { ...params, uri: names.shown(uri) } } : notification;
  }

  /** Addresses stand in what is read, and in the contents of tools and prompts. */
  #addressed(result: Result): Result {
    const { names } = this.#of.resources;
    return names.isEmpty ? result : withAddresses(result, (uri) => names.shown(uri));
  }
}

/** A filter, wished for or granted, with other addresses; those that there are not are left out. */
function withUris(params: Params, change: (uri: string) => string | undefined): Params {
  const { notifications } = params;
  const uris = isObject(notifications) ? notifications["resourceSubscriptions"] : undefined;
  if (!isObject(notifications) || !Array.isArray(uris)) return params;
  const changed = (uris as readonly unknown[]).flatMap((uri) =>
    typeof uri === "string" ? (change(uri) ?? []) : [uri],
  );
  return { ...params, notifications: { ...notifications, resourceSubscriptions: changed } };
}

function collision(family: Family, own: string, name: string): McpError {
  const what = `${JSON.stringify(own)} cannot become ${JSON.stringify(name)}`;
  const message = `The link rename: among the ${family}, ${what}: the end has that name already; choose another`;
  return McpError.of("internal_error", message, { middlewareName: "rename", family, name });
}
