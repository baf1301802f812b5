// The tasks that a session remembers: for how long, and how many.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Context } from "../core/handler.ts";
import { NEWEST } from "../protocol/revisions/index.ts";
import { fakeCaller } from "../../test/support/handlers/fake-client.ts";
import { TaskTable } from "./store.ts";
import { TaskWatch } from "./watch.ts";

const context: Context = {
  revision: NEWEST.name,
  caller: fakeCaller(),
  signal: new AbortController().signal,
  notify: () => undefined,
  ask: () => Promise.reject(new Error("Not asked")),
};

function task(taskId: string, status = "working", ttlMs: number | null = 1_000): TaskWatch {
  const handler = (): Promise<never> => Promise.reject(new Error("Nothing is asked for"));
  return new TaskWatch(handler, context, { taskId, status, ttlMs });
}

const idsOf = (table: TaskTable<TaskWatch>): readonly string[] => table.keys();

describe("TaskTable", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("TaskTable has the tasks in order", () => {
    const table = new TaskTable<TaskWatch>(() => undefined, 10);
    for (const id of ["a", "b"]) table.add(task(id));
    expect(idsOf(table)).toEqual(["a", "b"]);
    expect(table.get("a")?.id).toBe("a");
    expect(table.get("none")).toBeUndefined();
  });

  it("TaskTable drops expired tasks, and those without expiry when it is closed", () => {
    const dropped: string[] = [];
    const table = new TaskTable<TaskWatch>(({ id }) => void dropped.push(id), 10);
    table.add(task("a"));
    table.add(task("b", "working", null));
    vi.advanceTimersByTime(999);
    expect(table.keys()).toHaveLength(2);
    vi.advanceTimersByTime(1);
    expect(table.get("a")).toBeUndefined();
    expect(idsOf(table)).toEqual(["b"]);
    table.close();
    table.add(task("late"));
    expect(table.keys()).toEqual([]);
    expect(dropped).toEqual(["a", "b", "late"]);
  });

  it("TaskTable evicts the oldest finished task, or the oldest of all", () => {
    const table = new TaskTable<TaskWatch>(() => undefined, 1_000);
    for (let n = 0; n < 1_000; n += 1) table.add(task(String(n)));
    table.get("5")?.update({ taskId: "5", status: "completed" });
    table.add(task("new"));
    table.add(task("newer"));
    expect(table.keys()).toHaveLength(1_000);
    expect(table.get("5")).toBeUndefined();
    expect(table.get("0")).toBeUndefined();
    expect(table.get("1")).toBeDefined();
  });
});
