// Shows only definitions that were approved: of tools, prompts and resource templates, and the instructions of a server.
// Those of the first list are approved, unless the options say otherwise. One that is new or changed later is held: in
// no list, and not callable, until someone approves it with `catenary pins`. Against servers that change what a model
// reads after people have trusted them.

import { resolve } from "node:path";
import { callListener } from "../../core/listeners.ts";
import { copyContext } from "../../core/cancel.ts";
import { BoundedMap } from "../../core/collections.ts";
import type { Context, Handler, Middleware, Request, Result } from "../../core/handler.ts";
import { choice, func, string, type OptionsOf } from "../../core/fields.ts";
import { errorMessage, isObject } from "../../core/values.ts";
import { McpError } from "../../protocol/errors.ts";
import { LISTS, OWN_NAMES, UPSTREAM, type List } from "../../protocol/lists.ts";
import { walkPages } from "../../protocol/walk-pages.ts";
import { define, type DefinedMiddleware, type DefinitionPlace } from "../define.ts";
import { viewKey } from "../caller-tools.ts";
import { definitionOf, MAX_NEW_ITEMS, pinned, Pins, type Definition, type PinKind } from "../pins.ts";
import { mapItems, NAMING_PARAMS, readRef } from "../result-items.ts";
import { backgroundContext } from "../router/pages.ts";

const OPTIONS = {
  first: choice("What happens to the first list of a server. Default: approve.", ["approve", "hold"]),
  file: string("The path of the file of approved definitions."),
  server: string("The name of the server in the file."),
  /** Called once for each item that is held. Default: writes a warning. */
  onHeld: func<(item: HeldItem) => void>(),
};

/** Options of `pin()`. */
export type PinOptions = OptionsOf<typeof OPTIONS>;

/** A definition that is held. */
export interface HeldItem {
  readonly server: string;
  readonly kind: "tool" | "prompt" | "template" | "instructions";
  /** The name, or the URI template, at the server. */
  readonly name: string;
  /** Whether an earlier definition was approved. */
  readonly state: "new" | "changed";
}

type ListedKind = Exclude<PinKind, "server">;
type Fields = { readonly [field: string]: unknown };

const KINDS: ReadonlyMap<string, ListedKind> = new Map([
  [LISTS.tools.method, "tools"],
  [LISTS.prompts.method, "prompts"],
  [LISTS.templates.method, "templates"],
]);
const NOUNS = { tools: "tool", prompts: "prompt", templates: "template", server: "instructions" } as const;
/** The name of the instructions among the items of a server. */
const INSTRUCTIONS = "instructions";
/** The name of the only server of a gateway, if there is no other name. */
const SERVER = "server";
const MAX_VIEWS = 1_000;
const MAX_REPORTED = 10_000;
/** How soon a list may be read again for an unknown name. Otherwise each call of an invented name would read it. */
const REREAD_MS = 10_000;
/** A file that cannot be used fails every request. */
const WARN_AGAIN_MS = 60_000;

/**
 * Shows only definitions that were approved. New and changed ones are hidden until someone approves them with
 * `catenary pins`.
 *
 * @example
 * pin({ first: "hold" })
 */
export const pin: DefinedMiddleware<[options?: PinOptions]> = define({
  name: "pin",
  summary: "Hides tools, prompts and templates whose definition is new or has changed, until someone approves it.",
  options: OPTIONS,
  // Its file has the names of servers, also that of the only one.
  usesUpstream: true,
  middleware: createPin,
});

function createPin(options: PinOptions, { folder, upstream, isShared = false }: DefinitionPlace): Middleware {
  const { first = "approve", file, server = isShared ? undefined : upstream, onHeld = warn } = options;
  const openFile = async (): Promise<string> => (file === undefined ? Pins.defaultFile(folder) : resolve(folder, file));
  const pinner = new Pinner(first === "approve", server, upstream ?? SERVER, openFile, onHeld);
  return function pin(request, context, next) {
    return pinner.run(request, context, next);
  };
}

class Pinner {
  readonly #approvesFirst: boolean;
  /** Undefined if items may be of several upstreams. */
  readonly #server: string | undefined;
  /** The server of items that do not say theirs. */
  readonly #onlyServer: string;
  readonly #openFile: () => Promise<string>;
  readonly #onHeld: (item: HeldItem) => void;
  #pins: Promise<Pins> | undefined;
  /** The same, once the name of the file is known. */
  #opened: Pins | undefined;
  /** The items of the lists that were compared since the start, by the names that a caller sees. */
  #views: Readonly<Record<ListedKind, BoundedMap<string, View>>> = noViews();
  readonly #reported = new BoundedMap<string, true>(MAX_REPORTED);
  /** When the operator is warned again of a problem with the file. */
  readonly #warned = new BoundedMap<string, number>(10);

