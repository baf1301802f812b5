// Change events of a session-style end, shared out to any number of listens. The end is subscribed to a
// resource while at least one listen wants it; each listen gets only what it asked for and what the end
// honours. What belongs to no call at all (a log message, a question right after the handshake) comes
// here too, because a listen is the only caller that is always there.

import { onAbort } from "../../core/async.ts";
import type { Caller, Context } from "../../core/handler.ts";
import type { Notification, Request, Result } from "../../core/handler.ts";
import type { Json } from "../../protocol/revision.ts";
import { knownRevision } from "../../protocol/revisions/index.ts";
import { NOBODY } from "../calls/call-attribution.ts";
import type { SessionRenewal } from "./handshake.ts";
import type { Wire } from "../calls/peer.ts";

interface Listener {
  readonly context: Context;
  readonly flags: ReadonlySet<string>;
  readonly uris: Set<string>;
  /** Events that came before the acknowledgement; undefined once it is out. */
  early: Notification[] | undefined;
}

/** What a listen carries besides changes of lists and resources. */
export interface Besides {
  readonly granted: Json;
  /** Begins to tell; calls `end` when nothing more can come. Returns how to stop it. */
  begin(end: () => void): () => void;
}

/** The one subscription to a resource: how many listens want it, and whether the end grants it. */
interface Shared {
  count: number;
  readonly made: Promise<boolean>;
}

const FLAG_OF: Readonly<Record<string, string>> = {
  "notifications/tools/list_changed": "toolsListChanged",
  "notifications/prompts/list_changed": "promptsListChanged",
  "notifications/resources/list_changed": "resourcesListChanged",
};

export class SessionChanges {
  readonly #wire: Wire;
  readonly #within: SessionRenewal["within"];
  readonly #capabilities: () => Json;
  readonly #home: Context;
  readonly #listeners = new Set<Listener>();
  readonly #subscribed = new Map<string, Shared>();

  /** `within` does the work in a session, whether or not the end still knows the one that there was. */
  constructor(wire: Wire, within: SessionRenewal["within"], capabilities: () => Json, home: Context) {
    this.#wire = wire;
    this.#within = within;
    this.#capabilities = capabilities;
    this.#home = home;
  }

  /** The context of a listen whose caller can be asked there, for questions that belong to no call. */
  listener(): Context | undefined {
    return [...this.#listeners].findLast(({ context: { revision, caller } }) => {
      return caller.origin !== NOBODY && knownRevision(revision).style === "session";
    })?.context;
  }

  /** Whether all who listen are one caller. */
  get isOfOne(): boolean {
    const origins = [...this.#listeners].map(({ context }) => context.caller.origin);
    return new Set(origins.filter((origin) => origin !== NOBODY)).size < 2;
  }

  /** The context of a listen of this caller's, one that is there for more than updates, for what belongs to no call. */
  listenerOf({ origin }: Caller): Context | undefined {
    const own = [...this.#listeners].filter(({ context }) => context.caller.origin === origin);
    return (own.findLast(({ uris }) => uris.size === 0) ?? own.at(-1))?.context;
  }

  /** Lives until the caller ends it; throws when the wire ends first. */
  async listen(request: Request, context: Context, besides?: Besides): Promise<Result> {
    const wanted = request.params["notifications"] as Json;
    const flags = Object.values(FLAG_OF).filter((flag) => wanted[flag] === true && this.#canChange(flag));
    const uris = (wanted["resourceSubscriptions"] as readonly string[] | undefined) ?? [];
    const listener: Listener = { context, flags: new Set(flags), uris: new Set(), early: [] };
    // One that wants nothing of ours is not there for what belongs to no call.
    const isElsewhere = besides !== undefined && flags.length === 0 && uris.length === 0;
    if (!isElsewhere) this.#listeners.add(listener);
    const over = new AbortController();
    const forget = onAbort(context.signal, () => over.abort());
    if (context.signal.aborted) over.abort();
    let stop = (): void => undefined;
    try {
      await this.#subscribe(listener, uris);
      const honoured = {
        ...Object.fromEntries(flags.map((flag) => [flag, true])),
        ...(listener.uris.size > 0 ? { resourceSubscriptions: [...listener.uris] } : undefined),
        ...besides?.granted,
      };
      context.notify({ method: "notifications/subscriptions/acknowledged", params: { notifications: honoured } });
      const early = listener.early ?? [];
      listener.early = undefined;
      for (const event of early) context.notify(event);
      stop = besides?.begin(() => (isElsewhere ? over.abort() : undefined)) ?? stop;
      await this.#wire.untilEnd(over.signal);
      return { resultType: "complete" };
    } finally {
      stop();
      forget();
      this.#listeners.delete(listener);
      for (const uri of listener.uris) this.#release(uri);
    }
  }

  /** In a new session the end knows of no subscription. */
  async renew(): Promise<void> {
    const uris = [...this.#subscribed.keys()];
    await Promise.all(
      uris.map((uri) => this.#wire.call("resources/subscribe", () => ({ uri }), this.#home).catch(() => undefined)),
    );
    this.tellAll();
  }

  /** Changes may have been missed: whoever listens is told that all of it may have changed. */
  tellAll(): void {
    for (const [method, flag] of Object.entries(FLAG_OF)) if (this.#canChange(flag)) this.deliver({ method });
    for (const uri of this.#subscribed.keys())
      this.deliver({ method: "notifications/resources/updated", params: { uri } });
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
    const family = this.#capabilities()[flag.replace("ListChanged", "")] as Json | undefined;
    return family?.["listChanged"] === true;
  }

  /** What the end refuses is simply not honoured. */
  async #subscribe(listener: Listener, uris: readonly string[]): Promise<void> {
    if ((this.#capabilities()["resources"] as Json | undefined)?.["subscribe"] !== true) return;
    const wanted = [...new Set(uris)];
    // Wanted at once: an update may come in one breath with the answer.
    for (const uri of wanted) listener.uris.add(uri);
    const granted = await Promise.all(wanted.map((uri) => this.#share(uri)));
    for (const [index, uri] of wanted.entries()) if (granted[index] !== true) listener.uris.delete(uri);
  }

  /** A share in the one subscription to this resource; whoever comes while it is being made waits for the same answer. */
  async #share(uri: string): Promise<boolean> {
    let shared = this.#subscribed.get(uri);
    if (shared === undefined) {
      const made = this.#within(() => this.#wire.call("resources/subscribe", () => ({ uri }), this.#home));
      shared = {
        count: 0,
        made: made.then(
          () => true,
          () => false,
        ),
      };
      this.#subscribed.set(uri, shared);
    }
    shared.count += 1;
    if (await shared.made) return true;
    this.#forget(uri, shared);
    return false;
  }

  #forget(uri: string, shared: Shared): boolean {
    shared.count -= 1;
    if (shared.count > 0 || this.#subscribed.get(uri) !== shared) return false;
    return this.#subscribed.delete(uri);
  }

  #release(uri: string): void {
    const shared = this.#subscribed.get(uri);
    if (shared === undefined || !this.#forget(uri, shared)) return;
    this.#wire.call("resources/unsubscribe", () => ({ uri }), this.#home).catch(() => undefined);
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
