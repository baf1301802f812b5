// Finds and signals all descendants of a child process: the members of its process group and, on Linux, every process
// whose environment has the child's mark, even if it has left the group. Without /proc (macOS) only the group is known.
// A process that leaves the group and clears its environment is not found.

import { closeSync, existsSync, openSync, readdirSync, readSync } from "node:fs";

/** The environment variable that marks all descendants of a child. */
export const MARK_VARIABLE = "CATENARY_GROUP";

export interface Process {
  readonly pid: number;
  readonly group: number;
  readonly session: number;
  /** Start time, in clock ticks since boot. */
  readonly startTicks: number;
  /** The value of MARK_VARIABLE: the marks of all trees that contain the process, outermost first, joined by dots. */
  readonly marks: string;
}

/** The live processes of a tree at one moment. Signal them at once: their pids may be reused later. */
export interface LiveProcesses {
  readonly count: number;
  /** Whether the group may be signalled as a whole. */
  readonly group: boolean;
  /** The pids of marked processes outside the group. */
  readonly strays: readonly number[];
  /** All known pids; without /proc, only that of the group. */
  readonly pids: readonly number[];
}

const NONE: LiveProcesses = { count: 0, group: false, strays: [], pids: [] };

/** Reads processes and times from the system; replaced in tests. */
interface ProcessSource {
  listProcesses(): Promise<readonly Process[] | undefined>;
  ticksNow(): number;
}

export class ProcessTree {
  readonly #group: number;
  readonly #mark: string;
  readonly #source: ProcessSource;
  #leaderEndTicks: number | undefined;

  /** `group` is also the pid of the group's leader, the process that we started. */
  constructor(group: number, mark: string, source: ProcessSource = { listProcesses, ticksNow }) {
    this.#group = group;
    this.#mark = mark;
    this.#source = source;
  }

  get hasLeaderExited(): boolean {
    return this.#leaderEndTicks !== undefined;
  }

  /** Must be called in the leader's exit event, because its pid may be reused from then on. */
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
   * Whether the group id still belongs to our child. The system can reuse it once the leader is reaped and the group is
   * empty. The members of a reused group all started after the leader's exit and lack the mark.
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

/** False if there is no such process or group, or we may not signal it. */
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

/** The time now, comparable with `Process.startTicks`; 0 if it cannot be read. */
function ticksNow(): number {
  try {
    return hasProc() ? parseUptime(readFile("/proc/uptime")) : 0;
  } catch {
    return 0;
  }
}

/** Parses /proc/uptime, such as "9123.29 17000.01", as ticks. Rounds, because 9123.29 * 100 is just below 912329. */
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
    // A process older than ours is not a descendant. Skip its environment, which is the slowest part to read.
    const marks = startTicks < ownStartTicks ? "" : findMarks(readFile(`/proc/${name}/environ`));
    found.push({ pid, group: Number(fields[2]), session: Number(fields[3]), startTicks, marks });
  }
  return found;
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

/**
 * Reads a small file; empty if it cannot be read. Throws if too many files are open. (readFileSync makes twice as many
 * system calls.)
 */
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
