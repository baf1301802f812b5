// Which processes belong to a child: its group, and strays that carry its mark.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { parseUptime, type Process, ProcessTree } from "./process-tree.ts";

const system = { all: [] as Process[], now: 0 };
const source = { listProcesses: () => Promise.resolve(system.all), ticksNow: () => system.now };

function one(pid: number, group: number, startTicks: number, marks = ""): Process {
  return { pid, group, session: group, startTicks, marks };
}

describe("a process tree", () => {
  beforeEach(() => {
    system.all = [];
    system.now = 1_000;
  });

  it("is the group and all processes with its mark, also among outer or inner marks", async () => {
    system.all = [
      one(50, 50, 10, "m"),
      one(51, 50, 11),
      one(60, 60, 12, "outer.m"),
      one(61, 61, 12, "m.inner"),
      one(62, 62, 12, "mm"),
      one(63, 63, 12),
    ];
    const live = await new ProcessTree(50, "m", source).findLive();
    expect(live.pids).toEqual([50, 51, 60, 61]);
    expect(live).toMatchObject({ group: true, strays: [60, 61] });
  });

  it("keeps its group after the leader exits while a member is marked or older than that exit", async () => {
    const tree = new ProcessTree(50, "m", source);
    tree.leaderExited();
    system.all = [one(51, 50, 999)];
    expect(await tree.findLive()).toMatchObject({ group: true, pids: [51] });
    system.all = [one(52, 50, 1_200, "m")];
    expect(await tree.findLive()).toMatchObject({ group: true, pids: [52] });
  });

  it("never signals a group whose id was reused", async () => {
    const tree = new ProcessTree(50, "m", source);
    tree.leaderExited();
    system.all = [one(50, 50, 1_001, "other"), one(55, 50, 1_002), one(70, 70, 900, "m")];
    const live = await tree.findLive();
    expect(live).toMatchObject({ count: 1, group: false, strays: [70] });
    const kill = vi.spyOn(process, "kill").mockReturnValue(true);
    tree.signal(live, "SIGKILL");
    expect(kill.mock.calls).toEqual([[70, "SIGKILL"]]);
    kill.mockRestore();
  });

  it("is the group alone without /proc", async () => {
    const leader = spawn("sh", ["-c", "echo; exec sleep 1000"], { detached: true });
    await once(leader.stdout, "data");
    const tree = new ProcessTree(leader.pid ?? 0, "m", {
      listProcesses: () => Promise.resolve(undefined),
      ticksNow: () => 0,
    });
    const live = await tree.findLive();
    expect(live).toMatchObject({ group: true, strays: [] });
    const exit = once(leader, "exit");
    tree.signal(live, "SIGKILL");
    await exit;
    tree.leaderExited();
    await vi.waitFor(async () => expect((await tree.findLive()).count).toBe(0));
  });
});

it("parses every tick of an uptime exactly", () => {
  const wrong: string[] = [];
  for (let ticks = 912_000; ticks < 922_000; ticks += 1) {
    const text = `${Math.trunc(ticks / 100)}.${String(ticks % 100).padStart(2, "0")} 17000.01\n`;
    if (parseUptime(text) !== ticks) wrong.push(text);
  }
  // One tick too early would make a member of the tree look like a stranger.
  expect(wrong).toEqual([]);
});
