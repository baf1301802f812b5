// A child process that never outlives us. It leads a process group of its own, bears a mark that its
// descendants inherit, and stands under the guardian before it runs. Its close() is the ladder; when it
// ends by itself (a wrapper such as npx or a shell that died first) the rest of its family goes too.
// No shell is ever between. What its output means is the transports' affair.

import { spawn } from "node:child_process";
import type { ChildProcess, ChildProcessWithoutNullStreams } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Duplex, Readable, Writable } from "node:stream";
import { MARK_VARIABLE } from "./census.ts";
import { Family } from "./family.ts";
import { guard } from "./guardian.ts";
import { Ladder } from "./ladder.ts";
import { explainRefusal } from "./refusal.ts";
import { Tail } from "./tail.ts";

export interface ChildOptions {
  readonly command: string;
  readonly args?: readonly string[];
  /** Added to our own environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** It reads from a socket at fd 3 and answers there; its stdin is empty. */
  readonly channel?: true;
  /** How long it may take to end after the end of its input; 2000. */
  readonly stdinGraceMs?: number;
  /** How long it may take to end after SIGTERM; 2000. */
  readonly termGraceMs?: number;
  onStderr?(chunk: Buffer): void;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Child {
  readonly pid: number;
  /** What its whole family bears in its environment, as (part of) the value of CATENARY_GROUP. */
  readonly mark: string;
  /** The channel, where it has one. */
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** It is read all the time; who pauses it makes the child wait. */
  readonly stderr: Readable;
  /** At fd 3; undefined where it was not asked for. */
  readonly channel: Duplex | undefined;
  /** The end of the process that was started; others of its family may live a moment longer. */
  readonly exited: Promise<Exit>;
  /** The same, but when nobody of its family is left and its stdout and stderr have been read to their ends. */
  readonly finished: Promise<Exit>;
  /** The last 8 KiB of its stderr, which is always read, so that it never blocks the child. */
  stderrTail(): string;
  /**
   * Upstream of input, SIGTERM, SIGKILL, to all of its family; resolves when nobody is left and its output has
   * been read or dropped. `budgetMs` bounds the whole, also of a close that is already under way.
   */
  close(budgetMs?: number): Promise<void>;
}

const GRACE_MS = 2_000;
const TAIL_BYTES = 8 * 1024;
/** How long output may be silent, when all are gone, until we take it that a runaway holds its other end. */
const SILENCE_MS = 250;

/** Resolves when the program runs; rejects with an error that says what to do. */
export async function startChild(options: ChildOptions): Promise<Child> {
  const mark = randomBytes(16).toString("hex");
  const outer = process.env[MARK_VARIABLE];
  const ward = guard(mark);
  try {
    const spawned = spawn(options.command, options.args ?? [], {
      // A group and session of its own: signals reach all of it, and the terminal's Ctrl-C none of it.
      detached: true,
      stdio: options.channel === true ? ["ignore", "pipe", "pipe", "pipe"] : "pipe",
      env: { ...process.env, ...options.env, [MARK_VARIABLE]: outer ? `${outer}.${mark}` : mark },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      windowsHide: true,
    });
    if (spawned.pid === undefined) await once(spawned, "spawn");
    const pid = spawned.pid as number;
    ward.started(pid);
    return adopt(spawned, pid, mark, options, () => ward.gone());
  } catch (error) {
    ward.gone();
    throw await explainRefusal(options, error);
  }
}

function adopt(spawned: ChildProcess, pid: number, mark: string, options: ChildOptions, allGone: () => void): Child {
  const channel = spawned.stdio[3] as Duplex | null | undefined;
  const { stdout, stderr } = spawned as ChildProcessWithoutNullStreams;
  const stdin = channel ?? (spawned as ChildProcessWithoutNullStreams).stdin;
  const tail = new Tail(TAIL_BYTES);
  const family = new Family(pid, mark);
  const graces = { stdinMs: options.stdinGraceMs ?? GRACE_MS, termMs: options.termGraceMs ?? GRACE_MS };
  const ladder = new Ladder(family, graces, () => stdin.end());

  // Broken pipes are no news: the end of the process says all there is to say.
  for (const stream of [stdin, stdout, stderr]) stream.on("error", () => {});
  spawned.on("error", () => {});
  stderr.on("data", (chunk: Buffer) => {
    tail.push(chunk);
    options.onStderr?.(chunk);
  });

  const exited = new Promise<Exit>((resolve) => {
    spawned.once("exit", (code, signal) => {
      family.leaderEnded();
      resolve({ code, signal });
    });
  });
  const outputs = (drop: boolean): Promise<unknown> =>
    Promise.all([silence(stdout as Socket, drop), silence(stderr as Socket, drop)]);
  const finished = exited.then(async (exit) => {
    stdin.destroy();
    // One that cannot be ended stays in the guardian's care.
    await ladder.leaderEnded().then(allGone, () => {});
    await outputs(false);
    return exit;
  });

  return {
    pid,
    mark,
    stdin,
    stdout,
    stderr,
    channel: channel ?? undefined,
    exited,
    finished,
    stderrTail: () => tail.text(),
    async close(budgetMs) {
      await ladder.descend(budgetMs);
      await exited;
      await outputs(true);
      await finished;
    },
  };
}

/**
 * Waits until a stream has ended. All who could write to it are gone, yet one out of our reach may hold it
 * open: it is then cut off after a silence. Output that nobody has begun to read waits, unless `drop`.
 */
async function silence(stream: Socket, drop: boolean): Promise<void> {
  let seen = -1;
  for (let round = 0; !stream.closed; round += 1) {
    const still = stream.bytesRead === seen && stream.readableLength === 0 && stream.readableFlowing === true;
    if (still || (drop && round > 0)) stream.destroy();
    seen = stream.bytesRead;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        stream.off("close", done);
        resolve();
      };
      const timer = setTimeout(done, SILENCE_MS);
      // While nobody waits for it, this watch is no reason for our process to stay.
      if (!drop) timer.unref();
      stream.once("close", done);
    });
  }
}
