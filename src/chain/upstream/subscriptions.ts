// Keeps subscriptions open while their upstream stops, fails and restarts. Each is acknowledged only once, even if it
// is interrupted. A subscription to list changes does not start the upstream: while the upstream is idle, the catalogue
// determines what is granted. A subscription to resources or tasks starts and restarts the upstream. After an
// interruption the caller is notified of all lists and resources it subscribed to, since they may have changed.

import { ConnectionError } from "../../core/errors.ts";
import type { Context, Handler, Notification, Request, Result } from "../../core/handler.ts";
import {
  changedFlag,
  changedMethod,
  LIST_CAPABILITIES,
  RESOURCE_UPDATED,
  SUBSCRIPTION_ACKNOWLEDGED,
  type ListCapability,
} from "../../protocol/lists.ts";
import type { Json } from "../../protocol/revision.ts";
import { grantedBy, type Catalogue } from "./catalogue.ts";
import type { Supervisor, UpstreamConnection } from "./supervisor.ts";

/** The shortest pause before another attempt to start an upstream. */
const MIN_PAUSE_MS = 1_000;
/** The pause before another attempt if the upstream seems to run, but its connection is broken. */
const BROKEN_PAUSE_MS = 100;

/** What was granted to a subscription. It is kept if the subscription moves to another session. */
export interface Grant {
  /** Undefined until the subscription is acknowledged. */
  granted: Json | undefined;
}

interface Subscription {
  readonly context: Context;
  /** Whether the upstream must run for it. */
  readonly needsUpstream: boolean;
  readonly grant: Grant;
}

export class UpstreamSubscriptions {
  readonly #supervisor: Supervisor;
  readonly #catalogue: () => Promise<Catalogue | undefined>;
  readonly #handlerFor: (opened: UpstreamConnection, context: Context) => Handler;
  /** Called when a subscription has ended. */
  readonly #onLeave: () => void;
  readonly #subscriptions = new Set<Subscription>();

  constructor(
    supervisor: Supervisor,
    catalogue: () => Promise<Catalogue | undefined>,
    handlerFor: (opened: UpstreamConnection, context: Context) => Handler,
    onLeave: () => void,
  ) {
    this.#supervisor = supervisor;
    this.#catalogue = catalogue;
    this.#handlerFor = handlerFor;
    this.#onLeave = onLeave;
  }

  /** Whether the upstream must run for at least one subscription. */
  get needUpstream(): boolean {
    return [...this.#subscriptions].some(({ needsUpstream }) => needsUpstream);
  }

  /** Whether at least one subscription belongs to a caller with a session. */
  get hasSessions(): boolean {
    return [...this.#subscriptions].some(({ context }) => context.caller.style === "session");
  }

  /** Notifies callers of lists that have changed since they were shown. */
  notify(changes: readonly ListCapability[]): void {
    for (const { context, grant } of this.#subscriptions) {
      for (const capability of changes) {
        if (grant.granted?.[changedFlag(capability)] === true) context.notify({ method: changedMethod(capability) });
      }
    }
  }

  async listen(request: Request, context: Context, grant: Grant = { granted: undefined }): Promise<Result> {
    const wanted = request.params["notifications"] as Json;
    const subscription: Subscription = { context, needsUpstream: needsUpstream(wanted), grant };
    this.#subscriptions.add(subscription);
    try {
      const isNew = grant.granted === undefined;
      if (isNew && this.#supervisor.current === undefined && !subscription.needsUpstream) {
        await this.#grantFromCatalogue(subscription, wanted);
      }
      return await this.#run(request, subscription);
    } finally {
      this.#subscriptions.delete(subscription);
      this.#onLeave();
    }
  }

  async #grantFromCatalogue(subscription: Subscription, wanted: Json): Promise<void> {
    const catalogue = await this.#catalogue();
    if (catalogue === undefined || subscription.context.signal.aborted) return;
    const notifications = grantedBy(catalogue, wanted);
    subscription.grant.granted = notifications;
    subscription.context.notify({ method: SUBSCRIPTION_ACKNOWLEDGED, params: { notifications } });
  }

  async #run(request: Request, subscription: Subscription): Promise<Result> {
    const { grant, context: caller } = subscription;
    const { signal } = caller;
    for (let wasInterrupted = grant.granted !== undefined; ; wasInterrupted = true) {
      let opened: UpstreamConnection | undefined;
      try {
        opened = await this.#connect(subscription);
        const context = withOneAcknowledgement(subscription, wasInterrupted);
        return await this.#handlerFor(opened, context)(request, context);
      } catch (error) {
        const isInterruption = error instanceof ConnectionError && error.kind === "closed";
        if (!isInterruption || grant.granted === undefined || signal.aborted) throw error;
      }
      if (this.#supervisor.state === "closed") return { resultType: "complete" };
      // The pipe may break before the exit of the process is reported, so wait before another attempt.
      if (this.#supervisor.current === opened) {
        await this.#supervisor.pause(BROKEN_PAUSE_MS, signal).catch(() => undefined);
      }
    }
  }

  async #connect({ context: { signal }, needsUpstream, grant }: Subscription): Promise<UpstreamConnection> {
    if (grant.granted === undefined) return this.#supervisor.connect(signal);
    if (!needsUpstream) return this.#supervisor.nextConnection(signal);
    for (;;) {
      try {
        return await this.#supervisor.connect(signal);
      } catch (error) {
        if (signal.aborted || this.#supervisor.state === "closed") throw error;
        await this.#supervisor.pause(MIN_PAUSE_MS, signal);
      }
    }
  }
}

/** The context of a subscription. It passes on only the first acknowledgement. */
function withOneAcknowledgement(subscription: Subscription, wasInterrupted: boolean): Context {
  const { context, grant } = subscription;
  const notify = (notification: Notification): void => {
    if (notification.method !== SUBSCRIPTION_ACKNOWLEDGED) {
      context.notify(notification);
      return;
    }
    const isFirst = grant.granted === undefined;
    const granted = (notification.params?.["notifications"] as Json | undefined) ?? {};
    // A restarted upstream may grant something else.
    grant.granted = granted;
    if (isFirst) context.notify(notification);
    else if (wasInterrupted) for (const missed of possibleChanges(granted)) context.notify(missed);
  };
  return { ...context, notify };
}

/** Notifications of everything that may have changed during an interruption. */
function possibleChanges(granted: Json): Notification[] {
  const uris = (granted["resourceSubscriptions"] as readonly string[] | undefined) ?? [];
  const lists = LIST_CAPABILITIES.filter((capability) => granted[changedFlag(capability)] === true);
  return [
    ...lists.map((capability) => ({ method: changedMethod(capability) })),
    ...uris.map((uri) => ({ method: RESOURCE_UPDATED, params: { uri } })),
  ];
}

function needsUpstream(wanted: Json): boolean {
  return ["resourceSubscriptions", "taskIds"].some((key) => {
    const names = wanted[key];
    return Array.isArray(names) && names.length > 0;
  });
}
