// Remembers which names of tools and prompts a gateway has shown, and for which items. So a name that a client knows
// stays with its item when a server is added, and no upstream can take over a name of another, also not while that one
// is away. With a key, such as the path of a config, the names are also kept in a file, for the next start.

import { dirname, join } from "node:path";
import { isObject } from "../../core/values.ts";

/** The names that model APIs accept. */
export const VALID_NAME: RegExp = /^[a-zA-Z0-9_-]{1,64}$/;

export type NamedKind = "tools" | "prompts";

const KINDS: readonly NamedKind[] = ["tools", "prompts"];

/** An item by the name of its upstream and its own name there. */
export interface NameOwner {
  readonly upstream: string;
  readonly name: string;
}

/** The most names of an upstream, for each kind. The oldest are forgotten first, and never those of another upstream. */
const MAX_NAMES = 10_000;
/** The same in bytes of the file, since a server may have names of any length. */
const MAX_BYTES = 1024 * 1024;
/** Above this, the names of upstreams that are not used here are left out of the file. */
const MAX_FILE_BYTES = 16 * MAX_BYTES;
/** The most characters of a name that are compared to find out whether it was warned of. */
const MAX_WARNED_LENGTH = 200;

interface UpstreamNames {
  /** The options that the names depend on. If they change, the names are forgotten. */
  readonly rules: string;
  /** The shown names by own names. */
  readonly tools: Map<string, string>;
  readonly prompts: Map<string, string>;
  /** How many bytes the names take in the file. */
  readonly bytes: Record<NamedKind, number>;
}

/** By key, so that a gateway that is created again in this process goes on with the same names. */
const open = new Map<string, Promise<ShownNames>>();

export class ShownNames {
  readonly #file: string | undefined;
  readonly #upstreams = new Map<string, UpstreamNames>();
  readonly #owners: Readonly<Record<NamedKind, Map<string, NameOwner>>> = { tools: new Map(), prompts: new Map() };
  /** The upstreams of the gateways in this process. The file may have more. */
  readonly #used = new Set<string>();
  readonly #warned = new Set<string>();
  #version = 0;
  #saving: Promise<void> | undefined;
  #isChanged = false;

  /** Without a file, names are remembered only as long as the process runs. */
  constructor(file?: string) {
    this.#file = file;
  }

  /** The names of the gateway with this key. Without a key, no other gateway shares them. */
  static async open(key: string | undefined): Promise<ShownNames> {
    if (key === undefined) return new ShownNames();
    const known = open.get(key);
    if (known !== undefined) return known;
    const opened = openFile(key);
    open.set(key, opened);
    return opened;
  }

  /** Changes whenever a name is added or forgotten. */
  get version(): number {
    return this.#version;
  }

  /** Says that a gateway has this upstream, and how its names are made. */
  use(upstream: string, rules: string): void {
    this.#used.add(upstream);
    this.setRules(upstream, rules);
  }

