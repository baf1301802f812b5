// The part of a connection to a server that both styles share: sends requests with our ids, matches answers and
// progress to their calls, sends cancellations, and fails all pending calls when the connection closes. The backs
// (session/back.ts, stateless/back.ts) interpret the messages.

import { attempt, ignoreRejection, onAbort, ref, unref, within } from "../../core/async.ts";
import { isCancelled, onCancel } from "../../core/cancel.ts";
import { ChurningMap } from "../../core/collections.ts";
import { ConnectionError } from "../../core/errors.ts";
import { kindOf } from "../../core/options.ts";
import type { Context, Params } from "../../core/handler.ts";
import { errorMessage, isObject } from "../../core/values.ts";
import {
  type ErrorMessage,
  isNotification,
  isRequest,
  isResponse,
  type Message,
  type NotificationMessage,
  plainId,
  type RequestMessage,
  type ResponseMessage,
  type ResultMessage,
} from "../../jsonrpc/message.ts";
import { McpError, methodNotFound } from "../../protocol/errors.ts";
import type { Inbound, QuietCancel, SendOptions, Transport } from "../../transport/transport.ts";

// Requests that were sent and are not answered yet: their ids, promises and timeouts.
// One timer serves all of them, so a request costs a map entry and no timer of its own. Deadlines use the monotonic
// clock. They move when progress comes in, but never past the total timeout.

export interface Timeouts {
  /** A request fails after this long without an answer or progress. 0: never. */
  readonly idleMs: number;
  /** A request fails after this long, whatever progress it reports. 0: no limit. */
  readonly totalMs: number;
}

export const DEFAULT_TIMEOUTS: Timeouts = { idleMs: 60_000, totalMs: 3_600_000 };

type Answer = { readonly [key: string]: unknown };

/** A request of ours that is not answered yet. */
export interface PendingCall<Data = undefined> {
  readonly id: number;
  readonly method: string;
  readonly answer: Promise<Answer>;
  /** The context of the call, for those who need it. */
  readonly context: Data;
  readonly resolve: (result: Answer) => void;
  readonly reject: (error: Error) => void;
  readonly idleMs: number;
  readonly finalDeadline: number;
  readonly onTimeout: ((error: ConnectionError) => void) | undefined;
  deadline: number;
  /** How many calls of `hold` are not released yet. */
  holds: number;
}

export class PendingCalls<Data = undefined> {
  /** By id. */
  readonly calls: Pick<ChurningMap<number, PendingCall<Data>>, "get" | "has" | "values" | "size">;
  readonly #calls = new ChurningMap<number, PendingCall<Data>>();
  readonly #peerName: string;
  #nextId = 1;
  #timer: NodeJS.Timeout | undefined;
  #armedFor = Infinity;
  /** How many calls have a deadline. */
  #timed = 0;

  /** `peerName` is the subject of error messages, such as "The server". */
  constructor(peerName: string) {
    this.#peerName = peerName;
    this.calls = this.#calls;
  }

