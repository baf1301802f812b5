// The file of pins: the definitions of tools, prompts and templates that were approved, and those that are held back
// until someone approves them. The middleware `pin` and the command `catenary pins` share it, and so do several
// gateways: each change is made to the content of the file, under a lock.

import type { Stats } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { digest } from "../core/seal.ts";
import { errorMessage, isObject } from "../core/values.ts";

/** What can be pinned. `server` has one item, its instructions. */
export const PIN_KINDS = ["tools", "prompts", "templates", "server"] as const;
export type PinKind = (typeof PIN_KINDS)[number];
export const PIN_NOUNS = { tools: "tool", prompts: "prompt", templates: "template", server: "instructions" } as const;

/** The parts of a definition that a model or a caller reads. */
export type Definition = Readonly<Record<string, unknown>>;

/** A definition, and how it is recognized. A very long one is not kept. */
export interface PinnedDefinition {
  readonly digest: string;
  readonly definition?: Definition;
}

export interface Pin {
  readonly approved?: PinnedDefinition;
  /** What the server says now, if that is not approved. */
  readonly held?: PinnedDefinition;
}

/** The pins of one server. */
export interface ServerPins {
  /** The kinds whose list was approved on first use. What is new later is held. */
  known: PinKind[];
  readonly pins: Record<PinKind, Map<string, Pin>>;
}

const FORMAT_VERSION = 1;
const LOCK_MS = 10_000;
/** The most items of one kind of a server. Further ones are held, and not written to the file. */
const MAX_ITEMS = 5_000;
/** If a server has more items that were never approved, those that are in its list no more are forgotten. */
export const MAX_NEW_ITEMS = 100;
/** The most characters of the definitions of a server. With more, only their digests are kept. */
const MAX_SERVER_LENGTH = 4 * 1024 * 1024;
const MAX_DEFINITION_LENGTH = 64 * 1024;
const MAX_FILE_BYTES = 256 * 1024 * 1024;

/** What of an item counts. */
const COUNTED = [
  ...["name", "uriTemplate", "title", "description", "mimeType", "arguments", "inputSchema", "outputSchema"],
  "annotations",
];
/** What of `_meta` counts: the view of a tool, and who sees it. The rest may be different in each list. */
const COUNTED_META = ["ui", "ui/resourceUri", "openai/outputTemplate"];

/** `name`: the server's own name of the item. */
export function definitionOf(item: Definition, key: string, name: string): Definition {
  const meta = isObject(item["_meta"]) ? fieldsOf(item["_meta"], COUNTED_META) : {};
  const counted = Object.keys(meta).length > 0 ? { _meta: meta } : undefined;
  return { ...fieldsOf(item, COUNTED), ...counted, [key]: name };
}

function fieldsOf(from: Definition, names: readonly string[]): Definition {
  return Object.fromEntries(names.flatMap((name) => (from[name] === undefined ? [] : [[name, from[name]]])));
}

export class Pins {
  readonly file: string;
  #servers = new Map<string, ServerPins>();
  /** What the file was when it was read: its inode, time and size. */
  #seen: string | undefined;
  #reading: Promise<void> = Promise.resolve();

  constructor(file: string) {
    this.file = file;
  }

  /** The file that a config in this folder names. Without a name, one of the state folder. */
  static async fileIn(folder: string, name: unknown): Promise<string> {
    if (typeof name === "string") return resolve(folder, name);
    const { stateDirectory } = await import("../core/private-files.ts");
    return join(stateDirectory(), "pins", `${digest(resolve(folder)).slice(0, 32)}.json`);
  }

  get servers(): ReadonlyMap<string, ServerPins> {
    return this.#servers;
  }

  find(server: string, kind: PinKind, name: string): Pin | undefined {
    return this.#servers.get(server)?.pins[kind].get(name);
  }

  /** Reads the file if it has changed. Throws if it cannot be used: then nothing counts as approved. */
  refresh(): Promise<void> {
    // One after the other, so that an older content never replaces a newer one.
    const reading = this.#reading.then(() => this.#refresh());
    this.#reading = reading.catch(() => undefined);
    return reading;
  }

  async #refresh(): Promise<void> {
    const { stat } = await import("node:fs/promises");
    const stats = await stat(this.file).catch(() => undefined);
    const now = stats === undefined ? "" : `${stats.ino} ${stats.mtimeMs} ${stats.size}`;
    if (now === this.#seen) return;
    this.#servers = stats === undefined ? new Map<string, ServerPins>() : parse(await this.#read(stats), this.file);
    this.#seen = now;
  }

