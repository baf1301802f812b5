// A child process that never outlives us. It leads its own process group, and its environment contains a mark that its
// descendants inherit. Before it starts, the mark is registered with the guardian (guardian.ts), a process that kills our
// children if we die. When the child is closed or exits by itself, all its descendants are ended too, since the command
// may be a wrapper such as npx. It is started without a shell.

import { spawn, type ChildProcess, type ChildProcessWithoutNullStreams } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Duplex, Readable, Writable } from "node:stream";
import { readPieces } from "../core/turn-budget.ts";
import { onlyThese } from "./descriptors.ts";
import { inheritedEnvironment, type InheritEnv } from "./program.ts";
import { spawnError } from "./spawn-problem.ts";
import { MARK_VARIABLE, ProcessTree } from "./process-tree.ts";
import { guard } from "./guardian.ts";

export interface ChildOptions {
  readonly command: string;
  readonly args?: readonly string[] | undefined;
  /** Added to the environment that it inherits. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Which variables of our environment it inherits. Default: all, even those of Catenary. */
  readonly inheritEnv?: InheritEnv | undefined;
  /** It inherits no variables at all. */
  readonly inheritsNothing?: true | undefined;
  readonly cwd?: string | undefined;
  /** Connects a socket to fd 3 of the child, which uses it instead of stdin and stdout. The child's stdin is `input`. */
  readonly channel?: true | undefined;
  /** The stdin of a child with a channel; empty by default. */
  readonly input?: Readable | undefined;
  /** How long the child may take to exit after the end of its input; 2000 by default. */
  readonly stdinGraceMs?: number | undefined;
  /** How long the child may take to exit after SIGTERM; 2000 by default. */
  readonly termGraceMs?: number | undefined;
  readonly onStderr?: ((chunk: Buffer) => void) | undefined;
}

/** How a process has ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A child process. */
export interface Child {
  readonly pid: number;
  /** Part of the value of CATENARY_GROUP in the environment of all its descendants. */
  readonly mark: string;
  /** The child's stdin, or the channel if it has one. */
  readonly stdin: Writable;
  readonly stdout: Readable;
  /** It is read even without a listener, within the budget of a turn. */
  readonly stderr: Readable;
  /** The socket at fd 3, if `channel` was set. */
  readonly channel: Duplex | undefined;
  /** Resolves when the process itself has exited. Descendants may live a moment longer. */
  readonly exited: Promise<Exit>;
  /** Resolves with the same value when no descendant is left and stdout and stderr have been read to their ends. */
  readonly finished: Promise<Exit>;
  /** Whether part of its stderr waits for another turn of the event loop. */
  readonly isBehind: boolean;
  /** The last 8 KiB of its stderr. */
  stderrTail(): string;
  /** The pids of the process and its descendants that are alive; without /proc, only its own. */
  findPids(): Promise<readonly number[]>;
  /**
   * Ends its input, then sends SIGTERM and SIGKILL to the process and its descendants. Resolves when all are gone and
   * the output has been read or dropped. `budgetMs` limits the total time, even of a close that has already begun.
   */
  close(budgetMs?: number): Promise<void>;
}

const GRACE_MS = 2_000;
const TAIL_BYTES = 8 * 1024;
/** How long to wait for output once all known processes are gone: an unknown one may still have the pipe open. */
const OUTPUT_TIMEOUT_MS = 250;

