// Watches one task of a handler from the caller's side: keeps its last known state, and waits for changes. It
// subscribes if the handler allows that. Otherwise it polls at the interval that the handler asks for, and all waiting
// requests share these polls. A few connection failures in a row are tolerated. A finished task is not polled again,
// except for authenticated callers, since only the handler knows whether they may still see it.

import type { Context, Caller, Handler, Notification, Request } from "../core/handler.ts";
import { ConnectionError } from "../core/errors.ts";
import { attempt, ignoreRejection, abortable, pause } from "../core/async.ts";
import { isObject } from "../core/values.ts";
import { INVALID_PARAMS, McpError, errorKind } from "../protocol/errors.ts";
import type { Json } from "../protocol/revision.ts";
import { isTaskFinished } from "../protocol/tasks.ts";
import type { WatchedTask } from "./store.ts";

const DEFAULT_POLL_MS = 1_000;
const MIN_POLL_MS = 100;
const MAX_POLL_MS = 3_600_000;
/** Polling continues at this pace during a subscription, which may break without notice. */
const SUBSCRIBED_POLL_MS = 60_000;
/** Connection failures in a row before waiting fails. */
const MAX_FAILURES = 3;

/** A pause until something may have changed, shared by all waiters. */
interface Wait {
  readonly ended: Promise<void>;
  readonly woken: AbortController;
  waiters: number;
}

export class TaskWatch implements WatchedTask {
  readonly id: string;
  readonly scopes: readonly string[] = [];
  readonly #handler: Handler;
  /** The context of a caller that has declared tasks. It belongs to no single call, since a task outlives its call. */
  readonly #context: Context;
  readonly #onChange: (state: Json) => void;
  readonly #since = performance.now();
  #state: Json;
  /** When the state was last confirmed. */
  #updatedAt = performance.now();
  #wait: Wait | undefined;
  #subscription: AbortController | undefined;
  #isSubscribed = false;
  /** Changes before the subscription was acknowledged may have been missed. */
  #mayHaveMissed = false;
  #isClosed = false;
  #events = 0;
  #failures = 0;

  constructor(handler: Handler, context: Context, state: Json, onChange: (state: Json) => void = () => undefined) {
    const id = state["taskId"];
    if (typeof id !== "string") throw McpError.of("internal_error", "The server created a task without an id");
    this.id = id;
    this.#handler = handler;
    this.#context = context;
    this.#state = state;
    this.#onChange = onChange;
  }

  /** The task with the fields that belong to its status, in the shape of the newest revision. */
  get state(): Json {
    return this.#state;
  }

