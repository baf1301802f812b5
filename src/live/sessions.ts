// All sessions of one language, by whose they are and by name. Nobody reaches a session of another person. One sweep
// looks after them: who has rested for long is ended, and who takes more memory than it may.

import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { ConnectionError } from "../core/errors.ts";
import { unref } from "../core/async.ts";
import type { Limits, Runtime } from "./runtime.ts";
import { Session } from "./session.ts";

export interface SessionsOptions {
  readonly runtime: Runtime;
  readonly limits: Limits;
  /** Sessions that may have a process at once. */
  readonly most: number;
  /** Milliseconds of rest after which a session is ended; 0: never. */
  readonly idleMs: number;
}

const NAME = /^[\w.:-]{1,64}$/;
const SWEEP_MS = 500;
/** Those that are idle may grow too, by timers and threads: they are weighed at every so manieth sweep. */
const IDLE_SWEEPS = 10;
/** What a process may take beside what its limit counts: its program, its stacks, what lies outside its heap. */
const OVERHEAD_MB = 512;
/** Names of sessions without a process that are remembered, with what is to be said of them. */
const MOST_ASLEEP = 1_000;

export class Sessions {
  readonly #options: SessionsOptions;
  readonly #sessions = new Map<string, Session>();
  readonly #starting = new Starts(availableParallelism() * 2);
  #sweeper: NodeJS.Timeout | undefined;
  #sweeps = 0;
  #isClosed = false;

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** The session of this name; made where there is none. */
  get(owner: string, name: string): Session {
    const key = keyOf(owner, name);
    const known = this.#sessions.get(key);
    if (known !== undefined) return known;
    // A call that had begun when all were closed.
    if (this.#isClosed) throw closed();
    this.#forgetOldest();
    const { runtime, limits } = this.#options;
    const session = new Session({
      name,
      runtime,
      limits,
      mayStart: (start) => {
        this.#admit(owner, name);
        return this.#starting.run(start);
      },
      onBusy: () => this.#watch(),
    });
    this.#sessions.set(key, session);
    return session;
  }

  find(owner: string, name: string): Session | undefined {
    return this.#sessions.get(keyOf(owner, name));
  }

  list(owner: string): readonly Session[] {
    return [...this.#sessions].filter(([key]) => ownerOf(key) === owner).map(([, session]) => session);
  }

  async remove(owner: string, name: string): Promise<boolean> {
    const key = keyOf(owner, name);
    const session = this.#sessions.get(key);
    this.#sessions.delete(key);
    await session?.close();
    return session !== undefined;
  }

  /** For ever. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
    const all = [...this.#sessions.values()];
    this.#sessions.clear();
    await Promise.all(all.map((session) => session.close()));
  }

  /** Throws where too many processes are there already. Who asks is told of its own alone. */
  #admit(owner: string, name: string): void {
    const living = [...this.#sessions.values()].filter(({ state }) => state !== "asleep").length;
    // The one that asks is counted: it is busy.
    if (living <= this.#options.most) return;
    const own = this.list(owner).filter((session) => session.name !== name && session.state !== "asleep");
    const which = own.map((session) => session.name).join(", ");
    const advice = which === "" ? "try again later" : `close one of yours with close-session: ${which}`;
    throw new Error(`All ${this.#options.most} sessions that may have a process at once have one; ${advice}`);
  }

  /** One that has no process costs nothing but its name, so there may be many; the oldest such are forgotten. */
  #forgetOldest(): void {
    if (this.#sessions.size < this.#options.most + MOST_ASLEEP) return;
    for (const [key, session] of this.#sessions) if (session.state === "asleep") return void this.#sessions.delete(key);
  }

  #watch(): void {
    this.#sweeper ??= unref(setInterval(() => void this.#sweep(), SWEEP_MS));
  }

  async #sweep(): Promise<void> {
    const { idleMs } = this.#options;
    const now = performance.now();
    const living = [...this.#sessions.values()].filter(({ state }) => state !== "asleep");
    if (living.length === 0) {
      clearInterval(this.#sweeper);
      this.#sweeper = undefined;
    }
    this.#sweeps += 1;
    const isForAll = this.#sweeps % IDLE_SWEEPS === 0;
    for (const session of living) {
      if (session.state === "busy" || isForAll) await this.#weigh(session);
      if (session.state === "idle" && idleMs > 0 && now - session.usedAt > idleMs) {
        await session.end(`it was not used for ${span(idleMs)}, so its process was ended`);
      }
    }
  }

  /** The heap has a limit of its own; this one is for what lies outside of it. */
  async #weigh(session: Session): Promise<void> {
    const { pid, memoryMb } = session;
    // Only Linux says it in a file; elsewhere the heap's own limit must do.
    const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
    const mb = Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) / 1024;
    const most = memoryMb + OVERHEAD_MB;
    // Another may have taken its place meanwhile.
    if (mb > most && session.pid === pid)
      await session.end(`its process took more than ${most} MB of memory, so it was ended`, 0);
  }
}

export function closed(): ConnectionError {
  return new ConnectionError("closed", "The server of these sessions is closed: make another", { mayHaveRun: false });
}

function span(ms: number): string {
  return ms < 120_000 ? `${ms / 1000} s` : `${Math.round(ms / 60_000)} minutes`;
}

/** Names have no newline, so what stands before the last one is the owner. */
function keyOf(owner: string, name: string): string {
  if (!NAME.test(name)) throw new Error("The name of a session has 1 to 64 letters, digits, and _ - : .");
  return `${owner}\n${name}`;
}

function ownerOf(key: string): string {
  return key.slice(0, key.lastIndexOf("\n"));
}

/** So many at once: a hundred that start together would all be late. */
class Starts {
  readonly #most: number;
  readonly #waiting: (() => void)[] = [];
  #count = 0;

  constructor(most: number) {
    this.#most = most;
  }

  async run<T>(start: () => Promise<T>): Promise<T> {
    if (this.#count >= this.#most) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#count += 1;
    try {
      return await start();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#count -= 1;
      else next();
    }
  }
}
