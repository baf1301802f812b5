// Our side toward an end, as far as it is the same in both styles: requests go out with our ids, answers
// and progress find the call they belong to, an aborted call is cancelled on the wire, and when the wire
// ends everything that waits is told why. What messages mean in a style is for the backs.

import type { Context } from "../../core/handler.ts";
import { onAbort } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { isCancelled, onCancel } from "../../core/cancel.ts";
import { errorMessage } from "../../core/text.ts";
import type { Params } from "../../core/handler.ts";
import {
  Exact,
  isNotification,
  isRequest,
  isResponse,
  type Id,
  type Message,
  type NotificationMessage,
  type RequestMessage,
  type ResponseMessage,
} from "../../jsonrpc/message.ts";
import { isObject } from "../../core/objects.ts";
import { methodNotFound } from "../../protocol/errors.ts";
import type { Inbound, QuietLeave, SendOptions, Transport } from "../../transport/transport.ts";
import { DEFAULT_TIMEOUTS, Pending, type Timeouts } from "./pending.ts";

/** A request of ours that is not answered yet. */
export interface Outgoing {
  readonly id: number;
  readonly method: string;
  readonly context: Context;
}

/** What becomes of a call that its caller leaves, where the end must not be told by `notifications/cancelled`. */
export interface Leaving {
  /** Aborted by the wire when the caller has left. */
  readonly left: AbortController;
  /** Aborted when its answer is no longer wanted either. */
  readonly over: AbortSignal;
  /** To whom goes what the end still says in the call. */
  readonly context: Context;
  /** Takes the answer that comes after that. */
  readonly late: (answer: Params) => void;
}

/** A back, as the wire sees it. */
export interface Role {
  request(message: RequestMessage, inbound: Inbound): void;
  notification(message: NotificationMessage, inbound: Inbound): void;
  /** The end has forgotten the session. */
  lost?(): void;
  /** What the end had to say outside of any call may have been missed. */
  missed?(): void;
}

/** Before it is known what the end speaks: it may ask whether we live, and nothing else. */
const NOBODY: Role = {
  request: ({ id, method }, inbound) => {
    const error = methodNotFound(method).toBody();
    const answer: Message = { jsonrpc: "2.0", id, ...(method === "ping" ? { result: {} } : { error }) };
    void inbound.reply(answer).catch(() => undefined);
  },
  notification: () => undefined,
};

export class Wire {
  readonly calls: Map<number, Outgoing> = new Map();
  role: Role = NOBODY;
  /** Answers that nobody waits for: late, repeated, or to an id that we never sent. */
  strayAnswers = 0;
  readonly #transport: Transport;
  readonly #pending = new Pending("The end");
  readonly #timeouts: Timeouts;
  readonly #watchers = new Set<(reason: ConnectionError) => void>();
  /** Calls that were left, and whose answer is still wanted. */
  readonly #left = new Map<number, Outgoing & Pick<Leaving, "late">>();
  #end: ConnectionError | undefined;

  constructor(transport: Transport, timeouts: Partial<Timeouts> = {}) {
    this.#transport = transport;
    this.#timeouts = { ...DEFAULT_TIMEOUTS, ...timeouts };
  }

  start(): Promise<void> {
    return this.#transport.start((inbound) => this.#receive(inbound));
  }

  async close(budgetMs?: number): Promise<void> {
    this.#finish(new ConnectionError("closed", "The connection was closed"));
    await this.#transport.close(budgetMs);
  }

