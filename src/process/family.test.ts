// Who belongs to a child: its group, and the strays that bear its mark.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { Process } from "./census.ts";
import { Family } from "./family.ts";

const stage = { all: [] as Process[], now: 0 };
const eyes = { census: () => Promise.resolve(stage.all), ticksNow: () => stage.now };

function one(pid: number, group: number, began: number, marks = ""): Process {
  return { pid, group, session: group, began, marks };
}

describe("a family", () => {
  beforeEach(() => {
    stage.all = [];
    stage.now = 1_000;
  });

  it("is its group and whoever bears its mark, also under outer or inner marks", async () => {
    stage.all = [
      one(50, 50, 10, "m"),
      one(51, 50, 11),
      one(60, 60, 12, "outer.m"),
      one(61, 61, 12, "m.inner"),
      one(62, 62, 12, "mm"),
      one(63, 63, 12),
    ];
    const living = await new Family(50, "m", eyes).living();
    expect(living.pids).toEqual([50, 51, 60, 61]);
    expect(living).toMatchObject({ group: true, strays: [60, 61] });
  });

  it("keeps its group after the leader's end while a member is marked or older than that end", async () => {
    const family = new Family(50, "m", eyes);
    family.leaderEnded();
    stage.all = [one(51, 50, 999)];
    expect(await family.living()).toMatchObject({ group: true, pids: [51] });
    stage.all = [one(52, 50, 1_200, "m")];
    expect(await family.living()).toMatchObject({ group: true, pids: [52] });
  });

  it("never signals a group whose number was given anew", async () => {
    const family = new Family(50, "m", eyes);
    family.leaderEnded();
    stage.all = [one(50, 50, 1_001, "other"), one(55, 50, 1_002), one(70, 70, 900, "m")];
    const living = await family.living();
    expect(living).toMatchObject({ count: 1, group: false, strays: [70] });
    const kill = vi.spyOn(process, "kill").mockReturnValue(true);
    family.signal(living, "SIGKILL");
    expect(kill.mock.calls).toEqual([[70, "SIGKILL"]]);
    kill.mockRestore();
  });

  it("knows its group alone where there is no /proc", async () => {
    const leader = spawn("sh", ["-c", "echo; exec sleep 1000"], { detached: true });
    await once(leader.stdout, "data");
    const family = new Family(leader.pid ?? 0, "m", { census: () => Promise.resolve(undefined), ticksNow: () => 0 });
    const living = await family.living();
    expect(living).toMatchObject({ group: true, strays: [] });
    const exit = once(leader, "exit");
    family.signal(living, "SIGKILL");
    await exit;
    family.leaderEnded();
    await vi.waitFor(async () => expect((await family.living()).count).toBe(0));
  });
});
