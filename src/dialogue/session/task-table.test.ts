// The tasks that a session remembers: for which caller, for how long, and how many.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Context } from "../../core/handler.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { TaskTable } from "./client-tasks.ts";
import { fakeCaller } from "../../../test/support/handlers/fake-client.ts";
import { TaskWatch } from "../calls/task-watch.ts";

const context: Context = {
  revision: NEWEST.name,
  caller: fakeCaller(),
  signal: new AbortController().signal,
  notify: () => undefined,
  ask: () => Promise.reject(new Error("Not asked")),
};

function watchOf(taskId: string, status = "working", ttlMs: number | null = 1_000): TaskWatch {
  return new TaskWatch(() => Promise.reject(new Error("Nothing is asked for")), context, { taskId, status, ttlMs });
}

const ANONYMOUS = fakeCaller();
const ADA = fakeCaller({ principal: "ada" });

describe("TaskTable", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("lists each caller's own tasks, in order", () => {
    const table = new TaskTable();
    for (const id of ["a", "b"]) table.add(watchOf(id), "job", ADA);
    table.add(watchOf("c"), "job", ANONYMOUS);
    expect(table.all(ADA).map(({ key }) => key)).toEqual(["a", "b"]);
    expect(table.find("a", ADA)?.key).toBe("a");
    expect(table.find("a", ANONYMOUS)).toBeUndefined();
    expect(table.find("c", ADA)).toBeUndefined();
    expect(table.find("none", ADA)).toBeUndefined();
  });

  it("drops expired tasks, and those without expiry when it is closed", () => {
    const table = new TaskTable();
    table.add(watchOf("a"), "job", ANONYMOUS);
    table.add(watchOf("b", "working", null), "job", ANONYMOUS);
    vi.advanceTimersByTime(999);
    expect(table.all(ANONYMOUS)).toHaveLength(2);
    vi.advanceTimersByTime(1);
    expect(table.find("a", ANONYMOUS)).toBeUndefined();
    expect(table.all(ANONYMOUS).map(({ key }) => key)).toEqual(["b"]);
    table.close();
    expect(table.all(ANONYMOUS)).toEqual([]);
  });

  it("evicts the oldest finished task, or the oldest of all", () => {
    const table = new TaskTable();
    for (let n = 0; n < 1_000; n += 1) table.add(watchOf(String(n)), "job", ANONYMOUS);
    table.find("5", ANONYMOUS)?.watch.update({ taskId: "5", status: "completed" });
    table.add(watchOf("new"), "job", ANONYMOUS);
    table.add(watchOf("newer"), "job", ANONYMOUS);
    expect(table.all(ANONYMOUS)).toHaveLength(1_000);
    expect(table.find("5", ANONYMOUS)).toBeUndefined();
    expect(table.find("0", ANONYMOUS)).toBeUndefined();
    expect(table.find("1", ANONYMOUS)).toBeDefined();
  });

  it("keeps only a few local tasks", () => {
    const table = new TaskTable();
    table.add(watchOf("running"), "job", ANONYMOUS);
    for (let n = 0; n < 150; n += 1) table.add(watchOf(String(n), "completed"), "job", ANONYMOUS);
    expect(table.all(ANONYMOUS).map(({ key }) => key)).toEqual([
      "running",
      ...Array.from({ length: 100 }, (_, n) => String(n + 50)),
    ]);
  });
});
