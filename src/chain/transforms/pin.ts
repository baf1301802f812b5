// Shows only definitions that were approved: of tools, prompts and resource templates, and the instructions of a server.
// Those of the first list are approved, unless the options say otherwise. One that is new or changed later is held: in
// no list, and not callable, until someone approves it with `catenary pins`. Against servers that change what a model
// reads after people have trusted them.

import { resolve } from "node:path";
import { callListener } from "../../core/listeners.ts";
import { BoundedMap } from "../../core/collections.ts";
import type { Context, Handler, Request, Result } from "../../core/handler.ts";
import { choice, func, string, type OptionsOf } from "../../core/fields.ts";
import { errorMessage, isObject } from "../../core/values.ts";
import { McpError } from "../../protocol/errors.ts";
import { LISTS } from "../../protocol/lists.ts";
import { walkPages } from "../../protocol/walk-pages.ts";
import { define, type DefinedMiddleware, type DefinitionPlace } from "../define.ts";
import { Item, viewKey } from "../catalogue.ts";
import type { Layer } from "../layer.ts";
import { definitionOf, MAX_NEW_ITEMS, pinned, Pins, type Definition, type PinKind } from "../pins.ts";
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
/** How soon a list is compared again for an unknown name. */
const REREAD_MS = 10_000;
const MAX_REPORTED = 10_000;
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
  layer: createPin,
});

