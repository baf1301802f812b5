// One upstream behind a gateway. Everything passes unchanged, except for names of tools and prompts that model APIs
// refuse: they are shown in a valid form, and requests with that form get the upstream's own name. A valid name takes one
// lookup. This is not the router, because lists, cursors and URIs of a single upstream need no change.

import type { Context, Handler, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { LISTS, OWN_NAMES, UPSTREAM } from "../../protocol/lists.ts";
import { Catalogue } from "../catalogue.ts";
import { Item, type ItemKind, type ItemSource } from "../item.ts";
import type { ItemHandler } from "../layer.ts";
import { namedIn, withName } from "../named-items.ts";
import { sendTo } from "../observe.ts";
import { LISTS_BY_METHOD, mapItems } from "../result-items.ts";
import { checkResult, otherName } from "./calls.ts";
import { itemAt } from "./items.ts";
import { isMethodNotFound } from "./failures.ts";
import { rememberShown, validName, type Naming } from "./names.ts";
import { backgroundContext, shownItem } from "./pages.ts";
import type { NamedKind } from "./shown-names.ts";

/** A changed name ends like this. Such a name is looked up; all others are the upstream's own, if they are valid. */
const CHANGED = /-[0-9a-z]{7}$/;

/** For a name that may lead elsewhere after the next list. */
const UNSURE = { validUntil: 0 } as const;

/** `naming` is a function if it must be read from disk. */
export function singleUpstream(name: string, handler: Handler, naming: Naming | (() => Promise<Naming>)): ItemHandler {
  let names = typeof naming === "function" ? undefined : new SingleNames(name, handler, naming);
  let loading: Promise<SingleNames> | undefined;
  const load = async (): Promise<SingleNames> =>
    (names ??= new SingleNames(name, handler, typeof naming === "function" ? await naming() : naming));
  const loaded = (): SingleNames | Promise<SingleNames> => names ?? (loading ??= load());
  const send = async (request: Request, context: Context): Promise<Result> => {
    const isSeen = context.observer !== undefined;
    const result = await (isSeen ? sendTo(undefined, handler, request, context) : handler(request, context));
    return isObject(result) ? result : checkResult(result, request);
  };
  const list = async (kind: NamedKind, request: Request, context: Context): Promise<Result> => {
    const [result, names] = await Promise.all([send(request, context), loaded()]);
    return names.showList(kind, result);
  };
  const sendUnsure = async (kind: NamedKind, name: string, request: Request, context: Context): Promise<Result> => {
    const known = names ?? (await loaded());
    const ownName = known.get(kind, name) ?? (await known.find(kind, name, context));
    // Middleware knows only the shown name, so no other may lead to the item. A name of nothing is the upstream's affair.
    if (known.isShownOtherwise(kind, name, ownName) && (await known.hasItem(kind, name, context)))
      throw otherName(kind, name, known.shownName(kind, name));
    return ownName === name ? send(request, context) : sendRenamed(ownName, request, context);
  };
  const sendRenamed = (ownName: string, request: Request, context: Context): Promise<Result> => {
    const run: Handler = (renamed, inContext) => send(withName(renamed, ownName), inContext);
    return context.observer?.recorder?.record("router", "router", request, context, run) ?? run(request, context);
  };
  const run: ItemHandler = (request, context) => {
    const listed = LISTS_BY_METHOD.get(request.method)?.kind;
    if (listed !== undefined && isNamedKind(listed)) return list(listed, request, context);
    const named = namedIn(request);
    if (named === undefined) return send(request, context);
    const { kind, name } = named;
    if (kind !== "tools" && kind !== "prompts") return send(request, context);
    return names?.isSame(kind, name) === true ? send(request, context) : sendUnsure(kind, name, request, context);
  };
  const item = (kind: ItemKind, name: string, ownName: string, context: Context): Item | Promise<Item> =>
    itemAt(undefined, handler, kind, name, ownName, context, CHANGED.test(name) ? UNSURE : undefined);
  const find = async (kind: NamedKind, name: string, context: Context): Promise<Item> => {
    const known = await loaded();
    const ownName = known.get(kind, name) ?? (await known.find(kind, name, context).catch(() => name));
    return known.isShownOtherwise(kind, name, ownName) ? new Item({ kind, name }) : item(kind, name, ownName, context);
  };
  const items: ItemSource = {
    find: (kind, name, context) => {
      if (!isNamedKind(kind)) return item(kind, name, name, context);
      const ownName = names?.get(kind, name);
      return names === undefined || ownName === undefined || names.isShownOtherwise(kind, name, ownName)
        ? find(kind, name, context)
        : item(kind, name, ownName, context);
    },
    version: (caller) => (names?.version ?? 0) + ((handler as ItemHandler).items?.version(caller) ?? 0),
  };
  run.items = items;
  return run;
}

function isNamedKind(kind: ItemKind | undefined): kind is NamedKind {
  return kind === "tools" || kind === "prompts";
}

/** Finds the upstream's own names for shown ones. Names that were shown before, with other upstreams, are kept. */
class SingleNames {
  readonly #upstream: string;
  readonly #naming: Naming;
  readonly #catalogue = new Catalogue();
  /** Reads lists. One that the upstream does not have is empty. */
  readonly #read: Handler;

  constructor(upstream: string, handler: Handler, naming: Naming) {
    this.#upstream = upstream;
    this.#naming = naming;
    this.#read = (request, context) =>
      handler(request, context).catch((error: unknown) => {
        if (!isMethodNotFound(error)) throw error;
        return { [LISTS_BY_METHOD.get(request.method)?.field ?? ""]: [] };
      });
  }

  /** Another number when names may lead elsewhere. */
  get version(): number {
    return this.#naming.shownNames.version;
  }

  /** The upstream's own name. Undefined if the list must be read to know it. */
  get(kind: NamedKind, shownName: string): string | undefined {
    const owner = this.#naming.shownNames.owner(kind, shownName);
    if (owner !== undefined && owner.upstream === this.#upstream) return owner.name;
    return CHANGED.test(shownName) ? undefined : shownName;
  }

  /** Whether callers and the upstream certainly use the same name, as they do for nearly all items. */
  isSame(kind: NamedKind, name: string): boolean {
    const owner = this.#naming.shownNames.owner(kind, name);
    if (owner !== undefined && owner.upstream === this.#upstream) return owner.name === name;
    return !CHANGED.test(name) && this.shownName(kind, name) === name;
  }

  /** Reads the list. A name that is not in it is the upstream's own. */
  async find(kind: NamedKind, shownName: string, context: Context): Promise<string> {
    const background = backgroundContext(context, context.signal);
    const isListed = (await this.#catalogue.find(kind, shownName, background, this.#read)) !== undefined;
    const listed = isListed ? [shownName] : (await this.#catalogue.all(kind, background, this.#read)).keys();
    for (const name of listed) {
      if (this.shownName(kind, name) !== shownName) continue;
      this.#naming.shownNames.add(kind, this.#upstream, name, shownName);
      return name;
    }
    return shownName;
  }

  /** Whether this is the upstream's own name of an item that callers see under another name, or the name of nothing. */
  isShownOtherwise(kind: NamedKind, name: string, ownName: string): boolean {
    return ownName === name && this.shownName(kind, name) !== name;
  }

  /** Whether the upstream has an item with this name of its own. True if it does not say. */
  async hasItem(kind: NamedKind, name: string, context: Context): Promise<boolean> {
    const background = backgroundContext(context, context.signal);
    try {
      // It may be new, and rules know only the name under which it will be shown.
      await this.#catalogue.refresh(kind, background, this.#read);
      return (await this.#catalogue.find(kind, name, background, this.#read)) !== undefined;
    } catch {
      return true;
    }
  }

  /** A page of the list as callers see it. */
  showList(kind: NamedKind, result: Result): Result {
    const list = LISTS[kind];
    const items: unknown = result[list.field];
    if (!Array.isArray(items)) return result;
    const changed = new Map<string, string>();
    for (const item of items as readonly unknown[]) {
      const name = isObject(item) ? item[list.key] : undefined;
      if (typeof name !== "string") continue;
      const shownName = this.shownName(kind, name);
      if (shownName === name) this.#naming.shownNames.add(kind, this.#upstream, name, name);
      else changed.set(name, shownName);
    }
    if (changed.size === 0 && !(items as readonly unknown[]).some(hasRouterMeta)) return result;
    const free = [...changed].filter(([, shownName]) => this.get(kind, shownName) !== shownName);
    rememberShown(this.#naming, kind, this.#upstream, free);
    return mapItems(result, list, (item, name) => {
      const shownName = changed.get(name);
      if (shownName === undefined) return hasRouterMeta(item) ? shownItem(item, list.key, name, name, undefined) : item;
      // Another item may have this very name. Its own name is not changed.
      return this.get(kind, shownName) === shownName
        ? undefined
        : shownItem(item, list.key, name, shownName, undefined);
    });
  }

  /** The name that callers see. */
  shownName(kind: NamedKind, name: string): string {
    return this.#naming.shownNames.shownName(kind, this.#upstream, name) ?? validName(name);
  }
}

/** Whether the item has `_meta` that only a router may write. The upstream may be a gateway itself, or pretend to be. */
function hasRouterMeta(item: unknown): boolean {
  const meta = isObject(item) ? item["_meta"] : undefined;
  return isObject(meta) && (meta[UPSTREAM] !== undefined || meta[OWN_NAMES] !== undefined);
}
