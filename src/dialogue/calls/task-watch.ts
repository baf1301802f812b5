// One task of a handler, seen from the caller's side: how it stood when something was last heard of it, and a way
// to wait until that may have changed. The handler is listened to where it grants that, and asked again and again,
// no faster than it wants however many wait, where it does not. That the way fails once is borne; that the task's time
// is up is not. Once a task is over nothing more is asked, because it cannot change, but for a caller of whom the wire
// proves something: whether that one may still see it, the handler alone knows.

import type { Context, Caller } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Handler, Notification, Request } from "../../core/handler.ts";
import { attempt, ignoreRejection, abortable } from "../../core/async.ts";
import { isObject } from "../../core/objects.ts";
import { McpError } from "../../protocol/errors.ts";
import type { Json } from "../../protocol/revision.ts";
import { isOver } from "../../protocol/tasks.ts";
import { kindOf } from "./errors.ts";

const POLL_MS = 1_000;
const SHORTEST_POLL_MS = 100;
const LONGEST_POLL_MS = 3_600_000;
/** A listen may break without a word: even then it is asked from time to time. */
const HEARD_POLL_MS = 60_000;
/** How often in a row the way may fail before the task is given up. */
const MOST_FAILURES = 3;
const INVALID_PARAMS = -32602;

/** Errors that say already what became of the task: one watch may stand behind another. */
const EXPLAINED = new WeakSet<Error>();

/** How tasks were made that were over already: what came of them can be asked for at once. */
const UNFETCHED = new WeakSet<Json>();

/** One pause until something may have changed, shared by all who wait. */
interface Turn {
  readonly over: Promise<void>;
  waiting: number;
  end(): void;
}

export class TaskWatch {
  readonly id: string;
  readonly #handler: Handler;
  /** Of a caller that has declared tasks; not of one call, for a task outlives them. */
  readonly #context: Context;
  /** Told how it stands, whenever that is heard. */
  readonly #told: (state: Json) => void;
  readonly #since = performance.now();
  #state: Json;
  /** When it was last heard how it stands. */
  #heardAt: number;
  #turn: Turn | undefined;
  #listening: AbortController | undefined;
  #isHeard = false;
  /** What happened before the listen was granted may have been missed. */
  #isBehind = false;
  #isClosed = false;
  #events = 0;
  #failures = 0;

