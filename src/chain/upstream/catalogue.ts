// Stores, in memory and on disk, what an upstream offers: its answer to `server/discover` and its four lists. They are
// shown while the upstream does not run, and are read again after each start and each change.

import { createHash, randomUUID } from "node:crypto";
import { readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { unref } from "../../core/async.ts";
import { cacheFolder, makeDirectory } from "../../core/files.ts";
import type { Context, Handler, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { changedFlag, LIST_CAPABILITIES, LISTS, type List, type ListCapability } from "../../protocol/lists.ts";
import type { Json } from "../../protocol/revision.ts";
import type { UpstreamConnection } from "./supervisor.ts";

type ListMethod = List["method"];

export interface Catalogue {
  readonly discovered: Result;
  /** Complete lists by method. Lists that the upstream refuses are left out. */
  readonly lists: Readonly<Partial<Record<ListMethod, readonly unknown[]>>>;
}

/** A catalogue with a longer list is not kept. The upstream is then started to answer list requests. */
const MAX_PAGES = 20;
const MAX_ITEMS = 5_000;

/** Undefined if the catalogue is too long or not valid. */
async function readCatalogue(
  handler: Handler,
  discovered: Result,
  background: Context,
): Promise<Catalogue | undefined> {
  const capabilities = isObject(discovered["capabilities"]) ? discovered["capabilities"] : {};
  const lists: Partial<Record<ListMethod, readonly unknown[]>> = {};
  for (const { method, field, capability } of Object.values(LISTS)) {
    if (capabilities[capability] === undefined) continue;
    const items = await readList(handler, method, field, background);
    if (items === undefined) return undefined;
    if (items !== "refused") lists[method] = items;
  }
  return { discovered, lists };
}

async function readList(
  handler: Handler,
  method: ListMethod,
  field: string,
  background: Context,
): Promise<readonly unknown[] | "refused" | undefined> {
  const items: unknown[] = [];
  let cursor: unknown;
  for (let pages = 0; pages < MAX_PAGES; pages += 1) {
    let page: Result;
    try {
      page = await handler({ method, params: cursor === undefined ? {} : { cursor } }, background);
    } catch {
      // Some upstreams declare resources but do not support templates.
      return pages === 0 ? "refused" : undefined;
    }
    const found = page[field];
    if (!Array.isArray(found)) return undefined;
    items.push(...(found as unknown[]));
    cursor = page["nextCursor"];
    if (cursor === undefined || cursor === null) return items;
    if (typeof cursor !== "string" || items.length > MAX_ITEMS) return undefined;
  }
  return undefined;
}

/** The answer that the upstream would give; undefined if only the upstream can answer. */
export function answerFrom(catalogue: Catalogue, { method, params }: Request): Result | undefined {
  if (method === "server/discover") return catalogue.discovered;
  const list = Object.values(LISTS).find((one) => one.method === method);
  const items = list === undefined ? undefined : catalogue.lists[list.method];
  if (list === undefined || items === undefined || params["cursor"] !== undefined) return undefined;
  return { resultType: "complete", [list.field]: items, ttlMs: 0, cacheScope: "private" };
}

/** The capabilities whose lists differ. */
function changesBetween(before: Catalogue, now: Catalogue): readonly ListCapability[] {
  const changed = Object.values(LISTS).filter(
    ({ method }) => JSON.stringify(before.lists[method]) !== JSON.stringify(now.lists[method]),
  );
  return [...new Set(changed.map(({ capability }) => capability))];
}

/** What the upstream would grant to a subscription with this filter. */
export function grantedBy({ discovered }: Catalogue, wanted: Json): Json {
  const capabilities = isObject(discovered["capabilities"]) ? discovered["capabilities"] : {};
  const granted = LIST_CAPABILITIES.flatMap((capability) => {
    const flag = changedFlag(capability);
    const declared = capabilities[capability];
    const canChange = isObject(declared) && declared["listChanged"] === true;
    return canChange && wanted[flag] === true ? [[flag, true] as const] : [];
  });
  return Object.fromEntries(granted);
}

/** Changes often come in bursts, so the upstream is read this long after the first one. */
const SETTLE_MS = 100;
/** The shortest time between two reads, for an upstream that reports changes all the time. */
const MIN_READ_INTERVAL_MS = 1_000;

export interface CatalogueKeeperOptions {
  readonly file: CatalogueFile;
  /** Whether the session belongs to one client connection. If so, later list changes are not written to the file. */
  readonly isExclusive: boolean;
  /** The context in which the upstream is read. */
  background(signal: AbortSignal): Context;
  /** Whether the connection is still the current one. */
  isCurrent(opened: UpstreamConnection): boolean;
  /** Called when lists differ from those that callers may have been shown. */
  onChanges(changes: readonly ListCapability[]): void;
}

/** Keeps the catalogue of one session up to date. */
export class CatalogueKeeper {
  readonly #options: CatalogueKeeperOptions;
  #catalogue: Catalogue | undefined;
  #fromFile: Promise<Catalogue | undefined> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #readAt = -Infinity;
  /** Whether the next read is the first since a start. Until then, callers may see the catalogue of an earlier run. */
  #isFirstRead = false;

  constructor(options: CatalogueKeeperOptions) {
    this.#options = options;
  }

  /** Undefined if nothing is known, or the catalogue is too long to be kept. */
  known(): Promise<Catalogue | undefined> {
    if (this.#catalogue !== undefined) return Promise.resolve(this.#catalogue);
    this.#fromFile ??= this.#options.file.read().then((read) => (this.#catalogue ??= read));
    return this.#fromFile;
  }

  /** Called when the upstream has started. */
  start(opened: UpstreamConnection): void {
    this.#isFirstRead = true;
    this.#readAt = -Infinity;
    this.#readSoon(opened);
    const flags = LIST_CAPABILITIES.map((capability) => [changedFlag(capability), true] as const);
    const context: Context = {
      ...this.#options.background(new AbortController().signal),
      notify: ({ method }) => (method.endsWith("/list_changed") ? this.#readSoon(opened) : undefined),
    };
    const request = { method: "subscriptions/listen", params: { notifications: Object.fromEntries(flags) } };
    // The subscription ends with the connection. An upstream without subscriptions is not watched.
    opened.connection.handler(request, context).catch(() => undefined);
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #readSoon(opened: UpstreamConnection): void {
    const waitMs = Math.max(SETTLE_MS, this.#readAt + MIN_READ_INTERVAL_MS - performance.now());
    this.#timer ??= unref(
      setTimeout(() => {
        this.#timer = undefined;
        this.#read(opened).catch(() => undefined);
      }, waitMs),
    );
  }

  async #read(opened: UpstreamConnection): Promise<void> {
    if (!this.#options.isCurrent(opened)) return;
    this.#readAt = performance.now();
    const { handler, discovered } = opened.connection;
    const now = await readCatalogue(handler, discovered, this.#options.background(new AbortController().signal));
    if (!this.#options.isCurrent(opened)) return;
    const before = await this.known();
    this.#catalogue = now;
    this.#fromFile = now === undefined ? Promise.resolve(undefined) : undefined;
    if (now === undefined) return;
    // The upstream itself notifies of later changes.
    if (before !== undefined && this.#isFirstRead) this.#options.onChanges(changesBetween(before, now));
    const isFirst = this.#isFirstRead;
    this.#isFirstRead = false;
    if (isFirst || !this.#options.isExclusive) await this.#options.file.write(now);
  }
}

/** Increase this when the format of the files changes. */
const FORMAT_VERSION = 1;
const MAX_FILE_BYTES = 4 * 1024 * 1024;
/** Above this, the oldest files are deleted. Each set of capabilities has a file, and callers may declare any set. */
const MAX_FILES = 1_000;

/**
 * A catalogue on disk: one file for each upstream and group of callers, in the cache folder. A file that cannot be read
 * or written is ignored. Its name is a digest, so that it does not reveal a command's arguments or environment.
 */
export class CatalogueFile {
  readonly #path: string;
  readonly #folder: string;

  /** `identity`: everything that distinguishes this upstream from others. */
  constructor(identity: unknown) {
    const name = createHash("sha256")
      .update(JSON.stringify([FORMAT_VERSION, identity]))
      .digest("hex")
      .slice(0, 32);
    this.#folder = join(cacheFolder(), "catalogues");
    this.#path = join(this.#folder, `${name}.json`);
  }

  async read(): Promise<Catalogue | undefined> {
    try {
      if ((await stat(this.#path)).size > MAX_FILE_BYTES) return undefined;
      const content: unknown = JSON.parse(await readFile(this.#path, "utf8"));
      return isCatalogue(content) ? content : undefined;
    } catch {
      return undefined;
    }
  }

  async write(catalogue: Catalogue): Promise<void> {
    const text = JSON.stringify(catalogue);
    if (Buffer.byteLength(text) > MAX_FILE_BYTES) return;
    const draft = `${this.#path}.${randomUUID()}`;
    try {
      await makeDirectory(this.#folder);
      await writeFile(draft, text, { mode: 0o600 });
      // Another process may write the same file; the rename is atomic.
      await rename(draft, this.#path);
      await deleteOldest(this.#folder);
    } catch {
      await rm(draft, { force: true }).catch(() => undefined);
    }
  }
}

async function deleteOldest(folder: string): Promise<void> {
  const paths = (await readdir(folder)).map((name) => join(folder, name));
  if (paths.length <= MAX_FILES) return;
  const times = await Promise.all(paths.map(async (path) => (await stat(path).catch(() => undefined))?.mtimeMs ?? 0));
  const byAge = paths.map((path, index) => ({ path, at: times[index] ?? 0 })).toSorted((a, b) => a.at - b.at);
  // More than necessary, so that the next write does not have to delete files again.
  const oldest = byAge.slice(0, paths.length - Math.floor(MAX_FILES * 0.9));
  await Promise.all(oldest.map(({ path }) => rm(path, { force: true }).catch(() => undefined)));
}

/** Checks a file that another process may have written. Invalid content must not reach callers or prevent a start. */
function isCatalogue(content: unknown): content is Catalogue {
  if (!isObject(content) || !isObject(content["discovered"]) || !isObject(content["lists"])) return false;
  const { discovered, lists } = content;
  const { resultType, capabilities = {} } = discovered;
  if (resultType !== "complete" || !isObject(capabilities)) return false;
  return Object.values(LISTS).every(({ method }) => lists[method] === undefined || isListOfObjects(lists[method]));
}

function isListOfObjects(list: unknown): boolean {
  return Array.isArray(list) && list.every((item) => isObject(item));
}