  get isFinished(): boolean {
    return isTaskFinished(this.#state["status"]);
  }

  /** Whether changes arrive without polling. */
  get isSubscribed(): boolean {
    return this.#isSubscribed;
  }

  /** Whether the last update is more recent than the poll interval. */
  get isFresh(): boolean {
    const { status, inputRequests, pollIntervalMs } = this.#state;
    if (status === "input_required" && !isObject(inputRequests)) return false;
    return typeof pollIntervalMs === "number" && performance.now() < this.#updatedAt + pollIntervalMs;
  }

  /** Fetches the state. Throws if the caller of this context may not see it. */
  async refresh(context: Context = this.#context): Promise<Json> {
    if (this.isFinished && !hasIdentity(context.caller)) return this.#state;
    const events = this.#events;
    const mayHaveMissed = this.#mayHaveMissed;
    const request: Request = { method: "tasks/get", params: { taskId: this.id } };
    const { resultType: _complete, ...state } = await attempt(() => this.#handler(request, context)).catch((error) => {
      throw this.#explain(error);
    });
    // A notification that came meanwhile may be newer than the answer.
    if (events === this.#events) this.update(state);
    this.#updatedAt = performance.now();
    if (mayHaveMissed) this.#caughtUp();
    return this.#state;
  }

  /** Fetches the state for a waiter, tolerating a few connection failures. Throws if waiting is pointless. */
  async poll(context: Context = this.#context): Promise<void> {
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
    if (!this.isFinished && this.#leftMs() <= 0) {
      const ttl = String(this.#state["ttlMs"]);
      throw new ConnectionError(
        "timeout",
        `The task ${this.id} was not finished within the ${ttl} ms that the server gave it`,
      );
    }
  }

  /** Sets the state. A finished task does not change any more. */
  update(state: Json): void {
    if (this.isFinished || !isObject(state) || JSON.stringify(state) === JSON.stringify(this.#state)) return;
    this.#state = state;
    this.#onChange(state);
    this.wake();
    if (this.isFinished) this.close();
  }

  /** Subscribes to changes, if the handler allows it. */
  subscribe(): void {
    if (this.isFinished || this.#isClosed || this.#subscription !== undefined) return;
    const stop = new AbortController();
    this.#subscription = stop;
    const notify = (notification: Notification): void => {
      if (!stop.signal.aborted) this.#onNotification(notification);
    };
    const context: Context = { ...this.#context, signal: stop.signal, notify };
    const params = { notifications: { taskIds: [this.id] } };
    const ended = (): void => {
      if (this.#subscription !== stop) return;
      this.#subscription = undefined;
      this.#isSubscribed = false;
      this.wake();
    };
    attempt(() => this.#handler({ method: "subscriptions/listen", params }, context)).then(ended, ended);
  }

  /** From now on the task is only polled. */
  unsubscribe(): void {
    this.#subscription?.abort(new Error("The subscription to the task was ended"));
    this.#subscription = undefined;
    this.#isSubscribed = false;
  }

  /** Resolves when the state may have changed; rejects when the signal is aborted, or the state cannot be fetched. */
  async changed(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.isFinished) return;
    const wait = (this.#wait ??= this.#startWait());
    wait.waiters += 1;
    try {
      await abortable(signal, wait.ended);
    } finally {
      wait.waiters -= 1;
      if (wait.waiters === 0) this.#end(wait);
    }
  }

  /** Calls `onChange` for each change until the task ends, or `onLost` if polling fails. Returns a stop function. */
  follow(onChange: (state: Json) => void, onLost: (error: unknown) => void = () => undefined): () => void {
    const stop = new AbortController();
    let last = this.#state;
    const run = async (): Promise<void> => {
      while (!isTaskFinished(last["status"])) {
        await this.changed(stop.signal);
        if (this.#state === last || stop.signal.aborted) continue;
        last = this.#state;
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
    if (this.#wait !== undefined) this.#end(this.#wait);
  }

  #end(wait: Wait): void {
    if (this.#wait === wait) this.#wait = undefined;
    wait.woken.abort();
  }

  close(): void {
    this.#isClosed = true;
    this.unsubscribe();
  }

  #onNotification({ method, params }: Notification): void {
    if (method === "notifications/subscriptions/acknowledged") {
      const granted = isObject(params?.["notifications"]) ? params["notifications"]["taskIds"] : undefined;
      this.#isSubscribed = Array.isArray(granted) && granted.includes(this.id);
      this.#mayHaveMissed = this.#isSubscribed;
      // The refresh is deferred, since the handler may send the state right after the acknowledgement. It is not needed
      // if the state is fresh and a caller waits for a change, since the wait ends with a poll.
      queueMicrotask(() => {
        if (this.#isSubscribed && this.#mayHaveMissed && !(this.isFresh && this.#wait !== undefined))
          this.refresh().catch(() => undefined);
      });
    } else if (method === "notifications/tasks" && params?.["taskId"] === this.id) {
      this.#events += 1;
      this.#failures = 0;
      this.#updatedAt = performance.now();
      this.update(params);
      this.#caughtUp();
    }
  }

  /** Called when the state is known to be current while subscribed. Waiters can switch to the longer pause. */
  #caughtUp(): void {
    if (!this.#mayHaveMissed) return;
    this.#mayHaveMissed = false;
    this.wake();
  }

  /** A pause that ends with a notification or with the next poll. */
  #startWait(): Wait {
    const woken = new AbortController();
    const polled = pause(this.#pauseMs(), woken.signal).then(() => this.poll());
    const ended = abortable(woken.signal, ignoreRejection(polled))
      .catch((error: unknown) => {
        if (!woken.signal.aborted) throw error;
      })
      .finally(() => {
        if (this.#wait === wait) this.#wait = undefined;
      });
    const wait: Wait = { ended: ignoreRejection(ended), waiters: 0, woken };
    return wait;
  }

  #pauseMs(): number {
    const interval = this.#state["pollIntervalMs"];
    const ms = (typeof interval === "number" && interval > 0 ? interval : DEFAULT_POLL_MS) * 2 ** this.#failures;
    const paced = this.#isSubscribed && !this.#mayHaveMissed ? Math.max(ms, SUBSCRIBED_POLL_MS) : ms;
    return Math.min(Math.max(Math.min(paced, this.#leftMs()), MIN_POLL_MS), MAX_POLL_MS);
  }

  /** What remains of the task's TTL, which is counted from when the watch began. */
  #leftMs(): number {
    const { ttlMs } = this.#state as { readonly ttlMs?: unknown };
    // A TTL of 0 makes no sense, so it is ignored.
    return typeof ttlMs === "number" && ttlMs > 0 ? this.#since + ttlMs - performance.now() : Infinity;
  }

  #explain(error: unknown): unknown {
    if (!(error instanceof McpError) || error.code !== INVALID_PARAMS) return error;
    // The handler may use another watch, which has explained the error.
    if (error.cause instanceof McpError) return error;
    const { status } = this.#state;
    const text = `The server no longer knows the task ${this.id}, last seen ${String(status)}: it has expired, or was lost`;
    return McpError.of("invalid_params", `${text} (${error.message})`, { taskId: this.id }, { cause: error });
  }
}

/** A task that is kept in a table. */
export interface KnownTask {
  readonly watch: TaskWatch;
  /** Who created the task or asked for it first. */
  readonly caller: Caller;
}

/** Tasks by id, oldest first, up to a limit. A task is dropped when its lifetime is over. */
export class TaskTable<Task extends KnownTask> {
  readonly #tasks = new Map<string, { readonly task: Task; readonly expires: number }>();
  readonly #max: number;
  readonly #onDrop: (task: Task) => void;
  #isClosed = false;

  constructor(max: number, onDrop: (task: Task) => void = ({ watch }) => watch.close()) {
    this.#max = max;
    this.#onDrop = onDrop;
  }

  /** If the table is full, drops the oldest finished task, or the oldest if none is finished. */
  add(task: Task): Task {
    const all = this.all();
    const oldest = all.length >= this.#max ? (all.find(({ watch }) => watch.isFinished) ?? all[0]) : undefined;
    if (oldest !== undefined) this.drop(oldest);
    const { ttlMs } = task.watch.state as { readonly ttlMs?: unknown };
    const expires = typeof ttlMs === "number" && ttlMs > 0 ? performance.now() + ttlMs : Infinity;
    this.#tasks.set(task.watch.id, { task, expires });
    if (this.#isClosed) this.drop(task);
    return task;
  }

  get(id: string): Task | undefined {
    const known = this.#tasks.get(id);
    if (known === undefined || known.expires > performance.now()) return known?.task;
    this.drop(known.task);
    return undefined;
  }

  all(): Task[] {
    return [...this.#tasks.keys()].flatMap((id) => this.get(id) ?? []);
  }

  drop(task: Task): void {
    this.#tasks.delete(task.watch.id);
    this.#onDrop(task);
  }

  /** Drops all tasks, and those that are added later. */
  close(): void {
    this.#isClosed = true;
    for (const task of this.all()) this.drop(task);
  }
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