/** Resolves when the program runs; rejects with an error that explains why it could not be started. */
export async function startChild(options: ChildOptions): Promise<Child> {
  const mark = randomBytes(16).toString("hex");
  const outer = process.env[MARK_VARIABLE];
  const guarded = guard(mark);
  try {
    const spawned = spawn(options.command, options.args ?? [], {
      // Its own group and session: our signals reach the whole group, and Ctrl-C in the terminal does not reach it.
      detached: true,
      stdio: onlyThese(
        options.channel === true
          ? [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe", "pipe"]
          : ["pipe", "pipe", "pipe"],
      ),
      env: {
        ...inherited(options),
        ...options.env,
        [MARK_VARIABLE]: outer ? `${outer}.${mark}` : mark,
      },
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      windowsHide: true,
    });
    if (spawned.pid === undefined) await once(spawned, "spawn");
    const pid = spawned.pid as number;
    guarded.started(pid);
    return wrapChild(spawned, pid, mark, options, () => guarded.forget());
  } catch (error) {
    guarded.forget();
    throw await spawnError(options, error);
  }
}

/** Runs a program of ours, without input, to its end. What it prints is short; the rest is dropped. */
export async function outputOf(
  options: ChildOptions,
  timeoutMs: number,
): Promise<Exit & { readonly stdout: string; readonly stderr: string }> {
  const child = await startChild(options);
  const timer = setTimeout(() => void child.close(0).catch(() => undefined), timeoutMs);
  let stdout = "";
  child.stdout.on("data", (chunk: Buffer) => {
    if (stdout.length < TAIL_BYTES) stdout += chunk.toString();
  });
  child.stdin.end();
  const exit = await child.finished.finally(() => clearTimeout(timer));
  return { ...exit, stdout, stderr: child.stderrTail() };
}

function inherited({ inheritEnv, inheritsNothing }: ChildOptions): Readonly<Record<string, string | undefined>> {
  if (inheritsNothing === true) return {};
  return inheritEnv === undefined ? process.env : inheritedEnvironment(inheritEnv);
}

function wrapChild(
  spawned: ChildProcess,
  pid: number,
  mark: string,
  options: ChildOptions,
  allGone: () => void,
): Child {
  const channel = spawned.stdio[3] as Duplex | null | undefined;
  const { stdout, stderr } = spawned as ChildProcessWithoutNullStreams;
  const stdin = channel ?? (spawned as ChildProcessWithoutNullStreams).stdin;
  if (options.input !== undefined && spawned.stdin !== null) {
    spawned.stdin.on("error", () => {});
    options.input.pipe(spawned.stdin);
  }
  let tail = Buffer.alloc(0);
  const tree = new ProcessTree(pid, mark);
  const termination = new Termination(tree, options, () => stdin.end());

  // Broken pipes are expected; the exit status of the process explains more.
  for (const stream of [stdin, stdout, stderr]) stream.on("error", () => {});
  spawned.on("error", () => {});
  const errors = readPieces(stderr, (piece) => {
    tail = Buffer.concat([tail, piece]).subarray(-TAIL_BYTES);
    options.onStderr?.(piece);
  });

  const exited = new Promise<Exit>((resolve) => {
    spawned.once("exit", (code, signal) => {
      tree.hasLeaderExited = true;
      resolve({ code, signal });
    });
  });
  const outputs = (drop: boolean): Promise<unknown> =>
    Promise.all([endOf(stdout as Socket, drop), endOf(stderr as Socket, drop)]);
  const finished = exited.then(async (exit) => {
    stdin.destroy();
    // If some process cannot be ended, the guardian keeps watching it.
    await termination.leaderExited().then(allGone, () => {});
    await outputs(false);
    await errors.finish();
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
    get isBehind() {
      return errors.isBehind;
    },
    findPids: async () => (await tree.findLive()).pids,
    // The first bytes may be the end of a character that was cut.
    stderrTail: () => tail.toString().replace(/^\ufffd+/, ""),
    async close(budgetMs) {
      await termination.run(budgetMs);
      await exited;
      await outputs(true);
      await finished;
    },
  };
}

/**
 * Waits until an output stream has ended. Called when all known writers are gone. If an unknown process still holds the
 * pipe open, the stream is destroyed after a silence. Unread output is kept, unless `drop` is true.
 */
async function endOf(stream: Socket, drop: boolean): Promise<void> {
  let seen = -1;
  for (let round = 0; !stream.closed; round += 1) {
    const isSilent = stream.bytesRead === seen && stream.readableLength === 0 && stream.readableFlowing === true;
    if (isSilent || (drop && round > 0)) stream.destroy();
    seen = stream.bytesRead;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        stream.off("close", done);
        resolve();
      };
      const timer = setTimeout(done, OUTPUT_TIMEOUT_MS);
      // Unless the child is being closed, this wait must not keep our process alive.
      if (!drop) timer.unref();
      stream.once("close", done);
    });
  }
}

