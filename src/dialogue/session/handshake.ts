// The handshake with a session-style server, and the renewal of a session that the server has forgotten. A renewed
// session may have another revision and other capabilities.

import type { Context, Result } from "../../core/handler.ts";
import { ConnectionError, THE_SERVER } from "../../core/errors.ts";
import { errorMessage, fieldsOf, isObject } from "../../core/values.ts";
import { META } from "../../protocol/model/base.ts";
import { hasTasks } from "../../protocol/tasks.ts";
import type { Json, Revision } from "../../protocol/revision.ts";
import { revisionNamed } from "../../protocol/revisions/index.ts";
import type { Peer } from "../calls/peer.ts";
import { ignoreRejection, abortable, backoffMs, pause } from "../../core/async.ts";
import { SessionLost } from "../../transport/transport.ts";

export interface SessionOptions {
  readonly info: Json;
  /** Client capabilities, in the shape of the newest revision. */
  readonly capabilities: Json;
  /** The context for requests and notifications outside any call. */
  readonly defaultContext: Context;
  /** Called when a session-style server sends a request, whether or not it can be answered. */
  readonly onAsked?: () => void;
  /** Whether the declared capabilities are those of many clients, so that some of them lack a part of them. */
  readonly isShared?: boolean;
}

export interface HandshakeOptions extends SessionOptions {
  /** The revision to offer; the server may answer with any of `accepts`. */
  readonly offers: Revision;
  readonly accepts: readonly Revision[];
}

export interface SessionTerms {
  readonly revision: Revision;
  /** The server's capabilities, in the shape of the newest revision. */
  readonly capabilities: Json;
  /** The capabilities as the server sent them. */
  readonly rawCapabilities: Json;
  /** Whether the server supports tasks in the form of its revision. */
  readonly supportsTasks: boolean;
  /** The answer to `initialize` in the form of an answer to `server/discover`. */
  readonly discovered: Result;
}

/** A session with a server, for what runs in it. */
export interface SessionHost {
  /** The context for requests outside any call. */
  readonly defaultContext: Context;
  readonly terms: SessionTerms;
}

export async function initialize(
  peer: Peer,
  options: HandshakeOptions,
  startContext: Context,
  timeoutMs: number,
): Promise<SessionTerms> {
  const { offers } = options;
  const context: Context = { ...startContext, timeouts: { idleMs: timeoutMs, totalMs: 0 } };
  const params = {
    protocolVersion: offers.name,
    capabilities: clientCapabilities(options),
    clientInfo: offers.lower.implementation(options.info),
  };
  const answer: Result = await peer.call("initialize", params, context);
  const name = answer["protocolVersion"];
  const revision = typeof name === "string" ? revisionNamed(name) : undefined;
  if (revision === undefined || !options.accepts.includes(revision)) {
    const known = options.accepts.map((accepted) => accepted.name).join(", ");
    throw new ConnectionError(
      "protocol",
      `The server answered initialize with revision ${String(name)}; this client accepts ${known}`,
    );
  }
  const { protocolVersion: _name, serverInfo: info, _meta, ...rest } = answer;
  const rawCapabilities = fieldsOf(answer["capabilities"]);
  const capabilities = revision.lift.serverCapabilities(rawCapabilities);
  const serverInfo = isObject(info) ? { [META.serverInfo]: revision.lift.implementation(info) } : undefined;
  const meta = { ...(isObject(_meta) ? _meta : undefined), ...serverInfo };
  const discovered: Result = {
    // Unknown fields pass, as in every result.
    ...rest,
    resultType: "complete",
    capabilities,
    ttlMs: 0,
    cacheScope: "private",
    ...(Object.keys(meta).length === 0 ? undefined : { _meta: meta }),
  };
  const supportsTasks = hasTasks(capabilities) && revision.requests.has("tasks/result");
  return { revision, capabilities, rawCapabilities, supportsTasks, discovered };
}

/** The capabilities to declare. Changes of roots are promised if the caller that the session is for sends them. */
function clientCapabilities({ offers, capabilities, defaultContext: { caller } }: HandshakeOptions): Json {
  const lowered = offers.lower.clientCapabilities(capabilities);
  const { roots } = lowered;
  return caller.notifiesRoots === true && isObject(roots)
    ? { ...lowered, roots: { ...roots, listChanged: true } }
    : lowered;
}

/**
 * Starts a new session when the server has forgotten the old one. All callers that notice the loss wait for the same
 * handshake. A request that was refused because of the loss is sent again, since the server cannot have run it. If the
 * transport reports the loss, the handshake starts without waiting for a request and is retried with backoff, so that
 * subscriptions continue.
 */
export class SessionRenewal {
  readonly #begin: () => Promise<void>;
  readonly #closed: AbortSignal;
  /** The number of renewals. It shows whether a session that was lost has already been replaced. */
  count = 0;
  /** Whether work must wait for `renewed`. */
  isLost = false;
  #running: Promise<void> | undefined;

  constructor(begin: () => Promise<void>, closed: AbortSignal) {
    this.#begin = begin;
    this.#closed = closed;
  }

  /** Runs `work` in the current session. If the session turns out to be lost, renews it and runs `work` once more. */
  async run<T>(work: () => Promise<T>, owner?: { readonly signal: AbortSignal }): Promise<T> {
    if (this.isLost) await this.renewed(this.count, owner);
    const { count } = this;
    try {
      return await work();
    } catch (error) {
      await this.renewedAfter(error, count, owner);
      return work();
    }
  }

  /** Resolves with a new session if the error says that the session with this count is lost. Otherwise throws the error. */
  async renewedAfter(error: unknown, count: number, owner?: { readonly signal: AbortSignal }): Promise<void> {
    if (!(error instanceof SessionLost)) throw error;
    await this.renewed(count, owner);
  }

  lost(): void {
    this.isLost = true;
    void ignoreRejection(this.#persist(this.count));
  }

  async #persist(count: number): Promise<void> {
    for (let failures = 0; ; failures += 1) {
      try {
        return await this.#renew(count);
      } catch (error) {
        // Retrying could ask the user to sign in again and again. The next call reports the error instead.
        if (error instanceof ConnectionError && error.kind === "unauthorized") return;
        await pause(backoffMs(failures), this.#closed);
      }
    }
  }

  /** Resolves when the session with this count has been replaced. */
  async renewed(count: number, owner?: { readonly signal: AbortSignal }): Promise<void> {
    const signal = owner?.signal ?? this.#closed;
    try {
      await abortable(signal, ignoreRejection(this.#renew(count)));
    } catch (error) {
      throw signal.aborted ? cancelled(signal) : renewalFailed(error);
    }
  }

  async #renew(count: number): Promise<void> {
    if (count !== this.count) return;
    this.isLost = true;
    this.#running ??= this.#handshake();
    await this.#running;
  }

  async #handshake(): Promise<void> {
    try {
      this.#closed.throwIfAborted();
      await this.#begin();
      this.isLost = false;
      this.count += 1;
    } finally {
      this.#running = undefined;
    }
  }
}

function renewalFailed(error: unknown): unknown {
  if (!(error instanceof ConnectionError)) return error;
  const problem = `The server has forgotten the session, and a new one could not be started: ${error.problem}`;
  return error.with({ ...THE_SERVER, problem, mayHaveRun: false });
}

function cancelled({ reason }: AbortSignal): unknown {
  if (reason instanceof ConnectionError) return reason;
  return new ConnectionError("cancelled", `Cancelled: ${errorMessage(reason)}`, { cause: reason, mayHaveRun: false });
}
