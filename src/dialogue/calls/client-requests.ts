// Sends requests to a session-style client during a call (elicitation, sampling, roots), in the client's revision. They
// are cancelled when the call ends. A request that the client's revision or capabilities do not allow is not sent.

import { onAbort, ignoreRejection } from "../../core/async.ts";
import type { AskOptions, Caller, Params, Request, Result } from "../../core/handler.ts";
import { errorMessage } from "../../core/values.ts";
import { encode } from "../../jsonrpc/codec.ts";
import type { Message, ResponseMessage } from "../../jsonrpc/message.ts";
import { ExpiringMap } from "../../core/expiring-map.ts";
import { INTERNAL_CALLER } from "../../protocol/caller.ts";
import { checkClientRequest } from "../../protocol/client-requests.ts";
import { McpError } from "../../protocol/errors.ts";
import type { Revision } from "../../protocol/revision.ts";
import { isVendorMethod } from "../../protocol/revisions/index.ts";
import { PendingCalls } from "./pending-calls.ts";
import type { Timeouts } from "./timeouts.ts";

/** Generous, since a person may have to answer. */
const TIMEOUTS: Timeouts = { idleMs: 600_000, totalMs: 3_600_000 };

const NEVER_SENT = new Error("The request was never sent");

/** The client to ask, and how to reach it. */
export interface ClientRequestTarget {
  readonly caller: Caller;
  readonly revision: Revision;
  /** One of these is aborted when the call that makes the request ends. Absent for requests outside any call. */
  readonly signals?: readonly AbortSignal[];
  send(message: Message): void;
}

export class ClientRequests {
  readonly #pending = new PendingCalls("The client");

  async ask(request: Request, target: ClientRequestTarget, options: AskOptions | undefined): Promise<Result> {
    const { method } = request;
    // Untyped code may leave the params out.
    const given = request.params ?? {};
    const { revision, caller } = target;
    const isVendor = isVendorMethod(method);
    if (!revision.clientRequests.has(method) && !isVendor) {
      const message = `The client's revision, ${revision.name}, has no ${method}`;
      throw McpError.of("missing_capability", message, { method, requiredCapabilities: {} });
    }
    if (!isVendor) checkClientRequest({ method, params: given }, caller.capabilities);
    const params = revision.lower.request(method, given);
    checkEncodable(method, params);
    const signals = [...(target.signals ?? []), ...(options?.signal === undefined ? [] : [options.signal])];
    for (const signal of signals) signal.throwIfAborted();
    const cancel = (reason: string): void =>
      target.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id, reason } });
    const call = this.#pending.open(method, TIMEOUTS, undefined, (error) => cancel(error.message));
    const { id, answer } = call;
    void ignoreRejection(answer);
    const forget = signals.map((signal) =>
      onAbort(signal, () => {
        if (this.#pending.fail(call, signal.reason as Error)) cancel("The call that sent this request has ended");
      }),
    );
    try {
      target.send({ jsonrpc: "2.0", id, method, ...(Object.keys(params).length > 0 ? { params } : undefined) });
      return revision.lift.result(method, await answer);
    } finally {
      // At this point the request is still pending only if `send` threw.
      this.#pending.fail(call, NEVER_SENT);
      for (const forgetOne of forget) forgetOne();
    }
  }

  /** Returns false if no request waits for this response. */
  settle(message: ResponseMessage): boolean {
    const call = this.#pending.find(message);
    if (call !== undefined) this.#pending.settle(call, message);
    return call !== undefined;
  }

  failAll(reason: Error): void {
    this.#pending.failAll(reason);
  }
}

/** Throws if a request to the client cannot be encoded as JSON, so that the code that sends it gets the error. */
export function checkEncodable(method: string, params: Params): void {
  try {
    encode({ jsonrpc: "2.0", id: 0, method, params });
  } catch (error) {
    throw McpError.of("internal_error", `The request ${method} cannot be sent: ${errorMessage(error)}`, { method });
  }
}

// Decides whether a message from a session-style server can be attributed to a client. On some transports, requests and
// log messages do not identify their call. CallAttribution tracks the clients that have calls in flight, or had some
// recently. If there are several, a message without a known call is passed on to none of them, so that no client gets
// another's messages.

/** How long a call may still cause messages after it was answered. */
const LINGER_MS = 10_000;
/** Above this number of tracked clients, stale ones are removed. */
const MAX_TRACKED = 1_000;

export class CallAttribution {
  /** By the caller's key: calls in flight, and when the last one ended. */
  readonly #seen = new Map<string, { open: number; ended: number; isGone: boolean }>();

  /** The keys of callers that gave up a call without an answer. The server may go on with such a call. */
  readonly #abandoned = new ExpiringMap<string, true>({ maxEntries: MAX_TRACKED, ttlMs: LINGER_MS });

  /** Tracks a call; returns a function to call when it has ended, with or without an answer. */
  begin({ key }: Caller): (isAnswered?: boolean) => void {
    if (key === INTERNAL_CALLER.key) return () => undefined;
    if (this.#seen.size > MAX_TRACKED) this.#sweep();
    const seen = this.#seen.get(key) ?? { open: 0, ended: 0, isGone: false };
    seen.open += 1;
    this.#seen.set(key, seen);
    return (isAnswered = false) => {
      seen.open -= 1;
      seen.ended = performance.now();
      if (!isAnswered) this.#abandoned.set(key, true);
      if (seen.open === 0 && seen.isGone) this.#seen.delete(key);
    };
  }

  /** Called when the client has disconnected. Its entry is removed once its last call has ended. */
  forget({ key }: Caller): void {
    const seen = this.#seen.get(key);
    if (seen === undefined) return;
    seen.isGone = true;
    if (seen.open === 0) this.#seen.delete(key);
  }

  /** Whether a request that arrives while only this client has calls in flight cannot be for another client. */
  isOnlyOne(key: string): boolean {
    return this.#abandoned.keys().every((abandoned) => abandoned === key);
  }

  /** Whether all current and recent calls are from one client. */
  get isUnambiguous(): boolean {
    if (this.#seen.size > 1) this.#sweep();
    return this.#seen.size < 2;
  }

  #sweep(): void {
    const since = performance.now() - LINGER_MS;
    for (const [key, { open, ended }] of this.#seen) if (open === 0 && ended < since) this.#seen.delete(key);
  }
}
