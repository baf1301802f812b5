// All tools, prompts, resources and templates of all servers: those that clients get, read through the gateway, and those
// that it hides, read from the servers. Lists come from what is stored of a server, so that a page starts none. What is
// late is published as a change; a server that fails is not started for a page, and its problem is that of its status.

import { ignoreRejection, within } from "../core/async.ts";
import type { Context, Handler, Request } from "../core/handler.ts";
import { defined, errorMessage, isObject } from "../core/values.ts";
import { entryHides } from "../config/hidden.ts";
import { isMethodNotFound } from "../chain/router/failures.ts";
import { readAllPages, type ListContents } from "../chain/router/pages.ts";
import type { UpstreamStatus } from "../chain/upstream/options.ts";
import { LIST_CAPABILITIES, LISTS, OWN_NAMES, unavailableIn, UPSTREAM, type ListKind } from "../protocol/lists.ts";
import { changedList, filterFor, listenRequest } from "../protocol/subscription.ts";
import type { Config } from "../config/load.ts";
import type { ConsoleHost } from "./host.ts";
import { operatorContext } from "./operator-call.ts";
import { TokenCounts } from "./token-counts.ts";
import type { Catalogue, CatalogueItem } from "./types.ts";

/** How long servers may take to list what they have. */
const LIST_MS = 60_000;
/** How long the list waits for what is hidden, which is less important. */
const HIDDEN_MS = 10_000;
/** How often the lists are read at once, if they change while they are read. */
const MAX_TRIES = 3;
/** How long a page waits, before it gets what is known and is told of the rest when it comes. */
const PAGE_MS = 2_500;

type Definition = CatalogueItem["definition"];
type Item = Omit<CatalogueItem, "tokens">;

const KINDS = Object.keys(LISTS) as ListKind[];

/** What was read last. */
interface KnownLists {
  readonly items: readonly Item[];
  readonly problems: Readonly<Record<string, string>>;
  /** Servers that did not run, so that their lists may be had once they do. */
  readonly down: ReadonlySet<string>;
  readonly config: Config;
  readonly readAt: number;
}

/** Lists whose changes are reported are read again after this long, in case that a report was lost. */
const MAX_AGE_MS = 300_000;
/** So are those with a problem, such as a server that did not answer. */
const RETRY_MS = 60_000;

/** Until what the servers have is read again, if no page has read their lists. */
const KNOWN_MS = 5_000;

/** What a server offers, for its card. */
export interface ServerCount {
  readonly tools: number;
  readonly tokens: number;
  /** Whether tokens are estimated. */
  readonly isEstimated?: true;
}

export class ConsoleCatalogue {
  readonly #host: ConsoleHost;
  readonly #onChange: () => void;
  readonly #counts: TokenCounts;
  readonly #closed = new AbortController();
  #lists: KnownLists | undefined;
  /** Of before the lists were read: what is stored of servers, which may not run. */
  readonly #known = new Map<string, ServerCount>();
  /** What is not known yet may be once a client has listed it. */
  #readKnownFrom = 0;
  /** Whether a list has changed since they were read. */
  #hasChanged = false;
  #reading: Promise<Catalogue> | undefined;
  #readingOf: Config | undefined;
  /** Lists that are being read, maybe for longer than a page waits. */
  #late: Promise<KnownLists> | undefined;
  #isWatching = false;

  /** `onChange` is called when the catalogue may have changed. */
  constructor(host: ConsoleHost, onChange: () => void) {
    this.#host = host;
    this.#onChange = onChange;
    this.#counts = new TokenCounts(onChange);
  }

