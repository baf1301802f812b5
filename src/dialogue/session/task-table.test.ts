// What a session remembers of tasks: for whom, for how long, and how many.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Context } from "../../core/handler.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { TaskTable } from "./client-tasks.ts";
import { TaskWatch } from "../calls/task-watch.ts";

const context: Context = {
  revision: NEWEST.name,
  caller: { capabilities: {} },
  signal: new AbortController().signal,
  notify: () => undefined,
  ask: () => Promise.reject(new Error("Nobody is asked")),
};

function watchOf(taskId: string, status = "working", ttlMs: number | null = 1_000): TaskWatch {
  return new TaskWatch(() => Promise.reject(new Error("Nothing is asked for")), context, { taskId, status, ttlMs });
}

const NOBODY = { capabilities: {} };
const ADA = { capabilities: {}, principal: "ada" };

describe("a table of tasks", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("shows each caller its own, in order", () => {
    const table = new TaskTable();
    for (const id of ["a", "b"]) table.add(watchOf(id), "job", ADA);
    table.add(watchOf("c"), "job", NOBODY);
    expect(table.all(ADA).map(({ key }) => key)).toEqual(["a", "b"]);
    expect(table.find("a", ADA)?.key).toBe("a");
    expect(table.find("a", NOBODY)).toBeUndefined();
    expect(table.find("c", ADA)).toBeUndefined();
    expect(table.find("none", ADA)).toBeUndefined();
  });

  it("forgets what has expired, and what never does only when it is closed", () => {
    const table = new TaskTable();
    table.add(watchOf("a"), "job", NOBODY);
    table.add(watchOf("b", "working", null), "job", NOBODY);
    vi.advanceTimersByTime(999);
    expect(table.all(NOBODY)).toHaveLength(2);
    vi.advanceTimersByTime(1);
    expect(table.find("a", NOBODY)).toBeUndefined();
    expect(table.all(NOBODY).map(({ key }) => key)).toEqual(["b"]);
    table.close();
    expect(table.all(NOBODY)).toEqual([]);
  });

  it("lets the oldest make room: one that is over, if there is one", () => {
    const table = new TaskTable();
    for (let n = 0; n < 1_000; n += 1) table.add(watchOf(String(n)), "job", NOBODY);
    table.find("5", NOBODY)?.watch.take({ taskId: "5", status: "completed" });
    table.add(watchOf("new"), "job", NOBODY);
    table.add(watchOf("newer"), "job", NOBODY);
    expect(table.all(NOBODY)).toHaveLength(1_000);
    expect(table.find("5", NOBODY)).toBeUndefined();
    expect(table.find("0", NOBODY)).toBeUndefined();
    expect(table.find("1", NOBODY)).toBeDefined();
  });

  it("keeps few of those whose results nobody else has", () => {
    const table = new TaskTable();
    table.add(watchOf("running"), "job", NOBODY);
    for (let n = 0; n < 150; n += 1) table.add(watchOf(String(n), "completed"), "job", NOBODY);
    expect(table.all(NOBODY).map(({ key }) => key)).toEqual([
      "running",
      ...Array.from({ length: 100 }, (_, n) => String(n + 50)),
    ]);
  });
});
