// A lock between processes, made of files in a directory. It uses Lamport's bakery algorithm: a process announces that
// it is choosing, takes a number above all others, and waits for lower numbers, so the lock is fair. Each file has one
// owner, whose name is in the file name. So the file of a crashed owner can be removed at any time, without the races
// of a single lock file. The files are empty: the file name contains all data.

import { createHash, randomBytes } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { open, readdir, readFile, stat, unlink, utimes } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { onAbort, unref, KeyedMutex } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { systemErrorCode, makePrivateDirectory } from "./private-files.ts";

/** Six minutes: the user may be signing in while the lock is held, which may take five. */
const LOCK_TIMEOUT_MS = 360_000;
const CHOOSING = "choosing";
const NUMBER_DIGITS = 12;
const MIN_POLL_MS = 4;
const MAX_POLL_MS = 100;
/** How many polls to make between checks whether the owners before us are alive. */
const POLLS_PER_CHECK = 8;
/** How often an owner touches its files. */
const HEARTBEAT_MS = 2_000;
/** An owner that has not touched its files for this long counts as dead. A busy or debugged process may pause. */
const MAX_SILENCE_MS = 30_000;

/** One file in the directory: `<lock>.<number or choosing>.<owner>`. */
interface Entry {
  readonly file: string;
  readonly number: string;
  readonly owner: string;
}

export class FileLock {
  readonly #directory: string;
  readonly #timeoutMs: number;
  readonly #mutex = new KeyedMutex();

  constructor(directory: string, timeoutMs: number = LOCK_TIMEOUT_MS) {
    this.#directory = directory;
    this.#timeoutMs = timeoutMs;
  }

