// The memory limit of a cgroup, on files that stand in for those of the kernel.

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { limitMemory, wasKilledForMemory } from "./sandbox-limit.ts";

let group = "";
beforeEach(async () => void (group = await mkdtemp(join(tmpdir(), "cgroup-"))));
afterEach(() => rm(group, { recursive: true }));

it("bounds the memory of a cgroup, without swap, and ends all its processes together", async () => {
  for (const name of ["memory.max", "memory.swap.max", "memory.oom.group"]) await writeFile(join(group, name), "");
  await limitMemory(group, 712);
  const read = (name: string): Promise<string> => readFile(join(group, name), "utf8");
  expect(await read("memory.max")).toBe(String(712 * 1024 * 1024));
  expect([await read("memory.swap.max"), await read("memory.oom.group")]).toEqual(["0", "1"]);
});

it("does without the memory controller", async () => {
  await limitMemory(group, 712);
  expect(wasKilledForMemory(group)).toBe(false);
});

it.each([
  ["oom 0\noom_kill 0\noom_group_kill 0\n", false],
  ["oom 1\noom_kill 12\noom_group_kill 1\n", true],
])("reads from the events %j whether the kernel has ended it: %s", async (events, isKilled) => {
  await writeFile(join(group, "memory.events"), `low 0\nhigh 0\nmax 40\n${events}`);
  expect(wasKilledForMemory(group)).toBe(isKilled);
});