  /** Names that were made by other rules are forgotten. */
  setRules(upstream: string, rules: string): void {
    const known = this.#upstreams.get(upstream);
    if (known?.rules === rules) return;
    for (const kind of KINDS)
      for (const shownName of known?.[kind].values() ?? []) this.#forget(kind, upstream, shownName);
    this.#upstreams.set(upstream, {
      rules,
      tools: new Map(),
      prompts: new Map(),
      bytes: { tools: 0, prompts: 0 },
    });
    this.#version += 1;
  }

  /** The name under which an item was shown. */
  shownName(kind: NamedKind, upstream: string, name: string): string | undefined {
    return this.#upstreams.get(upstream)?.[kind].get(name);
  }

  /** The own names of all items of an upstream that were shown. */
  ownNames(kind: NamedKind, upstream: string): Iterable<string> {
    return this.#upstreams.get(upstream)?.[kind].keys() ?? [];
  }

  /** The item for which a name was shown. */
  owner(kind: NamedKind, shownName: string): NameOwner | undefined {
    return this.#owners[kind].get(shownName);
  }

  /** Returns false if the name was added before. A name of an upstream that is gone passes to the new owner. */
  add(kind: NamedKind, upstream: string, name: string, shownName: string): boolean {
    const names = this.#upstreams.get(upstream);
    if (names === undefined || names[kind].get(name) === shownName) return false;
    const bytes = bytesOf(name, shownName);
    if (bytes > MAX_BYTES) return false;
    const before = this.#owners[kind].get(shownName);
    // Plain names make no others forgotten: those of a long list would be added again and again.
    const isFull = names[kind].size >= MAX_NAMES || names.bytes[kind] + bytes > MAX_BYTES;
    if (isFull && shownName === name && before === undefined) return false;
    if (before !== undefined) this.#remove(kind, before.upstream, before.name);
    this.#remove(kind, upstream, name);
    names[kind].set(name, shownName);
    names.bytes[kind] += bytes;
    this.#owners[kind].set(shownName, { upstream, name });
    for (const oldest of names[kind].keys()) {
      if (names[kind].size <= MAX_NAMES && names.bytes[kind] <= MAX_BYTES) break;
      this.#remove(kind, upstream, oldest);
    }
    this.#version += 1;
    this.#isChanged = true;
    // Not while the file is being read into this object.
    if (this.#file !== undefined && this.#used.size > 0) this.#saving ??= this.#save(this.#file);
    return true;
  }

  #remove(kind: NamedKind, upstream: string, name: string): void {
    const names = this.#upstreams.get(upstream);
    const shownName = names?.[kind].get(name);
    if (names === undefined || shownName === undefined) return;
    names[kind].delete(name);
    names.bytes[kind] -= bytesOf(name, shownName);
    this.#forget(kind, upstream, shownName);
  }

  /** Whether this was asked before. */
  isWarned(kind: NamedKind, upstream: string, name: string): boolean {
    const key = JSON.stringify([kind, upstream, name.slice(0, MAX_WARNED_LENGTH)]);
    const isKnown = this.#warned.has(key);
    if (this.#warned.size < MAX_NAMES) this.#warned.add(key);
    return isKnown;
  }

  /** Resolves when everything is on disk, or cannot be written. */
  async saved(): Promise<void> {
    while (this.#saving !== undefined) await this.#saving;
  }

  #forget(kind: NamedKind, upstream: string, shownName: string): void {
    if (this.#owners[kind].get(shownName)?.upstream === upstream) this.#owners[kind].delete(shownName);
  }

  /** The content of the file. */
  #toText(used: ReadonlySet<string>): string {
    const text = JSON.stringify(this.toJson());
    return text.length <= MAX_FILE_BYTES ? text : JSON.stringify(this.toJson((name) => used.has(name)));
  }

  /** The names in the form of the file. */
  toJson(isKept: (upstream: string) => boolean = () => true): unknown {
    const keptUpstreams = [...this.#upstreams].filter(([name]) => isKept(name));
    const upstreams = keptUpstreams.map(([name, { rules, tools, prompts }]) => {
      return { name, rules, tools: [...tools], prompts: [...prompts] };
    });
    return { version: FORMAT_VERSION, upstreams };
  }

  /** Adds the names of a file; what is not valid is left out. */
  addJson(content: unknown): this {
    if (!isObject(content) || content["version"] !== FORMAT_VERSION || !Array.isArray(content["upstreams"]))
      return this;
    for (const stored of content["upstreams"] as readonly unknown[]) {
      if (!isObject(stored) || typeof stored["name"] !== "string" || typeof stored["rules"] !== "string") continue;
      this.setRules(stored["name"], stored["rules"]);
      for (const kind of KINDS) {
        const pairs: unknown = stored[kind];
        for (const pair of Array.isArray(pairs) ? (pairs as readonly unknown[]) : []) {
          const [name, shownName] = Array.isArray(pair) ? (pair as readonly unknown[]) : [];
          const isValid = typeof name === "string" && typeof shownName === "string" && VALID_NAME.test(shownName);
          if (isValid && this.owner(kind, shownName) === undefined) this.add(kind, stored["name"], name, shownName);
        }
      }
    }
    return this;
  }

  /**
   * Adds the names of another that are free here. Names of upstreams that the other does not use give way, and all
   * names of an upstream whose rules differ.
   */
  #merge(other: ShownNames): this {
    for (const upstream of other.#used) {
      const names = other.#upstreams.get(upstream);
      if (names === undefined) continue;
      this.setRules(upstream, names.rules);
      for (const kind of KINDS) {
        for (const [name, shownName] of names[kind]) {
          const owner = this.owner(kind, shownName);
          const isFree = owner === undefined || !other.#used.has(owner.upstream);
          if (isFree && this.shownName(kind, upstream, name) === undefined) this.add(kind, upstream, name, shownName);
        }
      }
    }
    return this;
  }

  /**
   * Writes the file again until nothing has changed. Another process may serve the same config, so what is in the file
   * stays. A file that cannot be written is ignored: the names are then remembered until the process ends.
   */
  async #save(file: string): Promise<void> {
    try {
      const [{ fileLock }, { makePrivateDirectory, writePrivate }] = await Promise.all([
        import("../../core/file-lock.ts"),
        import("../../core/private-files.ts"),
      ]);
      const folder = dirname(file);
      await makePrivateDirectory(folder);
      while (this.#isChanged) {
        this.#isChanged = false;
        await fileLock(folder, LOCK_MS).exclusively(file, async () => {
          const merged = new ShownNames().addJson(await readContent(file)).#merge(this);
          await writePrivate(file, merged.#toText(this.#used));
        });
      }
    } catch {
      this.#isChanged = false;
    } finally {
      this.#saving = undefined;
    }
  }
}

function bytesOf(name: string, shownName: string): number {
  return Buffer.byteLength(JSON.stringify([name, shownName])) + 1;
}

/** Increase this when the format of the file changes. */
const FORMAT_VERSION = 1;
const LOCK_MS = 5_000;

async function openFile(key: string): Promise<ShownNames> {
  const { stateDirectory } = await import("../../core/private-files.ts");
  // Loaded here, since it takes milliseconds and most programs do not need it.
  const { createHash } = await import("node:crypto");
  const digest = createHash("sha256").update(key).digest("hex").slice(0, 32);
  const file = join(stateDirectory(), "names", `${digest}.json`);
  return new ShownNames(file).addJson(await readContent(file));
}

/** Undefined if the file cannot be read, is not JSON, or is accessible to other users. */
async function readContent(file: string): Promise<unknown> {
  try {
    const { readPrivate } = await import("../../core/private-files.ts");
    return JSON.parse((await readPrivate(file)) ?? "") as unknown;
  } catch {
    return undefined;
  }
}