  constructor(
    approvesFirst: boolean,
    server: string | undefined,
    onlyServer: string,
    openFile: () => Promise<string>,
    onHeld: (item: HeldItem) => void,
  ) {
    this.#onHeld = onHeld;
    this.#approvesFirst = approvesFirst;
    this.#server = server;
    this.#onlyServer = onlyServer;
    this.#openFile = openFile;
  }

  run(request: Request, context: Context, next: Handler): Promise<Result> {
    const { method } = request;
    const kind = KINDS.get(method);
    if (kind !== undefined) return this.#list(kind, request, context, next);
    if (method === "server/discover" && this.#server !== undefined)
      return this.#discover(this.#server, next(request, context));
    if (method === "subscriptions/listen") return next(request, this.#watch(context));
    const used = usedItem(request);
    return used === undefined ? next(request, context) : this.#use(used.kind, used.name, request, context, next);
  }

  async #list(kind: ListedKind, request: Request, context: Context, next: Handler): Promise<Result> {
    const list = LISTS[kind];
    const result = await next(request, context);
    const items = this.#itemsOf(result, list);
    const isWhole = request.params["cursor"] === undefined && result["nextCursor"] === undefined;
    const pins = await this.#open();
    const isFirst = items.some(({ server }) => isUnknown(pins, server, kind));
    // The first list of a server is approved or held as a whole, not page by page.
    if (isFirst) await this.#learn(pins, kind, isWhole ? items : await this.#readAll(list, context, next));
    await this.#compare(pins, kind, items, async () => (isWhole ? items : this.#readAll(list, context, next)));
    const views = this.#views[kind];
    const view = viewKey(context.caller);
    if (isWhole) views.set(view, { names: new Map(), readAt: performance.now() });
    const names = views.get(view)?.names;
    for (const item of items) names?.set(item.shown, item);
    const shown = new Set(items.filter((item) => isApproved(pins, kind, item)).map((item) => item.listed));
    const all = result[list.field];
    return Array.isArray(all) ? { ...result, [list.field]: all.filter((item) => shown.has(item as Fields)) } : result;
  }

  /** Approves or holds the lists of servers that were never seen. */
  async #learn(pins: Pins, kind: PinKind, items: readonly Item[]): Promise<void> {
    await this.#change(pins, () => {
      // Another gateway may have been faster.
      const found = items.filter(({ server }) => isUnknown(pins, server, kind));
      for (const { server, own, definition } of found) {
        const now = pinned(definition);
        pins.set(server, kind, own, this.#approvesFirst ? { approved: now } : { held: now });
      }
      for (const { server } of found) pins.setKnown(server, kind);
      return found.length > 0;
    });
  }

  async #readAll(list: List, context: Context, next: Handler): Promise<readonly Item[]> {
    const silent = backgroundContext(context, context.signal);
    const fetch = (cursor: string | undefined): Promise<Result> =>
      next({ method: list.method, params: cursor === undefined ? {} : { cursor } }, silent);
    const all: Item[] = [];
    for await (const { page } of walkPages(list.field, fetch)) all.push(...this.#itemsOf(page, list));
    return all;
  }

  /** Writes down what is new or changed, and what is again as it was approved. `readAll` reads the whole list. */
  async #compare(
    pins: Pins,
    kind: PinKind,
    items: readonly Item[],
    readAll: () => Promise<readonly Item[]>,
  ): Promise<void> {
    const differs = ({ server, own, definition }: Item): boolean => {
      const { approved, held } = pins.find(server, kind, own) ?? {};
      const now = pinned(definition).digest;
      return approved?.digest === now ? held !== undefined : held?.digest !== now;
    };
    const changed = items.filter(differs);
    await (changed.length === 0 ? undefined : this.#writeDown(pins, kind, changed, readAll));
    for (const item of items) if (!isApproved(pins, kind, item)) this.#report(pins, kind, item);
  }

  async #writeDown(
    pins: Pins,
    kind: PinKind,
    changed: readonly Item[],
    readAll: () => Promise<readonly Item[]>,
  ): Promise<void> {
    const isCrowded = (server: string): boolean => pins.newItems(server, kind).length + changed.length > MAX_NEW_ITEMS;
    const crowded = [...new Set(changed.map(({ server }) => server))].filter(isCrowded);
    const listed = new Set((crowded.length === 0 ? [] : await readAll()).map(({ server, own }) => `${server}/${own}`));
    await this.#change(pins, () => {
      // A server that has other items in every list must not fill the file.
      for (const server of crowded) {
        const gone = pins.newItems(server, kind).filter((name) => !listed.has(`${server}/${name}`));
        for (const name of gone) pins.set(server, kind, name, undefined);
      }
      for (const { server, own, definition } of changed) {
        const { approved } = pins.find(server, kind, own) ?? {};
        const now = pinned(definition);
        const isSame = approved?.digest === now.digest;
        pins.set(server, kind, own, { ...(approved && { approved }), ...(!isSame && { held: now }) });
      }
      return true;
    });
  }

  #use(kind: ListedKind, name: string, request: Request, context: Context, next: Handler): Promise<Result> {
    const item = this.#views[kind].get(viewKey(context.caller))?.names.get(name);
    const isKnown = item !== undefined && this.#opened !== undefined && isUsable(this.#opened, kind, item);
    return isKnown ? next(request, context) : this.#check(item, kind, name, request, context, next);
  }

  async #check(
    known: Owner | undefined,
    kind: ListedKind,
    name: string,
    request: Request,
    context: Context,
    next: Handler,
  ): Promise<Result> {
    const pins = await this.#get();
    const item = known ?? (await this.#find(kind, name, context, next));
    // It may have been approved since the file was read.
    if (item !== undefined && !isUsable(pins, kind, item)) await this.#refresh(pins);
    if (item === undefined || !isUsable(pins, kind, item)) throw heldError(pins, kind, name, item);
    return next(request, context);
  }

  /** Reads the list: the server may have changed since the last start, and a client may remember its tools. */
  async #find(kind: ListedKind, name: string, context: Context, next: Handler): Promise<Owner | undefined> {
    const views = this.#views[kind];
    const view = viewKey(context.caller);
    const known = views.get(view);
    if (known !== undefined && performance.now() - known.readAt < REREAD_MS) return undefined;
    const items = await this.#readAll(LISTS[kind], context, next);
    const pins = await this.#open();
    if (items.some(({ server }) => isUnknown(pins, server, kind))) await this.#learn(pins, kind, items);
    await this.#compare(pins, kind, items, async () => items);
    const names = new Map(items.map((item) => [item.shown, item]));
    views.set(view, { names, readAt: performance.now() });
    return names.get(name);
  }

  /** A list that has changed is compared before the next call. */
  #watch(context: Context): Context {
    const notify: Context["notify"] = (notification) => {
      if (notification.method.endsWith("/list_changed")) this.#views = noViews();
      context.notify(notification);
    };
    return copyContext(context, { notify });
  }

  async #discover(server: string, answer: Promise<Result>): Promise<Result> {
    const result = await answer;
    const { instructions } = result;
    if (typeof instructions !== "string") return result;
    const pins = await this.#open();
    const item = { server, own: INSTRUCTIONS, shown: INSTRUCTIONS, listed: {}, definition: { instructions } };
    if (isUnknown(pins, server, "server")) await this.#learn(pins, "server", [item]);
    await this.#compare(pins, "server", [item], async () => [item]);
    if (isApproved(pins, "server", item)) return result;
    const before = pins.find(server, "server", INSTRUCTIONS)?.approved?.definition?.["instructions"];
    const { instructions: _held, ...rest } = result;
    return typeof before === "string" ? { ...rest, instructions: before } : rest;
  }

  #get(): Promise<Pins> {
    return (this.#pins ??= this.#openFile().then((file) => (this.#opened = new Pins(file))));
  }

  async #open(): Promise<Pins> {
    const pins = await this.#get();
    await this.#refresh(pins);
    return pins;
  }

  #refresh(pins: Pins): Promise<void> {
    return this.#guard(() => pins.refresh());
  }

  #change(pins: Pins, change: () => boolean): Promise<void> {
    return this.#guard(() => pins.change(change));
  }

  /** What is wrong with the file is for the operator: callers must not learn its path. */
  async #guard(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const problem = errorMessage(error);
      const now = performance.now();
      if (now >= (this.#warned.get(problem) ?? 0)) process.emitWarning(`pin: lists and calls are refused: ${problem}`);
      this.#warned.set(problem, now + WARN_AGAIN_MS);
      const message = "The approved definitions cannot be read or written; the log of the gateway has the reason";
      throw McpError.of("internal_error", message, { middlewareName: "pin" }, { cause: error });
    }
  }

  /** Of several items with one name, only the first: it would be approved for all of them. */
  #itemsOf(result: Result, list: List): readonly Item[] {
    const items = new Map<string, Item>();
    mapItems(result, list, (item, name) => {
      const owner = this.#ownerOf(item, name);
      const definition = definitionOf(item, list.key, owner.own);
      if (!items.has(name)) items.set(name, { ...owner, shown: name, listed: item, definition });
      return item;
    });
    return [...items.values()];
  }

  /** The server of an item, and its name there. */
  #ownerOf({ _meta: meta }: Definition, name: string): Owner {
    const { [UPSTREAM]: upstream, [OWN_NAMES]: names } = isObject(meta) ? meta : {};
    const own: unknown = Array.isArray(names) ? names[0] : undefined;
    if (this.#server !== undefined) return { server: this.#server, own: name };
    return {
      server: typeof upstream === "string" ? upstream : this.#onlyServer,
      own: typeof own === "string" ? own : name,
    };
  }

  /** Once for each item and process. */
  #report(pins: Pins, kind: PinKind, { server, own }: Item): void {
    const key = JSON.stringify([server, kind, own]);
    if (this.#reported.get(key) !== undefined) return;
    this.#reported.set(key, true);
    const isChanged = pins.find(server, kind, own)?.approved !== undefined;
    const item: HeldItem = { server, kind: NOUNS[kind], name: own, state: isChanged ? "changed" : "new" };
    callListener("onHeld", this.#onHeld, [item]);
  }
}

