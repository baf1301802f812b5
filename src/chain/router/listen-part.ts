// The part of one end in a merged listen: what is wanted of it, kept open until the caller goes. When it breaks, or the
// end lets go of it, it is opened again, ever more slowly; since nobody knows what was missed, the caller is then told
// that all of it may have changed. What an end refuses is not asked for again.

import { onAbort, attempt } from "../../core/async.ts";
import type { Context } from "../../core/handler.ts";
import type { Notification, Params, Request } from "../../core/handler.ts";
import { backoffMs, pause } from "../../dialogue/calls/backoff.ts";
import { isObject } from "../../core/objects.ts";
import type { Json } from "../../protocol/revision.ts";
import { isRefusal, named } from "./failures.ts";
import { changeOf, FAMILIES, type Family, flagOf } from "./kinds.ts";
import type { RoutedUpstream } from "./member.ts";
import type { Shown } from "./shown.ts";

export const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";
export const UPDATED = "notifications/resources/updated";
export const TASKS_TOLD = "notifications/tasks";

/** After so long without a break, the next one is the first again. */
const STEADY_MS = 60_000;

/** What is wanted of one end. Addresses and ids are the end's own, each with what the caller calls it. */
export interface Wanted {
  /** Flags, and what else the caller's filter says that is not known here. */
  readonly filter: Json;
  readonly uris: ReadonlyMap<string, string>;
  readonly taskIds: ReadonlyMap<string, string>;
}

/** Whoever puts the parts together. */
export interface PartHost {
  readonly context: Context;
  readonly params: Params;
  /** An event, as the caller sees it. */
  tell(event: Notification): void;
  /** The lists of a family at this end are others now. */
  changed(family: Family): void;
  /** Whether the caller has had its acknowledgement. */
  isAcknowledged(): boolean;
}

export class ListenPart {
  readonly wanted: Wanted;
  /** Resolves when the end has granted something, or will not for now. */
  readonly settled: Promise<void>;
  /** What the end grants, in its own words, from the last time that it did; undefined where it never has. */
  granted: Json | undefined;
  /** Why it is not open. */
  failure: Error | undefined;
  /** Nothing more will come of it. */
  isOver = false;
  readonly #end: RoutedUpstream;
  readonly #shown: Shown;
  readonly #host: PartHost;
  readonly #stop = new AbortController();
  #settle: () => void = () => undefined;

  constructor(end: RoutedUpstream, shown: Shown, wanted: Wanted, host: PartHost) {
    this.#end = end;
    this.#shown = shown;
    this.wanted = wanted;
    this.#host = host;
    this.settled = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /** Never fails; resolves when it is over. */
  async run(): Promise<void> {
    const { signal } = this.#stop;
    const outer = this.#host.context.signal;
    const forget = onAbort(outer, () => this.stop());
    if (outer.aborted) this.stop();
    try {
      for (let failures = 0; !signal.aborted; failures += 1) {
        const since = performance.now();
        if (await this.#open()) return;
        // One that breaks again and again would have the caller read all lists anew each time.
        if (performance.now() - since > STEADY_MS) failures = 0;
        await pause(backoffMs(failures), signal);
      }
    } catch {
      // Only the pause throws, when nobody listens any more.
    } finally {
      forget();
      this.isOver = true;
      this.#settle();
    }
  }

  stop(): void {
    this.#stop.abort(new Error("The listen is over"));
    this.#settle();
  }

  /** What of the caller's filter is granted, in the caller's words. */
  get honoured(): Json {
    const { resourceSubscriptions, taskIds, ...flags } = this.granted ?? {};
    const uris = translated(resourceSubscriptions, this.wanted.uris);
    const tasks = translated(taskIds, this.wanted.taskIds);
    return {
      ...flags,
      ...(uris.length === 0 ? undefined : { resourceSubscriptions: uris }),
      ...(tasks.length === 0 ? undefined : { taskIds: tasks }),
    };
  }

  /** One try; resolves to whether it was the last. */
  async #open(): Promise<boolean> {
    const { signal } = this.#stop;
    let isGranted = false;
    const notify = (notification: Notification): void => {
      if (signal.aborted) return;
      isGranted ||= notification.method === ACKNOWLEDGED;
      this.#hear(notification);
    };
    const context: Context = { ...this.#host.context, signal, notify };
    try {
      await attempt(() => this.#end.handler(this.#request(), context));
      this.failure = undefined;
      // An end that ends it has nothing for us, or no more of it: unless it told of changes until now.
      return !isGranted || !this.#isLasting();
    } catch (error) {
      if (signal.aborted) return true;
      this.failure = named(this.#end.name, error);
      return isRefusal(error);
    } finally {
      this.#settle();
    }
  }

  /** Whether what is granted can go on for ever: tasks come to their end. */
  #isLasting(): boolean {
    const { taskIds: _tasks, ...lasting } = this.honoured;
    return Object.values(lasting).some((value) => value !== false);
  }

  #request(): Request {
    const { filter, uris, taskIds } = this.wanted;
    const notifications = {
      ...filter,
      ...(uris.size === 0 ? undefined : { resourceSubscriptions: [...uris.keys()] }),
      ...(taskIds.size === 0 ? undefined : { taskIds: [...taskIds.keys()] }),
    };
    return { method: "subscriptions/listen", params: { ...this.#host.params, notifications } };
  }

  #hear(notification: Notification): void {
    const { method, params } = notification;
    if (method === ACKNOWLEDGED) {
      const granted = params?.["notifications"];
      this.granted = isObject(granted) ? granted : {};
      this.failure = undefined;
      this.#settle();
      if (this.#host.isAcknowledged()) this.#tellAll();
      return;
    }
    const family = FAMILIES.find((one) => changeOf(one) === method);
    if (family !== undefined) this.#host.changed(family);
    if (method === UPDATED) this.#host.tell({ method, params: { ...params, uri: this.#uri(params?.["uri"]) } });
    else if (method === TASKS_TOLD) this.#host.tell({ method, params: this.#shown.task(params ?? {}) });
    else this.#host.tell(notification);
  }

  /** By what the caller calls it; an update may name a part of what was subscribed to. */
  #uri(uri: unknown): unknown {
    if (typeof uri !== "string") return uri;
    const exact = this.wanted.uris.get(uri);
    if (exact !== undefined) return exact;
    for (const [whole, shown] of this.wanted.uris) if (uri.startsWith(whole)) return shown + uri.slice(whole.length);
    return uri;
  }

  /** It was away, or late: nobody knows what was missed. Tasks say by themselves how they stand. */
  #tellAll(): void {
    const { granted } = this;
    for (const family of FAMILIES) {
      if (granted?.[flagOf(family)] !== true) continue;
      this.#host.changed(family);
      this.#host.tell({ method: changeOf(family) });
    }
    for (const uri of translated(granted?.["resourceSubscriptions"], this.wanted.uris)) {
      this.#host.tell({ method: UPDATED, params: { uri } });
    }
  }
}

function translated(granted: unknown, words: ReadonlyMap<string, string>): string[] {
  return Array.isArray(granted) ? granted.flatMap((one) => words.get(one as string) ?? []) : [];
}