function createPin(options: PinOptions, { folder, upstream, isShared = false }: DefinitionPlace): Layer {
  const { first = "approve", file, server = isShared ? undefined : upstream, onHeld = warn } = options;
  const openFile = async (): Promise<string> => (file === undefined ? Pins.defaultFile(folder) : resolve(folder, file));
  const pinner = new Pinner(first === "approve", server, upstream ?? SERVER, openFile, onHeld);
  return {
    transform: {
      kinds: new Set(KINDS.values()),
      needs: () => true,
      item: (item, { context, next }) => pinner.check(item, context, next),
      refuse: (item) => pinner.refusal(item),
      isLive: true,
      // A list is compared as a whole, so that the file is written once.
      answersLists: true,
    },
    middleware: (request, context, next) => pinner.run(request, context, next),
    readsLists: true,
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
  /** By their definitions as they were listed. */
  readonly #items = new WeakMap<Fields, PinnedItem>();
  /** Definitions as they were listed, whose items were compared with the approved ones. */
  readonly #compared = new WeakSet<Fields>();
  /** When a list was last compared for an unknown name, by view. */
  readonly #missed = new BoundedMap<string, number>(MAX_VIEWS);
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
    return next(request, context);
  }

  /** The item if it is approved. Its definition is that in the caller's list. */
  check(item: Item, context: Context, next: Handler): Item | undefined | Promise<Item | undefined> {
    const { name, definition } = item;
    const kind = item.kind as ListedKind;
    if (definition === undefined) return this.#missing(kind, context, next).then(() => undefined);
    const { server, own } = this.#itemOf(definition, kind, name);
    const isUsable = (pins: Pins): boolean => {
      const { approved, held } = pins.find(server, kind, own) ?? {};
      return approved !== undefined && held === undefined;
    };
    const isCompared = this.#compared.has(definition);
    if (isCompared && this.#opened !== undefined && isUsable(this.#opened)) return item;
    return this.#refreshed(kind, isCompared, context, next).then((pins) => (isUsable(pins) ? item : undefined));
  }

  /** An unknown name may be that of something new. The list is then compared, but not for each invented name. */
  async #missing(kind: ListedKind, context: Context, next: Handler): Promise<void> {
    const view = `${kind} ${viewKey(context.caller)}`;
    const now = performance.now();
    const isCompared = now - (this.#missed.get(view) ?? -Infinity) < REREAD_MS;
    if (!isCompared) this.#missed.set(view, now);
    await this.#refreshed(kind, isCompared, context, next);
  }

  /** The server may have changed since the last start, and a client may remember its tools, so its list is compared. */
  async #refreshed(kind: ListedKind, isCompared: boolean, context: Context, next: Handler): Promise<Pins> {
    // Something may have been approved since the file was read.
    const pins = await this.#open();
    if (isCompared) return pins;
    const items = await this.#readAll(kind, context, next);
    if (items.some(({ server }) => isUnknown(pins, server, kind))) await this.#learn(pins, kind, items);
    await this.#compare(pins, kind, items, async () => items);
    return pins;
  }

  /** The error for an item that is not approved. */
  refusal({ kind, name, definition }: Item): McpError {
    const pins = this.#opened;
    const known = definition && this.#itemOf(definition, kind as ListedKind, name);
    return heldError(pins, kind as ListedKind, name, known);
  }

  async #list(kind: ListedKind, request: Request, context: Context, next: Handler): Promise<Result> {
    const list = LISTS[kind];
    const result = await next(request, context);
    const items = this.#itemsOf(result, kind);
    const isWhole = request.params["cursor"] === undefined && result["nextCursor"] === undefined;
    const pins = await this.#open();
    const isFirst = items.some(({ server }) => isUnknown(pins, server, kind));
    // The first list of a server is approved or held as a whole, not page by page.
    if (isFirst) await this.#learn(pins, kind, isWhole ? items : await this.#readAll(kind, context, next));
    await this.#compare(pins, kind, items, async () => (isWhole ? items : this.#readAll(kind, context, next)));
    const shown = new Set(items.filter((item) => isApproved(pins, kind, item)).map((item) => item.listed));
    const all = result[list.field];
    return Array.isArray(all) ? { ...result, [list.field]: all.filter((item) => shown.has(item as Fields)) } : result;
  }

  /** Approves or holds the lists of servers that were never seen. */
  async #learn(pins: Pins, kind: PinKind, items: readonly PinnedItem[]): Promise<void> {
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

  async #readAll(kind: ListedKind, context: Context, next: Handler): Promise<readonly PinnedItem[]> {
    const list = LISTS[kind];
    const silent = backgroundContext(context, context.signal);
    const fetch = (cursor: string | undefined): Promise<Result> =>
      next({ method: list.method, params: cursor === undefined ? {} : { cursor } }, silent);
    const all: PinnedItem[] = [];
    for await (const { page } of walkPages(list.field, fetch)) all.push(...this.#itemsOf(page, kind));
    return all;
  }

  /** Writes down what is new or changed, and what is again as it was approved. `readAll` reads the whole list. */
  async #compare(
    pins: Pins,
    kind: PinKind,
    items: readonly PinnedItem[],
    readAll: () => Promise<readonly PinnedItem[]>,
  ): Promise<void> {
    const differs = ({ server, own, definition }: PinnedItem): boolean => {
      const { approved, held } = pins.find(server, kind, own) ?? {};
      const now = pinned(definition).digest;
      return approved?.digest === now ? held !== undefined : held?.digest !== now;
    };
    const changed = items.filter(differs);
    for (const { listed } of items) this.#compared.add(listed);
    await (changed.length === 0 ? undefined : this.#writeDown(pins, kind, changed, readAll));
    for (const item of items) if (!isApproved(pins, kind, item)) this.#report(pins, kind, item);
  }

  async #writeDown(
    pins: Pins,
    kind: PinKind,
    changed: readonly PinnedItem[],
    readAll: () => Promise<readonly PinnedItem[]>,
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

  async #discover(server: string, answer: Promise<Result>): Promise<Result> {
    const result = await answer;
    const { instructions } = result;
    if (typeof instructions !== "string") return result;
    const pins = await this.#open();
    const item = { server, own: INSTRUCTIONS, listed: {}, definition: { instructions } };
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
  #itemsOf(result: Result, kind: ListedKind): readonly PinnedItem[] {
    const { field, key } = LISTS[kind];
    const listed: unknown = result[field];
    const items = new Map<string, PinnedItem>();
    for (const definition of Array.isArray(listed) ? (listed as readonly unknown[]) : []) {
      const name = isObject(definition) ? definition[key] : undefined;
      if (!isObject(definition) || typeof name !== "string" || items.has(name)) continue;
      items.set(name, this.#itemOf(definition, kind, name));
    }
    return [...items.values()];
  }

  #itemOf(listed: Fields, kind: ListedKind, name: string): PinnedItem {
    let item = this.#items.get(listed);
    if (item === undefined) {
      const owner = this.#ownerOf(listed, kind, name);
      item = { ...owner, listed, definition: definitionOf(listed, LISTS[kind].key, owner.own) };
      this.#items.set(listed, item);
    }
    return item;
  }

  /** The server of an item, and its name there. */
  #ownerOf(definition: Definition, kind: ListedKind, name: string): Owner {
    if (this.#server !== undefined) return { server: this.#server, own: name };
    const { upstream = this.#onlyServer, ownName } = Item.listed(kind, name, definition);
    return { server: upstream, own: ownName };
  }

  /** Once for each item and process. */
  #report(pins: Pins, kind: PinKind, { server, own }: PinnedItem): void {
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

interface PinnedItem extends Owner {
  /** As it is in the list. */
  readonly listed: Fields;
  readonly definition: Definition;
}

/** Whether no list of this kind was ever seen of a server. */
function isUnknown(pins: Pins, server: string, kind: PinKind): boolean {
  return pins.servers.get(server)?.known.includes(kind) !== true;
}

function isApproved(pins: Pins, kind: PinKind, { server, own, definition }: PinnedItem): boolean {
  return pins.find(server, kind, own)?.approved?.digest === pinned(definition).digest;
}

function heldError(pins: Pins | undefined, kind: PinKind, name: string, item: Owner | undefined): McpError {
  if (item === undefined) {
    const message = `The ${NOUNS[kind]} ${name} is in no list, so it is not approved`;
    return McpError.of("access_denied", message, { middlewareName: "pin", name });
  }
  const { server, own } = item;
  const isChanged = pins?.find(server, kind, own)?.approved !== undefined;
  const why = isChanged ? "has changed since it was approved" : "is new, and not approved yet";
  const advice = `to compare and approve it, run: catenary pins ${server}/${own}`;
  return McpError.of("access_denied", `The ${NOUNS[kind]} ${name} ${why}; ${advice}`, {
    middlewareName: "pin",
    server,
    name,
  });
}
