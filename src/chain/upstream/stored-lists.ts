// Stores, in memory and on disk, what an upstream offers: its answer to `server/discover` and its four lists. They are
// shown while the upstream does not run, and are read again after each start and each change.

import { createHash } from "node:crypto";
import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { unref } from "../../core/async.ts";
import { ExpiringMap } from "../../core/expiring-map.ts";
import { cacheFolder, checkCacheFolder, isOwnCacheFile, makeDirectory, replaceFile } from "../../core/files.ts";
import type { Context, Handler, Request, Result } from "../../core/handler.ts";
import { digest } from "../../core/seal.ts";
import { deepFreeze, isObject } from "../../core/values.ts";
import { LIST_CAPABILITIES, LISTS, type List, type ListCapability } from "../../protocol/lists.ts";
import { jsonLength } from "../../protocol/pages.ts";
import { changedList, filterFor, listenRequest } from "../../protocol/subscription.ts";
import { LISTS_BY_METHOD } from "../result-items.ts";
import { isMethodNotFound } from "../router/failures.ts";
import { readAllPages } from "../router/pages.ts";
import type { UpstreamConnection } from "./supervisor.ts";

type ListMethod = List["method"];

export interface StoredLists {
  readonly discovered: Result;
  /** Complete lists by method. Lists that the upstream does not have are left out. */
  readonly lists: Readonly<Partial<Record<ListMethod, readonly unknown[]>>>;
  /** Whether it has been seen to send requests to its clients (elicitation, sampling, roots). */
  readonly asks?: boolean;
}

/**
 * Of the lists in memory, in characters of JSON, and of a file. Longer ones are not kept. The upstream is then
 * started to answer list requests.
 */
const MAX_BYTES = 4 * 1024 * 1024;

/** Undefined if they are too long. */
export async function readStoredLists(
  handler: Handler,
  discovered: Result,
  background: Context,
): Promise<StoredLists | undefined> {
  const capabilities = isObject(discovered["capabilities"]) ? discovered["capabilities"] : {};
  const lists: Partial<Record<ListMethod, readonly unknown[]>> = {};
  let length = 0;
  for (const list of Object.values(LISTS)) {
    if (capabilities[list.capability] === undefined) continue;
    try {
      const { items, problem } = await readAllPages(handler, list, {}, background);
      length += jsonLength(items);
      if (problem !== undefined || length > MAX_BYTES) return undefined;
      lists[list.method] = items;
    } catch (error) {
      // Some upstreams declare resources but do not support templates. One that declares tools must be able to list them.
      if (!isMethodNotFound(error) || list === LISTS.tools) throw error;
    }
  }
  return { discovered, lists };
}

/** The answer that the upstream would give; undefined if only the upstream can answer. */
export function answerFrom(stored: StoredLists, { method, params }: Request): Result | undefined {
  if (method === "server/discover") return stored.discovered;
  const list = LISTS_BY_METHOD.get(method);
  const items = list && stored.lists[list.method];
  if (list === undefined || items === undefined || params["cursor"] !== undefined) return undefined;
  return { resultType: "complete", [list.field]: items, ttlMs: 0, cacheScope: "private" };
}

/** A digest of each list. */
type Digests = ReadonlyMap<ListMethod, string>;

function digestsOf(stored: StoredLists | undefined): Digests | undefined {
  if (stored === undefined) return undefined;
  const lists = Object.entries(stored.lists) as [ListMethod, readonly unknown[]][];
  return new Map(lists.map(([method, items]) => [method, digest(items)]));
}

/** The digest of each list that the upstream itself has answered; undefined if the answers differed. */
type Answered = ReadonlyMap<ListMethod, string | undefined>;

