// Watches one task of a handler from the caller's side: keeps its last known state, and waits for changes. It
// subscribes if the handler allows that. Otherwise it polls at the interval that the handler asks for, and all waiting
// requests share these polls. A few connection failures in a row are tolerated. A finished task is not polled again,
// except for authenticated callers, since only the handler knows whether they may still see it.

import { abortable, attempt, type Deferred, deferred, ignoreRejection } from "../core/async.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Caller, Context, Handler, Notification, Request } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { errorKind, INVALID_PARAMS, McpError } from "../protocol/errors.ts";
import type { Json } from "../protocol/revision.ts";
import { grantedIn, listenRequest, namesIn, TASK_CHANGED } from "../protocol/subscription.ts";
import { isTaskFinished } from "../protocol/tasks.ts";
import type { WatchedTask } from "./store.ts";

const DEFAULT_POLL_MS = 1_000;
const MIN_POLL_MS = 100;
const MAX_POLL_MS = 3_600_000;
/** Polling continues at this pace during a subscription, which may break without notice. */
const SUBSCRIBED_POLL_MS = 60_000;
/** Connection failures in a row before waiting fails. */
const MAX_FAILURES = 3;

/** A pause until something may have changed, shared by all that wait. It ends with a notification or the next poll. */
interface Pause {
  readonly over: Deferred<void>;
  readonly timer: NodeJS.Timeout;
  waiting: number;
}

export class TaskWatch implements WatchedTask {
  readonly id: string;
  readonly scopes: readonly string[] = [];
  readonly handler: Handler;
  /** The context of a caller that has declared tasks. It belongs to no single call, since a task outlives its call. */
  readonly context: Context;
  readonly #onChange: ((state: Json) => void) | undefined;
  readonly #since = performance.now();
  /** The task with the fields that belong to its status, in the shape of the newest revision. */
  state: Json;
  /** When the state was last confirmed. */
  #updatedAt = performance.now();
  #pause: Pause | undefined;
  #subscription: AbortController | undefined;
  /** "behind": the state may be older than the acknowledgement of the subscription. */
  #subscribed: "no" | "behind" | "current" = "no";
  #isClosed = false;
  #events = 0;
  #failures = 0;

  constructor(handler: Handler, context: Context, state: Json, onChange?: (state: Json) => void) {
    const id = state["taskId"];
    if (typeof id !== "string") throw McpError.of("internal_error", "The server created a task without an id");
    this.id = id;
    this.handler = handler;
    this.context = context;
    this.state = state;
    this.#onChange = onChange;
  }

  /** Who created the task or asked for it first. */
  get caller(): Caller {
    return this.context.caller;
  }

  get isFinished(): boolean {
    return isTaskFinished(this.state["status"]);
  }

  /** Whether changes arrive without polling. */
  get isSubscribed(): boolean {
    return this.#subscribed !== "no";
  }

  /** Whether the last update is more recent than the poll interval. */
  get isFresh(): boolean {
    const { status, inputRequests, pollIntervalMs } = this.state;
    if (status === "input_required" && !isObject(inputRequests)) return false;
    return typeof pollIntervalMs === "number" && performance.now() < this.#updatedAt + pollIntervalMs;
  }

