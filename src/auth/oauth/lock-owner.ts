// Who holds a lock, in a form that fits into a file name, and whether that process still lives. A process id alone
// says little: it is used again. So the moment of the process's start stands beside it, and the place in which ids
// mean anything (one boot of one machine, one namespace of processes). Where these cannot be had, or the owner is at
// another place, only silence tells: an owner touches its file again and again, and one that has not done so for a
// while, on our own clock, is taken for dead.

import { createHash, randomBytes } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { codeOf } from "./private-files.ts";

/** How often an owner touches its file. */
export const BEAT_MS = 2_000;
/** How long one may be silent; so long that a machine under load, or a debugger, is not taken for a death. */
const SILENCE_MS = 30_000;
const UNKNOWN = "0";

const PLACE = placeOf();
const STARTED = attemptSync(() => startIn(readFileSync(`/proc/${process.pid}/stat`, "utf8"))) ?? UNKNOWN;

/** A name for one wish to hold the lock: no other, here or elsewhere, ever has the same. */
export function ownName(): string {
  return `${PLACE}-${process.pid}-${STARTED}-${randomBytes(8).toString("hex")}`;
}

/** What an owner that cannot be asked did last, and since when we see it so. */
interface Seen {
  readonly touched: number;
  readonly since: number;
}

/** The eyes of one who waits. */
export class Watch {
  readonly #seen = new Map<string, Seen>();
  readonly #silenceMs: number;

  constructor(silenceMs: number = SILENCE_MS) {
    this.#silenceMs = silenceMs;
  }

  /** Whether the owner of this name has ended; `path` is the file that it should touch. */
  async hasEnded(name: string, path: string): Promise<boolean> {
    const [place, id, started] = name.split("-");
    const pid = Number(id);
    if (place === PLACE && Number.isSafeInteger(pid) && pid > 0) {
      if (started !== UNKNOWN && STARTED !== UNKNOWN) return (await startOf(pid, started)) !== started;
      if (!exists(pid)) return true;
    }
    return this.#isSilent(path);
  }

  async #isSilent(path: string): Promise<boolean> {
    const touched = await stat(path).then(
      ({ mtimeMs }) => mtimeMs,
      () => undefined,
    );
    if (touched === undefined) return true;
    const before = this.#seen.get(path);
    // Not held against the time of day: clocks of two machines differ, and one clock may jump.
    const now = performance.now();
    if (before?.touched === touched) return now - before.since > this.#silenceMs;
    this.#seen.set(path, { touched, since: now });
    return false;
  }
}

/** Undefined where it has ended; what is `thought` where that cannot be found out, as without a free descriptor. */
async function startOf(pid: number, thought: string | undefined): Promise<string | undefined> {
  return readFile(`/proc/${pid}/stat`, "utf8").then(startIn, (error: unknown) =>
    codeOf(error) === "ENOENT" || codeOf(error) === "ESRCH" ? undefined : thought,
  );
}

/** The fields stand behind the program's name, which may have any characters in it, parentheses too. */
function startIn(stat: string): string | undefined {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // Killed, but its parent has not asked yet how it ended.
  if (fields[0] === "Z" || fields[0] === "X") return undefined;
  return fields[19];
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) !== "ESRCH";
  }
}

function placeOf(): string {
  const boot = attemptSync(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim());
  const namespace = attemptSync(() => readlinkSync("/proc/self/ns/pid"));
  const place = boot === undefined || namespace === undefined ? hostname() : `${boot} ${namespace}`;
  return createHash("sha256").update(place).digest("hex").slice(0, 12);
}

function attemptSync<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
