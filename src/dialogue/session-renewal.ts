// A session that the end has forgotten, begun anew. Whoever finds that out waits for one and the same handshake, and
// what was refused for want of the session is done once more in the new one: the end had surely not begun with it.
// Where nobody asks, but somebody listens, the handshake is tried again by itself until the end is there.

import { LinkError } from "../core/errors.ts";
import { forgettable } from "../core/promises.ts";
import { SessionLost } from "../transport/transport.ts";
import { backoffMs, pause } from "./pacing.ts";

export class SessionRenewal {
  readonly #begin: () => Promise<void>;
  /** Aborted when nobody needs a session any more. */
  readonly #over: AbortSignal;
  /** How many sessions there have been: tells one that was lost from the one that came after it. */
  #count = 0;
  #isLost = false;
  #running: Promise<void> | undefined;

  constructor(begin: () => Promise<void>, over: AbortSignal) {
    this.#begin = begin;
    this.#over = over;
  }

  /** Does the work in a session, and once more in the next if this one turns out to be lost. */
  async within<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isLost) await this.#renew(this.#count).catch(unsent);
    const count = this.#count;
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof SessionLost)) throw error;
      await this.#renew(count).catch(unsent);
      return work();
    }
  }

  /** The end has said so without being asked. */
  lost(): void {
    this.#isLost = true;
    void forgettable(this.#persist(this.#count));
  }

  async #persist(count: number): Promise<void> {
    for (let failures = 0; ; failures += 1) {
      try {
        return await this.#renew(count);
      } catch {
        await pause(backoffMs(failures), this.#over);
      }
    }
  }

  async #renew(count: number): Promise<void> {
    if (count !== this.#count) return;
    this.#isLost = true;
    this.#running ??= this.#run();
    await this.#running;
  }

  async #run(): Promise<void> {
    try {
      this.#over.throwIfAborted();
      await this.#begin();
      this.#isLost = false;
      this.#count += 1;
    } finally {
      this.#running = undefined;
    }
  }
}

/** Why there is no session; the request that wanted one was not sent. */
function unsent(error: unknown): never {
  if (!(error instanceof LinkError)) throw error;
  const { kind, status, message } = error;
  throw new LinkError(kind, `The end has forgotten the session, and another could not be begun: ${message}`, {
    cause: error,
    mayHaveRun: false,
    ...(status === undefined ? undefined : { status }),
  });
}
