// Our process is killed, and its children still end.

import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { describe, expect, it } from "vitest";
import { eventually } from "../../test/support/waiting.ts";
import { compiledImport } from "../../test/support/programs.ts";
import { IS_LONG, sampleOf } from "../../test/support/thoroughness.ts";
import { listProcesses } from "./process-tree.ts";

/** The line that the process under test prints. */
interface Report {
  readonly marks: readonly string[];
  readonly groups?: readonly number[];
  readonly guardian: number;
}

const onLinux = process.platform === "linux";
const child = compiledImport("child.ts", import.meta.url);
const guardian = compiledImport("guardian.ts", import.meta.url);

/** Starts a child that ignores all but SIGKILL, and some with a grandchild: in the group, outside it, without the mark. */
const HOLDER = `
  import { createInterface } from "node:readline";
  import { startChild } from ${child};
  import { guardianPid } from ${guardian};
  const scripts = [
    "trap '' TERM HUP INT; echo ready; while :; do sleep 1000; done",
    "sleep 1000 & echo ready; sleep 1000",
    "setsid sh -c 'echo ready; sleep 1000; sleep 1000' & sleep 1000",
    "env -i /bin/sh -c 'echo ready; sleep 1000; sleep 1000' & sleep 1000",
  ];
  const marks = [];
  const groups = [];
  for (const script of scripts) {
    const child = await startChild({ command: "sh", args: ["-c", script] });
    marks.push(child.mark);
    groups.push(child.pid);
    for await (const line of createInterface({ input: child.stdout })) break;
  }
  console.log(JSON.stringify({ marks, groups, guardian: guardianPid() }));
`;

function start(script: string): ReturnType<typeof spawn> {
  const args = ["--input-type=module", "-e", script];
  return spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] });
}

async function readReport(holder: ReturnType<typeof spawn>): Promise<Report> {
  if (holder.stdout === null) throw new Error("no stdout");
  const [line] = (await once(createInterface({ input: holder.stdout }), "line")) as [string];
  return JSON.parse(line) as Report;
}

async function survivors({ marks, groups, guardian: pid }: Report): Promise<number[]> {
  const all = (await listProcesses()) ?? [];
  const ours = all.filter(
    (one) => one.pid === pid || groups?.includes(one.group) || marks.some((mark) => one.marks.includes(mark)),
  );
  return ours.map((one) => one.pid);
}

describe.runIf(onLinux)("the guardian", () => {
  it("the guardian kills the children of a process that was killed with -9", async () => {
    const holder = start(HOLDER);
    const report = await readReport(holder);
    // Six shells, at least three sleeps, and the guardian itself.
    await expect.poll(async () => (await survivors(report)).length).toBeGreaterThanOrEqual(10);
    holder.kill("SIGKILL");
    await once(holder, "exit");
    await eventually(async () => expect(await survivors(report)).toEqual([]), 20);
  });

  it.each(
    sampleOf(1, [
      ["process.exit", "process.exit(0)"],
      ["an uncaught exception", "setTimeout(() => { throw new Error('boom') })"],
      ["an unhandled SIGTERM", "process.kill(process.pid, 'SIGTERM')"],
    ]),
  )("the guardian kills them after %s", async (_name, death) => {
    const holder = start(`${HOLDER}; ${death}`);
    const report = await readReport(holder);
    expect(report.marks).toHaveLength(4);
    await eventually(async () => expect(await survivors(report)).toEqual([]), 20);
  });

  it.runIf(IS_LONG)("the guardian finds a child by its mark if its group was never reported", async () => {
    const holder = start(`
      import { spawn } from "node:child_process";
      import { guard, guardianPid } from ${guardian};
      const mark = "${randomUUID()}";
      guard(mark);
      const env = { PATH: process.env.PATH, CATENARY_GROUP: mark };
      spawn("sleep", ["1000"], { detached: true, stdio: "ignore", env });
      process.stdout.write(JSON.stringify({ marks: [mark], guardian: guardianPid() }) + "\\n");
      process.kill(process.pid, "SIGKILL");
    `);
    const report = await readReport(holder);
    await eventually(async () => expect(await survivors(report)).toEqual([]), 20);
  });

  it("the guardian does not keep our process alive, and exits with the last child", async () => {
    const holder = start(`
      import { startChild } from ${child};
      import { guardianPid } from ${guardian};
      const one = await startChild({ command: "cat" });
      const two = await startChild({ command: "cat" });
      const first = guardianPid();
      await Promise.all([one.close(), two.close()]);
      console.log(JSON.stringify({ marks: [one.mark, two.mark], guardian: first }));
    `);
    const exit = once(holder, "exit");
    const report = await readReport(holder);
    expect(report.guardian).toBeGreaterThan(0);
    expect(await exit).toEqual([0, null]);
    await eventually(async () => expect(await survivors(report)).toEqual([]), 20);
  });

  it.runIf(IS_LONG)("the guardian is restarted if it is killed", async () => {
    const holder = start(`
      import { startChild } from ${child};
      import { guardianPid } from ${guardian};
      const one = await startChild({ command: "sh", args: ["-c", "trap '' TERM; sleep 1000; sleep 1000"] });
      const first = guardianPid();
      setTimeout(() => process.kill(first, "SIGKILL"), 1100);
      const watch = setInterval(() => {
        if (guardianPid() === undefined || guardianPid() === first) return;
        clearInterval(watch);
        console.log(JSON.stringify({ marks: [one.mark], guardian: guardianPid() }));
      }, 10);
    `);
    const report = await readReport(holder);
    holder.kill("SIGKILL");
    await eventually(async () => expect(await survivors(report)).toEqual([]), 20);
  });
});
