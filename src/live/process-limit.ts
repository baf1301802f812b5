// Bounds how many processes a sandbox may have, so that code cannot fork until the machine stops. Separate, since it takes
// two ways: a limit of the user (RLIMIT_NPROC), which the kernel counts for each sandbox (Linux 5.14 and later), but
// which it does not apply to root; and for root a cgroup, version 1 or 2, if this process may create one.

import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** A limit for one sandbox. */
export interface ProcessLimit {
  /** Flags of prlimit, which starts the program in the sandbox. */
  readonly flags: readonly string[];
  /** The command that runs `command` under the limit. */
  wrap(command: readonly string[]): readonly string[];
  /** Must be called when all processes have ended. */
  end(): void;
}

const CGROUPS = "/sys/fs/cgroup";
const PREFIX = "catenary-";
/** Enters the cgroup and becomes the command, so that no process is ever outside. */
const ENTER = 'echo $$ > "$0" && exec "$@"';

export async function createProcessLimit(max: number): Promise<ProcessLimit> {
  if (process.getuid?.() !== 0) return { flags: [`--nproc=${max}`], wrap: (command) => command, end: () => undefined };
  const group = await createGroup(max);
  return {
    flags: [],
    wrap: (command) =>
      group === undefined ? command : ["/bin/sh", "-c", ENTER, join(group, "cgroup.procs"), ...command],
    end: () => {
      if (group !== undefined) rmdir(group).catch(() => undefined);
    },
  };
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
  const own = await readFile("/proc/self/cgroup", "utf8").catch(() => "");
  const [, first] = /^\d+:(?:[^:\n]*,)?pids(?:,[^:\n]*)?:(.*)$/m.exec(own) ?? [];
  const [, second] = /^0::(.*)$/m.exec(own) ?? [];
  if (first !== undefined) return [join(CGROUPS, "pids", first)];
  if (second === undefined) return [];
  if (second !== "/") return [join(CGROUPS, second), join(CGROUPS, dirname(second))];
  await writeFile(join(CGROUPS, "cgroup.subtree_control"), "+pids", { flag: "r+" }).catch(() => undefined);
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