/** How often live processes are counted: at short intervals first, since most exit at once, then at longer ones. */
const FIRST_CHECK_MS = 4;
const MAX_CHECK_MS = 100;
/** How long SIGKILL may take. A process that survives it is stuck in the kernel or belongs to another user. */
const KILL_TIMEOUT_MS = 5_000;
const MIN_KILL_TIMEOUT_MS = 250;
/** The fraction of the budget after which the step must be over. */
const STDIN_SHARE = 0.4;
const TERM_SHARE = 0.8;

/**
 * Ends a child and all its descendants in three steps, with a grace period after each: end of input, SIGTERM, SIGKILL. A
 * budget shortens all steps, even those that have begun. If the child exits by itself, the last two steps still end its
 * descendants.
 */
class Termination {
  readonly #tree: ProcessTree;
  readonly #options: ChildOptions;
  readonly #endInput: () => void;
  #budget: { readonly from: number; readonly ms: number } | undefined;
  #running: Promise<void> | undefined;
  #wake: () => void = () => {};

  constructor(tree: ProcessTree, options: ChildOptions, endInput: () => void) {
    this.#tree = tree;
    this.#options = options;
    this.#endInput = endInput;
  }

  /** Resolves when the whole tree is gone; rejects, naming the pids, if SIGKILL did not end it. */
  run(budgetMs?: number): Promise<void> {
    if (budgetMs !== undefined) this.#limit(budgetMs);
    this.#running ??= this.#steps().catch((error: unknown) => {
      this.#running = undefined;
      throw error;
    });
    return this.#running;
  }

  /** Must be called when the leader has exited: stops waiting for its exit, and ends its descendants. */
  leaderExited(): Promise<void> {
    this.#wake();
    return this.run();
  }

  async #steps(): Promise<void> {
    if (!this.#tree.hasLeaderExited) {
      this.#endInput();
      const start = performance.now();
      while (!this.#tree.hasLeaderExited) {
        const left = this.#deadline(start, this.#options.stdinGraceMs ?? GRACE_MS, STDIN_SHARE) - performance.now();
        if (left <= 0) break;
        await this.#pause(left);
      }
    }
    if (await this.#send("SIGTERM", this.#options.termGraceMs ?? GRACE_MS, TERM_SHARE)) return;
    if (await this.#send("SIGKILL", KILL_TIMEOUT_MS, 1)) return;
    const { pids } = await this.#tree.findLive();
    if (pids.length > 0) throw new Error(`could not end the processes ${pids.join(", ")}: still running after SIGKILL`);
  }

  /** Returns true if no process is left. Sends SIGTERM once, so that handlers run once, but SIGKILL on each check. */
  async #send(signal: "SIGTERM" | "SIGKILL", graceMs: number, share: number): Promise<boolean> {
    const start = performance.now();
    let isSent = false;
    for (let delay = FIRST_CHECK_MS; ; delay = Math.min(delay * 2, MAX_CHECK_MS)) {
      const live = await this.#tree.findLive();
      if (live.pids.length === 0) return true;
      if (!isSent || signal === "SIGKILL") this.#tree.signal(live, signal);
      isSent = true;
      const earliest = signal === "SIGKILL" ? start + MIN_KILL_TIMEOUT_MS : 0;
      const left = Math.max(earliest, this.#deadline(start, graceMs, share)) - performance.now();
      if (left <= 0) return false;
      await this.#pause(Math.min(delay, left));
    }
  }

  #deadline(start: number, graceMs: number, share: number): number {
    const deadline = start + graceMs;
    return this.#budget === undefined ? deadline : Math.min(deadline, this.#budget.from + this.#budget.ms * share);
  }

  #limit(ms: number): void {
    const from = performance.now();
    if (this.#budget !== undefined && this.#budget.from + this.#budget.ms <= from + ms) return;
    this.#budget = { from, ms };
    this.#wake();
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}