  /** Fetches the state. Throws if the caller of this context may not see it. */
  async refresh(context: Context = this.context): Promise<Json> {
    if (this.isFinished && !hasIdentity(context.caller)) return this.state;
    const events = this.#events;
    const isBehind = this.#subscribed === "behind";
    const state = await this.fetch(context).catch((error: unknown) => {
      throw this.#explain(error);
    });
    // A notification that came meanwhile may be newer than the answer.
    if (events === this.#events) this.update(state);
    this.#updatedAt = performance.now();
    if (isBehind) this.#caughtUp();
    return this.state;
  }

  protected async fetch(context: Context): Promise<Json> {
    const { resultType: _complete, ...state } = await this.handler(taskRequest("tasks/get", this.id), context);
    return state;
  }

  /** Fetches the state for a waiter, tolerating a few connection failures. Throws if waiting is pointless. */
  async poll(context: Context = this.context): Promise<void> {
    try {
      await this.refresh(context);
      this.#failures = 0;
    } catch (error) {
      this.#failures += 1;
      if (!isTemporary(error) || this.#failures > MAX_FAILURES) {
        this.#failures = 0;
        throw error;
      }
    }
    if (this.isFinished || this.#leftMs() > 0) return;
    const ttl = String(this.state["ttlMs"]);
    const problem = `The task ${this.id} was not finished within the ${ttl} ms that the server gave it`;
    throw new ConnectionError("timeout", problem);
  }

  /** Sets the state. A finished task does not change any more. */
  update(state: Json): void {
    if (this.isFinished || !isObject(state) || JSON.stringify(state) === JSON.stringify(this.state)) return;
    this.state = state;
    this.#onChange?.(state);
    this.wake();
    if (this.isFinished) this.close();
  }

  /** Reports the task as cancelled at once, since its server may stop it late or never. */
  setCancelled(statusMessage = "The task was cancelled by request"): void {
    const { inputRequests: _asked, ...state } = this.state;
    this.update({ ...state, status: "cancelled", statusMessage, lastUpdatedAt: new Date().toISOString() });
  }

  /** Subscribes to changes, if the handler allows it. */
  subscribe(): void {
    if (this.isFinished || this.#isClosed || this.#subscription !== undefined) return;
    const stop = new AbortController();
    this.#subscription = stop;
    const notify = (notification: Notification): void => {
      if (!stop.signal.aborted) this.#onNotification(notification);
    };
    const ended = (): void => {
      if (this.#subscription !== stop) return;
      this.unsubscribe();
      this.wake();
    };
    const context: Context = { ...this.context, signal: stop.signal, notify };
    attempt(() => this.handler(listenRequest({ taskIds: [this.id] }), context)).then(ended, ended);
  }

  /** From now on the task is only polled. */
  unsubscribe(): void {
    this.#subscription?.abort(new Error("The subscription to the task was ended"));
    this.#subscription = undefined;
    this.#subscribed = "no";
  }

  /** Resolves when the state may have changed; rejects when the signal is aborted, or the state cannot be fetched. */
  async changed(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.isFinished) return;
    const pause = (this.#pause ??= this.#startPause());
    pause.waiting += 1;
    try {
      await abortable(signal, pause.over.promise);
    } finally {
      pause.waiting -= 1;
      if (pause.waiting === 0) this.#end(pause);
    }
  }

  /** Calls `onChange` for each change until the task ends, or `onLost` if polling fails. Returns a stop function. */
  follow(onChange: (state: Json) => void, onLost: (error: unknown) => void = () => undefined): () => void {
    const stop = new AbortController();
    let last = this.state;
    const run = async (): Promise<void> => {
      while (!isTaskFinished(last["status"])) {
        await this.changed(stop.signal);
        if (this.state === last || stop.signal.aborted) continue;
        last = this.state;
        onChange(last);
      }
    };
    run().catch((error: unknown) => {
      if (!stop.signal.aborted) onLost(error);
    });
    return () => stop.abort(new Error("The task is no longer followed"));
  }

  /** Lets all waiters look at the state again. */
  wake(): void {
    if (this.#pause !== undefined) this.#end(this.#pause);
  }

  close(): void {
    this.#isClosed = true;
    this.unsubscribe();
  }

  #onNotification(notification: Notification): void {
    const { method, params } = notification;
    const granted = grantedIn(notification);
    if (granted !== undefined) {
      this.#subscribed = namesIn(granted, "taskIds").includes(this.id) ? "behind" : "no";
      // The refresh is deferred, since the handler may send the state right after the acknowledgement. It is not needed
      // if the state is fresh and a caller waits for a change, since the pause ends with a poll.
      queueMicrotask(() => {
        if (this.#subscribed !== "behind" || (this.isFresh && this.#pause !== undefined)) return;
        void ignoreRejection(this.refresh());
      });
    } else if (method === TASK_CHANGED && params?.["taskId"] === this.id) {
      this.#events += 1;
      this.#failures = 0;
      this.#updatedAt = performance.now();
      this.update(params);
      this.#caughtUp();
    }
  }

  /** Called when the state is known to be current while subscribed. Waiters can switch to the longer pause. */
  #caughtUp(): void {
    if (this.#subscribed !== "behind") return;
    this.#subscribed = "current";
    this.wake();
  }

  #startPause(): Pause {
    const over = deferred();
    const poll = (): void =>
      void this.poll().then(
        () => this.#end(pause),
        (error: unknown) => {
          over.reject(error);
          this.#end(pause);
        },
      );
    const pause: Pause = { over, timer: setTimeout(poll, this.#pauseMs()), waiting: 0 };
    return pause;
  }

  #end(pause: Pause): void {
    if (this.#pause === pause) this.#pause = undefined;
    clearTimeout(pause.timer);
    pause.over.resolve();
  }

  #pauseMs(): number {
    const interval = this.state["pollIntervalMs"];
    const ms = (typeof interval === "number" && interval > 0 ? interval : DEFAULT_POLL_MS) * 2 ** this.#failures;
    const paced = this.#subscribed === "current" ? Math.max(ms, SUBSCRIBED_POLL_MS) : ms;
    return Math.min(Math.max(Math.min(paced, this.#leftMs()), MIN_POLL_MS), MAX_POLL_MS);
  }

  /** What remains of the task's TTL, which is counted from when the watch began. */
  #leftMs(): number {
    const { ttlMs } = this.state;
    // A TTL of 0 makes no sense, so it is ignored.
    return typeof ttlMs === "number" && ttlMs > 0 ? this.#since + ttlMs - performance.now() : Infinity;
  }

  #explain(error: unknown): unknown {
    if (!(error instanceof McpError) || error.code !== INVALID_PARAMS) return error;
    // The handler may use another watch, which has explained the error.
    if (error.cause instanceof McpError) return error;
    const { status } = this.state;
    const text = `The server no longer knows the task ${this.id}, last seen ${String(status)}: it has expired, or was lost`;
    return McpError.of("invalid_params", `${text} (${error.message})`, { taskId: this.id }, { cause: error });
  }
}

/** A request about one task. */
export function taskRequest(method: string, taskId: string, more?: Json): Request {
  return { method, params: { taskId, ...more } };
}

/**
 * The state of a task that was just created. If it is already finished, its outcome still has to be fetched. This is
 * done at once, since a state without a poll interval is never fresh.
 */
export function initialTaskState(created: Json): Json {
  const { resultType: _kind, _meta, ...state } = created;
  if (!isTaskFinished(state["status"])) return state;
  const { pollIntervalMs: _interval, ...unfetched } = state;
  return { ...unfetched, status: "working" };
}

/** Whether only the connection failed, here or behind a gateway, so that the next attempt may succeed. */
function isTemporary(error: unknown): boolean {
  if (error instanceof ConnectionError) return error.isTemporary;
  const kind = errorKind(error);
  return kind === "timeout" || kind === "unreachable";
}

/** Whether the caller is authenticated. If so, what it may see can differ from one of its messages to the next. */
export function hasIdentity({ principal, scopes }: Caller): boolean {
  return principal !== undefined || scopes !== undefined;
}

/** Throws unless the caller has all scopes that `creator` had. Which of them the tool needed is not known here. */
export function checkTaskScopes(caller: Caller, creator: Caller): void {
  const { scopes = [] } = creator;
  if (scopes.every((scope) => caller.scopes?.includes(scope))) return;
  throw McpError.of("access_denied", "The task needs the scopes of the call that made it", { requiredScopes: scopes });
}