/** The names come from a server, so they are quoted. */
function warn({ server, kind, name, state }: HeldItem): void {
  const what = kind === "instructions" ? "The instructions" : `The ${kind} ${JSON.stringify(name)}`;
  const how = state === "changed" ? "changed since the approval" : "new";
  process.emitWarning(`${what} of ${JSON.stringify(server)}: ${how}, so not shown; run \`catenary pins\` to see it`);
}

/** A server, and the name of an item there. */
interface Owner {
  readonly server: string;
  readonly own: string;
}

interface Item extends Owner {
  /** The name that callers see. */
  readonly shown: string;
  /** As it is in the list. */
  readonly listed: Fields;
  readonly definition: Definition;
}

interface View {
  readonly names: Map<string, Owner>;
  readonly readAt: number;
}

/** By the key of the caller's view. */
function noViews(): Record<ListedKind, BoundedMap<string, View>> {
  const create = (): BoundedMap<string, View> => new BoundedMap(MAX_VIEWS);
  return { tools: create(), prompts: create(), templates: create() };
}

/** The item that a request uses. Resources are not pinned, only their templates. */
function usedItem({ method, params }: Request): { readonly kind: ListedKind; readonly name: string } | undefined {
  if (method === "completion/complete") {
    const ref = readRef(params["ref"]);
    return ref && { kind: ref.capability === "prompts" ? "prompts" : "templates", name: ref.name };
  }
  const naming = NAMING_PARAMS.get(method);
  const name = naming && params[naming.param];
  if (naming === undefined || naming.capability === "resources" || typeof name !== "string") return undefined;
  return { kind: naming.capability, name };
}

