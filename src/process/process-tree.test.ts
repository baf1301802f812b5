// Which processes belong to a child: its group, and strays that carry its mark.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it, vi } from "vitest";
import { eventually } from "../../test/support/waiting.ts";
import { findDescendants, type Process, ProcessTree } from "./process-tree.ts";

let all: Process[] = [];
const list = (): Promise<Process[]> => Promise.resolve(all);

function one(pid: number, group: number, marks = ""): Process {
  return { pid, group, marks };
}

it("a process tree is the group and all processes with its mark, also among outer or inner marks", async () => {
  all = [one(50, 50, "m"), one(51, 50), one(60, 60, "outer.m"), one(61, 61, "m.inner"), one(62, 62, "mm"), one(63, 63)];
  const live = await new ProcessTree(50, "m", list).findLive();
  expect(live.pids).toEqual([50, 51, 60, 61]);
  expect(live).toMatchObject({ group: true, strays: [60, 61] });
});

it("a process tree keeps its group after the leader exits while it has a member", async () => {
  const tree = new ProcessTree(50, "m", list);
  tree.hasLeaderExited = true;
  all = [one(51, 50)];
  expect(await tree.findLive()).toMatchObject({ group: true, pids: [51] });
  all = [one(52, 50, "m")];
  expect(await tree.findLive()).toMatchObject({ group: true, pids: [52] });
});

it("a process tree never signals a group whose id was reused", async () => {
  const tree = new ProcessTree(50, "m", list);
  tree.hasLeaderExited = true;
  all = [one(70, 70, "m")];
  await tree.findLive();
  all = [one(50, 50, "other"), one(55, 50), one(70, 70, "m")];
  const live = await tree.findLive();
  expect(live).toEqual({ group: false, strays: [70], pids: [70] });
  const kill = vi.spyOn(process, "kill").mockReturnValue(true);
  tree.signal(live, "SIGKILL");
  expect(kill.mock.calls).toEqual([[70, "SIGKILL"]]);
  kill.mockRestore();
});

it("a process tree is the group alone without /proc", async () => {
  const leader = spawn("sh", ["-c", "echo; exec sleep 1000"], { detached: true });
  await once(leader.stdout, "data");
  const tree = new ProcessTree(leader.pid ?? 0, "m", () => Promise.resolve(undefined));
  const live = await tree.findLive();
  expect(live).toMatchObject({ group: true, strays: [] });
  const exit = once(leader, "exit");
  tree.signal(live, "SIGKILL");
  await exit;
  tree.hasLeaderExited = true;
  await eventually(async () => expect((await tree.findLive()).pids).toEqual([]));
});

it.runIf(process.platform === "linux")("the descendants of a process are its children and theirs", async () => {
  const parent = spawn("sh", ["-c", "sh -c 'sleep 1000 & echo $! $$; wait' & wait"], { detached: true });
  const [line] = (await once(parent.stdout, "data")) as [Buffer];
  const [leaf, child] = line.toString().trim().split(" ").map(Number);
  expect(findDescendants(parent.pid ?? 0)).toEqual([parent.pid, child, leaf]);
  const exit = once(parent, "exit");
  process.kill(-(parent.pid ?? 0), "SIGKILL");
  await exit;
  expect(findDescendants(parent.pid ?? 0)).toEqual([parent.pid]);
});
