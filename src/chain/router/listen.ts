// One listen of a caller as listens at the ends that it concerns. The caller gets one acknowledgement, when all have
// granted or failed, or some take too long; what comes before it waits for it. An end that fails neither ends the
// listen nor hides what others tell.

import type { Context } from "../../core/handler.ts";
import type { Notification, Request, Result } from "../../core/handler.ts";
import { ignoreRejection, within, abortable } from "../../core/async.ts";
import { isObject } from "../../core/objects.ts";
import type { Json } from "../../protocol/revision.ts";
import { styleOf } from "../upstream/caller-key.ts";
import { changeOf, FAMILIES, type Family, flagOf } from "./kinds.ts";
import { ACKNOWLEDGED, ListenPart, type PartHost, TASKS_TOLD, UPDATED, type Wanted } from "./listen-part.ts";
import type { Target } from "./names.ts";
import { placesOf, withOthers } from "./reading.ts";
import { unknownTask } from "./task-ids.ts";
import type { View } from "./view.ts";

/** How long the acknowledgement waits for an end that says nothing. */
const ACKNOWLEDGE_MS = 5_000;
/** Events that wait for it. */
const MOST_EARLY = 1_000;

const EVENTS: ReadonlySet<string> = new Set([...FAMILIES.map((family) => changeOf(family)), UPDATED, TASKS_TOLD]);

const FLAGS: ReadonlySet<string> = new Set(FAMILIES.map((family) => flagOf(family)));

/** What is wanted of one end, while it is being found out. */
interface Wishes {
  readonly filter: Json;
  readonly uris: Map<string, string>;
  readonly taskIds: Map<string, string>;
}

export async function listen(request: Request, context: Context, view: View): Promise<Result> {
  return new Listen(request, context, view).run();
}

class Listen implements PartHost {
  readonly context: Context;
  readonly params: Request["params"];
  readonly #view: View;
  readonly #filter: Json;
  readonly #uris: readonly string[];
  readonly #taskIds: readonly string[];
  readonly #parts: ListenPart[] = [];
  /** By end. */
  readonly #wishes = new Map<number, Wishes>();
  /** Addresses of which it is not known whose they are. */
  readonly #lost: { readonly uri: string; readonly targets: readonly Target[] }[] = [];
  readonly #problems: Error[] = [];
  /** Events by what they are about; undefined once the acknowledgement is out. */
  #early: Map<string, Notification> | undefined = new Map();

  constructor({ params }: Request, context: Context, view: View) {
    this.context = context;
    this.params = params;
    this.#view = view;
    const { resourceSubscriptions, taskIds, ...filter } = params["notifications"] as Json;
    this.#filter = filter;
    this.#uris = [...new Set((resourceSubscriptions as readonly string[] | undefined) ?? [])];
    this.#taskIds = [...new Set((taskIds as readonly string[] | undefined) ?? [])];
  }

