// Finds and signals all processes that descend from a child: the members of its process group and, on Linux, every
// process whose environment carries its mark, even after leaving the group. Without /proc (macOS) only the group is
// known. A process that leaves the group with a fresh environment cannot be found anywhere.

import { closeSync, existsSync, openSync, readdirSync, readSync } from "node:fs";

/** The environment variable that marks all descendants of a child. */
export const MARK_VARIABLE = "CATENARY_GROUP";

export interface Process {
  readonly pid: number;
  readonly group: number;
  readonly session: number;
  /** Start time, in clock ticks since boot. */
  readonly startTicks: number;
  /** The value of the mark variable: the marks of all trees that it belongs to, outermost first, joined by dots. */
  readonly marks: string;
}

/** The live processes of a tree at one moment. Signal them at once: their pids may be reused later. */
export interface LiveProcesses {
  readonly count: number;
  /** Whether the group may be signalled as a whole. */
  readonly group: boolean;
  /** Those outside the group. */
  readonly strays: readonly number[];
  /** All pids, as far as they are known. */
  readonly pids: readonly number[];
}

const NONE: LiveProcesses = { count: 0, group: false, strays: [], pids: [] };

/** Where a tree gets its facts from; replaced in tests. */
interface ProcessSource {
  listProcesses(): Promise<readonly Process[] | undefined>;
  ticksNow(): number;
}

export class ProcessTree {
  readonly #group: number;
  readonly #mark: string;
  readonly #source: ProcessSource;
  #leaderEndTicks: number | undefined;

  /** `group` is also the pid of its leader, the process that we started. */
  constructor(group: number, mark: string, source: ProcessSource = { listProcesses, ticksNow }) {
    this.#group = group;
    this.#mark = mark;
    this.#source = source;
  }

  get hasLeaderExited(): boolean {
    return this.#leaderEndTicks !== undefined;
  }

  /** Must be called in the leader's exit event: from then on its pid may be reused. */
  leaderExited(): void {
    this.#leaderEndTicks ??= this.#source.ticksNow();
  }

  async findLive(): Promise<LiveProcesses> {
    const all = await this.#source.listProcesses();
    if (all === undefined) return this.#liveGroup();
    const members = all.filter((one) => one.group === this.#group);
    const group = this.#isOurGroup(members);
    const strays = all.filter((one) => one.group !== this.#group && this.#hasMark(one)).map((one) => one.pid);
    const pids = group ? [...members.map((one) => one.pid), ...strays] : strays;
    return pids.length === 0 ? NONE : { count: pids.length, group, strays, pids };
  }

  signal(live: LiveProcesses, signal: NodeJS.Signals): void {
    if (live.group) kill(-this.#group, signal);
    for (const pid of live.strays) kill(pid, signal);
  }

  /**
   * Until the leader has been reaped, its group id cannot be reused. Later it can, once the group is empty: then all
   * members started after the leader's exit and lack the mark.
   */
  #isOurGroup(members: readonly Process[]): boolean {
    if (members.length === 0) return false;
    const end = this.#leaderEndTicks;
    if (end === undefined) return true;
    return members.some((one) => this.#hasMark(one) || (one.session === this.#group && one.startTicks <= end));
  }

  #hasMark(one: Process): boolean {
    return one.marks !== "" && one.marks.split(".").includes(this.#mark);
  }

  #liveGroup(): LiveProcesses {
    return kill(-this.#group, 0) ? { count: 1, group: true, strays: [], pids: [this.#group] } : NONE;
  }
}

/** False if there is no such process, or none that we may signal. */
function kill(target: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(target, signal);
  } catch {
    return false;
  }
}

const TICKS_PER_SECOND = 100; // USER_HZ: fixed on every Linux that Node runs on
const MAX_ENVIRONMENT_BYTES = 4 * 1024 * 1024;

let buffer = Buffer.allocUnsafe(64 * 1024);
let isProcReadable: boolean | undefined;
let ownStartTicks: number | undefined;
let pendingList: Promise<readonly Process[] | undefined> | undefined;

function hasProc(): boolean {
  isProcReadable ??= process.platform === "linux" && existsSync("/proc/self/environ");
  return isProcReadable;
}

/**
 * All live processes (zombies excluded), read after the call; undefined if /proc cannot be read. Callers at the same
 * time share one pass, so that closing two hundred children does not read /proc two hundred times.
 */
export function listProcesses(): Promise<readonly Process[] | undefined> {
  if (!hasProc()) return Promise.resolve(undefined);
  pendingList ??= new Promise((resolve) => {
    setImmediate(() => {
      pendingList = undefined;
      try {
        resolve(readProc());
      } catch {
        // Out of file descriptors: fall back to the group alone, since an empty list would mean that all are gone.
        resolve(undefined);
      }
    });
  });
  return pendingList;
}

/** The time now, comparable with `Process.startTicks`; 0 if it cannot be read. */
function ticksNow(): number {
  try {
    return hasProc() ? parseUptime(readFile("/proc/uptime")) : 0;
  } catch {
    return 0;
  }
}

/** Ticks in the content of /proc/uptime, such as "9123.29 17000.01". Rounded: 9123.29 * 100 is just below 912329. */
export function parseUptime(uptime: string): number {
  return Math.round(Number.parseFloat(uptime) * TICKS_PER_SECOND);
}

function readProc(): Process[] {
  const found: Process[] = [];
  ownStartTicks ??= Number(readStat("self")[19]);
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const fields = readStat(name);
    const state = fields[0] ?? "";
    if (state === "" || state === "Z" || state === "X") continue;
    const startTicks = Number(fields[19]);
    // Processes older than ours are not our descendants, and reading an environment is the slowest part.
    const marks = startTicks < ownStartTicks ? "" : findMarks(readFile(`/proc/${name}/environ`));
    found.push({ pid, group: Number(fields[2]), session: Number(fields[3]), startTicks, marks });
  }
  return found;
}

/** The fields from the state on. The name before them, in parentheses, may hold any character. */
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

/** Reads a small file; empty if it is gone or not readable. (readFileSync makes twice the system calls.) */
function readFile(path: string): string {
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EMFILE" || code === "ENFILE") throw error;
    return "";
  }
  try {
    let length = 0;
    for (;;) {
      const count = readSync(file, buffer, length, buffer.length - length, null);
      if (count === 0) return buffer.toString("latin1", 0, length);
      length += count;
      if (length < buffer.length) continue;
      if (length >= MAX_ENVIRONMENT_BYTES) return buffer.toString("latin1", 0, length);
      const larger = Buffer.allocUnsafe(buffer.length * 2);
      buffer.copy(larger);
      buffer = larger;
    }
  } catch {
    return "";
  } finally {
    closeSync(file);
  }
}