/** The capabilities whose lists differ from those that callers may have seen; all of them if some are not known. */
function changesSince(
  before: Digests | undefined,
  answered: Answered,
  now: Digests | undefined,
): readonly ListCapability[] {
  if (before === undefined || now === undefined) return LIST_CAPABILITIES;
  const differs = (seen: Answered, method: ListMethod): boolean => seen.get(method) !== now.get(method);
  const changed = Object.values(LISTS).filter(
    ({ method }) => differs(before, method) || (answered.has(method) && differs(answered, method)),
  );
  return [...new Set(changed.map(({ capability }) => capability))];
}

/** Changes often come in bursts, so the upstream is read this long after the first one. */
const SETTLE_MS = 100;
/** The shortest time between two reads, for an upstream that reports changes all the time. */
const MIN_READ_INTERVAL_MS = 1_000;

/** The session whose lists are kept. */
export interface ListsOwner {
  /** Whether the session belongs to one client. If so, later list changes are not stored. */
  readonly isOwn: boolean;
  /** The context in which the upstream is read. */
  background(signal: AbortSignal): Context;
  /** Whether the connection is still the current one. */
  isCurrent(opened: UpstreamConnection): boolean;
  /** Called when lists differ from those that callers may have been shown. */
  notifyChanged(changes: readonly ListCapability[]): void;
}

/**
 * Reads the lists of one session after each start and each change, and stores them. Callers are notified only of
 * lists that differ: an upstream also reports changes when nothing has changed, and a restart may change anything.
 */
export class ListsKeeper {
  readonly #store: ListsStore;
  readonly #owner: ListsOwner;
  #opened: UpstreamConnection | undefined;
  #timer: NodeJS.Timeout | undefined;
  #readAt = -Infinity;
  /** Whether the next read is the first since a start. Until then, callers may see the lists of an earlier run. */
  #isFirstRead = false;
  /** The lists as they were read last; undefined if they were too long. */
  #digests: Digests | undefined;
  #wasRead = false;
  /** Whether the upstream has reported a change since the last read. */
  #isReported = false;
  /** What callers have got from the upstream itself while the lists were to be read. */
  readonly #answered = new Map<ListMethod, string | undefined>();

  constructor(store: ListsStore, owner: ListsOwner) {
    this.#store = store;
    this.#owner = owner;
  }

  /** Whether it notifies of changed lists. Of later changes, a session that belongs to one client notifies itself. */
  get reportsChanges(): boolean {
    return this.#isFirstRead || !this.#owner.isOwn;
  }

  /** Called when the upstream has started. */
  start(opened: UpstreamConnection): void {
    this.close();
    this.#opened = opened;
    this.#isFirstRead = true;
    this.#readAt = -Infinity;
    this.#readSoon(opened);
    const context: Context = {
      ...this.#owner.background(new AbortController().signal),
      notify: (notification) => (changedList(notification) === undefined ? undefined : this.changed()),
    };
    // The subscription ends with the connection. An upstream without subscriptions is not watched.
    opened.connection.handler(listenRequest(filterFor(LIST_CAPABILITIES)), context).catch(() => undefined);
  }

