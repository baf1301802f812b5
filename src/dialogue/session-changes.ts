// Change events of a session-style end, shared out to any number of listens. The end is subscribed to a
// resource while at least one listen wants it; each listen gets only what it asked for and what the end
// honours. What belongs to no call at all (a log message, a question right after the handshake) comes
// here too, because a listen is the only caller that is always there.

import type { Context } from "../core/context.ts";
import type { Notification, Request, Result } from "../core/handler.ts";
import type { Json } from "../protocol/revision.ts";
import type { Wire } from "./wire.ts";

interface Listener {
  readonly context: Context;
  readonly flags: ReadonlySet<string>;
  readonly uris: Set<string>;
  /** Events that came before the acknowledgement; undefined once it is out. */
  early: Notification[] | undefined;
}

const FLAG_OF: Readonly<Record<string, string>> = {
  "notifications/tools/list_changed": "toolsListChanged",
  "notifications/prompts/list_changed": "promptsListChanged",
  "notifications/resources/list_changed": "resourcesListChanged",
};

export class SessionChanges {
  readonly #wire: Wire;
  readonly #capabilities: Json;
  readonly #home: Context;
  readonly #listeners = new Set<Listener>();
  /** How many listens want each resource. */
  readonly #subscribed = new Map<string, number>();

  constructor(wire: Wire, capabilities: Json, home: Context) {
    this.#wire = wire;
    this.#capabilities = capabilities;
    this.#home = home;
  }

  /** The context of a listen, for questions that belong to no call. */
  listener(): Context | undefined {
    return [...this.#listeners].at(-1)?.context;
  }

  /** Lives until the caller ends it; throws when the wire ends first. */
  async listen(request: Request, context: Context): Promise<Result> {
    const wanted = request.params["notifications"] as Json;
    const flags = Object.values(FLAG_OF).filter((flag) => wanted[flag] === true && this.#canChange(flag));
    const listener: Listener = { context, flags: new Set(flags), uris: new Set(), early: [] };
    this.#listeners.add(listener);
    try {
      await this.#subscribe(listener, (wanted["resourceSubscriptions"] as readonly string[] | undefined) ?? []);
      const honoured = {
        ...Object.fromEntries(flags.map((flag) => [flag, true])),
        ...(listener.uris.size > 0 ? { resourceSubscriptions: [...listener.uris] } : undefined),
      };
      context.notify({ method: "notifications/subscriptions/acknowledged", params: { notifications: honoured } });
      const early = listener.early ?? [];
      listener.early = undefined;
      for (const event of early) context.notify(event);
      await this.#wire.untilEnd(context.signal);
      return { resultType: "complete" };
    } finally {
      this.#listeners.delete(listener);
      for (const uri of listener.uris) this.#release(uri);
    }
  }

  deliver(event: Notification): void {
    if (event.method === "notifications/message") {
      for (const listener of this.#listeners) this.#hand(listener, event);
      if (this.#listeners.size === 0) this.#home.notify(event);
      return;
    }
    const flag = FLAG_OF[event.method];
    const uri = event.method === "notifications/resources/updated" ? event.params?.["uri"] : undefined;
    for (const listener of this.#listeners) {
      if (flag !== undefined ? listener.flags.has(flag) : typeof uri === "string" && covers(listener.uris, uri)) {
        this.#hand(listener, event);
      }
    }
  }

  #hand(listener: Listener, event: Notification): void {
    if (listener.early === undefined) listener.context.notify(event);
    else listener.early.push(event);
  }

  #canChange(flag: string): boolean {
    const family = this.#capabilities[flag.replace("ListChanged", "")] as Json | undefined;
    return family?.["listChanged"] === true;
  }

  /** What the end refuses is simply not honoured. */
  async #subscribe(listener: Listener, uris: readonly string[]): Promise<void> {
    if ((this.#capabilities["resources"] as Json | undefined)?.["subscribe"] !== true) return;
    const outcomes = await Promise.allSettled(
      uris.map(async (uri) => {
        const count = this.#subscribed.get(uri) ?? 0;
        this.#subscribed.set(uri, count + 1);
        listener.uris.add(uri);
        if (count === 0) await this.#wire.call("resources/subscribe", () => ({ uri }), this.#home);
      }),
    );
    for (const [index, outcome] of outcomes.entries()) {
      const uri = uris[index];
      if (outcome.status === "fulfilled" || uri === undefined) continue;
      listener.uris.delete(uri);
      this.#forget(uri);
    }
  }

  #forget(uri: string): boolean {
    const count = (this.#subscribed.get(uri) ?? 1) - 1;
    if (count > 0) this.#subscribed.set(uri, count);
    else this.#subscribed.delete(uri);
    return count <= 0;
  }

  #release(uri: string): void {
    if (this.#forget(uri)) this.#wire.call("resources/unsubscribe", () => ({ uri }), this.#home).catch(() => undefined);
  }
}

/** An update may name a part of what was subscribed to. */
function covers(uris: ReadonlySet<string>, uri: string): boolean {
  if (uris.has(uri)) return true;
  for (const whole of uris) {
    if (uri.startsWith(whole) && (whole.endsWith("/") || "/?#".includes(uri.charAt(whole.length)))) return true;
  }
  return false;
}
