// Combines the resource subscriptions of a caller, since over HTTP each `subscriptions/listen` is a connection. A
// subscription begins with a listen of its own, so that the server judges it alone. When a caller has several, one new
// listen with all their URIs replaces them, once it is granted. The old ones are read a little longer, since what they
// carry may arrive later than the new grant.

import { attempt, deferred, onAbort, unref, type Deferred } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context, Handler, Notification, Request, Result } from "../../core/handler.ts";
import { errorMessage, isObject } from "../../core/values.ts";
import type { SubscriptionFilter } from "../../protocol/model/index.ts";
import {
  filterOf,
  grantedIn,
  isConcerned,
  listenRequest,
  namesIn,
  RESOURCE_UPDATED,
} from "../../protocol/subscription.ts";

/** How many listens a caller has before they are combined. */
const MAX_SEPARATE = 8;
/** How many URIs are combined in one listen. More would exceed the length that some servers accept. */
const MAX_URIS = 500;
/** How long, and how many, replaced listens are still read. */
const LINGER_MS = 1_000;
const MAX_LINGERING = 32;

/** Combines listens that are only for resources. `handler` opens a listen at the server. For no other request. */
export function sharingListens(handler: Handler): Handler {
  const callers = new Map<string, CallerListens>();
  return (request, context) => {
    if (!canBeCombined(request)) return handler(request, context);
    const { key } = context.caller;
    const caller = callers.get(key) ?? new CallerListens(handler, () => callers.delete(key));
    callers.set(key, caller);
    return caller.subscribe(request, context);
  };
}

function canBeCombined({ params }: Request): boolean {
  const filter = params["notifications"];
  const count = namesIn(filter, "resourceSubscriptions").length;
  return count > 0 && count < MAX_URIS && isObject(filter) && Object.keys(filter).length === 1;
}

interface Member {
  readonly filter: SubscriptionFilter;
  readonly context: Context;
  readonly outcome: Deferred<Result>;
}

interface Listen {
  readonly filter: SubscriptionFilter;
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

  subscribe(request: Request, context: Context): Promise<Result> {
    const member: Member = { filter: filterOf(request), context, outcome: deferred() };
    const listen = this.#open(request, context, (acknowledgement) => {
      context.notify(acknowledgement);
      this.#combine();
    });
    listen.members.add(member);
    return member.outcome.promise.finally(onAbort(context.signal, () => this.#leave(member)));
  }

  #leave(member: Member): void {
    const reason: unknown = member.context.signal.reason;
    member.outcome.reject(new ConnectionError("cancelled", `Cancelled: ${errorMessage(reason)}`, { cause: reason }));
    for (const listen of this.#listens) {
      if (listen.members.delete(member) && listen.members.size === 0) this.#close(listen, reason);
    }
  }

  #open(request: Request, context: Context, onAcknowledged: (notification: Notification) => void): Listen {
    const filter = filterOf(request);
    const listen: Listen = { filter, members: new Set(), stop: new AbortController(), isGranted: false };
    const notify = (notification: Notification): void => {
      const granted = grantedIn(notification);
      if (granted === undefined) return this.#deliver(listen, notification);
      const uris = new Set(namesIn(granted, "resourceSubscriptions"));
      listen.isGranted = namesIn(filter, "resourceSubscriptions").every((uri) => uris.has(uri));
      onAcknowledged(notification);
    };
    this.#listens.add(listen);
    attempt(() => this.#handler(request, { ...context, signal: listen.stop.signal, notify })).then(
      (result) => this.#end(listen, ({ outcome }) => outcome.resolve(result)),
      (error: unknown) => this.#end(listen, ({ outcome }) => outcome.reject(error)),
    );
    return listen;
  }

  #end(listen: Listen, settle: (member: Member) => void): void {
    if (this.#combining === listen) {
      this.#combining = undefined;
      this.#canCombine = false;
    }
    this.#close(listen);
    for (const member of listen.members) settle(member);
  }

  #close(listen: Listen, reason?: unknown): void {
    listen.stop.abort(reason);
    this.#lingering.delete(listen);
    if (this.#listens.delete(listen) && this.#listens.size === 0) this.#onEmpty();
  }

  #deliver(listen: Listen, notification: Notification): void {
    let current = listen;
    while (current.successor !== undefined) current = current.successor;
    const members = [...current.members];
    const isUpdate = notification.method === RESOURCE_UPDATED;
    // A server may write the URI in another way. Then all are notified, as each would be by a listen of its own.
    const isKnown = isUpdate && isConcerned(listen.filter, notification);
    const receivers = isKnown ? members.filter(({ filter }) => isConcerned(filter, notification)) : members;
    for (const { context } of isUpdate ? receivers : members.slice(0, 1)) context.notify(notification);
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
      for (const { filter } of members) for (const uri of namesIn(filter, "resourceSubscriptions")) uris.add(uri);
    }
    const [first] = replaced[0]?.members ?? [];
    if (replaced.length <= MAX_SEPARATE || first === undefined) return;
    const combined = this.#open(listenRequest({ resourceSubscriptions: [...uris] }), first.context, () => {
      this.#combining = undefined;
      this.#canCombine = combined.isGranted;
      if (combined.isGranted) this.#replace(replaced, combined);
      if (combined.members.size === 0) this.#close(combined);
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
      unref(setTimeout(() => this.#close(listen), LINGER_MS));
    }
    for (const oldest of this.#lingering) if (this.#lingering.size > MAX_LINGERING) this.#close(oldest);
  }
}
