// What callers of one kind see of all ends: one member for each, and the names that these have listed for them. Names
// are read from the ends when a word comes that leads nowhere yet: one question for all who wait at once, and no longer
// than it takes to find the one that is wanted, whatever other ends do.

import type { Context } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import { abortable } from "../../core/async.ts";
import { isObject } from "../../core/objects.ts";
import { Addresses } from "./addresses.ts";
import { Directory, type DirectoryOptions } from "./directory.ts";
import { type Family, type Kind, KINDS } from "./kinds.ts";
import { Member, type RoutedUpstream, quiet } from "./member.ts";
import { type NamesOption, type Target, toolNames } from "./names.ts";
import { isMethodNotFound, tellable } from "./failures.ts";
import { Shown } from "./shown.ts";
import { TaskIds } from "./task-ids.ts";
import { walk } from "./walk.ts";

/** How long the list of an end may take, with all its pages. */
export const WALK_MS = 30_000;
/** How long others are waited for, who might have the same name as the one that was found. */
const GRACE_MS = 1_000;

/** Ends that are being asked for their names. */
interface Reading {
  /** Those that have not answered. */
  readonly left: Set<Promise<void>>;
}

/** An end, and what comes from it as callers see it. */
interface Sight {
  readonly end: RoutedUpstream;
  readonly shown: Shown;
}

export class View {
  readonly members: readonly Member[];
  readonly taskIds: TaskIds;
  readonly directories: Readonly<Record<Kind, Directory>>;
  readonly addresses: Addresses;
  readonly #sights: readonly Sight[];
  readonly #readings = new Map<Kind, Reading>();

  constructor(ends: readonly RoutedUpstream[], option: NamesOption) {
    this.members = ends.map((end) => new Member(end));
    const make = toolNames(ends.map(({ label }) => label));
    const names: DirectoryOptions = { ends, option, make, labelOf: byName, isStrict: false };
    const addresses: DirectoryOptions = { ...names, make: addressOf(ends), labelOf: byScheme, isStrict: true };
    const [resources, templates] = [new Directory(addresses), new Directory(addresses)];
    this.directories = { tools: new Directory(names), prompts: new Directory(names), resources, templates };
    this.addresses = new Addresses(ends, option, resources, templates);
    this.taskIds = new TaskIds(ends);
    this.#sights = ends.map((end) => ({ end, shown: new Shown(end.index, this.addresses, this.taskIds) }));
  }

  /** The end that something leads to. */
  at({ end }: Pick<Target, "end">): Sight {
    const sight = this.#sights[end];
    if (sight === undefined) throw new RangeError("There is no such end");
    return sight;
  }

  /** What a caller's word leads to, after all ends were asked if need be. */
  async find(kind: Kind, text: string, context: Context): Promise<Target | undefined> {
    const directory = this.directories[kind];
    const found = directory.find(text);
    if (found !== undefined) {
      if (directory.isStale) this.#read(kind, context);
      return found;
    }
    await this.read(kind, context, () => directory.find(text) !== undefined && "unless others have it");
    return directory.find(text);
  }

  /** Asks all ends for their names, unless that was done just now, and waits until what is wanted is found. */
  async read(kind: Kind, context: Context, isFound: () => boolean | "unless others have it"): Promise<void> {
    if (this.directories[kind].isFresh && !this.#readings.has(kind)) return;
    const { left } = this.#read(kind, context);
    let isPatient = true;
    let timer: NodeJS.Timeout | undefined;
    const grace = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, GRACE_MS);
    }).then(() => {
      isPatient = false;
    });
    try {
      while (left.size > 0) {
        const found = isFound();
        if (found === true || (found !== false && !isPatient)) return;
        await abortable(context.signal, Promise.race(isPatient ? [...left, grace] : left));
      }
    } finally {
      clearTimeout(timer);
    }
  }

  /** An end has said that its lists are others now. */
  changed(family: Family): void {
    for (const kind of KINDS_OF[family]) this.directories[kind].changed();
  }

  #read(kind: Kind, context: Context): Reading {
    const known = this.#readings.get(kind);
    if (known !== undefined) return known;
    const directory = this.directories[kind];
    const { changes } = directory;
    const reading: Reading = { left: new Set() };
    const leave = (asked: Promise<void>): void => {
      reading.left.delete(asked);
      if (reading.left.size > 0) return;
      this.#readings.delete(kind);
      directory.noteAll(changes);
    };
    this.#readings.set(kind, reading);
    for (const member of this.members) {
      const asked: Promise<void> = this.#ask(kind, member, context).then(() => leave(asked));
      reading.left.add(asked);
    }
    if (reading.left.size === 0) this.#readings.delete(kind);
    return reading;
  }

  async #ask(kind: Kind, member: Member, context: Context): Promise<void> {
    const { end } = member;
    const directory = this.directories[kind];
    const own = quiet(context);
    try {
      const listed = (await member.offers(own, (capabilities) => isObject(capabilities[KINDS[kind].family])))
        ? await member.patiently(WALK_MS, own, (given) => walk(end.handler, KINDS[kind], {}, given))
        : undefined;
      directory.note(end.index, listed?.keys ?? []);
    } catch (error) {
      if (isMethodNotFound(error)) directory.note(end.index, []);
      // That a caller has left is no news of the end.
      else if (!(error instanceof ConnectionError) || error.kind !== "cancelled") {
        directory.noteProblem(end.index, tellable(error as Error));
      }
    }
  }
}

const KINDS_OF: Readonly<Record<Family, readonly Kind[]>> = {
  tools: ["tools"],
  prompts: ["prompts"],
  resources: ["resources", "templates"],
};

function byName({ label }: RoutedUpstream): string {
  return label.name;
}

function byScheme({ label }: RoutedUpstream): string {
  return label.scheme;
}

/** Labels hold no dot and are all different, so no two of these are the same. */
function addressOf(ends: readonly RoutedUpstream[]): (end: number, uri: string) => string {
  return (end, uri) => `${ends[end]?.label.scheme ?? ""}.${uri}`;
}