  /** Reads all lists, once for all who ask before something changes. */
  read(): Promise<Catalogue> {
    this.#watch();
    const { config } = this.#host.running;
    if (this.#reading !== undefined && !this.#hasChanged && this.#readingOf === config) return this.#reading;
    const reading = this.#read().finally(() => {
      if (this.#reading === reading) this.#reading = undefined;
    });
    this.#readingOf = config;
    return (this.#reading = reading);
  }

  /** How many tools of each server clients get, and what they cost, as last read, or as it is known from before. */
  counts(): ReadonlyMap<string, ServerCount> {
    this.#noteRecovered();
    if (this.#lists === undefined) {
      const isAllKnown = this.#known.size >= this.#host.running.config.upstreams.size;
      if (!isAllKnown && performance.now() >= this.#readKnownFrom) void this.#readKnown();
      return this.#known;
    }
    const counts = new Map<string, { tools: number; tokens: number; isEstimated?: true }>();
    for (const { kind, server, hidden, definition } of this.#lists?.items ?? []) {
      if (kind !== "tools" || server === undefined || hidden !== undefined) continue;
      const count = counts.get(server) ?? { tools: 0, tokens: 0 };
      counts.set(server, count);
      count.tools += 1;
      count.tokens += this.#counts.of(definition, kind);
      if (this.#counts.estimates(definition)) count.isEstimated = true;
    }
    return counts;
  }

  /** The server of what a request names. */
  async serverOf({ method, params }: Request): Promise<string | undefined> {
    if (this.#lists === undefined) await this.read();
    const kind: ListKind | undefined =
      method === "tools/call" ? "tools" : method === "prompts/get" ? "prompts" : undefined;
    const name = params[kind === undefined ? "uri" : "name"];
    const item = this.#lists?.items.find(
      (item) => item.name === name && (kind === undefined ? item.kind === "resources" : item.kind === kind),
    );
    const { upstreams } = this.#host.running.config;
    return item?.server ?? (upstreams.size === 1 ? [...upstreams.keys()][0] : undefined);
  }

  close(): void {
    this.#closed.abort();
  }

  #context(ms: number): Context {
    const signal = AbortSignal.any([this.#closed.signal, AbortSignal.timeout(ms)]);
    return operatorContext({ owner: this.#host.running.owner, signal });
  }

  async #read(): Promise<Catalogue> {
    const known = this.#lists;
    const { config } = this.#host.running;
    const maxAge = known === undefined || Object.keys(known.problems).length === 0 ? MAX_AGE_MS : RETRY_MS;
    const isFresh = known?.config === config && !this.#hasChanged && performance.now() - known.readAt < maxAge;
    const read = known !== undefined && isFresh ? known : await this.#readSoon();
    const { items, problems } = read ?? (known?.config === config ? known : this.#nothingYet());
    await this.#counts.prepare(items);
    const counted = items.map((item) => ({ ...item, tokens: this.#counts.of(item.definition, item.kind) }));
    const isShownTool = ({ kind, hidden }: CatalogueItem): boolean => kind === "tools" && hidden === undefined;
    return {
      items: counted,
      tokens: counted.filter(isShownTool).reduce((sum, { tokens }) => sum + tokens, 0),
      isEstimated: this.#counts.isEstimate,
      problems,
      disabled: this.#host.running.config.disabled,
      ...(this.#host.reload !== undefined && { config: config.path }),
    };
  }

  /** Looks whether a server runs again whose lists are missing. Pages start none that fails. */
  #noteRecovered(): void {
    const { down } = this.#lists ?? {};
    if (down === undefined || down.size === 0 || this.#hasChanged) return;
    const statuses = this.#host.running.gateway.status();
    if (![...down].some((server) => statuses[server]?.state === "running")) return;
    this.#hasChanged = true;
    this.#onChange();
  }

  async #readKnown(): Promise<void> {
    this.#readKnownFrom = performance.now() + KNOWN_MS;
    const { running } = this.#host;
    for (const [server, entry] of running.config.upstreams) {
      if (this.#known.has(server)) continue;
      const alone = running.serverAlone(server);
      const known =
        alone?.knownTools === undefined
          ? alone && (await readList(alone, "tools", this.#context(HIDDEN_MS)))?.items
          : await alone.knownTools(running.owner).catch(() => undefined);
      if (known === undefined) continue;
      const tools = known.filter(isObject).filter(({ name }) => !entryHides(entry, String(name)));
      const tokens = tools.reduce((sum, tool) => sum + this.#counts.of(tool, "tools"), 0);
      this.#known.set(server, { tools: tools.length, tokens, isEstimated: true });
    }
  }

  /** Undefined if it takes long. Then the change is told when they are read. */
  #readSoon(): Promise<KnownLists | undefined> {
    let isLate = false;
    const readNow = async (): Promise<KnownLists> => {
      try {
        for (let tries = 1; ; tries += 1) {
          this.#lists = await this.#readLists();
          // A page that was told of a change meanwhile waits for these lists, and does not ask again.
          const isOld = this.#hasChanged || this.#lists.config !== this.#host.running.config;
          if (!isOld || tries === MAX_TRIES || this.#closed.signal.aborted) break;
        }
      } finally {
        this.#late = undefined;
      }
      if (isLate && !this.#closed.signal.aborted) this.#onChange();
      return this.#lists;
    };
    this.#late ??= ignoreRejection(readNow());
    return within(PAGE_MS, this.#late).then((lists) => {
      isLate = lists === undefined;
      return lists;
    });
  }

  #nothingYet(): Pick<KnownLists, "items" | "problems"> {
    const servers = Object.entries(this.#host.running.gateway.status());
    const late = servers.filter(([, { state }]) => state !== "running");
    return { items: [], problems: Object.fromEntries(late.map(([name]) => [name, "It is still starting"])) };
  }

  async #readLists(): Promise<KnownLists> {
    const { gateway, config } = this.#host.running;
    this.#hasChanged = false;
    const readAt = performance.now();
    const problems: Record<string, string> = {};
    const [only, ...others] = config.upstreams.keys();
    const single = others.length === 0 ? only : undefined;
    const lists = await Promise.all(
      KINDS.map(async (kind): Promise<readonly Item[]> => {
        const list = await readList(gateway, kind, this.#context(LIST_MS), (problem) => {
          for (const name of config.upstreams.keys()) problems[name] ??= problem;
        });
        for (const { upstream, message } of unavailableIn(list?.rest)) problems[upstream] ??= message;
        return (list?.items ?? []).map((definition) => shownItem(kind, definition, single));
      }),
    );
    const shown = lists.flat();
    const items = [...shown, ...(await this.#hidden(shown, problems))];
    const down = new Set<string>();
    for (const [server, status] of Object.entries(gateway.status())) {
      if (!Object.hasOwn(problems, server)) continue;
      if (status.state !== "running") down.add(server);
      // The message of an attempt may say when the next one may be, which is over by the time somebody reads it.
      if (isDown(status) && status.reason !== undefined) problems[server] = status.reason;
    }
    return { items, problems, down, config, readAt };
  }

  /** What the servers have and clients do not get. */
  async #hidden(shown: readonly Item[], problems: Record<string, string>): Promise<readonly Item[]> {
    const { running } = this.#host;
    const known = new Set(
      shown.flatMap(({ kind, server, name, ownName = name, definition }) => [
        keyOf(kind, server, ownName),
        ...ownNamesOf(definition).map((other) => keyOf(kind, server, other)),
      ]),
    );
    const found = [...running.config.upstreams].map(async ([server, entry]): Promise<readonly Item[]> => {
      const alone = running.serverAlone(server);
      if (alone === undefined || Object.hasOwn(problems, server)) return [];
      const lists = await Promise.all(
        KINDS.map(async (kind) => {
          const list = await readList(alone, kind, this.#context(HIDDEN_MS), (problem) => {
            problems[server] ??= `What clients do not get of it is not known: ${problem}`;
          });
          const items = (list?.items ?? []).filter(
            (definition) => !known.has(keyOf(kind, server, nameIn(kind, definition))),
          );
          return items.map((definition): Item => {
            const name = nameIn(kind, definition);
            const isDisabled = kind === "tools" && entryHides(entry, name);
            return { ...itemOf(kind, definition, name), server, hidden: isDisabled ? "disabled" : "chain" };
          });
        }),
      );
      return lists.flat();
    });
    return (await Promise.all(found)).flat();
  }

  /** Follows changes of the lists, from the first time that somebody looks. */
  #watch(): void {
    if (this.#isWatching) return;
    this.#isWatching = true;
    const context = operatorContext({
      owner: this.#host.running.owner,
      signal: this.#closed.signal,
      notify: (notification) => {
        if (changedList(notification) === undefined) return;
        this.#hasChanged = true;
        this.#onChange();
      },
    });
    const end = (): void => {
      this.#isWatching = false;
      this.#hasChanged = true;
    };
    this.#host.running.gateway(listenRequest(filterFor(LIST_CAPABILITIES)), context).then(end, end);
  }
}

function isDown({ failing, state }: UpstreamStatus): boolean {
  return failing === true || state === "restarting" || state === "failed";
}

/** Undefined if there is no such list. */
async function readList(
  handler: Handler,
  kind: ListKind,
  context: Context,
  onProblem: (message: string) => void = () => undefined,
): Promise<ListContents | undefined> {
  try {
    return await readAllPages(handler, LISTS[kind], {}, context);
  } catch (error) {
    if (!isMethodNotFound(error)) onProblem(errorMessage(error));
    return undefined;
  }
}

function nameIn(kind: ListKind, definition: Definition): string {
  return String(definition[LISTS[kind].key]);
}

function itemOf(kind: ListKind, definition: Definition, name: string): Item {
  const { title, annotations } = definition;
  const known = typeof title === "string" ? title : isObject(annotations) ? annotations["title"] : undefined;
  return { kind, name, definition, ...(typeof known === "string" && { title: known }) };
}

/** `single`: the only server, whose items do not say where they are from. */
function shownItem(kind: ListKind, definition: Definition, single: string | undefined): Item {
  const name = nameIn(kind, definition);
  const { [UPSTREAM]: upstream } = isObject(definition["_meta"]) ? definition["_meta"] : {};
  const server = typeof upstream === "string" ? upstream : single;
  const [ownName] = ownNamesOf(definition);
  return { ...itemOf(kind, definition, name), ...defined({ server, ownName: ownName === name ? undefined : ownName }) };
}

function ownNamesOf({ _meta: meta }: Definition): readonly string[] {
  const names = isObject(meta) ? meta[OWN_NAMES] : undefined;
  return Array.isArray(names) ? names.filter((name) => typeof name === "string") : [];
}

function keyOf(kind: ListKind, server: string | undefined, name: string): string {
  return `${kind} ${server ?? ""}\n${name}`;
}
