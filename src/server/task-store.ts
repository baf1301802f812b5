// Which tasks a server keeps, whose each is, and for how long. A task is found only by the principal that made it;
// for everybody else it is unknown. The number of tasks is bounded, in all and for each principal, and so is their
// life; one sweeper serves all of them. What a task does is not known here.

import { unref } from "../core/async.ts";
import type { Caller } from "../core/context.ts";
import { Task } from "./task.ts";
import type { TaskLimits, TaskOptions } from "./task-options.ts";

const SWEEP_MS = 1_000;

export interface Held {
  readonly task: Task;
  readonly principal: string | undefined;
  /** What its tool needs, and so whoever asks about it. */
  readonly scopes: readonly string[] | undefined;
  readonly expires: number;
  /** A tool may ignore its signal: it takes up room until it has ended and its task is forgotten. */
  ended: boolean;
  forgotten: boolean;
}

export class TaskStore {
  readonly #limits: Required<TaskLimits>;
  readonly #held = new Map<string, Held>();
  /** How much room is taken up, in all and by each principal. */
  readonly #taken = new Map<string | undefined, number>();
  #all = 0;
  #sweeper: NodeJS.Timeout | undefined;

  constructor(limits: TaskLimits) {
    this.#limits = {
      max: limits.max ?? 1_000,
      maxPerCaller: limits.maxPerCaller ?? 100,
      ttlMs: limits.ttlMs ?? 3_600_000,
      maxTtlMs: limits.maxTtlMs ?? 86_400_000,
      pollIntervalMs: limits.pollIntervalMs ?? 1_000,
    };
  }

  hasRoom({ principal }: Caller): boolean {
    return this.#all < this.#limits.max && (this.#taken.get(principal) ?? 0) < this.#limits.maxPerCaller;
  }

  /** A new task, whose tool hears `stop`; undefined where there is no room. */
  add(
    stop: AbortController,
    options: TaskOptions,
    caller: Caller,
    scopes: readonly string[] | undefined,
  ): Held | undefined {
    if (!this.hasRoom(caller)) return undefined;
    const { ttlMs, maxTtlMs, pollIntervalMs } = this.#limits;
    const task = new Task(stop, {
      ttlMs: Math.min(options.ttlMs ?? ttlMs, maxTtlMs),
      pollIntervalMs: options.pollIntervalMs ?? pollIntervalMs,
    });
    const { principal } = caller;
    const expires = performance.now() + task.ttlMs;
    const held: Held = { task, principal, scopes, expires, ended: false, forgotten: false };
    this.#held.set(task.id, held);
    this.#take(principal, 1);
    this.#sweeper ??= unref(setInterval(() => this.#sweep(), SWEEP_MS));
    return held;
  }

  find(id: unknown, { principal }: Caller): Held | undefined {
    const held = this.#held.get(id as string);
    if (held === undefined || held.principal !== principal) return undefined;
    if (held.expires > performance.now()) return held;
    this.#expire(held);
    return undefined;
  }

  /** All of this principal, in the order in which they began. */
  all({ principal }: Caller): readonly Held[] {
    const now = performance.now();
    return [...this.#held.values()].filter((held) => held.principal === principal && held.expires > now);
  }

  /** The tool's work has ended, in whatever way. */
  ended(held: Held): void {
    held.ended = true;
    if (held.forgotten) this.#take(held.principal, -1);
  }

  close(): void {
    for (const held of this.#held.values()) {
      held.task.cancel("The server is closing");
      this.#forget(held);
    }
  }

  #take(principal: string | undefined, count: 1 | -1): void {
    this.#all += count;
    const taken = (this.#taken.get(principal) ?? 0) + count;
    if (taken === 0) this.#taken.delete(principal);
    else this.#taken.set(principal, taken);
  }

  #sweep(): void {
    const now = performance.now();
    for (const held of this.#held.values()) if (held.expires <= now) this.#expire(held);
  }

  #expire(held: Held): void {
    held.task.expire();
    this.#forget(held);
  }

  #forget(held: Held): void {
    if (!this.#held.delete(held.task.id)) return;
    held.forgotten = true;
    if (held.ended) this.#take(held.principal, -1);
    if (this.#held.size > 0) return;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
  }
}
