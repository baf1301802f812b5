// Files that only their owner may access, and a lock between processes. Files are created with owner-only permissions,
// and refused if another user could access them. The open file is checked, so it cannot be swapped between check and
// read. Windows has no such permissions, so only the file type is checked there.

import { createHash, randomBytes } from "node:crypto";
import { constants, readFileSync, readlinkSync, type Stats } from "node:fs";
import { lstat, open, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { isAbsolute, join } from "node:path";
import { KeyedMutex, pause, unref } from "./async.ts";
import { ConnectionError } from "./errors.ts";
import { homeFolder, makeDirectory, ownerProblem, replaceBy } from "./files.ts";
import { defined, errorMessage } from "./values.ts";

/** The XDG state folder for catenary. A relative `$XDG_STATE_HOME` is ignored, as XDG requires. */
export function stateDirectory(): string {
  const given = process.env["XDG_STATE_HOME"];
  const base = given !== undefined && isAbsolute(given) ? given : join(homeFolder(), ".local", "state");
  return join(base, "catenary");
}

/** Creates the directory and its parents if missing. Throws if other users can access it. */
export async function makePrivateDirectory(path: string): Promise<void> {
  await withContext(`The directory ${path} could not be created`, () => makeDirectory(path));
  const found = await withContext(`The directory ${path} could not be checked`, () => lstat(path));
  if (!found.isDirectory()) throw refused(`${path} is not a directory; remove it, or use another path`);
  checkOwner(path, found, "chmod 700");
}

/** Returns the content, or undefined if there is no such file. */
export async function readPrivate(path: string): Promise<string | undefined> {
  let file;
  try {
    // O_NONBLOCK: opening a named pipe would otherwise wait for a writer.
    file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0));
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return undefined;
    if (systemErrorCode(error) === "ELOOP") {
      throw refused(`${path} is a symbolic link, which is not allowed for secrets; use the path of the file itself`);
    }
    throw refused(`${path} could not be opened: ${errorMessage(error)}`, error);
  }
  try {
    const found = await file.stat();
    if (!found.isFile()) throw refused(`${path} is not a regular file; remove it, or use another path`);
    checkOwner(path, found, "chmod 600");
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

/** Replaces the whole file, so that readers see the old or new content, even after a crash. Callers must lock it. */
export async function writePrivate(path: string, text: string): Promise<void> {
  const write = async (draft: string): Promise<void> => {
    // A writer that crashed may have left its draft.
    await rm(draft, { force: true });
    await writeFile(draft, text, { flag: "wx", mode: 0o600, flush: true });
  };
  await withContext(`${path} could not be written`, () => replaceBy(path, write, `${path}.new`));
}

function systemErrorCode(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}

function checkOwner(path: string, found: Stats, remedy: string): void {
  const problem = ownerProblem(path, found, { bits: 0o077, remedy });
  if (problem !== undefined) throw refused(problem);
}

async function withContext<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw refused(`${what}: ${errorMessage(error)}`, error);
  }
}

function refused(message: string, cause?: unknown): ConnectionError {
  return new ConnectionError("refused", message, { mayHaveRun: false, ...defined({ cause }) });
}

/** Six minutes: the user may be signing in while the lock is held, which may take five. */
const LOCK_TIMEOUT_MS = 360_000;
const MIN_POLL_MS = 4;
const MAX_POLL_MS = 100;
/** How many polls to make between checks whether the owner is alive. */
const POLLS_PER_CHECK = 8;
/** How often an owner touches its file. */
const HEARTBEAT_MS = 2_000;
/** An owner of unknown state that has not touched its file for this long counts as dead. A busy process may pause. */
const MAX_SILENCE_MS = 30_000;

/** Runs work while no other work for the same key runs, in this process or another. */
interface FileLock {
  exclusively<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}

/**
 * A lock between processes: a file that is created by its owner, with the owner's name in it. Only who holds the lock
 * `<file>.steal` may remove the file of a dead owner. So no process can remove the file of an owner who took the lock
 * meanwhile.
 */
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
    const found = startTimeOf(Number(pid));
    if (found === undefined) return owner;
    if (found !== UNKNOWN && start !== UNKNOWN) return found === start ? undefined : owner;
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