/** Whether no list of this kind was ever seen of a server. */
function isUnknown(pins: Pins, server: string, kind: PinKind): boolean {
  return pins.servers.get(server)?.known.includes(kind) !== true;
}

function isApproved(pins: Pins, kind: PinKind, { server, own, definition }: Item): boolean {
  return pins.find(server, kind, own)?.approved?.digest === pinned(definition).digest;
}

/** Whether an item was approved, and was still the same when its list was last read. */
function isUsable(pins: Pins, kind: PinKind, { server, own }: Owner): boolean {
  const found = pins.find(server, kind, own);
  return found?.approved !== undefined && found.held === undefined;
}

function heldError(pins: Pins, kind: PinKind, name: string, item: Owner | undefined): McpError {
  if (item === undefined) {
    const message = `The ${NOUNS[kind]} ${name} is in no list, so it is not approved`;
    return McpError.of("access_denied", message, { middlewareName: "pin", name });
  }
  const { server, own } = item;
  const isChanged = pins.find(server, kind, own)?.approved !== undefined;
  const why = isChanged ? "has changed since it was approved" : "is new, and not approved yet";
  const advice = `to compare and approve it, run: catenary pins ${server}/${own}`;
  return McpError.of("access_denied", `The ${NOUNS[kind]} ${name} ${why}; ${advice}`, {
    middlewareName: "pin",
    server,
    name,
  });
}
