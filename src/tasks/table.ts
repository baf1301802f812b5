// The tasks of a server, a session or a client, by id. A task is dropped when its lifetime is over.

import { ExpiringMap } from "../core/expiring-map.ts";
import { isTaskFinished } from "../protocol/tasks.ts";
import type { WatchedTask } from "./store.ts";

/** Oldest first, up to a limit. */
export class TaskTable<Task extends WatchedTask> extends ExpiringMap<string, Task> {
  readonly #max: number;
  readonly #onDrop: (task: Task) => void;
  #isClosed = false;

  constructor(onDrop: (task: Task) => void, max = Infinity) {
    super({ onExpired: onDrop });
    this.#max = max;
    this.#onDrop = onDrop;
  }

  /** If the table is full, drops the oldest finished task, or the oldest if none is finished. */
  add(task: Task): Task {
    if (this.size >= this.#max) {
      const all = this.values();
      const oldest = all.find(({ state }) => isTaskFinished(state["status"])) ?? all[0];
      if (all.length >= this.#max && oldest !== undefined) this.drop(oldest);
    }
    const { ttlMs } = task.state as { readonly ttlMs?: unknown };
    this.set(task.id, task, typeof ttlMs === "number" && ttlMs > 0 ? ttlMs : Infinity);
    if (this.#isClosed) this.drop(task);
    return task;
  }

  drop(task: Task): void {
    if (this.delete(task.id)) this.#onDrop(task);
  }

  /** Drops all tasks, and those that are added later. */
  close(): void {
    this.#isClosed = true;
    for (const task of this.values()) this.drop(task);
    this.clear();
  }
}
