// Bounds the processes and the memory of a sandbox, so that code cannot fork or allocate until the machine stops. For
// root, by a cgroup, if this process may create one: of version 2 for both, of version 1 for processes only. For others,
// by a limit of the user (RLIMIT_NPROC), which the kernel counts for each sandbox (Linux 5.14 and later), but not for root.

import { readFileSync } from "node:fs";
import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

export interface SandboxAmounts {
  readonly processes: number;
  /** Of the processes. */
  readonly memoryMb: number;
  /** Of the files that are in memory. */
  readonly filesMb: number;
}

/** A limit for one sandbox. */
export interface SandboxLimit {
  /** Flags of prlimit, which starts the program in the sandbox. */
  readonly flags: readonly string[];
  /** The command that runs `command` under the limit. */
  wrap(command: readonly string[]): readonly string[];
  /** What the sandbox used too much of, if the kernel has killed all its processes for that. */
  usedTooMuch(): string | undefined;
  /** Must be called when all processes have ended. */
  end(): void;
}

const CGROUPS = "/sys/fs/cgroup";
const PREFIX = "catenary-";
/** Enters the cgroup and becomes the command, so that no process is ever outside. */
const ENTER = 'echo $$ > "$0" && exec "$@"';

export async function createSandboxLimit(amounts: SandboxAmounts): Promise<SandboxLimit> {
  const { processes, memoryMb, filesMb } = amounts;
  if (process.getuid?.() !== 0) {
    return {
      flags: [`--nproc=${processes}`],
      wrap: (command) => command,
      usedTooMuch: () => undefined,
      end: () => undefined,
    };
  }
  const group = await createGroup(processes);
  if (group !== undefined) await limitMemory(group, memoryMb + filesMb);
  return {
    flags: [],
    wrap: (command) =>
      group === undefined ? command : ["/bin/sh", "-c", ENTER, join(group, "cgroup.procs"), ...command],
    usedTooMuch: () =>
      group !== undefined && wasKilledForMemory(group)
        ? `it used more than ${memoryMb} MB of memory, besides ${filesMb} MB for files`
        : undefined,
    end: () => {
      if (group !== undefined) rmdir(group).catch(() => undefined);
    },
  };
}

/**
 * Without this limit, the memory is only read from time to time. Fails where the controller is not enabled; then that has
 * to do. The kernel ends all processes of the cgroup at once, so that no half of them goes on.
 */
export async function limitMemory(group: string, mb: number): Promise<void> {
  const settings = { "memory.max": String(mb * 1024 * 1024), "memory.swap.max": "0", "memory.oom.group": "1" };
  for (const [name, value] of Object.entries(settings))
    await writeFile(join(group, name), value, { flag: "r+" }).catch(() => undefined);
}

export function wasKilledForMemory(group: string): boolean {
  try {
    return /^oom_kill [1-9]/m.test(readFileSync(join(group, "memory.events"), "utf8"));
  } catch {
    // No such file without the controller.
    return false;
  }
}

/** Whether the number of processes can be bounded here. */
export async function hasProcessLimit(): Promise<boolean> {
  if (process.getuid?.() !== 0) return true;
  const group = await createGroup(1);
  if (group !== undefined) await rmdir(group);
  return group !== undefined;
}

let count = 0;
let hasSwept = false;

/** The path of a new cgroup; undefined if none can be created. */
async function createGroup(max: number): Promise<string | undefined> {
  for (const parent of await parents()) {
    if (!hasSwept) await sweep(parent);
    const group = join(parent, `${PREFIX}${process.pid}-${(count += 1)}`);
    try {
      await mkdir(group);
      // One for the process of bubblewrap that waits outside, one for the first process inside.
      await writeFile(join(group, "pids.max"), String(max + 2), { flag: "r+" });
      hasSwept = true;
      return group;
    } catch {
      await rmdir(group).catch(() => undefined);
    }
  }
  return undefined;
}

/**
 * The cgroups in which one can be created: our own, of version 1 or 2, and that around ours. A cgroup of version 2 with
 * processes, other than the root, cannot have others with limits in it.
 */
async function parents(): Promise<string[]> {
  const cgroups = await readFile("/proc/self/cgroup", "utf8").catch(() => "");
  const [, first] = /^\d+:(?:[^:\n]*,)?pids(?:,[^:\n]*)?:(.*)$/m.exec(cgroups) ?? [];
  const [, second] = /^0::(.*)$/m.exec(cgroups) ?? [];
  if (first !== undefined) return [join(CGROUPS, "pids", first)];
  if (second === undefined) return [];
  if (second !== "/") return [join(CGROUPS, second), join(CGROUPS, dirname(second))];
  // One by one, since a controller that is not there would fail both.
  for (const controller of ["+pids", "+memory"])
    await writeFile(join(CGROUPS, "cgroup.subtree_control"), controller, { flag: "r+" }).catch(() => undefined);
  return [CGROUPS];
}

/** Removes the empty cgroups of processes that were killed. The number in the name is that of the process. */
async function sweep(parent: string): Promise<void> {
  for (const name of await readdir(parent).catch(() => [])) {
    const [, pid] = new RegExp(`^${PREFIX}(\\d+)-`).exec(name) ?? [];
    if (pid !== undefined && !isRunning(Number(pid))) await rmdir(join(parent, name)).catch(() => undefined);
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
