// Shows only definitions that were approved: of tools, prompts and resource templates, and the instructions of a server.
// Those of the first list are approved, unless the options say otherwise. One that is new or changed later is held: in
// no list, and not callable, until someone approves it with `catenary pins`. Against servers that change what a model
// reads after people have trusted them.

import { callerKey } from "../../core/caller-key.ts";
import { callListener } from "../../core/listeners.ts";
import { ExpiringMap } from "../../core/expiring-map.ts";
import type { Context, Handler, Request, Result } from "../../core/handler.ts";
import { choice, documented, func, string, type OptionsOf } from "../../core/fields.ts";
import { errorMessage } from "../../core/values.ts";
import { McpError } from "../../protocol/errors.ts";
import { LISTS } from "../../protocol/lists.ts";
import { define, type DefinedMiddleware, type DefinitionPlace } from "../define.ts";
import { Item } from "../item.ts";
import type { Layer } from "../layer.ts";
import { definitionOf, MAX_NEW_ITEMS, PIN_NOUNS, pinned, Pins } from "../pins.ts";
import type { Pin, PinKind, PinnedDefinition } from "../pins.ts";
import { backgroundContext, listPart, readAllPages, type ListContents } from "../router/pages.ts";

const OPTIONS = {
  first: choice("What happens to the first list of a server.", ["approve", "hold"]).or("approve"),
  file: string("The path of the file of approved definitions. Default: one in the user's state folder."),
  server: string("The name of the server in the file."),
  onHeld: documented("Called once for each item that is held. Default: a warning.", func<(item: HeldItem) => void>()),
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

/** A definition as a caller gets it, and what is compared with the approved one. */
interface PinnedItem {
  readonly server: string;
  readonly kind: PinKind;
  /** The name at the server. */
  readonly name: string;
  readonly listed: Fields;
  readonly current: PinnedDefinition;
  /** Whether the file was compared with it. */
  isCompared: boolean;
}

const KINDS: ReadonlyMap<string, ListedKind> = new Map([
  [LISTS.tools.method, "tools"],
  [LISTS.prompts.method, "prompts"],
  [LISTS.templates.method, "templates"],
]);
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

function createPin(options: PinOptions, place: DefinitionPlace): Layer {
  const pinner = new Pinner(options, place);
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
  readonly #onHeld: (item: HeldItem) => void;
  readonly #findFile: () => Promise<string>;
  #file: Promise<string> | undefined;
  /** Undefined until the name of the file is known. */
  #pins: Pins | undefined;
  /** By their definitions as they were listed. */
  readonly #items = new WeakMap<Fields, PinnedItem>();
  /** When a list was last compared for an unknown name, by view. */
  readonly #missed = new ExpiringMap<string, number>({ maxEntries: MAX_VIEWS });
  readonly #reported = new ExpiringMap<string, true>({ maxEntries: MAX_REPORTED });
  /** When the operator is warned again of a problem with the file. */
  readonly #warned = new ExpiringMap<string, number>({ maxEntries: 10 });

  constructor(options: PinOptions, { folder, upstream, isShared = false }: DefinitionPlace) {
    this.#approvesFirst = options.first !== "hold";
    this.#server = options.server ?? (isShared ? undefined : upstream);
    this.#onlyServer = upstream ?? SERVER;
    this.#onHeld = options.onHeld ?? warn;
    this.#findFile = () => Pins.fileIn(folder, options.file);
  }

  run(request: Request, context: Context, next: Handler): Promise<Result> {
    const { method } = request;
    const kind = KINDS.get(method);
    if (kind !== undefined) return this.#list(kind, request, context, next);
    const server = method === "server/discover" ? this.#server : undefined;
    const outcome = next(request, context);
    return server === undefined ? outcome : outcome.then((result) => this.#discover(server, result));
  }

  /** The item if it is approved. Its definition is that in the caller's list. */
  check(item: Item, context: Context, next: Handler): Item | undefined | Promise<Item | undefined> {
    const kind = item.kind as ListedKind;
    if (item.definition === undefined) return this.#missing(kind, context, next).then(() => undefined);
    const listed = this.#itemOf(kind, item.name, item.definition);
    const isUsable = (pins: Pins): boolean => isApproved(pins, listed) && pinOf(pins, listed).held === undefined;
    const { isCompared } = listed;
    if (isCompared && this.#pins !== undefined && isUsable(this.#pins)) return item;
    return this.#refreshed(kind, isCompared, context, next).then((pins) => (isUsable(pins) ? item : undefined));
  }

  /** An unknown name may be that of something new. The list is then compared, but not for each invented name. */
  async #missing(kind: ListedKind, context: Context, next: Handler): Promise<void> {
    const view = `${kind} ${callerKey(context.caller, "view")}`;
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
    await this.#compare(pins, items, async () => items);
    return pins;
  }

  /** The error for an item that is not approved. */
  refusal({ kind, name, inner }: Item): McpError {
    const definition = inner?.definition;
    const what = `The ${PIN_NOUNS[kind as ListedKind]} ${name}`;
    if (definition === undefined) {
      const message = `${what} is in no list, so it is not approved`;
      return McpError.of("access_denied", message, { middlewareName: "pin", name });
    }
    const listed = this.#itemOf(kind as ListedKind, name, definition);
    const isChanged = this.#pins !== undefined && pinOf(this.#pins, listed).approved !== undefined;
    const why = isChanged ? "has changed since it was approved" : "is new, and not approved yet";
    const { server } = listed;
    const message = `${what} ${why}; to compare and approve it, run: catenary pins ${server}/${listed.name}`;
    return McpError.of("access_denied", message, { middlewareName: "pin", server, name });
  }

  async #list(kind: ListedKind, request: Request, context: Context, next: Handler): Promise<Result> {
    const { field, key } = LISTS[kind];
    const result = await next(request, context);
    const listed: unknown = result[field];
    if (!Array.isArray(listed)) return result;
    const items = this.#itemsOf(kind, listPart(listed, key));
    const isWhole = request.params["cursor"] === undefined && result["nextCursor"] === undefined;
    const pins = await this.#open();
    await this.#compare(pins, items, async () => (isWhole ? items : this.#readAll(kind, context, next)));
    const approved = new Set<unknown>(items.filter((item) => isApproved(pins, item)).map((item) => item.listed));
    return { ...result, [field]: listed.filter((item) => approved.has(item)) };
  }

  async #readAll(kind: ListedKind, context: Context, next: Handler): Promise<readonly PinnedItem[]> {
    const silent = backgroundContext(context, context.signal);
    return this.#itemsOf(kind, await readAllPages(next, LISTS[kind], {}, silent));
  }

  /**
   * Writes down what is new or changed, and what is again as it was approved. `readAll` reads the whole list: the first
   * list of a server is approved or held as a whole, not page by page.
   */
  async #compare(
    pins: Pins,
    items: readonly PinnedItem[],
    readAll: () => Promise<readonly PinnedItem[]>,
  ): Promise<void> {
    if (items.some((item) => isFirst(pins, item))) await this.#writeDown(pins, await readAll(), readAll);
    const changed = items.filter((item) => differs(pins, item));
    if (changed.length > 0) await this.#writeDown(pins, changed, readAll);
    for (const item of items) {
      item.isCompared = true;
      if (!isApproved(pins, item)) this.#report(pins, item);
    }
  }

  async #writeDown(
    pins: Pins,
    changed: readonly PinnedItem[],
    readAll: () => Promise<readonly PinnedItem[]>,
  ): Promise<void> {
    const kind = changed[0]?.kind ?? "server";
    const isCrowded = (server: string): boolean => {
      const { length } = pins.newItems(server, kind);
      return length > 0 && length + changed.length > MAX_NEW_ITEMS;
    };
    const crowded = [...new Set(changed.map(({ server }) => server))].filter(isCrowded);
    const listed = new Set(
      (crowded.length === 0 ? [] : await readAll()).map(({ server, name }) => `${server}/${name}`),
    );
    await this.#guard(() =>
      pins.change(() => {
        // A server that has other items in every list must not fill the file.
        for (const server of crowded) {
          const removed = pins.newItems(server, kind).filter((name) => !listed.has(`${server}/${name}`));
          for (const name of removed) pins.set(server, kind, name, undefined);
        }
        // Another gateway may have been faster.
        const differing = changed.filter((item) => differs(pins, item));
        for (const item of differing) {
          const { server, name, current } = item;
          const approved = this.#approvesFirst && isFirst(pins, item) ? current : pinOf(pins, item).approved;
          const held = approved?.digest === current.digest ? undefined : current;
          pins.set(server, kind, name, { ...(approved && { approved }), ...(held && { held }) });
        }
        for (const { server } of differing) pins.setKnown(server, kind);
        return differing.length > 0 || crowded.length > 0;
      }),
    );
  }

  async #discover(server: string, result: Result): Promise<Result> {
    const { instructions } = result;
    if (typeof instructions !== "string") return result;
    const pins = await this.#open();
    const current = pinned({ instructions });
    const item: PinnedItem = { server, kind: "server", name: INSTRUCTIONS, listed: {}, current, isCompared: false };
    await this.#compare(pins, [item], async () => [item]);
    if (isApproved(pins, item)) return result;
    const before = pinOf(pins, item).approved?.definition?.["instructions"];
    const { instructions: _held, ...rest } = result;
    return typeof before === "string" ? { ...rest, instructions: before } : rest;
  }

  /** With what is in the file now. */
  async #open(): Promise<Pins> {
    const file = await (this.#file ??= this.#findFile());
    const pins = (this.#pins ??= new Pins(file));
    await this.#guard(() => pins.refresh());
    return pins;
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

  /** Of several items with one name, a list has only the first here: it would be approved for all of them. */
  #itemsOf(kind: ListedKind, { items, keys }: Pick<ListContents, "items" | "keys">): readonly PinnedItem[] {
    return items.map((listed, at) => this.#itemOf(kind, keys[at] ?? "", listed));
  }

  #itemOf(kind: ListedKind, shownName: string, listed: Fields): PinnedItem {
    let item = this.#items.get(listed);
    if (item === undefined) {
      const { upstream = this.#onlyServer, ownName } = Item.listed(kind, shownName, listed);
      const [server, name] = this.#server === undefined ? [upstream, ownName] : [this.#server, shownName];
      const current = pinned(definitionOf(listed, LISTS[kind].key, name));
      item = { server, kind, name, listed, current, isCompared: false };
      this.#items.set(listed, item);
    }
    return item;
  }

  /** Once for each item and process. */
  #report(pins: Pins, item: PinnedItem): void {
    const { server, kind, name } = item;
    const key = JSON.stringify([server, kind, name]);
    if (this.#reported.get(key) !== undefined) return;
    this.#reported.set(key, true);
    const state = pinOf(pins, item).approved === undefined ? "new" : "changed";
    callListener("onHeld", this.#onHeld, [{ server, kind: PIN_NOUNS[kind], name, state }]);
  }
}

/** The names come from a server, so they are quoted. */
function warn({ server, kind, name, state }: HeldItem): void {
  const what = kind === "instructions" ? "The instructions" : `The ${kind} ${JSON.stringify(name)}`;
  const how = state === "changed" ? "changed since the approval" : "new";
  process.emitWarning(`${what} of ${JSON.stringify(server)}: ${how}, so not shown; run \`catenary pins\` to see it`);
}

/** What the file says about an item. */
function pinOf(pins: Pins, { server, kind, name }: PinnedItem): Pin {
  return pins.find(server, kind, name) ?? {};
}

/** Whether no list of this kind was ever seen of the server. */
function isFirst(pins: Pins, { server, kind }: PinnedItem): boolean {
  return pins.servers.get(server)?.known.includes(kind) !== true;
}

function isApproved(pins: Pins, item: PinnedItem): boolean {
  return pinOf(pins, item).approved?.digest === item.current.digest;
}

/** Whether the file does not say what the server says now. */
function differs(pins: Pins, item: PinnedItem): boolean {
  const { held } = pinOf(pins, item);
  return isFirst(pins, item) || (isApproved(pins, item) ? held !== undefined : held?.digest !== item.current.digest);
}
