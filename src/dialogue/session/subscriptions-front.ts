// The listens that a session keeps with its handler: one for changed lists, which is also the way of whatever
// an end wants outside any call, and one for each resource that the caller has subscribed to. What the wire proves of
// a caller it proves of one message, so each subscribe is a listen of its own, which takes the place of the one before
// when it is granted. A listen that breaks, or that the end takes back in good order, is opened again: a session has no
// word for it that a listen is over, and an end that goes may come again. Since nobody knows what was missed, the caller
// is told that it may have changed.

import { onAbort, attempt, unref } from "../../core/async.ts";
import type { Caller, Context } from "../../core/handler.ts";
import type { Handler, Notification } from "../../core/handler.ts";
import { invalidParams, McpError, methodNotFound } from "../../protocol/errors.ts";
import { isNothing } from "../../protocol/listen-filter.ts";
import type { Json } from "../../protocol/revision.ts";
import { kindOf } from "../calls/errors.ts";

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;
/** A listen that lasted for so long has not failed in a row with the one before it. */
const LASTING_MS = 60_000;
const MOST_SUBSCRIPTIONS = 10_000;

const UPDATED = "notifications/resources/updated";

type Filter = Readonly<Record<string, unknown>>;

/** What the session lends to the listens' contexts. */
export interface ListenHost {
  readonly context: Omit<Context, "signal" | "notify">;
  deliver(notification: Notification): void;
}

export class SessionListen {
  readonly #handler: Handler;
  /** By address: the one that is granted, and those that are not yet. */
  readonly #subscriptions = new Map<string, Set<Listening>>();
  #lists: Listening | undefined;
  #host: ListenHost | undefined;
  #canSubscribe = false;

  constructor(handler: Handler) {
    this.#handler = handler;
  }

