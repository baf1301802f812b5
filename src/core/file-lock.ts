// A lock between processes: a file that is created by its owner, with the owner's name in it. Only who holds the lock
// `<file>.steal` may remove the file of a dead owner. So no process can remove the file of an owner who took the lock
// meanwhile.

import { createHash, randomBytes } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { KeyedMutex, pause, unref } from "./async.ts";
import { ConnectionError, refused } from "./errors.ts";
import { makePrivateDirectory } from "./private-files.ts";
import { errorMessage, systemErrorCode } from "./values.ts";

/** Six minutes: the user may be signing in while the lock is held, which may take five. */
const LOCK_TIMEOUT_MS = 360_000;
const MIN_POLL_MS = 4;
const MAX_POLL_MS = 100;
/** How many polls to make between checks whether the owner is alive. */
const POLLS_PER_CHECK = 8;
const HEARTBEAT_MS = 2_000;
/** An owner of unknown state that has not touched its file for this long counts as dead. A busy process may pause. */
const MAX_SILENCE_MS = 30_000;

/** Runs work while no other work for the same key runs, in this process or another. */
interface FileLock {
  exclusively<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}

export function fileLock(directory: string, timeoutMs: number = LOCK_TIMEOUT_MS): FileLock {
  const mutex = new KeyedMutex();

  const acquire = async (file: string, signal: AbortSignal): Promise<() => Promise<void>> => {
    await makePrivateDirectory(directory);
    const owner = `${PID_SCOPE}-${process.pid}-${OWN_START}-${randomBytes(8).toString("hex")}`;
    const silence = { mark: "", since: 0 };
    for (let polls = 0; !(await createLock(file, owner)); polls += 1) {
      const dead = polls % POLLS_PER_CHECK === 0 ? await deadOwner(file, silence) : undefined;
      if (dead !== undefined) await steal(file, dead, signal);
      // Later polls are rarer, since the user may be signing in.
      else await pause(Math.min(MAX_POLL_MS, MIN_POLL_MS + polls / 4), signal);
    }
    const touch = (): void => void utimes(file, new Date(), new Date()).catch(() => undefined);
    const heartbeat = unref(setInterval(touch, HEARTBEAT_MS));
    return async () => {
      clearInterval(heartbeat);
      await removeIfOwned(file, owner);
    };
  };

  const steal = async (file: string, dead: string, signal: AbortSignal): Promise<void> => {
    const release = await acquire(`${file}.steal`, signal);
    try {
      await removeIfOwned(file, dead);
    } finally {
      await release();
    }
  };

  return {
    async exclusively<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
      const file = join(directory, createHash("sha256").update(key).digest("hex").slice(0, 24));
      const timeout = AbortSignal.timeout(timeoutMs);
      const stop = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
      const locked = async (): Promise<T> => {
        const release = await acquire(file, stop);
        try {
          return await work();
        } finally {
          await release();
        }
      };
      try {
        return await mutex.run(file, locked, stop);
      } catch (error) {
        if (error !== timeout.reason) throw error;
        const [, pid] = (await readOwner(file))?.split("-") ?? [];
        const holder = pid === undefined ? "others" : `process ${pid}`;
        const what = `The lock on stored tokens was held by ${holder} for ${timeoutMs} ms`;
        const message = `${what}; if that process hangs, stop it (${file})`;
        throw new ConnectionError("timeout", message, { mayHaveRun: false });
      }
    },
  };
}

/** Returns whether the file was created, and not if another owner has one. */
async function createLock(file: string, owner: string): Promise<boolean> {
  try {
    await writeFile(file, owner, { flag: "wx", mode: 0o600 });
  } catch (error) {
    if (systemErrorCode(error) === "EEXIST") return false;
    throw refused(`The lock ${file} cannot be created; make its directory writable, or use another path`, error);
  }
  // If we were suspended before we wrote the name, another process may have taken the empty file for a dead one.
  return (await readOwner(file)) === owner;
}

/**
 * The owner of the file, if it is dead. In our own PID scope the process itself is checked; elsewhere, or if start times
 * are unknown, an owner counts as dead if it has not touched its file for a while.
 */
async function deadOwner(file: string, silence: { mark: string; since: number }): Promise<string | undefined> {
  const owner = await readOwner(file);
  if (owner === undefined) return undefined;
  const [scope, pid, start] = owner.split("-");
  if (scope === PID_SCOPE) {
    const runningSince = startTimeOf(Number(pid));
    if (runningSince === undefined) return owner;
    if (runningSince !== UNKNOWN && start !== UNKNOWN) return runningSince === start ? undefined : owner;
  }
  const mtimeMs = (await stat(file).catch(() => undefined))?.mtimeMs;
  const mark = `${owner} ${mtimeMs}`;
  // The time of the file is never compared with ours: clocks of two machines differ, and a clock may jump.
  const now = performance.now();
  if (mark === silence.mark) return now - silence.since > MAX_SILENCE_MS ? owner : undefined;
  silence.mark = mark;
  silence.since = now;
  return undefined;
}

async function removeIfOwned(file: string, owner: string): Promise<void> {
  if ((await readOwner(file)) === owner) await rm(file, { force: true });
}

async function readOwner(file: string): Promise<string | undefined> {
  return readFile(file, "utf8").catch((error: unknown) => {
    if (systemErrorCode(error) === "ENOENT") return undefined;
    throw refused(`The lock ${file} cannot be read: ${errorMessage(error)}`, error);
  });
}

const UNKNOWN = "0";
/** Process IDs can be compared only within one boot of a machine and one PID namespace. This value identifies both. */
const PID_SCOPE = createHash("sha256").update(findPidScope()).digest("hex").slice(0, 12);
/** Part of an owner's name, since process IDs are reused. */
const OWN_START = startTimeOf(process.pid) ?? UNKNOWN;

function findPidScope(): string {
  try {
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8")} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return hostname();
  }
}

/** When a process started; UNKNOWN on systems that do not say it, and undefined if the process has ended. */
function startTimeOf(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The fields follow the program's name, which may contain parentheses.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    // A zombie: killed, but not yet reaped by its parent.
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return isRunning(pid) ? UNKNOWN : undefined;
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return systemErrorCode(error) !== "ESRCH";
  }
}