  /** Runs `work` while no other work under the same key runs, in this process or another one. */
  async exclusively<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const lock = createHash("sha256").update(key).digest("hex").slice(0, 24);
    const stop = new AbortController();
    const wait = { signal: stop.signal, blocker: join(this.#directory, `${lock}.*`) };
    const forget = onAbort(signal, () => stop.abort(signal?.reason));
    const timer = setTimeout(() => stop.abort(this.#timeoutError(wait.blocker)), this.#timeoutMs);
    const stopWaiting = (): void => {
      clearTimeout(timer);
      forget();
    };
    try {
      return await this.#mutex.run(
        lock,
        async () => {
          const release = await this.#acquire(lock, wait);
          stopWaiting();
          try {
            return await work();
          } finally {
            await release();
          }
        },
        stop.signal,
      );
    } finally {
      stopWaiting();
    }
  }

  async #acquire(lock: string, wait: { readonly signal: AbortSignal; blocker: string }): Promise<() => Promise<void>> {
    const owner = newOwnerName();
    const files = new Set<string>();
    const heartbeat = unref(setInterval(() => void this.#touch(files), HEARTBEAT_MS));
    const release = async (): Promise<void> => {
      clearInterval(heartbeat);
      await Promise.all([...files].map((file) => this.#remove(file)));
    };
    try {
      const watch = new OwnerWatch();
      let number = await this.#takeNumber(lock, owner, files);
      // Owners that were choosing when we got our number may get a lower one. Owners that choose later see ours.
      let choosers = await this.#choosers(lock);
      for (let polls = 0; ; polls += 1) {
        const entries = await this.#entries(lock);
        let before = entries.filter((entry) => isBefore(entry, { number, owner }));
        if (choosers.length > 0) {
          before = choosers.filter(({ file }) => entries.some((entry) => entry.file === file));
          choosers = before;
          // Read again: this listing may be older than the numbers that the choosers took.
          if (before.length === 0) continue;
        } else if (before.length === 0) {
          if (entries.some((entry) => entry.owner === owner)) return release;
          // Another process took us for dead, for example after a long suspension, and removed our number.
          number = await this.#takeNumber(lock, owner, files);
          choosers = await this.#choosers(lock);
          continue;
        }
        wait.blocker = join(this.#directory, before[0]?.file ?? "");
        if (polls % POLLS_PER_CHECK === 0 && (await this.#removeDead(before, watch))) continue;
        await pause(before.length, polls, wait.signal);
      }
    } catch (error) {
      await release();
      throw error;
    }
  }

  async #takeNumber(lock: string, owner: string, files: Set<string>): Promise<string> {
    const choosing = `${lock}.${CHOOSING}.${owner}`;
    for (;;) {
      await this.#create(choosing, files);
      const numbers = (await this.#entries(lock)).map((entry) => Number(entry.number)).filter(Number.isSafeInteger);
      const number = String(Math.max(0, ...numbers) + 1).padStart(NUMBER_DIGITS, "0");
      const numbered = `${lock}.${number}.${owner}`;
      await this.#create(numbered, files);
      // This file is removed only after the numbered one exists, so that other processes always see one of the two.
      const wasThere = await this.#remove(choosing);
      files.delete(choosing);
      if (wasThere) return number;
      // Another process took us for dead and removed the file, so others may not have waited for our number.
      await this.#remove(numbered);
      files.delete(numbered);
    }
  }

  async #choosers(lock: string): Promise<Entry[]> {
    return (await this.#entries(lock)).filter((entry) => entry.number === CHOOSING);
  }

  async #entries(lock: string): Promise<Entry[]> {
    const files = await readdir(this.#directory).catch((error: unknown) => {
      if (systemErrorCode(error) === "ENOENT") return [];
      throw this.#unusable(error);
    });
    return files
      .filter((file) => file.startsWith(`${lock}.`))
      .map((file) => {
        const [, number = "", owner = ""] = file.split(".");
        return { file, number, owner };
      });
  }

  /** Removes the files of dead owners. Returns whether there were any. */
  async #removeDead(entries: readonly Entry[], watch: OwnerWatch): Promise<boolean> {
    const areDead = await Promise.all(
      entries.map(({ file, owner }) => watch.isDead(owner, join(this.#directory, file))),
    );
    const dead = entries.filter((_entry, index) => areDead[index]);
    await Promise.all(dead.map(({ file }) => this.#remove(file)));
    return dead.length > 0;
  }

  async #create(file: string, files: Set<string>): Promise<void> {
    await makePrivateDirectory(this.#directory);
    files.add(file);
    try {
      await (await open(join(this.#directory, file), "w", 0o600)).close();
    } catch (error) {
      throw this.#unusable(error);
    }
  }

  async #touch(files: ReadonlySet<string>): Promise<void> {
    const now = new Date();
    // A missing file is detected later, by the code that needs it.
    await Promise.allSettled([...files].map((file) => utimes(join(this.#directory, file), now, now)));
  }

  /** Returns whether the file was there. */
  async #remove(file: string): Promise<boolean> {
    try {
      await unlink(join(this.#directory, file));
      return true;
    } catch (error) {
      if (systemErrorCode(error) === "ENOENT") return false;
      throw this.#unusable(error);
    }
  }

  #unusable(cause: unknown): ConnectionError {
    const message = `The lock directory ${this.#directory} cannot be used; make it writable, or use another path`;
    return new ConnectionError("refused", message, { cause, mayHaveRun: false });
  }

  #timeoutError(blocker: string): ConnectionError {
    const pid = /-(\d+)-\d+-[0-9a-f]+$/.exec(blocker)?.[1];
    const holder = pid === undefined ? "another part of this process" : `process ${pid}`;
    const what = `The lock on stored tokens was held by ${holder} for ${this.#timeoutMs} ms`;
    const message = `${what}; if that process hangs, stop it (${blocker})`;
    return new ConnectionError("timeout", message, { mayHaveRun: false });
  }
}

/** False for an entry that is still choosing, since its number is NaN. */
function isBefore(one: Pick<Entry, "number" | "owner">, other: Pick<Entry, "number" | "owner">): boolean {
  if (one.number !== other.number) return Number(one.number) < Number(other.number);
  return one.owner < other.owner;
}

/** The next in line polls often, since most work is quick. Later polls are rarer, since the user may be signing in. */
async function pause(before: number, polls: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const ms = Math.min(MAX_POLL_MS, MIN_POLL_MS * before + polls / 4);
  await delay(ms, undefined, { signal }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw error;
  });
}

const UNKNOWN = "0";
/** Process IDs can be compared only within one boot of a machine and one PID namespace. This value identifies both. */
const PID_SCOPE = findPidScope();
const OWN_START = attemptSync(() => startTimeIn(readFileSync(`/proc/${process.pid}/stat`, "utf8"))) ?? UNKNOWN;

/** A unique owner name that fits in a file name. It has the start time of the process, since process IDs are reused. */
export function newOwnerName(): string {
  return `${PID_SCOPE}-${process.pid}-${OWN_START}-${randomBytes(8).toString("hex")}`;
}

interface LastTouch {
  readonly mtimeMs: number;
  /** When we first saw this `mtimeMs`, on our own clock. */
  readonly seenAt: number;
}

/**
 * Detects owners that have died. In our own PID scope the process itself is checked; elsewhere, or if start times are
 * unknown, an owner counts as dead if it has not touched its file for a while.
 */
export class OwnerWatch {
  readonly #touches = new Map<string, LastTouch>();
  readonly #maxSilenceMs: number;

  constructor(maxSilenceMs: number = MAX_SILENCE_MS) {
    this.#maxSilenceMs = maxSilenceMs;
  }

  /** @param path The file that the owner touches. */
  async isDead(owner: string, path: string): Promise<boolean> {
    const [scope, id, started] = owner.split("-");
    const pid = Number(id);
    if (scope === PID_SCOPE && Number.isSafeInteger(pid) && pid > 0) {
      if (started !== UNKNOWN && OWN_START !== UNKNOWN) return (await startTimeOf(pid, started)) !== started;
      if (!processExists(pid)) return true;
    }
    return this.#isSilent(path);
  }

  async #isSilent(path: string): Promise<boolean> {
    const mtimeMs = await stat(path).then(
      (found) => found.mtimeMs,
      () => undefined,
    );
    if (mtimeMs === undefined) return true;
    const last = this.#touches.get(path);
    // The time of the file is never compared with ours: clocks of two machines differ, and a clock may jump.
    const now = performance.now();
    if (last?.mtimeMs === mtimeMs) return now - last.seenAt > this.#maxSilenceMs;
    this.#touches.set(path, { mtimeMs, seenAt: now });
    return false;
  }
}

/** Returns undefined if the process has ended, and `fallback` if its file cannot be read for another reason. */
async function startTimeOf(pid: number, fallback: string | undefined): Promise<string | undefined> {
  return readFile(`/proc/${pid}/stat`, "utf8").then(startTimeIn, (error: unknown) =>
    systemErrorCode(error) === "ENOENT" || systemErrorCode(error) === "ESRCH" ? undefined : fallback,
  );
}

/** Parses /proc/PID/stat. The fields follow the program's name, which may contain parentheses. */
function startTimeIn(stat: string): string | undefined {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A zombie: killed, but not yet reaped by its parent.
  if (fields[0] === "Z" || fields[0] === "X") return undefined;
  return fields[19];
}

function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemErrorCode(error) !== "ESRCH";
  }
}

function findPidScope(): string {
  const boot = attemptSync(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim());
  const namespace = attemptSync(() => readlinkSync("/proc/self/ns/pid"));
  const scope = boot === undefined || namespace === undefined ? hostname() : `${boot} ${namespace}`;
  return createHash("sha256").update(scope).digest("hex").slice(0, 12);
}

function attemptSync<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
