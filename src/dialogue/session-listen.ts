// The one long `subscriptions/listen` that a session keeps with its handler: change events of a
// session-style caller come through it, and so does whatever an end wants outside any call. A caller's
// subscribe and unsubscribe change the filter: the new listen is opened, and once it is acknowledged it
// takes over from the old one, so that no change is lost or told twice. A listen that breaks is opened again.

import type { Context } from "../core/context.ts";
import type { Handler, Notification } from "../core/handler.ts";
import { invalidParams, methodNotFound } from "../protocol/errors.ts";
import type { Json } from "../protocol/revision.ts";

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

type Filter = Readonly<Record<string, unknown>>;

/** What the session lends to the listen's context. */
export interface ListenHost {
  readonly context: Omit<Context, "signal" | "notify">;
  deliver(notification: Notification): void;
}

export class SessionListen {
  readonly #handler: Handler;
  readonly #uris = new Set<string>();
  #host: ListenHost | undefined;
  #flags: Filter = {};
  #canSubscribe = false;
  #stop: AbortController | undefined;
  #generation = 0;
  #live = 0;
  #waitMs = FIRST_WAIT_MS;
  #retry: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(handler: Handler) {
    this.#handler = handler;
  }

  /** Begins to listen to all that the end says can change. */
  start(host: ListenHost, capabilities: Json): void {
    if (this.#host !== undefined || this.#closed) return;
    this.#host = host;
    this.#flags = flagsOf(capabilities);
    this.#canSubscribe = (capabilities["resources"] as Json | undefined)?.["subscribe"] === true;
    this.#open().catch(() => undefined);
  }

  async subscribe(uri: string): Promise<void> {
    if (!this.#canSubscribe) throw methodNotFound("resources/subscribe");
    if (this.#uris.has(uri)) return;
    this.#uris.add(uri);
    const honoured = (await this.#open())["resourceSubscriptions"];
    if (Array.isArray(honoured) && honoured.includes(uri)) return;
    this.#uris.delete(uri);
    throw invalidParams(`Updates of ${uri} cannot be subscribed to`, { uri });
  }

  async unsubscribe(uri: string): Promise<void> {
    if (!this.#canSubscribe) throw methodNotFound("resources/unsubscribe");
    if (this.#uris.delete(uri)) await this.#open();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#retry);
    this.#stop?.abort(new Error("The session is over"));
  }

  /** Opens a listen with the filter as it is now; resolves to what the end honours of it. */
  #open(): Promise<Filter> {
    const host = this.#host;
    if (host === undefined || this.#closed) return Promise.resolve({});
    const notifications =
      this.#uris.size > 0 ? { ...this.#flags, resourceSubscriptions: [...this.#uris] } : this.#flags;
    const generation = (this.#generation += 1);
    const stop = new AbortController();
    return new Promise<Filter>((resolve, reject) => {
      const acknowledge = (honoured: Filter): void => {
        resolve(honoured);
        if (generation < this.#live) return;
        this.#live = generation;
        if (this.#stop !== stop) this.#stop?.abort(new Error("Another listen has taken over"));
        this.#stop = stop;
      };
      const context: Context = {
        ...host.context,
        signal: stop.signal,
        notify: (notification) => {
          if (notification.method === "notifications/subscriptions/acknowledged") {
            this.#waitMs = FIRST_WAIT_MS;
            acknowledge((notification.params?.["notifications"] as Filter | undefined) ?? {});
          } else if (generation >= this.#live) host.deliver(notification);
        },
      };
      this.#handler({ method: "subscriptions/listen", params: { notifications } }, context).then(
        () => acknowledge({}),
        (error: unknown) => {
          reject(error);
          if (generation === this.#live && !stop.signal.aborted) this.#reopen();
        },
      );
    });
  }

  /** After a broken listen nobody knows what was missed: the caller is told that all may have changed. */
  #reopen(): void {
    if (this.#closed) return;
    const wait = this.#waitMs * (0.8 + Math.random() * 0.4);
    this.#waitMs = Math.min(this.#waitMs * 1.6, LONGEST_WAIT_MS);
    this.#retry = setTimeout(() => {
      this.#open().then(
        () => {
          for (const [flag, method] of LIST_CHANGES) if (this.#flags[flag] === true) this.#host?.deliver({ method });
          for (const uri of this.#uris)
            this.#host?.deliver({ method: "notifications/resources/updated", params: { uri } });
        },
        () => undefined,
      );
    }, wait).unref();
  }
}

const LIST_CHANGES: readonly (readonly [string, string])[] = [
  ["toolsListChanged", "notifications/tools/list_changed"],
  ["promptsListChanged", "notifications/prompts/list_changed"],
  ["resourcesListChanged", "notifications/resources/list_changed"],
];

function flagsOf(capabilities: Json): Filter {
  const flags: Record<string, boolean> = {};
  for (const family of ["tools", "prompts", "resources"]) {
    if ((capabilities[family] as Json | undefined)?.["listChanged"] === true) flags[`${family}ListChanged`] = true;
  }
  return flags;
}
