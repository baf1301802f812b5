// The tasks that a session has heard of, in the order in which it did: what it can list, and what it need not ask the
// handler for again. It is bounded; a task that had to make room can still be asked for by its id, but for one that
// was over when we heard of it, whose result nobody else has.

import type { Caller } from "../../core/context.ts";
import type { PageItem } from "../../protocol/pages.ts";
import { TaskQuestions } from "../calls/task-drive.ts";
import type { TaskWatch } from "../calls/task-watch.ts";

const MOST_TASKS = 1_000;
const MOST_LOCAL = 100;

export interface TaskEntry extends PageItem {
  readonly watch: TaskWatch;
  readonly questions: TaskQuestions;
  /** The name of the tool, for the text of errors. */
  readonly tool: unknown;
  readonly principal: string | undefined;
  /** Over when we heard of it. */
  readonly isLocal: boolean;
  readonly expires: number;
}

export class TaskTable {
  readonly #entries = new Map<string, TaskEntry>();
  #count = 0;
  #isClosed = false;

  add(watch: TaskWatch, tool: unknown, { principal }: Caller): TaskEntry {
    const { ttlMs } = watch.state as { ttlMs?: unknown };
    const expires = typeof ttlMs === "number" ? performance.now() + ttlMs : Infinity;
    const isLocal = watch.isOver;
    this.#sweep();
    this.#makeRoom(isLocal);
    const order = (this.#count += 1);
    const questions = new TaskQuestions();
    const entry: TaskEntry = { order, key: watch.id, watch, questions, tool, principal, isLocal, expires };
    if (this.#isClosed) watch.close();
    else this.#entries.set(watch.id, entry);
    return entry;
  }

  /** Who speaks in a session is proved anew with each message. */
  find(id: string, { principal }: Caller): TaskEntry | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.principal !== principal) return undefined;
    if (entry.expires > performance.now()) return entry;
    this.drop(entry);
    return undefined;
  }

  all(caller: Caller): readonly TaskEntry[] {
    this.#sweep();
    return [...this.#entries.values()].filter(({ principal }) => principal === caller.principal);
  }

  drop(entry: TaskEntry): void {
    entry.watch.close();
    this.#entries.delete(entry.key);
  }

  /** What is added from now on is neither kept nor watched. */
  close(): void {
    this.#isClosed = true;
    for (const entry of this.#entries.values()) this.drop(entry);
  }

  #sweep(): void {
    const now = performance.now();
    for (const entry of this.#entries.values()) if (entry.expires <= now) this.drop(entry);
  }

  /** The oldest makes room; one that is over, if there is one. */
  #makeRoom(forLocal: boolean): void {
    const all = [...this.#entries.values()];
    const local = forLocal ? all.filter(({ isLocal }) => isLocal) : [];
    const full = local.length >= MOST_LOCAL ? local : all.length >= MOST_TASKS ? all : [];
    const oldest = full.find(({ watch }) => watch.isOver) ?? full[0];
    if (oldest !== undefined) this.drop(oldest);
  }
}
