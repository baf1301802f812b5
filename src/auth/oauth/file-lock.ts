// A lock between processes, made of files in a directory of its own. It is Lamport's bakery: whoever wants the lock
// shows that it is choosing, takes a number above all that it sees, and waits for those with lower numbers. Every file
// is named after its one owner, so the file of an owner that crashed can be removed by anybody at any time: there is
// no name that somebody else might have taken meanwhile, which is how locks of one file are broken twice. Whoever
// comes first is served first. Nothing is ever written into a file: all is in the names, and a name is there or not.

import { createHash } from "node:crypto";
import { open, readdir, unlink, utimes } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { onAbort, unref } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { BEAT_MS, ownName, Watch } from "./lock-owner.ts";
import { codeOf, privateDirectory } from "./private-files.ts";
import { Turns } from "./turns.ts";

/** A person may be signing in while the lock is held: the five minutes that are given for that, and one more. */
const LOCK_WAIT_MS = 360_000;
const CHOOSING = "choosing";
const NUMBER_DIGITS = 12;
const LEAST_POLL_MS = 4;
const MOST_POLL_MS = 100;
/** Whether those before us live is asked at every so many polls. */
const LOOK_EVERY = 8;

/** One file in the directory: `<lock>.<number or choosing>.<owner>`. */
interface Entry {
  readonly file: string;
  readonly number: string;
  readonly owner: string;
}

export class FileLock {
  readonly #directory: string;
  readonly #waitMs: number;
  readonly #turns = new Turns();

  constructor(directory: string, waitMs: number = LOCK_WAIT_MS) {
    this.#directory = directory;
    this.#waitMs = waitMs;
  }

  /** Runs `work` while nobody else, here or in another process, runs any under the same key. */
  async exclusively<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted();
    const lock = createHash("sha256").update(key).digest("hex").slice(0, 24);
    const stop = new AbortController();
    const wait = { signal: stop.signal, behind: join(this.#directory, `${lock}.*`) };
    const forget = onAbort(signal, () => stop.abort(signal?.reason));
    const timer = setTimeout(() => stop.abort(this.#late(wait.behind)), this.#waitMs);
    const stopWaiting = (): void => {
      clearTimeout(timer);
      forget();
    };
    try {
      return await this.#turns.take(
        lock,
        async () => {
          const release = await this.#hold(lock, wait);
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

  async #hold(lock: string, wait: { readonly signal: AbortSignal; behind: string }): Promise<() => Promise<void>> {
    const owner = ownName();
    const files = new Set<string>();
    const beat = unref(setInterval(() => void this.#touch(files), BEAT_MS));
    const release = async (): Promise<void> => {
      clearInterval(beat);
      await Promise.all([...files].map((file) => this.#remove(file)));
    };
    try {
      const watch = new Watch();
      let number = await this.#takeNumber(lock, owner, files);
      // Who was choosing when we had our number may have got a lower one; who chooses later sees ours.
      let choosers = await this.#choosers(lock);
      for (let polled = 0; ; polled += 1) {
        const entries = await this.#entries(lock);
        let before = entries.filter((entry) => isBefore(entry, { number, owner }));
        if (choosers.length > 0) {
          before = choosers.filter(({ file }) => entries.some((entry) => entry.file === file));
          choosers = before;
          // The list in which they are missing may be older in its other parts than the numbers that they took.
          if (before.length === 0) continue;
        } else if (before.length === 0) {
          if (entries.some((entry) => entry.owner === owner)) return release;
          // Taken for dead, as after a long stop: the number that we had does not count any more.
          number = await this.#takeNumber(lock, owner, files);
          choosers = await this.#choosers(lock);
          continue;
        }
        wait.behind = join(this.#directory, before[0]?.file ?? "");
        if (polled % LOOK_EVERY === 0 && (await this.#removeDead(before, watch))) continue;
        await pause(before.length, polled, wait.signal);
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
      // After the number is there, or somebody would see neither.
      const counted = await this.#remove(choosing);
      files.delete(choosing);
      if (counted) return number;
      // Taken for dead while choosing: others did not wait to see the number.
      await this.#remove(numbered);
      files.delete(numbered);
    }
  }

  async #choosers(lock: string): Promise<Entry[]> {
    return (await this.#entries(lock)).filter((entry) => entry.number === CHOOSING);
  }

  async #entries(lock: string): Promise<Entry[]> {
    const files = await readdir(this.#directory).catch((error: unknown) => {
      if (codeOf(error) === "ENOENT") return [];
      throw this.#unusable(error);
    });
    return files
      .filter((file) => file.startsWith(`${lock}.`))
      .map((file) => {
        const [, number = "", owner = ""] = file.split(".");
        return { file, number, owner };
      });
  }

  /** Whether there was any. */
  async #removeDead(entries: readonly Entry[], watch: Watch): Promise<boolean> {
    const ended = await Promise.all(
      entries.map(({ file, owner }) => watch.hasEnded(owner, join(this.#directory, file))),
    );
    const dead = entries.filter((_entry, at) => ended[at]);
    await Promise.all(dead.map(({ file }) => this.#remove(file)));
    return dead.length > 0;
  }

  async #create(file: string, files: Set<string>): Promise<void> {
    await privateDirectory(this.#directory);
    files.add(file);
    try {
      await (await open(join(this.#directory, file), "w", 0o600)).close();
    } catch (error) {
      throw this.#unusable(error);
    }
  }

  async #touch(files: ReadonlySet<string>): Promise<void> {
    const now = new Date();
    // One that is gone is found to be so when it is looked for.
    await Promise.allSettled([...files].map((file) => utimes(join(this.#directory, file), now, now)));
  }

  /** Whether it was there. */
  async #remove(file: string): Promise<boolean> {
    try {
      await unlink(join(this.#directory, file));
      return true;
    } catch (error) {
      if (codeOf(error) === "ENOENT") return false;
      throw this.#unusable(error);
    }
  }

  #unusable(cause: unknown): ConnectionError {
    const message = `The lock directory ${this.#directory} cannot be used; make it writable, or name another path`;
    return new ConnectionError("refused", message, { cause, mayHaveRun: false });
  }

  #late(behind: string): ConnectionError {
    const pid = /-(\d+)-\d+-[0-9a-f]+$/.exec(behind)?.[1];
    const holder = pid === undefined ? "another part of this process" : `process ${pid}`;
    const message = `The lock on stored tokens was held by ${holder} for ${this.#waitMs} ms; if that process hangs, end it (${behind})`;
    return new ConnectionError("timeout", message, { mayHaveRun: false });
  }
}

/** Never true of one that is choosing. */
function isBefore(one: Pick<Entry, "number" | "owner">, other: Pick<Entry, "number" | "owner">): boolean {
  if (one.number !== other.number) return Number(one.number) < Number(other.number);
  return one.owner < other.owner;
}

/** Who is next looks often, since most work under a lock is quick; but a holder that asks a person takes long. */
async function pause(before: number, polled: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const ms = Math.min(MOST_POLL_MS, LEAST_POLL_MS * before + polled / 4);
  await delay(ms, undefined, { signal }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw error;
  });
}
