// Keeps subscriptions open while their upstream stops, fails and restarts. Each is acknowledged only once, even if it
// is interrupted. A subscription to list changes does not start the upstream: while the upstream is idle, the catalogue
// determines what is granted. A subscription to resources or tasks starts and restarts the upstream. After an
// interruption the caller is notified of all lists and resources it subscribed to, since they may have changed.

import { ConnectionError } from "../../core/errors.ts";
import type { Context, Handler, Request, Result } from "../../core/handler.ts";
import { changedFlag, changedMethod, SUBSCRIPTION_ACKNOWLEDGED, type ListCapability } from "../../protocol/lists.ts";
import type { Json } from "../../protocol/revision.ts";
import { keepSubscribed, type Grant, type Reopens } from "../../protocol/subscription.ts";
import { grantedBy, type Catalogue } from "./catalogue.ts";
import type { Supervisor, UpstreamConnection } from "./supervisor.ts";

/** The shortest pause before another attempt to start an upstream. */
const MIN_PAUSE_MS = 1_000;
/** The pause before another attempt if the upstream seems to run, but its connection is broken. */
const BROKEN_PAUSE_MS = 100;

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
  readonly #subscriptions = new Set<Subscription>();

  constructor(
    supervisor: Supervisor,
    catalogue: () => Promise<Catalogue | undefined>,
    handlerFor: (opened: UpstreamConnection, context: Context) => Handler,
  ) {
    this.#supervisor = supervisor;
    this.#catalogue = catalogue;
    this.#handlerFor = handlerFor;
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

  /** `grant`: of a subscription that moves here from another session. */
  async listen(request: Request, context: Context, grant: Grant = { granted: undefined }): Promise<Result> {
    const wanted = request.params["notifications"] as Json;
    const subscription: Subscription = { context, needsUpstream: needsUpstream(wanted), grant };
    const supervisor = this.#supervisor;
    let opened: UpstreamConnection | undefined;
    const open = async (own: Context): Promise<Result> => {
      opened = undefined;
      opened = await this.#connect(subscription);
      return this.#handlerFor(opened, own)(request, own);
    };
    const reopens = async (error: unknown): Promise<Reopens> => {
      const isInterruption = error instanceof ConnectionError && error.kind === "closed";
      if (!isInterruption || grant.granted === undefined || supervisor.state === "closed") return false;
      // The pipe may break before the exit of the process is reported, so wait before another attempt.
      if (supervisor.current === opened) await supervisor.pause(BROKEN_PAUSE_MS, context.signal).catch(() => undefined);
      return "now";
    };
    this.#subscriptions.add(subscription);
    try {
      const isNew = grant.granted === undefined;
      if (isNew && supervisor.current === undefined && !subscription.needsUpstream) {
        await this.#grantFromCatalogue(subscription, wanted);
      }
      return await keepSubscribed(context, grant, { open, reopens });
    } catch (error) {
      if (grant.granted === undefined || supervisor.state !== "closed" || context.signal.aborted) throw error;
      return { resultType: "complete" };
    } finally {
      this.#subscriptions.delete(subscription);
    }
  }

  async #grantFromCatalogue({ context, grant }: Subscription, wanted: Json): Promise<void> {
    const catalogue = await this.#catalogue();
    if (catalogue === undefined || context.signal.aborted) return;
    grant.granted = grantedBy(catalogue, wanted);
    context.notify({ method: SUBSCRIPTION_ACKNOWLEDGED, params: { notifications: grant.granted } });
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

function needsUpstream(wanted: Json): boolean {
  return ["resourceSubscriptions", "taskIds"].some((key) => {
    const names = wanted[key];
    return Array.isArray(names) && names.length > 0;
  });
}
