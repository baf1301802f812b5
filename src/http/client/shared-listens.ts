// Combines the resource subscriptions of a caller, since over HTTP each `subscriptions/listen` is a connection. A
// subscription begins with a listen of its own, so that the server judges it alone. When a caller has several, one new
// listen with all their URIs replaces them, once it is granted. The old ones are read a little longer, since what they
// carry may arrive later than the new grant.

import { attempt, onAbort, unref } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context, Handler, Notification, Request, Result } from "../../core/handler.ts";
import { errorMessage, isObject } from "../../core/values.ts";
import { RESOURCE_UPDATED, SUBSCRIPTION_ACKNOWLEDGED } from "../../protocol/lists.ts";

/** How many listens a caller has before they are combined. */
const MAX_SEPARATE = 8;
/** How many URIs are combined in one listen. More would exceed the length that some servers accept. */
const MAX_URIS = 500;
/** How long, and how many, replaced listens are still read. */
const LINGER_MS = 1_000;
const MAX_LINGERING = 32;

/** Combines listens that are only for resources. `handler` opens a listen at the server. */
export function sharingListens(handler: Handler): Handler {
  const callers = new Map<string, CallerListens>();
  return (request, context) => {
    const uris = resourcesOf(request);
    if (uris === undefined) return handler(request, context);
    const { key } = context.caller;
    const caller = callers.get(key) ?? new CallerListens(handler, () => callers.delete(key));
    callers.set(key, caller);
    return caller.subscribe(request, uris, context);
  };
}

/** The URIs of a listen that is for resources and nothing else. */
function resourcesOf({ method, params }: Request): readonly string[] | undefined {
  const filter = method === "subscriptions/listen" ? params["notifications"] : undefined;
  if (!isObject(filter) || Object.keys(filter).length !== 1) return undefined;
  const uris = filter["resourceSubscriptions"];
  return Array.isArray(uris) && uris.length < MAX_URIS ? (uris as readonly string[]) : undefined;
}

/** A subscription of the caller. */
interface Member {
  readonly uris: readonly string[];
  readonly context: Context;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

/** A `subscriptions/listen` at the server. */
interface Listen {
  readonly uris: ReadonlySet<string>;
  readonly members: Set<Member>;
  readonly stop: AbortController;
  /** Whether the server has granted all of it. */
  isGranted: boolean;
  /** The listen that has taken over its members. */
  successor?: Listen;
}

class CallerListens {
  readonly #handler: Handler;
  readonly #onEmpty: () => void;
  readonly #listens = new Set<Listen>();
  readonly #lingering = new Set<Listen>();
  /** A listen with the members of others that is not granted yet. */
  #combining: Listen | undefined;
  /** False once the server has refused a combined listen. */
  #canCombine = true;

  constructor(handler: Handler, onEmpty: () => void) {
    this.#handler = handler;
    this.#onEmpty = onEmpty;
  }

  subscribe(request: Request, uris: readonly string[], context: Context): Promise<Result> {
    let forget = (): void => undefined;
    return new Promise<Result>((resolve, reject) => {
      const member: Member = { uris, context, resolve, reject };
      const listen = this.#open(request, new Set(uris), context, (notification) => {
        context.notify(notification);
        this.#combine();
      });
      listen.members.add(member);
      forget = onAbort(context.signal, () => this.#leave(member));
    }).finally(() => forget());
  }

  #leave(member: Member): void {
    const { signal } = member.context;
    const message = `Cancelled: ${errorMessage(signal.reason)}`;
    member.reject(new ConnectionError("cancelled", message, { cause: signal.reason }));
    for (const listen of this.#listens) {
      if (listen.members.delete(member) && listen.members.size === 0) this.#close(listen, signal.reason);
    }
  }

  #open(
    request: Request,
    uris: ReadonlySet<string>,
    context: Context,
    onAcknowledged: (notification: Notification) => void,
  ): Listen {
    const listen: Listen = { uris, members: new Set(), stop: new AbortController(), isGranted: false };
    const notify = (notification: Notification): void => {
      if (notification.method !== SUBSCRIPTION_ACKNOWLEDGED) this.#deliver(listen, notification);
      else {
        listen.isGranted = grantsAll(notification.params?.["notifications"], uris);
        onAcknowledged(notification);
      }
    };
    this.#listens.add(listen);
    attempt(() => this.#handler(request, { ...context, signal: listen.stop.signal, notify })).then(
      (result) => this.#end(listen, (member) => member.resolve(result)),
      (error: unknown) => this.#end(listen, (member) => member.reject(error)),
    );
    return listen;
  }

  #end(listen: Listen, settle: (member: Member) => void): void {
    const { members } = listen;
    if (this.#combining === listen) {
      this.#combining = undefined;
      this.#canCombine = false;
    }
    this.#close(listen, undefined);
    for (const member of members) settle(member);
  }

  #close(listen: Listen, reason: unknown): void {
    listen.stop.abort(reason);
    this.#lingering.delete(listen);
    if (this.#listens.delete(listen) && this.#listens.size === 0) this.#onEmpty();
  }

  #deliver(listen: Listen, notification: Notification): void {
    const { method, params } = notification;
    let current = listen;
    while (current.successor !== undefined) current = current.successor;
    const all = [...current.members];
    if (method !== RESOURCE_UPDATED) {
      all[0]?.context.notify(notification);
      return;
    }
    const uri = String(params?.["uri"]);
    // A server may report a part of a resource.
    const isFor = listen.uris.has(uri) ? (one: string) => one === uri : (one: string) => uri.startsWith(one);
    const isOfNone = ![...listen.uris].some(isFor);
    for (const { uris, context } of all) if (isOfNone || uris.some(isFor)) context.notify(notification);
  }

  #combine(): void {
    if (this.#combining !== undefined || !this.#canCombine) return;
    const replaced: Listen[] = [];
    const uris = new Set<string>();
    // The newest first: they have the fewest URIs.
    for (const listen of [...this.#listens].toReversed()) {
      const { members, isGranted, successor } = listen;
      if (!isGranted || successor !== undefined || uris.size + members.size > MAX_URIS) continue;
      replaced.push(listen);
      for (const member of members) for (const uri of member.uris) uris.add(uri);
    }
    const [first] = replaced[0]?.members ?? [];
    if (replaced.length <= MAX_SEPARATE || first === undefined) return;
    const params = { notifications: { resourceSubscriptions: [...uris] } };
    const combined = this.#open({ method: "subscriptions/listen", params }, uris, first.context, () => {
      this.#combining = undefined;
      this.#canCombine = combined.isGranted;
      if (combined.isGranted) this.#replace(replaced, combined);
      if (combined.members.size === 0) this.#close(combined, undefined);
      this.#combine();
    });
    this.#combining = combined;
  }

  #replace(replaced: readonly Listen[], combined: Listen): void {
    for (const listen of replaced) {
      if (!this.#listens.has(listen)) continue;
      for (const member of listen.members) combined.members.add(member);
      listen.members.clear();
      listen.successor = combined;
      this.#lingering.add(listen);
      unref(setTimeout(() => this.#close(listen, undefined), LINGER_MS));
    }
    for (const oldest of this.#lingering) if (this.#lingering.size > MAX_LINGERING) this.#close(oldest, undefined);
  }
}

function grantsAll(granted: unknown, uris: ReadonlySet<string>): boolean {
  const found = isObject(granted) ? granted["resourceSubscriptions"] : undefined;
  if (!Array.isArray(found)) return false;
  const all = new Set<unknown>(found);
  return [...uris].every((uri) => all.has(uri));
}
