// One task of a handler, seen from the caller's side: how it stood when something was last heard of it, and a way
// to wait until that may have changed. The handler is listened to where it grants that, and asked again and again,
// no faster than it wants, where it does not. Once a task is over nothing more is asked, because it cannot change, but
// for a caller of whom the wire proves something: whether that one may still see it, the handler alone knows.

import { onAbort } from "../core/abort.ts";
import type { Caller, Context } from "../core/context.ts";
import type { Handler, Notification } from "../core/handler.ts";
import { attempt } from "../core/promises.ts";
import { isObject } from "../protocol/check.ts";
import { McpError } from "../protocol/errors.ts";
import type { Json } from "../protocol/revision.ts";
import { isOver } from "../protocol/tasks.ts";

const POLL_MS = 1_000;
const SHORTEST_POLL_MS = 100;
const LONGEST_POLL_MS = 60_000;

export class TaskWatch {
  readonly id: string;
  readonly #handler: Handler;
  /** Of a caller that has declared tasks; not of one call, for a task outlives them. */
  readonly #context: Context;
  /** Told how it stands, whenever that is heard. */
  readonly #told: (state: Json) => void;
  readonly #stop = new AbortController();
  readonly #waiting = new Set<() => void>();
  #state: Json;
  #isHeard = false;
  #events = 0;

  constructor(handler: Handler, context: Context, state: Json, told: (state: Json) => void = () => undefined) {
    const id = state["taskId"];
    if (typeof id !== "string") throw McpError.of("internal_error", "The end made a task that has no id");
    this.id = id;
    this.#handler = handler;
    this.#context = context;
    this.#state = state;
    this.#told = told;
  }

  /** In the newest shape: a task with what belongs to its status. */
  get state(): Json {
    return this.#state;
  }

  get isOver(): boolean {
    return isOver(this.#state["status"]);
  }

  /** Whether changes are heard of without asking. */
  get isHeard(): boolean {
    return this.#isHeard;
  }

  /** Asks how it stands. Throws where the caller of this context may not know. */
  async refresh(context: Context = this.#context): Promise<Json> {
    if (this.isOver && !isProved(context.caller)) return this.#state;
    const heard = this.#events;
    const state = await this.#handler({ method: "tasks/get", params: { taskId: this.id } }, context);
    // What was heard while we asked may be newer than the answer.
    if (heard === this.#events) this.take(state);
    return this.#state;
  }

  /** How it stands now; of a task that is over, nothing else is believed. */
  take(state: Json): void {
    if (this.isOver || state === this.#state || !isObject(state)) return;
    this.#state = state;
    this.#told(state);
    this.wake();
    if (this.isOver) this.close();
  }

  /** Begins to listen, if the handler grants it. */
  listen(): void {
    const { signal } = this.#stop;
    if (this.isOver || signal.aborted) return;
    const context: Context = { ...this.#context, signal, notify: (notification) => this.#hear(notification) };
    const params = { notifications: { taskIds: [this.id] } };
    const unheard = (): void => {
      this.#isHeard = false;
      this.wake();
    };
    attempt(() => this.#handler({ method: "subscriptions/listen", params }, context)).then(unheard, unheard);
  }

  /** Resolves when it may stand otherwise than before; rejects when the signal is aborted. */
  async changed(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.isOver) return;
    const before = this.#state;
    const isLate = await this.#pause(signal);
    signal.throwIfAborted();
    if (isLate && this.#state === before) await this.refresh();
  }

  /** Whoever waits looks again. */
  wake(): void {
    for (const go of [...this.#waiting]) go();
  }

  close(): void {
    this.#stop.abort(new Error("The task is no longer watched"));
  }

  #hear({ method, params }: Notification): void {
    if (this.#stop.signal.aborted) return;
    if (method === "notifications/subscriptions/acknowledged") {
      const granted = isObject(params?.["notifications"]) ? params["notifications"]["taskIds"] : undefined;
      this.#isHeard = Array.isArray(granted) && granted.includes(this.id);
      // What happened before the listen was granted may have been missed.
      if (this.#isHeard) this.refresh().catch(() => undefined);
    } else if (method === "notifications/tasks" && params?.["taskId"] === this.id) {
      this.#events += 1;
      this.take(params);
    }
  }

  /** Until something is heard, or it is time to ask again: then true. */
  #pause(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const go = (isLate: boolean): void => {
        clearTimeout(timer);
        forget();
        this.#waiting.delete(wake);
        resolve(isLate);
      };
      const wake = (): void => go(false);
      const forget = onAbort(signal, wake);
      const timer = setTimeout(() => go(true), this.#pollMs());
      this.#waiting.add(wake);
    });
  }

  /** A listen may break without a word: even then it is asked from time to time. */
  #pollMs(): number {
    if (this.#isHeard) return LONGEST_POLL_MS;
    const wanted = this.#state["pollIntervalMs"];
    const ms = typeof wanted === "number" && wanted > 0 ? wanted : POLL_MS;
    return Math.min(Math.max(ms, SHORTEST_POLL_MS), LONGEST_POLL_MS);
  }
}

/** Whether what a caller may see can differ from one of its messages to the next. */
export function isProved({ principal, scopes }: Caller): boolean {
  return principal !== undefined || scopes !== undefined;
}