  async run(): Promise<Result> {
    const { signal } = this.context;
    await Promise.all([this.#wishForLists(), this.#wishForAll(this.#uris)]);
    this.#wishForTasks();
    const runs = [...this.#wishes].map(([end, wishes]) => this.#open(end, wishes).run());
    const sought = this.#lost.map(({ uri, targets }) => this.#seek(uri, targets));
    const settled = [...this.#parts.map((part) => part.settled), ...sought.map(({ settled }) => settled)];
    await abortable(signal, within(ACKNOWLEDGE_MS, Promise.all(settled)));
    this.#throwIfAllFailed();
    this.#acknowledge();
    const over = ignoreRejection(Promise.all([...runs, ...sought.map(({ over }) => over)]));
    await abortable(signal, over).catch(() => undefined);
    return { resultType: "complete" };
  }

  tell(event: Notification): void {
    if (this.#early === undefined || !EVENTS.has(event.method)) {
      this.context.notify(event);
      return;
    }
    const about = JSON.stringify([event.method, event.params?.["uri"], event.params?.["taskId"]]);
    if (this.#early.size < MOST_EARLY) this.#early.set(about, event);
  }

  changed(family: Family): void {
    this.#view.changed(family);
  }

  isAcknowledged(): boolean {
    return this.#early === undefined;
  }

  /** Ends that can tell of such changes. A session's listen is also the way of what belongs to no call, for all ends. */
  async #wishForLists(): Promise<void> {
    const isHome = styleOf(this.context) === "session" && this.#uris.length === 0 && this.#taskIds.length === 0;
    const flags = FAMILIES.filter((family) => this.#filter[flagOf(family)] === true);
    if (!isHome && Object.keys(this.#filter).length === 0) return;
    // What is not known here may be for any of them.
    const isOther = Object.keys(this.#filter).some((key) => !FLAGS.has(key));
    const canTell = (capabilities: Json): boolean =>
      isOther ||
      flags.some((family) => {
        const lists = capabilities[family];
        return isObject(lists) && lists["listChanged"] === true;
      });
    await Promise.all(
      this.#view.members.map(async (member) => {
        // One that has not said what it can do may be able to; it is not waited for.
        const isOpen = isHome || member.capabilities === undefined;
        const isConcerned = isOpen || (await member.offers(this.context, canTell).catch(() => true));
        if (isConcerned) this.#wishesOf(member.end.index, this.#filter);
      }),
    );
  }

  async #wishForAll(uris: readonly string[]): Promise<void> {
    await Promise.all(
      uris.map(async (uri) => {
        try {
          const { isSure, targets } = await placesOf(uri, this.context, this.#view);
          const [first] = targets;
          if (isSure && first !== undefined) this.#wishesOf(first.end).uris.set(first.name, uri);
          else this.#lost.push({ uri, targets: withOthers(targets, uri, this.#view) });
        } catch (error) {
          this.#problems.push(error as Error);
        }
      }),
    );
  }

  #wishForTasks(): void {
    for (const id of this.#taskIds) {
      const target = this.#view.taskIds.target(id);
      if (target === undefined) this.#problems.push(unknownTask(id));
      else this.#wishesOf(target.end).taskIds.set(target.name, id);
    }
  }

  #wishesOf(end: number, filter?: Json): Wishes {
    const known = this.#wishes.get(end);
    const wishes = { uris: known?.uris ?? new Map(), taskIds: known?.taskIds ?? new Map() };
    const all: Wishes = { ...wishes, filter: { ...known?.filter, ...filter } };
    this.#wishes.set(end, all);
    return all;
  }

  #open(index: number, wanted: Wanted): ListenPart {
    const { end, shown } = this.#view.at({ end: index });
    const part = new ListenPart(end, shown, wanted, this);
    this.#parts.push(part);
    return part;
  }

  /** An address in no list: each end where it may be is asked in turn, until one grants it. */
  #seek(uri: string, targets: readonly Target[]): { readonly settled: Promise<void>; readonly over: Promise<void> } {
    let settle = (): void => undefined;
    const settled = new Promise<void>((resolve) => {
      settle = resolve;
    });
    const seek = async (): Promise<void> => {
      for (const { end, name } of targets) {
        const part = this.#open(end, { filter: {}, uris: new Map([[name, uri]]), taskIds: new Map() });
        const over = part.run();
        await part.settled;
        if (part.honoured["resourceSubscriptions"] !== undefined) {
          this.#view.addresses.remember(uri, { end, name });
          settle();
          return over;
        }
        part.stop();
      }
    };
    return { settled, over: seek().finally(settle) };
  }

  /** Where nothing at all could be opened, the caller hears why. */
  #throwIfAllFailed(): void {
    const failures = this.#parts.flatMap(({ granted, failure }) => (granted === undefined && failure ? [failure] : []));
    const isOpen = this.#parts.some(({ granted, failure }) => granted !== undefined || failure === undefined);
    const [first] = [...this.#problems, ...failures];
    if (isOpen || first === undefined) return;
    for (const part of this.#parts) part.stop();
    throw first;
  }

  #acknowledge(): void {
    const notifications = this.#parts.reduce<Json>((all, part) => joined(all, this.#promised(part)), {});
    this.context.notify({ method: ACKNOWLEDGED, params: { notifications } });
    const early = this.#early ?? new Map<string, Notification>();
    this.#early = undefined;
    for (const event of early.values()) this.context.notify(event);
  }

  /** What a part grants. One that is opened again tells of changed lists when it is: that is kept for sure. */
  #promised(part: ListenPart): Json {
    if (part.granted !== undefined || part.isOver) return part.honoured;
    const flags = [...FLAGS].filter((flag) => part.wanted.filter[flag] === true);
    return Object.fromEntries(flags.map((flag) => [flag, true]));
  }
}

function joined(one: Json, other: Json): Json {
  const both = Object.entries(other).map(([key, value]): [string, unknown] => {
    const before = one[key];
    if (Array.isArray(before) && Array.isArray(value)) return [key, [...new Set(before.concat(value) as unknown[])]];
    return [key, before === undefined || before === false ? value : before];
  });
  return { ...one, ...Object.fromEntries(both) };
}
