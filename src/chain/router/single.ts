// One upstream behind a gateway. Everything passes unchanged, except for names of tools and prompts that model APIs
// refuse: they are shown in a valid form, and requests with that form get the upstream's own name. A valid name takes one
// lookup. This is not the router, because lists, cursors and URIs of a single upstream need no change.

import { callListener } from "../../core/listeners.ts";
import { BoundedMap } from "../../core/collections.ts";
import type { Context, Handler, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { LISTS, OWN_NAMES, UPSTREAM } from "../../protocol/lists.ts";
import { Item, type ItemKind, type ItemSource } from "../catalogue.ts";
import type { ItemHandler } from "../layer.ts";
import { sendTo } from "../observe.ts";
import { mapItems } from "../result-items.ts";
import { checkResult, itemAt, otherName } from "./calls.ts";
import { isMethodNotFound } from "./failures.ts";
import { invalidNamesMessage, validName, type Naming } from "./names.ts";
import { backgroundContext, readAllPages, shownItem } from "./pages.ts";
import { VALID_NAME, type NamedKind } from "./shown-names.ts";

/** A changed name ends like this. Such a name is looked up; all others are the upstream's own, if they are valid. */
const CHANGED = /-[0-9a-z]{7}$/;
const MAX_NAMES = 10_000;

const KIND_OF: ReadonlyMap<string, NamedKind> = new Map<string, NamedKind>([
  ["tools/list", "tools"],
  ["tools/call", "tools"],
  ["prompts/list", "prompts"],
  ["prompts/get", "prompts"],
  ["completion/complete", "prompts"],
]);

/** For a name that may lead elsewhere after the next list. */
const UNSURE = { route: undefined, until: 0 } as const;

interface Loaded {
  readonly tools: OwnNames;
  readonly prompts: OwnNames;
}

/**
 * `name` is undefined if the upstream was given without one; its names are then not remembered. `naming` is a function
 * if it must be read from disk.
 */
export function singleUpstream(
  name: string | undefined,
  handler: Handler,
  naming: Naming | (() => Promise<Naming>),
): ItemHandler {
  const create = (given: Naming): Loaded => ({
    tools: new OwnNames("tools", name, handler, given),
    prompts: new OwnNames("prompts", name, handler, given),
  });
  let loaded = typeof naming === "function" ? undefined : create(naming);
  let loading: Promise<Loaded> | undefined;
  const load = async (): Promise<Loaded> => (loaded ??= create(typeof naming === "function" ? await naming() : naming));
  const list = async (kind: NamedKind, request: Request, context: Context): Promise<Result> => {
    const [result, own] = await Promise.all([
      sendTo(undefined, handler, request, context),
      loaded ?? (loading ??= load()),
    ]);
    return own[kind].show(checkResult(result, request));
  };
  const send = async (kind: NamedKind, request: Request, context: Context): Promise<Result> => {
    const own = (loaded ?? (await (loading ??= load())))[kind];
    const { method, params } = request;
    const holder = method === "completion/complete" ? params["ref"] : params;
    const requested = isObject(holder) ? holder["name"] : undefined;
    let sent = request;
    if (typeof requested === "string" && isObject(holder)) {
      const found = own.get(requested) ?? (await own.find(requested, context));
      // Middleware knows only the shown name, so no other may lead to the item. A name of nothing is the upstream's affair.
      if (found === requested && own.shown(found) !== requested && (await own.lists(found, context)))
        throw otherName(kind, requested, own.shown(found));
      const named = found === requested ? holder : { ...holder, name: found };
      if (named !== holder) sent = { method, params: holder === params ? named : { ...params, ref: named } };
    }
    return checkResult(await sendTo(undefined, handler, sent, context), sent);
  };
  const pass = async (request: Request, context: Context): Promise<Result> => {
    return checkResult(await sendTo(undefined, handler, request, context), request);
  };
  const run: ItemHandler = (request, context) => {
    const kind = KIND_OF.get(request.method);
    if (kind === undefined) return pass(request, context);
    return request.method.endsWith("/list") ? list(kind, request, context) : send(kind, request, context);
  };
  const item = (kind: ItemKind, requested: string, ownName: string, context: Context): Item | Promise<Item> =>
    itemAt(undefined, handler, kind, requested, ownName, context, CHANGED.test(requested) ? UNSURE : undefined);
  const find = async (kind: NamedKind, requested: string, context: Context): Promise<Item> => {
    const own = (loaded ?? (await (loading ??= load())))[kind];
    const ownName = own.get(requested) ?? (await own.find(requested, context).catch(() => requested));
    return ownName === requested && own.shown(ownName) !== requested
      ? new Item({ kind, name: requested })
      : item(kind, requested, ownName, context);
  };
  const items: ItemSource = {
    find: (kind, requested, context) => {
      if (kind !== "tools" && kind !== "prompts") return item(kind, requested, requested, context);
      const ownName = loaded?.[kind].get(requested);
      return ownName === undefined || (ownName === requested && loaded?.[kind].shown(ownName) !== requested)
        ? find(kind, requested, context)
        : item(kind, requested, ownName, context);
    },
    version: (caller) => {
      const shown = loaded?.tools.version ?? 0;
      return shown + ((handler as ItemHandler).items?.version(caller) ?? 0);
    },
  };
  run.items = items;
  return run;
}

/** Finds the upstream's own names for shown ones. Names that were shown before, with other upstreams, are kept. */
class OwnNames {
  readonly #kind: NamedKind;
  readonly #upstream: string | undefined;
  readonly #handler: Handler;
  readonly #naming: Naming;
  /** Own names by shown names that look changed, also if they are not. */
  readonly #own = new BoundedMap<string, string>(MAX_NAMES);

  constructor(kind: NamedKind, upstream: string | undefined, handler: Handler, naming: Naming) {
    this.#kind = kind;
    this.#upstream = upstream;
    this.#handler = handler;
    this.#naming = naming;
  }

  /** Another number when names may lead elsewhere. */
  get version(): number {
    return this.#naming.shownNames.version;
  }

  /** Undefined if the list must be read to know it. */
  get(shown: string): string | undefined {
    const owner = this.#naming.shownNames.owner(this.#kind, shown);
    if (owner !== undefined && owner.upstream === this.#upstream) return owner.name;
    return CHANGED.test(shown) ? this.#own.get(shown) : shown;
  }

  /** Reads the list. A name that is not in it is the upstream's own. */
  async find(shown: string, context: Context): Promise<string> {
    for (const name of await this.#names(context)) this.#learn(name, this.shown(name));
    const found = this.#own.get(shown) ?? shown;
    this.#own.set(shown, found);
    return found;
  }

  /** Whether the upstream has an item with this name of its own. True if it does not say. */
  async lists(name: string, context: Context): Promise<boolean> {
    const names = await this.#names(context).catch(() => [name]);
    return names.includes(name);
  }

  async #names(context: Context): Promise<readonly string[]> {
    try {
      const own = backgroundContext(context, context.signal);
      return [...(await readAllPages(this.#handler, LISTS[this.#kind], {}, own)).keys];
    } catch (error) {
      if (isMethodNotFound(error)) return [];
      throw error;
    }
  }

  /** A page of the list as callers see it. */
  show(result: Result): Result {
    const { shownNames, onWarning } = this.#naming;
    const kind = this.#kind;
    const upstream = this.#upstream;
    const list = LISTS[kind];
    const items: unknown = result[list.field];
    if (!Array.isArray(items)) return result;
    const changed = new Map<string, string>();
    for (const item of items as readonly unknown[]) {
      const name = isObject(item) ? item[list.key] : undefined;
      if (typeof name !== "string") continue;
      const shown = this.shown(name);
      this.#learn(name, shown);
      if (upstream !== undefined) shownNames.add(kind, upstream, name, shown);
      if (shown !== name) changed.set(name, shown);
    }
    if (changed.size === 0 && !(items as readonly unknown[]).some(hasRouterMeta)) return result;
    const invalid = [...changed].filter(
      ([name]) => !VALID_NAME.test(name) && !shownNames.isWarned(kind, upstream ?? "", name),
    );
    const changes = invalid.map(([name, shown]) => `${JSON.stringify(name)} as ${shown}`);
    if (changes.length > 0)
      callListener("onWarning", onWarning, [upstream ?? "server", invalidNamesMessage(kind, changes)]);
    return mapItems(result, list, (item, name) => {
      const shown = changed.get(name);
      if (shown === undefined) return hasRouterMeta(item) ? shownItem(item, list.key, name, name, undefined) : item;
      // Another item has this very name. Its own name is not changed.
      if (this.get(shown) !== name) return undefined;
      return shownItem(item, list.key, name, shown, undefined);
    });
  }

  /** The name that callers see. */
  shown(name: string): string {
    const { shownNames } = this.#naming;
    const before = this.#upstream === undefined ? undefined : shownNames.shown(this.#kind, this.#upstream, name);
    return before ?? validName(name);
  }

  #learn(name: string, shown: string): void {
    if (!CHANGED.test(shown)) return;
    if (shown === name || this.#own.get(shown) !== shown) this.#own.set(shown, name);
  }
}

/** Whether the item has `_meta` that only a router may write. The upstream may be a gateway itself, or pretend to be. */
function hasRouterMeta(item: unknown): boolean {
  const meta = isObject(item) ? item["_meta"] : undefined;
  return isObject(meta) && (meta[UPSTREAM] !== undefined || meta[OWN_NAMES] !== undefined);
}
