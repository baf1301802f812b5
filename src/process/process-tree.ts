// Finds and signals all descendants of a child process: the members of its process group and, on Linux, every process
// whose environment has the child's mark, even if it has left the group. Without /proc (macOS) only the group is known.
// A process that leaves the group and clears its environment is not found.

import { existsSync, readdirSync, readFileSync } from "node:fs";

/** The environment variable that marks all descendants of a child. */
export const MARK_VARIABLE = "CATENARY_GROUP";

export interface Process {
  readonly pid: number;
  readonly group: number;
  /** The value of MARK_VARIABLE: the marks of all trees that contain the process, outermost first, joined by dots. */
  readonly marks: string;
}

/** The live processes of a tree at one moment. Signal them at once: their pids may be reused later. */
export interface LiveProcesses {
  /** Whether the group may be signalled as a whole. */
  readonly group: boolean;
  /** The pids of marked processes outside the group. */
  readonly strays: readonly number[];
  /** All known pids; without /proc, only that of the group. */
  readonly pids: readonly number[];
}

export class ProcessTree {
  readonly #group: number;
  readonly #mark: string;
  readonly #list: typeof listProcesses;
  /** Set it in the leader's exit event. */
  hasLeaderExited = false;
  #isGroupGone = false;

  /** `group` is also the pid of the group's leader, the process that we started. `list` is replaced in tests. */
  constructor(group: number, mark: string, list: typeof listProcesses = listProcesses) {
    this.#group = group;
    this.#mark = mark;
    this.#list = list;
  }

  async findLive(): Promise<LiveProcesses> {
    const all = await this.#list();
    if (all === undefined) {
      const group = kill(-this.#group, 0);
      return { group, strays: [], pids: group ? [this.#group] : [] };
    }
    const members = all.filter((process) => process.group === this.#group).map((process) => process.pid);
    // Once the leader is reaped and the group is empty, the system may give its id to another group.
    this.#isGroupGone ||= this.hasLeaderExited && members.length === 0;
    const group = members.length > 0 && !this.#isGroupGone;
    const strays = all
      .filter((process) => process.group !== this.#group && this.#hasMark(process))
      .map((process) => process.pid);
    return { group, strays, pids: group ? [...members, ...strays] : strays };
  }

  signal(live: LiveProcesses, signal: NodeJS.Signals): void {
    if (live.group) kill(-this.#group, signal);
    for (const pid of live.strays) kill(pid, signal);
  }

  #hasMark(process: Process): boolean {
    return process.marks !== "" && process.marks.split(".").includes(this.#mark);
  }
}

/** False if there is no such process or group, or we may not signal it. */
function kill(target: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(target, signal);
  } catch {
    return false;
  }
}

let isProcReadable: boolean | undefined;
let ownStartTicks: number | undefined;
let pendingList: Promise<readonly Process[] | undefined> | undefined;

function hasProc(): boolean {
  isProcReadable ??= process.platform === "linux" && existsSync("/proc/self/environ");
  return isProcReadable;
}

/**
 * All live processes, without zombies; undefined if /proc cannot be read. The list is never older than the call.
 * Simultaneous callers share one pass, so that closing two hundred children does not read /proc two hundred times.
 */
export function listProcesses(): Promise<readonly Process[] | undefined> {
  if (!hasProc()) return Promise.resolve(undefined);
  pendingList ??= new Promise((resolve) => {
    setImmediate(() => {
      pendingList = undefined;
      try {
        resolve(readProc());
      } catch {
        // Out of file descriptors. An empty list would mean that all processes have ended, so use the group alone.
        resolve(undefined);
      }
    });
  });
  return pendingList;
}

function readProc(): Process[] {
  const processes: Process[] = [];
  ownStartTicks ??= Number(readStat("self")[19]);
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const fields = readStat(name);
    const state = fields[0] ?? "";
    if (state === "" || state === "Z" || state === "X") continue;
    const startTicks = Number(fields[19]);
    // A process older than ours is not a descendant. Skip its environment, which is the slowest part to read.
    const marks = startTicks < ownStartTicks ? "" : findMarks(readFile(`/proc/${name}/environ`));
    processes.push({ pid, group: Number(fields[2]), marks });
  }
  return processes;
}

/**
 * The process and its descendants, without those whose parent has exited. Reads only their own files in /proc, where a
 * list of all processes takes tens of milliseconds. Elsewhere than on Linux, the process alone.
 */
export function findDescendants(pid: number): readonly number[] {
  const pids = [pid];
  if (!hasProc()) return pids;
  for (const member of pids) {
    const folder = `/proc/${member}/task`;
    for (const thread of readFolder(folder)) {
      const children = readFile(`${folder}/${thread}/children`).split(" ");
      for (const child of children) if (child !== "") pids.push(Number(child));
    }
  }
  return pids;
}

const MS_PER_TICK = 10;

/**
 * The processor time that a process, its descendants, and those of them that it has waited for have used. Undefined
 * without /proc.
 */
export function cpuTimeMs(pid: number): number | undefined {
  if (!hasProc()) return undefined;
  let ticks = 0;
  for (const descendant of findDescendants(pid)) {
    for (const field of readStat(String(descendant)).slice(11, 15)) ticks += Number(field);
  }
  return ticks * MS_PER_TICK;
}

/** Empty if the process has exited. */
function readFolder(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

/** The fields of /proc/PID/stat from the state on. The name before it, in parentheses, may contain any character. */
function readStat(name: string): string[] {
  const stat = readFile(`/proc/${name}/stat`);
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

function findMarks(environment: string): string {
  const key = `${MARK_VARIABLE}=`;
  let at = environment.startsWith(key) ? 0 : environment.indexOf(`\0${key}`);
  if (at < 0) return "";
  at = environment.indexOf("=", at) + 1;
  const end = environment.indexOf("\0", at);
  return environment.slice(at, end < 0 ? undefined : end);
}

/** Empty if the file cannot be read. Throws if too many files are open. */
function readFile(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EMFILE" || code === "ENFILE") throw error;
    return "";
  }
}
