// The handshake with a session-style end: what we offer, what the end makes of it, and the terms on which the session
// stands from then on. A session that is begun anew shakes hands again, and may come to other terms.

import type { Context, Result } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import { isObject } from "../../core/objects.ts";
import { META } from "../../protocol/model/index.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { revisionNamed } from "../../protocol/revisions/index.ts";
import type { Wire } from "../calls/peer.ts";
import { ignoreRejection, abortable } from "../../core/async.ts";
import { errorMessage } from "../../core/text.ts";
import { SessionLost } from "../../transport/transport.ts";
import { backoffMs, pause } from "../calls/backoff.ts";

export interface HandshakeOptions {
  readonly info: Json;
  /** Client capabilities, in the newest shape. */
  readonly capabilities: Json;
  /** The revision to offer; the end may answer with any that `accepts` holds. */
  readonly offers: Revision;
  readonly accepts: readonly Revision[];
  /** Who is asked, and told, where no call of ours stands behind it. */
  readonly home: Context;
}

/** What a handshake came to. */
export interface Terms {
  readonly revision: Revision;
  readonly capabilities: Json;
  /** The same in the end's own words. */
  readonly offered: Json;
  /** The end's answer, as an answer to `server/discover`. */
  readonly discovered: Result;
}

export async function shakeHands(
  wire: Wire,
  options: HandshakeOptions,
  starting: Context,
  timeoutMs: number,
): Promise<Terms> {
  const { offers } = options;
  const context: Context = { ...starting, timeouts: { idleMs: timeoutMs, totalMs: 0 } };
  const params = {
    protocolVersion: offers.name,
    capabilities: offers.lower.clientCapabilities(options.capabilities),
    clientInfo: offers.lower.implementation(options.info),
  };
  const answer: Result = await wire.call("initialize", () => params, context);
  const name = answer["protocolVersion"];
  const revision = typeof name === "string" ? revisionNamed(name) : undefined;
  if (revision === undefined || !options.accepts.includes(revision)) {
    const known = options.accepts.map((accepted) => accepted.name).join(", ");
    throw new ConnectionError(
      "protocol",
      `The end answered initialize with revision ${String(name)}; we speak ${known}`,
    );
  }
  const offered = (answer["capabilities"] as Json | undefined) ?? {};
  const capabilities = revision.lift.serverCapabilities(offered);
  const serverInfo = isObject(answer["serverInfo"]) ? revision.lift.implementation(answer["serverInfo"]) : undefined;
  const discovered: Result = {
    resultType: "complete",
    capabilities,
    ...(answer["instructions"] === undefined ? undefined : { instructions: answer["instructions"] }),
    ttlMs: 0,
    cacheScope: "private",
    ...(serverInfo === undefined ? undefined : { _meta: { [META.serverInfo]: serverInfo } }),
  };
  return { revision, capabilities, offered, discovered };
}

// A session that the end has forgotten, begun anew. Whoever finds that out waits for one and the same handshake, and
// what was refused for want of the session is done once more in the new one: the end had surely not begun with it.
// Where nobody asks, but somebody listens, the handshake is tried again by itself until the end is there.


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

  /**
   * Does the work in a session, and once more in the next if this one turns out to be lost. Who has gone by then does
   * not wait for it.
   */
  async within<T>(work: () => Promise<T>, whose?: { readonly signal: AbortSignal }): Promise<T> {
    if (this.#isLost) await this.#renewed(this.#count, whose?.signal ?? this.#over);
    const count = this.#count;
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof SessionLost)) throw error;
      await this.#renewed(count, whose?.signal ?? this.#over);
      return work();
    }
  }

  /** The end has said so without being asked. */
  lost(): void {
    this.#isLost = true;
    void ignoreRejection(this.#persist(this.#count));
  }

  async #persist(count: number): Promise<void> {
    for (let failures = 0; ; failures += 1) {
      try {
        return await this.#renew(count);
      } catch (error) {
        // Nobody is asked again and again to sign in for what nobody has called: the next call says so.
        if (error instanceof ConnectionError && error.kind === "unauthorized") return;
        await pause(backoffMs(failures), this.#over);
      }
    }
  }

  async #renewed(count: number, signal: AbortSignal): Promise<void> {
    try {
      await abortable(signal, ignoreRejection(this.#renew(count)));
    } catch (error) {
      throw signal.aborted ? cancelled(signal) : unsent(error);
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
function unsent(error: unknown): unknown {
  if (!(error instanceof ConnectionError)) return error;
  const { kind, status, message } = error;
  return new ConnectionError(kind, `The end has forgotten the session, and another could not be begun: ${message}`, {
    cause: error,
    mayHaveRun: false,
    ...(status === undefined ? undefined : { status }),
  });
}

function cancelled({ reason }: AbortSignal): unknown {
  if (reason instanceof ConnectionError) return reason;
  return new ConnectionError("cancelled", `Cancelled: ${errorMessage(reason)}`, { cause: reason, mayHaveRun: false });
}