  /** Changes what is in the file now, and writes it. `change` returns false if there is nothing to write. */
  async change(change: (pins: this) => boolean): Promise<void> {
    const [{ fileLock }, { makePrivateDirectory, stateDirectory }, { makeDirectory, replaceFile }] = await Promise.all([
      import("../core/file-lock.ts"),
      import("../core/private-files.ts"),
      import("../core/files.ts"),
    ]);
    await makePrivateDirectory(stateDirectory());
    await fileLock(join(stateDirectory(), "pins.locks"), LOCK_MS).exclusively(this.file, async () => {
      await this.refresh();
      if (!change(this)) return;
      const text = `${JSON.stringify(toJson(this.#servers), undefined, 2)}\n`;
      // What is changed counts when it is in the file.
      this.#seen = undefined;
      await makeDirectory(dirname(this.file));
      await replaceFile(this.file, text, 0o600);
    });
    await this.refresh();
  }

  /** Within `change`. */
  set(server: string, kind: PinKind, name: string, pin: Pin | undefined): void {
    const all = this.#of(server).pins[kind];
    if (pin === undefined || (pin.approved === undefined && pin.held === undefined)) all.delete(name);
    else if (all.has(name) || all.size < MAX_ITEMS) all.set(name, pin);
  }

  /** The names of the items that were never approved. */
  newItems(server: string, kind: PinKind): string[] {
    const all = [...(this.#servers.get(server)?.pins[kind] ?? [])];
    return all.flatMap(([name, { approved }]) => (approved === undefined ? [name] : []));
  }

  /** Within `change`. */
  setKnown(server: string, kind: PinKind): void {
    const { known } = this.#of(server);
    if (!known.includes(kind)) known.push(kind);
  }

  /** Within `change`: forgets a server, so that its next list is its first. */
  forget(server: string): void {
    this.#servers.delete(server);
  }

  #of(server: string): ServerPins {
    let pins = this.#servers.get(server);
    if (pins === undefined) this.#servers.set(server, (pins = emptyPins()));
    return pins;
  }

  async #read(stats: Stats): Promise<string> {
    const { ownerProblem, readBounded } = await import("../core/files.ts");
    const check = { bits: 0o022, remedy: "chmod go-w", mayBeRoot: true };
    const problem = stats.isFile() ? ownerProblem(this.file, stats, check) : `${this.file} is not a file`;
    if (problem !== undefined) throw unusable(problem);
    const bytes = await readBounded(this.file, MAX_FILE_BYTES).catch((error: unknown) => {
      throw unusable(errorMessage(error));
    });
    return bytes.toString();
  }
}

export function pinned(definition: Definition): PinnedDefinition {
  const isLong = JSON.stringify(definition).length > MAX_DEFINITION_LENGTH;
  return { digest: digest(definition), ...(!isLong && { definition }) };
}

function emptyPins(): ServerPins {
  return { known: [], pins: { tools: new Map(), prompts: new Map(), templates: new Map(), server: new Map() } };
}

/** For the operator, since it names files of this machine. Callers get another error. */
function unusable(reason: string): Error {
  return new Error(`The approved definitions cannot be read: ${reason}`);
}

function toJson(servers: ReadonlyMap<string, ServerPins>): unknown {
  const entries = [...servers].map(([name, { known, pins }]) => {
    const kinds = PIN_KINDS.map((kind) => [kind, Object.fromEntries(pins[kind])] as const);
    const server = { known, ...Object.fromEntries(kinds.filter(([, all]) => Object.keys(all).length > 0)) };
    return [name, JSON.stringify(server).length > MAX_SERVER_LENGTH ? withoutDefinitions(server) : server];
  });
  return { version: FORMAT_VERSION, servers: Object.fromEntries(entries) as object };
}

function withoutDefinitions(server: object): unknown {
  return JSON.parse(JSON.stringify(server, (key, value: unknown) => (key === "definition" ? undefined : value)));
}

/** Throws if the content is not ours: to ignore it would approve everything anew. */
function parse(text: string, file: string): Map<string, ServerPins> {
  const fail = (): Error => unusable(`${file} is not valid; repair it, or remove it to approve everything anew`);
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw fail();
  }
  if (!isObject(content) || content["version"] !== FORMAT_VERSION || !isObject(content["servers"])) throw fail();
  return new Map(
    Object.entries(content["servers"]).map(([name, stored]) => {
      if (!isObject(stored) || !Array.isArray(stored["known"])) throw fail();
      const server = emptyPins();
      server.known = (stored["known"] as unknown[]).filter((kind): kind is PinKind =>
        PIN_KINDS.includes(kind as PinKind),
      );
      for (const kind of PIN_KINDS) {
        const all = stored[kind] ?? {};
        if (!isObject(all)) throw fail();
        for (const [item, pin] of Object.entries(all)) {
          if (!isObject(pin) || !isPinned(pin["approved"]) || !isPinned(pin["held"])) throw fail();
          server.pins[kind].set(item, pin);
        }
      }
      return [name, server];
    }),
  );
}

function isPinned(value: unknown): boolean {
  if (value === undefined) return true;
  if (!isObject(value) || typeof value["digest"] !== "string") return false;
  return value["definition"] === undefined || isObject(value["definition"]);
}
