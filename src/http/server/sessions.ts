// The sessions that are open, by their ids. An id is 128 bits of randomness and proves nothing: a session belongs
// to the principal that opened it, and for everybody else it does not exist. A session ends when its caller ends
// it, or after a long time in which nobody waited for anything.

import { unref } from "../../core/async.ts";
import type { Served } from "../../dialogue/connection.ts";
import { Refusal } from "./visit.ts";

export interface Tabled {
  readonly id: string;
  readonly principal: string | undefined;
  readonly idle: boolean;
  readonly usedAt: number;
}

const MOST_SWEEP_MS = 30_000;

/** How many sessions there may be, in all tables that share it. */
export class Room {
  readonly #most: number;
  #taken = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Throws a Refusal where there is none. */
  take(): void {
    if (this.#taken >= this.#most) {
      throw new Refusal(503, "Too many sessions are open; try again later", { "retry-after": "10" });
    }
    this.#taken += 1;
  }

  give(): void {
    this.#taken -= 1;
  }
}

export class Sessions<Session extends Tabled> {
  readonly #sessions = new Map<string, { readonly session: Session; readonly served: Promise<Served> }>();
  readonly #room: Room;
  readonly #idleMs: number;
  #sweeper: NodeJS.Timeout | undefined;

  constructor(room: Room, idleMs: number) {
    this.#room = room;
    this.#idleMs = idleMs;
  }

  /** Throws a Refusal where there is no room. */
  add<Made extends Session>(make: (id: string) => Made, serve: (session: Made) => Promise<Served>): Made {
    this.#room.take();
    const session = make(newId());
    const served = serve(session);
    this.#sessions.set(session.id, { session, served });
    this.#sweeper ??= unref(setInterval(() => this.#sweep(), Math.min(MOST_SWEEP_MS, this.#idleMs)));
    return session;
  }

  find(id: string | undefined, principal: string | undefined): Session | undefined {
    const found = id === undefined ? undefined : this.#sessions.get(id)?.session;
    return found?.principal === principal ? found : undefined;
  }

  async end({ id }: Session, graceMs = 0): Promise<void> {
    const found = this.#sessions.get(id);
    if (found === undefined) return;
    this.#sessions.delete(id);
    this.#room.give();
    if (this.#sessions.size === 0) this.#rest();
    await (await found.served).close(graceMs);
  }

  async close(graceMs: number): Promise<void> {
    await Promise.all([...this.#sessions.values()].map(({ session }) => this.end(session, graceMs)));
    this.#rest();
  }

  #sweep(): void {
    const now = performance.now();
    for (const { session } of this.#sessions.values()) {
      if (session.idle && now - session.usedAt >= this.#idleMs) void this.end(session);
    }
  }

  #rest(): void {
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}

function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