  /** Returns a call with a new id and the promise of its answer. `onTimeout` can tell the other side that we gave up. */
  open(
    method: string,
    { idleMs, totalMs }: Timeouts,
    context: Data,
    onTimeout?: (error: ConnectionError) => void,
  ): PendingCall<Data> {
    const id = this.#nextId++;
    const now = performance.now();
    const finalDeadline = totalMs > 0 ? now + totalMs : Infinity;
    const deadline = idleMs > 0 ? Math.min(now + idleMs, finalDeadline) : finalDeadline;
    let resolve!: (result: Answer) => void;
    let reject!: (error: Error) => void;
    const answer = new Promise<Answer>((yes, no) => {
      resolve = yes;
      reject = no;
    });
    const call: PendingCall<Data> = {
      id,
      method,
      answer,
      context,
      resolve,
      reject,
      idleMs,
      finalDeadline,
      onTimeout,
      deadline,
      holds: 0,
    };
    this.#calls.set(id, call);
    if (deadline !== Infinity) {
      this.#timed += 1;
      if (deadline < this.#armedFor) this.#arm(deadline, now);
      else if (this.#timed === 1) ref(this.#timer);
    }
    return call;
  }

  /** The call that the response is for; undefined if it is late or unknown, or its id has another type than ours. */
  find({ id }: ResponseMessage): PendingCall<Data> | undefined {
    // The other side may write our 1 as 1.0.
    return this.#calls.get(plainId(id) as number);
  }

  /** Does nothing if the call is over. */
  settle(call: PendingCall<Data>, response: ResponseMessage): void {
    if (!this.#remove(call)) return;
    // A transport of a user may pass on what it has not checked.
    const { error, result } = response as Partial<ResultMessage & ErrorMessage>;
    if (isObject(error)) call.reject(McpError.fromBody(error));
    else if (isObject(result) && error === undefined) call.resolve(result);
    else call.reject(new ConnectionError("protocol", `${this.#peerName}'s answer is not a valid message`));
  }

  /** Progress came in for this call: restarts its idle timeout. */
  touch(call: PendingCall<Data>): void {
    if (call.idleMs === 0 || call.holds > 0 || !this.#calls.has(call.id)) return;
    const now = performance.now();
    call.deadline = Math.min(now + call.idleMs, call.finalDeadline);
    if (call.deadline < this.#armedFor) this.#arm(call.deadline, now);
  }

  /** Suspends the idle timeout until `release`, for example while the client is being asked on behalf of this call. */
  hold(call: PendingCall<Data>): void {
    call.holds += 1;
    call.deadline = call.finalDeadline;
  }

  release(call: PendingCall<Data>): void {
    call.holds -= 1;
    this.touch(call);
  }

  /** Returns false if the call was over. */
  fail(call: PendingCall<Data>, error: Error): boolean {
    const isPending = this.#remove(call);
    if (isPending) call.reject(error);
    return isPending;
  }

  failAll(error: Error): void {
    for (const call of this.#calls.values()) this.fail(call, error);
    this.#disarm();
  }

  #remove(call: PendingCall<Data>): boolean {
    if (!this.#calls.delete(call.id)) return false;
    // The timer is kept for the next request, which most likely comes before it fires. Meanwhile it is unref'ed.
    if (call.finalDeadline !== Infinity || call.idleMs > 0) {
      this.#timed -= 1;
      if (this.#timed === 0) unref(this.#timer);
    }
    return true;
  }

  #arm(deadline: number, now: number): void {
    clearTimeout(this.#timer);
    this.#armedFor = deadline;
    // setTimeout fires at once for delays beyond 2^31 - 1 ms.
    this.#timer = setTimeout(() => this.#sweep(), Math.min(Math.max(deadline - now, 1), 0x7fffffff));
  }

  #disarm(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#armedFor = Infinity;
  }

  #sweep(): void {
    const now = performance.now();
    let earliest = Infinity;
    for (const call of this.#calls.values()) {
      if (call.deadline <= now) {
        const isFinal = call.deadline >= call.finalDeadline;
        const error = isFinal
          ? new ConnectionError("timeout", `${this.#peerName} did not finish ${call.method} within the total timeout`, {
              hint: { text: "raise `maxTimeoutMs`", flags: "" },
            })
          : new ConnectionError(
              "timeout",
              `${this.#peerName} did not answer ${call.method} in ${call.idleMs} ms and reported no progress`,
              { hint: { text: "raise `timeoutMs`", flags: "use --timeout to allow more" } },
            );
        this.fail(call, error);
        call.onTimeout?.(error);
      } else if (call.deadline < earliest) earliest = call.deadline;
    }
    if (earliest === Infinity) this.#disarm();
    else this.#arm(earliest, now);
  }
}

/** A request of ours that is not answered yet. */
export type OutgoingCall = PendingCall<Context>;

/**
 * How to abandon a call that must not be cancelled by `notifications/cancelled`. The caller gets an error at once, but
 * the server's answer is still awaited.
 */
export interface Abandonment {
  /** Receives what the server sends for the call after the call was abandoned. */
  readonly context: Context;
  /** Receives an answer that comes after the call was abandoned. */
  readonly onLateAnswer: (answer: Params) => void;
}

/** How long the answer to an abandoned call is awaited. */
const ABANDONED_MS = 60_000;

/** Receives what the server sends on its own initiative; implemented by the backs. */
export interface PeerListener {
  onRequest(message: RequestMessage, inbound: Inbound): void;
  onNotification(message: NotificationMessage, inbound: Inbound): void;
  /** The server no longer knows the session. */
  onSessionLost?(): void;
  /** The server may have restarted. `mayHaveMissed`: notifications outside any call may have been missed. */
  onReopened?(mayHaveMissed: boolean): void;
}

/** Used until the style is negotiated: answers pings and refuses everything else. */
const BEFORE_NEGOTIATION: PeerListener = {
  onRequest: ({ id, method }, inbound) => {
    const error = methodNotFound(method).toBody();
    const answer: Message = { jsonrpc: "2.0", id, ...(method === "ping" ? { result: {} } : { error }) };
    void ignoreRejection(attempt(() => inbound.reply(answer)));
  },
  onNotification: () => undefined,
};

export class Peer {
  readonly pending: PendingCalls<Context> = new PendingCalls("The server");
  /** By id. */
  readonly calls: PendingCalls<Context>["calls"] = this.pending.calls;
  listener: PeerListener = BEFORE_NEGOTIATION;
  readonly #transport: Transport;
  readonly #timeouts: Timeouts;
  readonly #closeTimeoutMs: number | undefined;
  readonly #watchers = new Set<(reason: ConnectionError) => void>();
  /** Abandoned calls whose answer is still awaited. */
  readonly #abandoned = new Map<number, { readonly call: OutgoingCall } & Abandonment>();
  #closed: ConnectionError | undefined;

  /** `closeTimeoutMs`: for a transport that may never close. The others limit the time themselves. */
  constructor(transport: Transport, timeouts: Partial<Timeouts> = {}, closeTimeoutMs?: number) {
    this.#transport = transport;
    this.#timeouts = { ...DEFAULT_TIMEOUTS, ...timeouts };
    this.#closeTimeoutMs = closeTimeoutMs;
  }

  start(): Promise<void> {
    return this.#transport.start((inbound) => this.#receive(inbound));
  }

  async close(budgetMs?: number): Promise<void> {
    this.#finish(new ConnectionError("closed", "The connection was closed"));
    const closing = attempt(() => this.#transport.close(budgetMs));
    const limitMs = this.#closeTimeoutMs;
    await (limitMs === undefined ? closing : within(budgetMs ?? limitMs, closing));
  }

  /** Sends a request. `params` is a function of the id, because progress tokens are made from it. */
  async call(
    method: string,
    params: (id: number) => Params,
    context: Context,
    abandonment?: Abandonment,
  ): Promise<{ readonly [key: string]: unknown }> {
    if (this.#closed !== undefined) throw unsent(this.#closed);
    if (isCancelled(context)) throw cancelled(context);
    const longLived = method === "subscriptions/listen";
    const timeouts = longLived ? { idleMs: 0, totalMs: 0 } : { ...this.#timeouts, ...context.timeouts };
    // Specification, basic/utilities/cancellation: the notification must not cancel `initialize` or a call that creates
    // a task.
    const cancel = (reason: string): void => {
      if (abandonment !== undefined && quiet !== undefined) this.#abandon(call, abandonment, quiet);
      else if (method !== "initialize") this.#cancel(id, reason);
    };
    const call = this.pending.open(method, timeouts, context, (error) => cancel(error.message));
    const { id } = call;
    const quiet = abandonment && { abandoned: new AbortController(), expired: new AbortController() };
    const abort = (): void => {
      if (this.pending.fail(call, cancelled(context))) cancel(reasonOf(context));
    };
    const forget = onCancel(context, abort);
    try {
      // Suspend the idle timeout while we wait for something other than the server, such as a person signing in.
      const onWait = (isWaiting: boolean): void => (isWaiting ? this.pending.hold(call) : this.pending.release(call));
      const message: RequestMessage = { jsonrpc: "2.0", id, method, params: params(id) };
      const sent = this.#transport.send(message, new CallSendOptions(context, onWait, quiet));
      sent.then(
        (response) => {
          if (response !== undefined) this.pending.settle(call, response);
        },
        (error: unknown) => {
          this.#abandoned.delete(id);
          this.pending.fail(call, error as Error);
        },
      );
    } catch (error) {
      // A transport may throw instead of rejecting.
      this.pending.fail(call, error as Error);
    }
    try {
      return await call.answer;
    } finally {
      forget();
    }
  }

  notify(method: string, params?: Params): void {
    this.send({ jsonrpc: "2.0", method, ...(params === undefined ? undefined : { params }) });
  }

  send(message: Message): void {
    if (this.#closed === undefined) void ignoreRejection(attempt(() => this.#transport.send(message)));
  }

  /** The call with this id, abandoned calls included. */
  findCall(id: unknown): OutgoingCall | undefined {
    return typeof id === "number" ? (this.calls.get(id) ?? this.#abandoned.get(id)?.call) : undefined;
  }

  /** Ends our subscription with this id, as the server asked. A server cannot end other calls in this way. */
  endSubscription(id: unknown): void {
    const call = this.calls.get(id as number);
    if (call?.method === "subscriptions/listen")
      this.pending.settle(call, { jsonrpc: "2.0", id: call.id, result: { resultType: "complete" } });
  }

  /** Resolves when the signal is aborted; rejects if the connection closes first. */
  async untilClosed(signal: AbortSignal): Promise<void> {
    if (this.#closed !== undefined) throw this.#closed;
    if (signal.aborted) return;
    await new Promise<void>((resolve, reject) => {
      const fail = (reason: ConnectionError): void => {
        forget();
        this.#watchers.delete(fail);
        reject(reason);
      };
      const forget = onAbort(signal, () => {
        this.#watchers.delete(fail);
        resolve();
      });
      this.#watchers.add(fail);
    });
  }

  #receive(inbound: Inbound): void {
    // A transport of the user may pass on a message as it is, or what decodeInbound() returns for one to ignore.
    if (typeof (inbound as Inbound | undefined)?.kind !== "string") return this.#finish(notInbound(inbound));
    if (inbound.kind === "end") {
      const { error } = inbound;
      this.#finish(
        error instanceof ConnectionError
          ? error
          : new ConnectionError("closed", "The server closed the connection", { cause: error }),
      );
      return;
    }
    if (inbound.kind === "lost") this.listener.onSessionLost?.();
    if (inbound.kind === "gap" || inbound.kind === "reopened") this.listener.onReopened?.(inbound.kind === "gap");
    // Pass the hang-up on to the caller, if the caller's transport can hang up too.
    if (inbound.kind === "hang-up") this.findCall(inbound.about)?.context.hangUp?.(inbound.retryMs ?? 0);
    const { fault } = inbound;
    if (fault !== undefined && fault.id !== null) {
      // An invalid request of the server is answered.
      if (inbound.answerable === true) this.send(fault);
      else this.#failMalformed(fault);
    }
    if (inbound.message !== undefined) this.#take(inbound.message, inbound);
    for (const item of inbound.batch ?? []) {
      if ("message" in item) this.#take(item.message, inbound);
      else if (item.answerable !== true) this.#failMalformed(item.fault);
    }
  }

  /** Fails the call that a malformed answer belongs to, so that the call does not have to time out. */
  #failMalformed({ id, error: { data } }: ErrorMessage): void {
    const details = isObject(data) ? data["details"] : data;
    const why = typeof details === "string" ? `: ${details}` : "";
    const call = id === null ? undefined : this.calls.get(plainId(id) as number);
    if (call === undefined) return;
    this.pending.fail(call, new ConnectionError("protocol", `The server's answer is not a valid message${why}`));
  }

  #take(message: Message, inbound: Inbound): void {
    if (isResponse(message)) {
      const call = this.pending.find(message);
      if (call === undefined) this.#takeLate(message);
      else this.pending.settle(call, message);
    } else if (isRequest(message)) this.listener.onRequest(message, inbound);
    else if (isNotification(message)) this.listener.onNotification(message, inbound);
  }

  /** Answers to abandoned calls are delivered; other late or unknown answers are dropped. */
  #takeLate(message: ResponseMessage): void {
    const id = plainId(message.id);
    const late = this.#abandoned.get(id as number);
    if (late === undefined) return;
    this.#abandoned.delete(late.call.id);
    if ("result" in message) late.onLateAnswer(message.result);
  }

  #abandon(call: OutgoingCall, abandonment: Abandonment, { abandoned, expired }: QuietControl): void {
    this.#abandoned.set(call.id, { ...abandonment, call: { ...call, context: abandonment.context } });
    const expire = (): void => {
      this.#abandoned.delete(call.id);
      expired.abort();
    };
    unref(setTimeout(expire, ABANDONED_MS));
    abandoned.abort();
  }

  #cancel(requestId: number, reason: string): void {
    this.notify("notifications/cancelled", { requestId, reason });
  }

  #finish(reason: ConnectionError): void {
    if (this.#closed !== undefined) return;
    this.#closed = reason;
    this.#abandoned.clear();
    this.pending.failAll(reason);
    for (const watcher of [...this.#watchers]) watcher(reason);
  }
}

/** A copy of the failure that closed the connection, for a later request that is not sent. */
function unsent({ kind, problem, subject, hint, diagnostics, cause }: ConnectionError): ConnectionError {
  return new ConnectionError(kind, problem, { cause, mayHaveRun: false, subject, hint, diagnostics });
}

function reasonOf({ signal }: Context): string {
  return errorMessage(signal.reason);
}

function cancelled(context: Context): ConnectionError {
  return new ConnectionError("cancelled", `Cancelled: ${reasonOf(context)}`, { cause: context.signal.reason });
}

/** Controls the signals of a `QuietCancel`. */
type QuietControl = { readonly [Signal in keyof QuietCancel]: AbortController };

/** This is a class with getters, because the signal is created when it is first read, and stdio never reads it. */
class CallSendOptions implements SendOptions {
  readonly onWait: (isWaiting: boolean) => void;
  readonly quiet: QuietCancel | undefined;
  readonly #context: Context;

  constructor(context: Context, onWait: (isWaiting: boolean) => void, quiet: QuietControl | undefined) {
    this.onWait = onWait;
    this.quiet = quiet && { abandoned: quiet.abandoned.signal, expired: quiet.expired.signal };
    this.#context = context;
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }

  get headers(): Context["headers"] {
    return this.#context.headers;
  }
}

function notInbound(value: unknown): ConnectionError {
  return new ConnectionError(
    "protocol",
    `The transport called its \`receive\` with ${kindOf(value)} in place of { kind, message, ... }; decodeInbound() of ` +
      "catenary/stdio makes one from a text, or undefined if the text must be ignored",
  );
}