  /** Sends a request; `params` is made once the id is known, because tokens are made of it. */
  async call(
    method: string,
    params: (id: number) => Params,
    context: Context,
    leaving?: Leaving,
  ): Promise<{ readonly [key: string]: unknown }> {
    if (this.#end !== undefined) throw unsent(this.#end);
    if (isCancelled(context)) throw cancelled(context);
    const longLived = method === "subscriptions/listen";
    const timeouts = longLived ? { idleMs: 0, totalMs: 0 } : { ...this.#timeouts, ...context.timeouts };
    // The page on cancellation: `initialize` is never cancelled, nor in this way what makes a task.
    const cancel = (reason: string): void => {
      if (leaving !== undefined) this.#leave(id, method, leaving);
      else if (method !== "initialize") this.#cancel(id, reason);
    };
    const { id, answer } = this.#pending.open(method, timeouts, (error) => cancel(error.message));
    const abort = (): void => {
      if (this.#pending.fail(id, cancelled(context))) cancel(reasonOf(context));
    };
    this.calls.set(id, { id, method, context });
    const forget = onCancel(context, abort);
    try {
      // Whoever else is waited for, it is not the end that is late.
      const onWait = (isWaiting: boolean): void => (isWaiting ? this.#pending.hold(id) : this.#pending.release(id));
      this.#transport
        .send({ jsonrpc: "2.0", id, method, params: params(id) }, new Sending(context, onWait, leaving))
        .catch((error: unknown) => {
          this.#left.delete(id);
          this.#pending.fail(id, error as Error);
        });
      return await answer;
    } finally {
      forget();
      this.calls.delete(id);
    }
  }

  notify(method: string, params?: Params): void {
    this.send({ jsonrpc: "2.0", method, ...(params === undefined ? undefined : { params }) });
  }

  send(message: Message): void {
    if (this.#end === undefined) void this.#transport.send(message).catch(() => undefined);
  }

  /** The call that a message came for, where the wire or a token says so. */
  callNamed(id: unknown): Outgoing | undefined {
    return typeof id === "number" ? (this.calls.get(id) ?? this.#left.get(id)) : undefined;
  }

  /** Progress came in for the call. */
  touch(call: Outgoing): void {
    this.#pending.touch(call.id);
  }

  /** The call's caller is being asked, and has answered. */
  hold(call: Outgoing): void {
    this.#pending.hold(call.id);
  }

  release(call: Outgoing): void {
    this.#pending.release(call.id);
  }

  /** The end took back a listen of ours; of other calls it cannot dispose. */
  finishListen(id: unknown): void {
    if (typeof id === "number" && this.calls.get(id)?.method === "subscriptions/listen")
      this.#pending.settle({ jsonrpc: "2.0", id, result: { resultType: "complete" } });
  }

  /** Resolves when the signal is aborted; rejects when the wire ends first. */
  async untilEnd(signal: AbortSignal): Promise<void> {
    if (this.#end !== undefined) throw this.#end;
    if (signal.aborted) return;
    await new Promise<void>((resolve, reject) => {
      const end = (reason: ConnectionError): void => {
        forget();
        this.#watchers.delete(end);
        reject(reason);
      };
      const forget = onAbort(signal, () => {
        this.#watchers.delete(end);
        resolve();
      });
      this.#watchers.add(end);
    });
  }

  #receive(inbound: Inbound): void {
    if (inbound.kind === "end") {
      const { error } = inbound;
      this.#finish(
        error instanceof ConnectionError
          ? error
          : new ConnectionError("closed", "The end closed the connection", { cause: error }),
      );
      return;
    }
    if (inbound.kind === "lost") this.role.lost?.();
    if (inbound.kind === "gap") this.role.missed?.();
    // A caller whose own wire can do the same is let go of in the same way.
    if (inbound.kind === "hang-up") this.callNamed(inbound.about)?.context.hangUp?.(inbound.retryMs ?? 0);
    const { fault } = inbound;
    if (fault?.id !== undefined && fault.id !== null) this.#break(fault.id, fault.error.data);
    if (inbound.message !== undefined) this.#take(inbound.message, inbound);
    for (const item of inbound.batch ?? []) if ("message" in item) this.#take(item.message, inbound);
  }

  /** What should have been an answer is none: its call fails now instead of waiting for ever. */
  #break(id: Id, data: unknown): void {
    const details = isObject(data) ? data["details"] : data;
    const why = typeof details === "string" ? `: ${details}` : "";
    const ours = id instanceof Exact ? id.value : id;
    if (typeof ours !== "number") return;
    this.#pending.fail(ours, new ConnectionError("protocol", `The end's answer is no message${why}`));
  }

  #take(message: Message, inbound: Inbound): void {
    if (isResponse(message)) {
      if (!this.#pending.settle(message)) this.#stray(message);
    } else if (isRequest(message)) this.role.request(message, inbound);
    else if (isNotification(message)) this.role.notification(message, inbound);
  }

  #stray(message: ResponseMessage): void {
    const id = message.id instanceof Exact ? message.id.value : message.id;
    const left = typeof id === "number" ? this.#left.get(id) : undefined;
    if (left === undefined) {
      this.strayAnswers += 1;
      return;
    }
    this.#left.delete(left.id);
    if ("result" in message) left.late(message.result);
  }

  #leave(id: number, method: string, { left, over, context, late }: Leaving): void {
    this.#left.set(id, { id, method, context, late });
    onAbort(over, () => this.#left.delete(id));
    left.abort();
  }

  #cancel(requestId: number, reason: string): void {
    this.notify("notifications/cancelled", { requestId, reason });
  }

  #finish(reason: ConnectionError): void {
    if (this.#end !== undefined) return;
    this.#end = reason;
    this.#left.clear();
    this.#pending.failAll(reason);
    for (const watcher of [...this.#watchers]) watcher(reason);
  }
}

/** The same reason, for a request that came too late for it. */
function unsent({ kind, message, cause }: ConnectionError): ConnectionError {
  return new ConnectionError(kind, message, { cause, mayHaveRun: false });
}

function reasonOf({ signal }: Context): string {
  return errorMessage(signal.reason);
}

function cancelled(context: Context): ConnectionError {
  return new ConnectionError("cancelled", `Cancelled: ${reasonOf(context)}`, { cause: context.signal.reason });
}

/** How a request is sent; a pipe never looks at its signal, so none is made for it. */
class Sending implements SendOptions {
  readonly onWait: (isWaiting: boolean) => void;
  readonly #context: Context;
  readonly #leaving: Leaving | undefined;

  constructor(context: Context, onWait: (isWaiting: boolean) => void, leaving: Leaving | undefined) {
    this.onWait = onWait;
    this.#context = context;
    this.#leaving = leaving;
  }

  get signal(): AbortSignal {
    return this.#context.signal;
  }

  get quiet(): QuietLeave | undefined {
    return this.#leaving && { left: this.#leaving.left.signal, over: this.#leaving.over };
  }
}
