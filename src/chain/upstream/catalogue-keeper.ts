// The catalogue of a session with an end: what it was when we last knew, from this life of ours or the one before; read
// from the end after each start and when it says that something has changed, and kept for the next time. An end that
// says so without end is read once in a while all the same, and no more.

import type { Context } from "../../core/handler.ts";
import { unref } from "../../core/async.ts";
import { changesBetween, readCatalogue, type Catalogue } from "./catalogue.ts";
import type { CatalogueFile } from "./catalogue-file.ts";
import type { Life } from "./supervisor.ts";

/** Changes come in flocks: so long after the first of them the end is read. */
const SETTLE_MS = 100;
/** The least time between two readings. */
const REST_MS = 1_000;

export interface KeeperOptions {
  readonly file: CatalogueFile;
  /** Whether the session is of one connection: what that has changed in the end's lists is not kept for others. */
  readonly isOwn: boolean;
  /** In whose name the end is read. */
  home(signal: AbortSignal): Context;
  /** Whether the end still lives this life. */
  isCurrent(life: Life): boolean;
  /** Callers were shown what is no longer true. */
  tell(changes: readonly string[]): void;
}

export class CatalogueKeeper {
  readonly #options: KeeperOptions;
  #catalogue: Catalogue | undefined;
  #remembered: Promise<Catalogue | undefined> | undefined;
  #soon: NodeJS.Timeout | undefined;
  #readAt = -Infinity;
  /** Whether callers may have been shown the catalogue of a life before this one. */
  #isNew = false;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** Undefined where nothing is known, or it is too much to be remembered. */
  known(): Promise<Catalogue | undefined> {
    if (this.#catalogue !== undefined) return Promise.resolve(this.#catalogue);
    this.#remembered ??= this.#options.file.read().then((read) => (this.#catalogue ??= read));
    return this.#remembered;
  }

  /** The end has begun a life. */
  begin(life: Life): void {
    this.#isNew = true;
    this.#readAt = -Infinity;
    this.#readSoon(life);
    const flags = ["tools", "prompts", "resources"].map((family) => [`${family}ListChanged`, true] as const);
    const context: Context = {
      ...this.#options.home(new AbortController().signal),
      notify: ({ method }) => (method.endsWith("/list_changed") ? this.#readSoon(life) : undefined),
    };
    const request = { method: "subscriptions/listen", params: { notifications: Object.fromEntries(flags) } };
    // It ends with the life; that an end knows no listens is none of our business.
    life.opened.handler(request, context).catch(() => undefined);
  }

  close(): void {
    clearTimeout(this.#soon);
  }

  #readSoon(life: Life): void {
    const waitMs = Math.max(SETTLE_MS, this.#readAt + REST_MS - performance.now());
    this.#soon ??= unref(
      setTimeout(() => {
        this.#soon = undefined;
        this.#read(life).catch(() => undefined);
      }, waitMs),
    );
  }

  async #read(life: Life): Promise<void> {
    if (!this.#options.isCurrent(life)) return;
    this.#readAt = performance.now();
    const { handler, discovered } = life.opened;
    const now = await readCatalogue(handler, discovered, this.#options.home(new AbortController().signal));
    if (!this.#options.isCurrent(life)) return;
    const before = await this.known();
    this.#catalogue = now;
    this.#remembered = now === undefined ? Promise.resolve(undefined) : undefined;
    if (now === undefined) return;
    // Later changes are told by the end itself.
    if (before !== undefined && this.#isNew) this.#options.tell(changesBetween(before, now));
    const isFirst = this.#isNew;
    this.#isNew = false;
    if (isFirst || !this.#options.isOwn) await this.#options.file.write(now);
  }
}