  /** Called when the lists may have changed. */
  changed(): void {
    this.#isReported = true;
    if (this.#opened !== undefined) this.#readSoon(this.#opened);
  }

  /** Called when the upstream itself has answered a list. */
  answered({ method, params }: Request, result: Result): void {
    const list = LISTS_BY_METHOD.get(method);
    // While no read is due, the upstream lists what was read last.
    if (list === undefined || !this.reportsChanges || !(this.#isFirstRead || this.#isReported)) return;
    const isWhole = params["cursor"] === undefined && result["nextCursor"] === undefined;
    const itemsDigest = isWhole ? digest(result[list.field]) : undefined;
    const isSame = !this.#answered.has(list.method) || this.#answered.get(list.method) === itemsDigest;
    this.#answered.set(list.method, isSame ? itemsDigest : undefined);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
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
    const owner = this.#owner;
    // Only the first lists of a session that belongs to one client are stored.
    if (!owner.isCurrent(opened) || !this.reportsChanges) return;
    this.#readAt = performance.now();
    const isReported = this.#isReported;
    this.#isReported = false;
    const { handler, discovered } = opened.connection;
    const before = this.#digests ?? digestsOf(await this.#store.known());
    // Before the first read of all, callers have seen what is stored, or what the upstream itself has answered.
    const isShown = before !== undefined || this.#wasRead;
    let now: StoredLists | undefined;
    try {
      now = await readStoredLists(handler, discovered, owner.background(new AbortController().signal));
    } catch (error) {
      if (isShown && owner.isCurrent(opened)) owner.notifyChanged(LIST_CAPABILITIES);
      throw error;
    }
    if (!owner.isCurrent(opened)) return;
    this.#isFirstRead = false;
    this.#wasRead = true;
    this.#digests = digestsOf(now);
    await this.#store.set(now);
    const isReportedSince = this.#isReported;
    // Without lists to compare with, the report of the upstream counts. It also counts if there is no further read.
    const counts = isShown ? isReportedSince && owner.isOwn : isReported || isReportedSince;
    const changes = counts ? LIST_CAPABILITIES : isShown ? changesSince(before, this.#answered, this.#digests) : [];
    this.#answered.clear();
    if (changes.length > 0) owner.notifyChanged(changes);
  }
}

/** The lists of all upstreams that are in memory. */
const inMemory = new ExpiringMap<ListsStore, StoredLists>({
  /** In characters of JSON. Above this, the least recently used lists are only kept in their files. */
  maxSize: 64 * 1024 * 1024,
});

/** What is known of an upstream for one principal: in memory, and in a file that outlives the process. */
export class ListsStore {
  readonly #file: ListsFile;
  #asks = false;
  #reading: Promise<StoredLists | undefined> | undefined;
  #isRead = false;
  #saved: Promise<void> = Promise.resolve();

  constructor(file: ListsFile) {
    this.#file = file;
  }

  /** Whether the file was read. */
  get isRead(): boolean {
    return this.#isRead;
  }

  /** Whether the upstream has been seen to ask. */
  get asks(): boolean {
    return this.#asks;
  }

  /** Undefined if nothing is known, or the lists are too long to be kept. */
  async known(): Promise<StoredLists | undefined> {
    return inMemory.get(this) ?? (this.#reading ??= this.#read());
  }

  set(stored: StoredLists | undefined): Promise<void> {
    this.#reading = stored === undefined ? Promise.resolve(undefined) : undefined;
    const toWrite = this.#keep(stored === undefined || !this.#asks ? stored : { ...stored, asks: true });
    return this.#inTurn(() => this.#write(toWrite));
  }

  /** Records that the upstream asks. */
  async setAsks(): Promise<void> {
    if (this.#asks) return;
    this.#asks = true;
    await this.#inTurn(async () => {
      const known = await this.known();
      if (known !== undefined) await this.#write(this.#keep({ ...known, asks: true }));
    });
  }

  /** Resolves when the file has what is known. After a close, nothing is written any more. */
  get saved(): Promise<void> {
    return this.#saved;
  }

  #inTurn(write: () => Promise<void>): Promise<void> {
    return (this.#saved = this.#saved.then(write));
  }

  #write(lists: StoredLists | undefined): Promise<void> {
    return lists === undefined ? this.#file.delete() : this.#file.write(lists);
  }

  async #read(): Promise<StoredLists | undefined> {
    const read = await this.#file.read();
    this.#isRead = true;
    this.#reading = undefined;
    const known = inMemory.get(this);
    if (known !== undefined) return known;
    this.#asks ||= read?.asks === true;
    this.#keep(read);
    // A file that does not exist is not read again.
    if (read === undefined) this.#reading = Promise.resolve(undefined);
    return read;
  }

  /** Returns what is kept in memory: nothing if it is too long. */
  #keep(stored: StoredLists | undefined): StoredLists | undefined {
    if (stored === undefined) inMemory.delete(this);
    else inMemory.set(this, deepFreeze(stored), undefined, jsonLength(stored));
    return inMemory.get(this);
  }
}

/** Increase this when the format of the files changes. */
const FORMAT_VERSION = 3;
/** Above this, the oldest files are deleted. Each upstream has a file for each principal. */
const MAX_FILES = 1_000;

/**
 * The lists of an upstream on disk, in the cache folder. A principal for which an upstream lists what it lists without one has no
 * file of its own. A file that cannot be read or written is ignored. Its name is a digest, so that it does not reveal a
 * command's arguments or environment.
 */
export class ListsFile {
  readonly #folder: string = join(cacheFolder(), "catalogues");
  readonly #path: string;
  /** The file for callers without a principal, if this is that of a principal. */
  readonly #general: string | undefined;