  constructor(handler: Handler, context: Context, state: Json, told: (state: Json) => void = () => undefined) {
    const id = state["taskId"];
    if (typeof id !== "string") throw McpError.of("internal_error", "The end made a task that has no id");
    this.id = id;
    this.#handler = handler;
    this.#context = context;
    this.#state = state;
    this.#heardAt = UNFETCHED.has(state) ? -Infinity : performance.now();
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

  /** Whether it was heard how it stands so lately that the end does not want to be asked yet. */
  get isFresh(): boolean {
    const { status, inputRequests, pollIntervalMs } = this.#state;
    if (status === "input_required" && !isObject(inputRequests)) return false;
    return typeof pollIntervalMs === "number" && performance.now() < this.#heardAt + pollIntervalMs;
  }

  /** Asks how it stands. Throws where the caller of this context may not know. */
  async refresh(context: Context = this.#context): Promise<Json> {
    if (this.isOver && !isProved(context.caller)) return this.#state;
    const heard = this.#events;
    const isBehind = this.#isBehind;
    const request: Request = { method: "tasks/get", params: { taskId: this.id } };
    const { resultType: _complete, ...state } = await attempt(() => this.#handler(request, context)).catch((error) => {
      throw this.#explained(error);
    });
    // What was heard while we asked may be newer than the answer.
    if (heard === this.#events) this.take(state);
    this.#heardAt = performance.now();
    if (isBehind) this.#catchUp();
    return this.#state;
  }

  /** Asks for somebody who waits: once, or a few times where the way fails. Throws where there is no use in waiting. */
  async poll(context: Context = this.#context): Promise<void> {
    try {
      await this.refresh(context);
      this.#failures = 0;
    } catch (error) {
      this.#failures += 1;
      if (!isPassing(error) || this.#failures > MOST_FAILURES) {
        this.#failures = 0;
        throw error;
      }
    }
    if (!this.isOver && this.#leftMs() <= 0) {
      const ttl = String(this.#state["ttlMs"]);
      throw new ConnectionError(
        "timeout",
        `The task ${this.id} was not finished within the ${ttl} ms that the end gave it`,
      );
    }
  }

  /** How it stands now; of a task that is over, nothing else is believed. */
  take(state: Json): void {
    if (this.isOver || !isObject(state) || JSON.stringify(state) === JSON.stringify(this.#state)) return;
    this.#state = state;
    this.#told(state);
    this.wake();
    if (this.isOver) this.close();
  }

  /** Begins to listen, if the handler grants it. */
  listen(): void {
    if (this.isOver || this.#isClosed || this.#listening !== undefined) return;
    const stop = new AbortController();
    this.#listening = stop;
    const notify = (notification: Notification): void => {
      if (!stop.signal.aborted) this.#hear(notification);
    };
    const context: Context = { ...this.#context, signal: stop.signal, notify };
    const params = { notifications: { taskIds: [this.id] } };
    const unheard = (): void => {
      if (this.#listening !== stop) return;
      this.#listening = undefined;
      this.#isHeard = false;
      this.wake();
    };
    attempt(() => this.#handler({ method: "subscriptions/listen", params }, context)).then(unheard, unheard);
  }

  /** From now on it is only asked. */
  unlisten(): void {
    this.#listening?.abort(new Error("The task is no longer listened to"));
    this.#listening = undefined;
    this.#isHeard = false;
  }

  /** Resolves when it may stand otherwise than before; rejects when the signal is aborted, or it cannot be known. */
  async changed(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.isOver) return;
    const turn = (this.#turn ??= this.#begin());
    turn.waiting += 1;
    try {
      await abortable(signal, turn.over);
    } finally {
      turn.waiting -= 1;
      if (turn.waiting === 0) turn.end();
    }
  }

  /** Tells of every change until it is over; `lost` hears why nothing more can be told. Returns how to stop it. */
  follow(tell: (state: Json) => void, lost: (error: unknown) => void = () => undefined): () => void {
    const stop = new AbortController();
    let last = this.#state;
    const run = async (): Promise<void> => {
      while (!isOver(last["status"])) {
        await this.changed(stop.signal);
        if (this.#state === last || stop.signal.aborted) continue;
        last = this.#state;
        tell(last);
      }
    };
    run().catch((error: unknown) => {
      if (!stop.signal.aborted) lost(error);
    });
    return () => stop.abort(new Error("The task is no longer followed"));
  }

  /** Whoever waits looks again. */
  wake(): void {
    this.#turn?.end();
  }

  close(): void {
    this.#isClosed = true;
    this.unlisten();
  }

  #hear({ method, params }: Notification): void {
    if (method === "notifications/subscriptions/acknowledged") {
      const granted = isObject(params?.["notifications"]) ? params["notifications"]["taskIds"] : undefined;
      this.#isHeard = Array.isArray(granted) && granted.includes(this.id);
      this.#isBehind = this.#isHeard;
      // The handler may say at once how it stands; and whoever waits, or is about to, looks in any case when it is time.
      queueMicrotask(() => {
        if (this.#isHeard && this.#isBehind && !(this.isFresh && this.#turn !== undefined))
          this.refresh().catch(() => undefined);
      });
    } else if (method === "notifications/tasks" && params?.["taskId"] === this.id) {
      this.#events += 1;
      this.#failures = 0;
      this.#heardAt = performance.now();
      this.take(params);
      this.#catchUp();
    }
  }

  /** Nothing was missed, or it is known by now: whoever waits can do so for longer. */
  #catchUp(): void {
    if (!this.#isBehind) return;
    this.#isBehind = false;
    this.wake();
  }

  /** Until something is heard, or it was time to ask again and there is an answer. */
  #begin(): Turn {
    let settle = (_end: (resolve: () => void, reject: (error: unknown) => void) => void): void => undefined;
    const over = new Promise<void>((resolve, reject) => {
      settle = (end) => {
        clearTimeout(timer);
        if (this.#turn === turn) this.#turn = undefined;
        end(resolve, reject);
      };
    });
    const turn: Turn = { over: ignoreRejection(over), waiting: 0, end: () => settle((resolve) => resolve()) };
    const timer = setTimeout(() => {
      this.poll().then(
        () => turn.end(),
        (error: unknown) => settle((_resolve, reject) => reject(error)),
      );
    }, this.#pauseMs());
    return turn;
  }

  #pauseMs(): number {
    const wanted = this.#state["pollIntervalMs"];
    const ms = (typeof wanted === "number" && wanted > 0 ? wanted : POLL_MS) * 2 ** this.#failures;
    const paced = this.#isHeard && !this.#isBehind ? Math.max(ms, HEARD_POLL_MS) : ms;
    return Math.min(Math.max(Math.min(paced, this.#leftMs()), SHORTEST_POLL_MS), LONGEST_POLL_MS);
  }

  /** For how long the handler has to know of it, at least since we do. */
  #leftMs(): number {
    const { ttlMs } = this.#state as { readonly ttlMs?: unknown };
    // No time at all cannot be meant.
    return typeof ttlMs === "number" && ttlMs > 0 ? this.#since + ttlMs - performance.now() : Infinity;
  }

  #explained(error: unknown): unknown {
    if (!(error instanceof McpError) || error.code !== INVALID_PARAMS || EXPLAINED.has(error)) return error;
    const { status } = this.#state;
    const text = `The end no longer knows the task ${this.id}, last seen ${String(status)}: it has expired, or was lost`;
    const explained = McpError.of(
      "invalid_params",
      `${text} (${error.message})`,
      { taskId: this.id },
      { cause: error },
    );
    EXPLAINED.add(explained);
    return explained;
  }
}

/** How a task stands that was only just made. One that is over already has still to be asked for what came of it. */
export function seedOf(made: Json): Json {
  const { resultType: _kind, _meta, ...state } = made;
  if (!isOver(state["status"])) return state;
  const seed = { ...state, status: "working" };
  UNFETCHED.add(seed);
  return seed;
}

const PASSING: ReadonlySet<unknown> = new Set(["timeout", "http", "closed", "unreachable"]);

/** Whether it was the way that failed, so that it may go well the next time. */
function isPassing(error: unknown): boolean {
  return PASSING.has(error instanceof ConnectionError ? error.kind : kindOf(error));
}

// Who may see a task of which only its maker is known. Who speaks on a wire is proved anew with each message, and may
// be allowed less than before; what the tool itself needed, only its server knows.


/** Whether what a caller may see can differ from one of its messages to the next. */
export function isProved({ principal, scopes }: Caller): boolean {
  return principal !== undefined || scopes !== undefined;
}

/** What the tool needed is not known here: whoever was allowed as much as its caller is allowed to see what came of it. */
export function checkAllowed(now: Caller, then: Caller): void {
  const { scopes = [] } = then;
  if (scopes.every((scope) => now.scopes?.includes(scope))) return;
  throw McpError.of("access_denied", "The task needs the scopes of the call that made it", { requiredScopes: scopes });
}
