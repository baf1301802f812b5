// One look at every living process, from Linux's /proc: its group, its session, when it began and which
// marks its environment bears. Apart from family.ts because one look serves all families that ask at the
// same time (closing two hundred children must not read /proc two hundred times over). Where there is no
// such /proc (macOS) the census says so, and families know only their groups.

import { closeSync, existsSync, openSync, readdirSync, readSync } from "node:fs";

/** The variable that marks all descendants of a child, also those that leave its group. */
export const MARK_VARIABLE = "CATENARY_GROUP";

export interface Process {
  readonly pid: number;
  readonly group: number;
  readonly session: number;
  /** Clock ticks from the machine's start to the process's. */
  readonly began: number;
  /** The value of the mark variable: the marks of all families it belongs to, outermost first, joined by dots. */
  readonly marks: string;
}

const TICKS_PER_SECOND = 100; // USER_HZ: fixed on every Linux that Node runs on
const ENVIRONMENT_LIMIT = 4 * 1024 * 1024;

let page = Buffer.allocUnsafe(64 * 1024);
let readable: boolean | undefined;
let ownBeginning: number | undefined;
let coming: Promise<readonly Process[] | undefined> | undefined;

function hasProc(): boolean {
  readable ??= process.platform === "linux" && existsSync("/proc/self/environ");
  return readable;
}

/** All living processes (a zombie does not live), looked at after the call; undefined where /proc cannot be read. */
export function census(): Promise<readonly Process[] | undefined> {
  if (!hasProc()) return Promise.resolve(undefined);
  coming ??= new Promise((resolve) => {
    setImmediate(() => {
      coming = undefined;
      try {
        resolve(look());
      } catch {
        // Out of file descriptors: better to know the groups alone than to take the living for dead.
        resolve(undefined);
      }
    });
  });
  return coming;
}

/** The time now, as `Process.began` counts it; 0, before all processes, where it cannot be read. */
export function ticksNow(): number {
  try {
    return hasProc() ? ticksIn(read("/proc/uptime")) : 0;
  } catch {
    return 0;
  }
}

/** Ticks in the text of /proc/uptime, such as "9123.29 17000.01". Rounded: 9123.29 * 100 is a little less than 912329. */
export function ticksIn(uptime: string): number {
  return Math.round(Number.parseFloat(uptime) * TICKS_PER_SECOND);
}

function look(): Process[] {
  const found: Process[] = [];
  // Who began before us descends from someone else, and reading an environment is the dearest part.
  ownBeginning ??= Number(statOf("self")[19]);
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    const fields = statOf(name);
    const state = fields[0] ?? "";
    if (state === "" || state === "Z" || state === "X") continue;
    const began = Number(fields[19]);
    const marks = began < ownBeginning ? "" : marksIn(read(`/proc/${name}/environ`));
    found.push({ pid, group: Number(fields[2]), session: Number(fields[3]), began, marks });
  }
  return found;
}

/** The fields of a process from its state on; its name before them, in parentheses, may hold any character. */
function statOf(name: string): string[] {
  const stat = read(`/proc/${name}/stat`);
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

function marksIn(environment: string): string {
  const key = `${MARK_VARIABLE}=`;
  let at = environment.startsWith(key) ? 0 : environment.indexOf(`\0${key}`);
  if (at < 0) return "";
  at = environment.indexOf("=", at) + 1;
  const end = environment.indexOf("\0", at);
  return environment.slice(at, end < 0 ? undefined : end);
}

/** A small file whole; empty when it is gone or not ours to read. (readFileSync makes twice the system calls.) */
function read(path: string): string {
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
      const got = readSync(file, page, length, page.length - length, null);
      if (got === 0) return page.toString("latin1", 0, length);
      length += got;
      if (length < page.length) continue;
      if (length >= ENVIRONMENT_LIMIT) return page.toString("latin1", 0, length);
      const larger = Buffer.allocUnsafe(page.length * 2);
      page.copy(larger);
      page = larger;
    }
  } catch {
    return "";
  } finally {
    closeSync(file);
  }
}