  /** `identity`: everything that distinguishes this upstream from others. */
  constructor(identity: unknown, principal?: string) {
    this.#path = this.#pathFor(identity, principal);
    if (principal !== undefined) this.#general = this.#pathFor(identity, undefined);
  }

  #pathFor(identity: unknown, principal: string | undefined): string {
    const text = JSON.stringify([FORMAT_VERSION, identity, principal]);
    return join(this.#folder, `${createHash("sha256").update(text).digest("hex").slice(0, 32)}.json`);
  }

  async read(): Promise<StoredLists | undefined> {
    for (const path of [this.#path, this.#general]) {
      const text = path === undefined ? undefined : await readText(path);
      const stored = text === undefined ? undefined : parseStoredLists(text);
      if (stored !== undefined) return stored;
    }
    return undefined;
  }

  async write(stored: StoredLists): Promise<void> {
    const text = JSON.stringify(stored);
    if (Buffer.byteLength(text) > MAX_BYTES) return this.delete();
    if (this.#general !== undefined && (await readText(this.#general)) === text) return remove(this.#path);
    try {
      await makeDirectory(this.#folder);
      await checkCacheFolder(this.#folder);
      // Another process may write the same file.
      await replaceFile(this.#path, text, 0o600);
      await deleteOldest(this.#folder);
    } catch {
      // The file is a cache only.
    }
  }

  /** Called when the lists have become too long, so that no process shows the old ones. */
  async delete(): Promise<void> {
    await remove(this.#path);
    if (this.#general !== undefined) await remove(this.#general);
  }
}

async function remove(path: string): Promise<void> {
  await rm(path, { force: true }).catch(() => undefined);
}

async function readText(path: string): Promise<string | undefined> {
  try {
    if (!(await isOwnCacheFile(path)) || (await stat(path)).size > MAX_BYTES) return undefined;
    return await readFile(path, "utf8");
  } catch {
    return undefined;
  }
}

async function deleteOldest(folder: string): Promise<void> {
  const paths = (await readdir(folder)).map((name) => join(folder, name));
  if (paths.length <= MAX_FILES) return;
  const times = await Promise.all(paths.map(async (path) => (await stat(path).catch(() => undefined))?.mtimeMs ?? 0));
  const byAge = paths.map((path, index) => ({ path, at: times[index] ?? 0 })).toSorted((a, b) => a.at - b.at);
  // More than necessary, so that the next write does not have to delete files again.
  const oldest = byAge.slice(0, paths.length - Math.floor(MAX_FILES * 0.9));
  await Promise.all(oldest.map(({ path }) => remove(path)));
}

/** Undefined if the text is not valid. Another process may have written it, and it must not reach callers then. */
function parseStoredLists(text: string): StoredLists | undefined {
  try {
    const content: unknown = JSON.parse(text);
    return isStoredLists(content) ? content : undefined;
  } catch {
    return undefined;
  }
}

function isStoredLists(content: unknown): content is StoredLists {
  if (!isObject(content) || !isObject(content["discovered"]) || !isObject(content["lists"])) return false;
  const { discovered, lists } = content;
  const { resultType, capabilities = {} } = discovered;
  if (resultType !== "complete" || !isObject(capabilities)) return false;
  return Object.values(LISTS).every(({ method }) => {
    const { [method]: list = [] } = lists;
    return Array.isArray(list) && list.every((item) => isObject(item));
  });
}