  /** Begins to listen to all lists that the end says can change. */
  start(host: ListenHost, capabilities: Json): void {
    this.#host = host;
    this.#canSubscribe = (capabilities["resources"] as Json | undefined)?.["subscribe"] === true;
    const changes = LISTS.filter(({ family }) => (capabilities[family] as Json | undefined)?.["listChanged"] === true);
    const filter = Object.fromEntries(changes.map(({ flag }) => [flag, true]));
    this.#lists = new Listening(
      this.#handler,
      host,
      filter,
      changes.map(({ method }) => ({ method })),
    );
    this.#lists.open().catch(() => undefined);
  }

  async subscribe(uri: string, caller: Caller): Promise<void> {
    const host = this.#host;
    if (!this.#canSubscribe || host === undefined) throw methodNotFound("resources/subscribe");
    const all = this.#openAt(uri);
    const missed = { method: UPDATED, params: { uri } };
    const own: ListenHost = { ...host, context: { ...host.context, caller } };
    const listening = new Listening(this.#handler, own, { resourceSubscriptions: [uri] }, [missed]);
    all.add(listening);
    try {
      const uris = (await listening.open())["resourceSubscriptions"];
      const isGranted = Array.isArray(uris) && uris.includes(uri);
      if (!isGranted) throw invalidParams(`Updates of ${uri} cannot be subscribed to`, { uri });
    } catch (error) {
      this.#drop(uri, all, listening);
      throw error;
    }
    // It may have been taken back meanwhile.
    if (!all.has(listening)) return;
    for (const other of [...all]) if (other !== listening && other.isOpen) this.#drop(uri, all, other);
  }

  async unsubscribe(uri: string): Promise<void> {
    if (!this.#canSubscribe) throw methodNotFound("resources/unsubscribe");
    this.#dropAll(uri);
  }

  close(): void {
    this.#lists?.close();
    for (const uri of [...this.#subscriptions.keys()]) this.#dropAll(uri);
  }

  #openAt(uri: string): Set<Listening> {
    const found = this.#subscriptions.get(uri);
    if (found !== undefined) return found;
    if (this.#subscriptions.size >= MOST_SUBSCRIPTIONS) {
      throw McpError.of("rate_limited", `A session has at most ${MOST_SUBSCRIPTIONS} subscriptions`, { uri });
    }
    const added = new Set<Listening>();
    this.#subscriptions.set(uri, added);
    return added;
  }

  #dropAll(uri: string): void {
    const all = this.#subscriptions.get(uri) ?? new Set();
    for (const listening of [...all]) this.#drop(uri, all, listening);
  }

  #drop(uri: string, all: Set<Listening>, listening: Listening): void {
    listening.close();
    all.delete(listening);
    // After all were dropped, others may have begun anew.
    if (all.size === 0 && this.#subscriptions.get(uri) === all) this.#subscriptions.delete(uri);
  }
}

const LISTS = ["tools", "prompts", "resources"].map((family) => ({
  family,
  flag: `${family}ListChanged`,
  method: `notifications/${family}/list_changed`,
}));

/** One listen, kept open until it is closed. */
class Listening {
  readonly #handler: Handler;
  readonly #host: ListenHost;
  readonly #notifications: Filter;
  /** What may have happened while it was broken. */
  readonly #missed: readonly Notification[];
  readonly #stop = new AbortController();
  #isOpen = false;
  #waitMs = FIRST_WAIT_MS;
  #retry: NodeJS.Timeout | undefined;

  constructor(handler: Handler, host: ListenHost, notifications: Filter, missed: readonly Notification[]) {
    this.#handler = handler;
    this.#host = host;
    this.#notifications = notifications;
    this.#missed = missed;
  }

  /** Whether it was ever acknowledged. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Resolves to what the end honours of the filter. */
  open(): Promise<Filter> {
    const { signal } = this.#stop;
    let since = Infinity;
    let granted: Filter = {};
    let forget = (): void => undefined;
    const over = (): void => {
      // The signal outlives this try.
      forget();
      if (performance.now() - since > LASTING_MS) this.#waitMs = FIRST_WAIT_MS;
      if (!signal.aborted) this.#reopen();
    };
    return new Promise<Filter>((resolve, reject) => {
      const context: Context = {
        ...this.#host.context,
        signal,
        notify: (notification) => {
          if (signal.aborted) return;
          if (notification.method === "notifications/subscriptions/acknowledged") {
            this.#isOpen = true;
            since = performance.now();
            granted = (notification.params?.["notifications"] as Filter | undefined) ?? {};
            resolve(granted);
          } else if (this.#isFor(notification)) this.#host.deliver(notification);
        },
      };
      forget = onAbort(signal, () => reject(signal.reason));
      const request = { method: "subscriptions/listen", params: { notifications: this.#notifications } };
      attempt(() => this.#handler(request, context)).then(
        () => {
          resolve(granted);
          // One on which nothing could ever come is over at once, and would be again.
          if (isNothing(granted)) forget();
          else over();
        },
        (error: unknown) => {
          reject(error);
          // An end that knows no listens will not know them later either.
          if (kindOf(error) !== "method_not_found") over();
        },
      );
    });
  }

  close(): void {
    clearTimeout(this.#retry);
    this.#stop.abort(new Error("The subscription is over"));
  }

  /** Each listen carries its own kind: updates, or all that is no update. */
  #isFor({ method }: Notification): boolean {
    if (method === "notifications/progress") return false;
    return (method === UPDATED) === "resourceSubscriptions" in this.#notifications;
  }

  #reopen(): void {
    const wait = this.#waitMs * (0.8 + Math.random() * 0.4);
    this.#waitMs = Math.min(this.#waitMs * 1.6, LONGEST_WAIT_MS);
    this.#retry = unref(
      setTimeout(() => {
        this.open().then(
          () => {
            for (const event of this.#missed) this.#host.deliver(event);
          },
          () => undefined,
        );
      }, wait),
    );
  }
}
