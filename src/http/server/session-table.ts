// The open sessions by id. A session belongs to the principal that opened it, and is not found for others. It ends on
// request, or after a long idle time.

import { unref } from "../../core/async.ts";
import type { FairLimit } from "../../core/fair-limit.ts";
import { tooManyOpen } from "../../dialogue/calls/call-places.ts";
import type { ServedConnection } from "../../dialogue/connection.ts";
import type { SharedLimits } from "./admission.ts";

interface TableSession {
  readonly id: string;
  readonly principal: string | undefined;
  readonly isIdle: boolean;
  /** Whether the client has ever opened a stream with GET. */
  readonly hasListened: boolean;
  readonly usedAt: number;
}

const MAX_SWEEP_INTERVAL_MS = 5_000;

export class SessionTable<Session extends TableSession> {
  readonly #sessions = new Map<string, { readonly session: Session; readonly served: Promise<ServedConnection> }>();
  readonly #limit: FairLimit;
  readonly #idleMs: number;
  readonly #disconnectedMs: number;
  #sweeper: NodeJS.Timeout | undefined;

  constructor({ sessions, limits }: SharedLimits) {
    this.#limit = sessions;
    this.#idleMs = limits.sessionIdleMs;
    this.#disconnectedMs = Math.min(limits.sessionDisconnectedMs, limits.sessionIdleMs);
  }

  /** Throws a CallRefused if too many sessions are open, of all callers or of this principal. */
  add<Added extends Session>(session: Added, serve: (session: Added) => Promise<ServedConnection>): Added {
    const refusal = this.#limit.take(session.principal);
    if (refusal !== undefined) throw tooManyOpen("sessions", refusal);
    this.#sessions.set(session.id, { session, served: serve(session) });
    this.#sweeper ??= unref(setInterval(() => this.#sweep(), Math.min(MAX_SWEEP_INTERVAL_MS, this.#disconnectedMs)));
    return session;
  }

  find(id: string | undefined, principal: string | undefined): Session | undefined {
    const session = id === undefined ? undefined : this.#sessions.get(id)?.session;
    return session?.principal === principal ? session : undefined;
  }

  get isEmpty(): boolean {
    return this.#sessions.size === 0;
  }

  async end({ id, principal }: Session, graceMs = 0): Promise<void> {
    const entry = this.#sessions.get(id);
    if (entry === undefined) return;
    this.#sessions.delete(id);
    this.#limit.release(principal);
    if (this.#sessions.size === 0) this.#stopSweeping();
    await (await entry.served).close(graceMs);
  }

  async close(graceMs: number): Promise<void> {
    await Promise.all([...this.#sessions.values()].map(({ session }) => this.end(session, graceMs)));
    this.#stopSweeping();
  }

  #sweep(): void {
    const now = performance.now();
    for (const { session } of this.#sessions.values()) {
      const idleMs = session.hasListened ? this.#disconnectedMs : this.#idleMs;
      if (now - session.usedAt >= idleMs && session.isIdle) void this.end(session);
    }
  }

  #stopSweeping(): void {
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}
