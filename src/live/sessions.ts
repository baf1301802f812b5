// All sessions of one server, by owner and name; a caller never reaches a session of another owner. One periodic sweep
// ends the processes of sessions that were idle for too long or use too much memory.

import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { Semaphore, unref } from "../core/async.ts";
import { ConnectionError } from "../core/errors.ts";
import type { LiveEvent, LiveStatus } from "../core/live-server.ts";
import { defined } from "../core/values.ts";
import { findDescendants } from "../process/process-tree.ts";
import { memoryLimitMb, type Limits, type Runtime } from "./runtime.ts";
import { Session } from "./session.ts";

export interface SessionsOptions {
  readonly runtime: Runtime;
  readonly limits: Limits;
  /** What callers cannot raise: the limits that the operator has set. */
  readonly ceilings: Partial<Limits>;
  /** How many sessions may have a process at once. */
  readonly maxSessions: number;
  /** Milliseconds after which the process of an idle session is ended; 0 means never. */
  readonly idleMs: number;
  /** Called if the libraries that are loaded in a session have changed. */
  readonly onLoaded: () => void;
  /** Called if a session has background output that was not read yet. */
  readonly onBackground: (owner: string, session: string) => void;
  /** Whether callers have no tool but the one that evaluates, so that messages must name no other. */
  readonly isOnlyTool: boolean;
}

/** Valid names of sessions and checkpoints. */
export const NAME: RegExp = /^[\w.:-]{1,64}$/;
const SWEEP_MS = 500;
/** The memory of all sessions, which can grow through timers and threads, is checked every 10th sweep. */
const SWEEPS_PER_IDLE_CHECK = 10;
/** How often the memory of a busy session is read: at least this often, and at most. */
const READING_MS = 100;
const MIN_READING_MS = 10;
/** How many sessions without a process are remembered, with their names, limits and notices. */
const MAX_STOPPED_SESSIONS = 1_000;

export class Sessions {
  readonly #options: SessionsOptions;
  readonly #sessions = new Map<string, Session>();
  /** Limits how many processes start at once, since a hundred that start together would all time out. */
  readonly #starts = new Semaphore(availableParallelism() * 2);
  #sweeper: NodeJS.Timeout | undefined;
  #sweeps = 0;
  readonly #readings = new WeakMap<Session, MemoryReading>();
  /** Busy sessions whose memory will be read. */
  readonly #watched = new Set<Session>();
  readonly #followers = new Set<(event: LiveEvent) => void>();
  #isClosed = false;

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** Returns the session of this name, and creates it if there is none. */
  get(owner: string, name: string): Session {
    const key = sessionKey(owner, name);
    const known = this.#sessions.get(key);
    if (known !== undefined) return known;
    // The call may have begun before the server was closed.
    if (this.#isClosed) throw closedError();
    this.#forgetOldest();
    const { runtime, limits, onLoaded, onBackground, isOnlyTool } = this.#options;
    const session = new Session({
      name,
      owner,
      listeners: this,
      runtime,
      limits,
      mayStart: async (start) => {
        this.#admit(owner, name);
        await this.#starts.acquire();
        try {
          return await start();
        } finally {
          this.#starts.release();
        }
      },
      onBusy: () => {
        this.#startSweeping();
        this.#watch(session, READING_MS);
      },
      onLoaded,
      onBackground: () => onBackground(owner, name),
      memoryAdvice: isOnlyTool ? "the setting memoryMb raises it" : "configure-limits raises it from the next reset on",
    });
    this.#sessions.set(key, session);
    return session;
  }

  /** The timeout of a call in milliseconds, which the operator's limit bounds; 0 means no limit. */
  timeoutMs(wantedMs: number): number {
    const max = this.ceilings.timeoutMs ?? 0;
    return max > 0 && (wantedMs === 0 || wantedMs > max) ? max : wantedMs;
  }

  get ceilings(): Partial<Limits> {
    return this.#options.ceilings;
  }

  find(owner: string, name: string): Session | undefined {
    return this.#sessions.get(sessionKey(owner, name));
  }

  list(owner: string): readonly Session[] {
    return [...this.#sessions].filter(([key]) => ownerOfKey(key) === owner).map(([, session]) => session);
  }

  /** All sessions of all owners, for the operator. */
  status(): readonly LiveStatus[] {
    return [...this.#sessions].map(([key, session]) => statusOf(ownerOfKey(key), session, this.#readings.get(session)));
  }

  get isFollowed(): boolean {
    return this.#followers.size > 0;
  }

  emit(event: LiveEvent): void {
    for (const follow of this.#followers) follow(event);
  }

  /** Calls back with what happens in all sessions. Returns a function that stops this. */
  follow(listener: (event: LiveEvent) => void): () => void {
    this.#followers.add(listener);
    return () => void this.#followers.delete(listener);
  }

  async remove(owner: string, name: string): Promise<boolean> {
    const key = sessionKey(owner, name);
    const session = this.#sessions.get(key);
    this.#sessions.delete(key);
    await session?.close();
    return session !== undefined;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#sweeper);
    this.#sweeper = undefined;
    const all = [...this.#sessions.values()];
    this.#sessions.clear();
    await Promise.all(all.map((session) => session.close()));
  }

  /** Throws if too many sessions have a process. The message names only sessions of the same owner. */
  #admit(owner: string, name: string): void {
    const { maxSessions, isOnlyTool } = this.#options;
    const active = [...this.#sessions.values()].filter(({ state }) => state !== "stopped").length;
    // The session that wants to start is counted too, since it is busy.
    if (active <= maxSessions) return;
    const running = this.list(owner).filter((session) => session.name !== name && session.state !== "stopped");
    const names = running.map((session) => session.name).join(", ");
    const reuse = isOnlyTool ? "use one of yours" : "close one of yours with close-session";
    const advice = names === "" ? "try again later" : `${reuse}: ${names}`;
    throw new Error(`The limit of ${maxSessions} running sessions is reached; ${advice}`);
  }

  /**
   * Forgets the oldest session without a process if too many are remembered: one of the owner who has the most of them,
   * so that no caller can make us forget the limits of another.
   */
  #forgetOldest(): void {
    if (this.#sessions.size < this.#options.maxSessions + MAX_STOPPED_SESSIONS) return;
    const stopped = [...this.#sessions].filter(([, { state }]) => state === "stopped").map(([key]) => key);
    const counts = new Map<string, number>();
    for (const key of stopped) counts.set(ownerOfKey(key), (counts.get(ownerOfKey(key)) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const oldest = stopped.find((key) => counts.get(ownerOfKey(key)) === most);
    if (oldest !== undefined) this.#sessions.delete(oldest);
  }

  #startSweeping(): void {
    this.#sweeper ??= unref(setInterval(() => void this.#sweep(), SWEEP_MS));
  }

  async #sweep(): Promise<void> {
    const { idleMs } = this.#options;
    const now = performance.now();
    const active = [...this.#sessions.values()].filter(({ state }) => state !== "stopped");
    if (active.length === 0) {
      clearInterval(this.#sweeper);
      this.#sweeper = undefined;
    }
    this.#sweeps += 1;
    const checksIdle = this.#sweeps % SWEEPS_PER_IDLE_CHECK === 0;
    // All at once, so that the processes of the machine are listed once.
    if (checksIdle) await Promise.all(active.map((session) => this.#checkMemory(session, true)));
    for (const session of active) {
      if (session.state === "idle" && idleMs > 0 && now - session.usedAt > idleMs) {
        await session.end(`it was not used for ${formatDuration(idleMs)}, so its process was ended`);
      }
    }
  }

  /**
   * The language's runtime limits its heap itself; this check limits the memory outside the heap, and of children. With
   * `isFull`, also of those whose parent has exited, which takes long to find out. Memory that grows fast is read again
   * before it can pass the limit.
   */
  async #checkMemory(session: Session, isFull: boolean): Promise<void> {
    const { pid } = session;
    if (pid === undefined) return;
    const pids = isFull ? await session.findPids() : findDescendants(pid);
    const [main, ...children] = await Promise.all(pids.map(readMemory));
    const mb = (main?.all ?? 0) + children.reduce((sum, { anonymous }) => sum + anonymous, 0);
    const max = memoryLimitMb(session);
    const what = children.length === 0 ? "its process used" : "its process and the programs that it started used";
    // A new process may have replaced this one in the meantime.
    if (session.pid !== pid) return;
    if (mb > max) {
      await session.end(`${what} more than ${max} MB of memory, so it was ended`, 0);
      return;
    }
    const before = this.#readings.get(session);
    const reading = { pid, mb, at: performance.now() };
    this.#readings.set(session, reading);
    if (session.state === "busy") this.#watch(session, nextReadingMs(before, reading, max));
  }

  /** Reads the memory of a session after this time, unless it will be read anyway. */
  #watch(session: Session, ms: number): void {
    if (this.#watched.has(session)) return;
    this.#watched.add(session);
    const read = (): void => {
      this.#watched.delete(session);
      if (session.state === "starting") this.#watch(session, READING_MS);
      else if (session.state === "busy") void this.#checkMemory(session, false);
    };
    unref(setTimeout(read, ms));
  }
}

function statusOf(owner: string, session: Session, reading: MemoryReading | undefined): LiveStatus {
  const { name, version, pid, evaluations, waiting, usedAt, users, holdsError, loaded, log } = session;
  // What the console itself reads in a moment is not work.
  const running = session.running?.isRead === true ? undefined : session.running;
  const state = session.state === "busy" && session.running?.isRead === true ? "idle" : session.state;
  const at = (time: number): number => Math.round(performance.timeOrigin + time);
  const turn = log.running?.op === running?.op ? log.running?.turn : undefined;
  const busy = running && { op: running.op, since: at(performance.now() - running.ms), ...defined({ turn }) };
  const memoryMb = reading !== undefined && reading.pid === pid ? Math.round(reading.mb) : undefined;
  return {
    ...{ owner, session: name, state, version, evaluations, waiting, users, holdsError, libraries: loaded },
    process: log.process,
    usedAt: at(usedAt),
    ...defined({ pid, memoryMb, busy }),
  };
}

interface MemoryReading {
  readonly pid: number;
  readonly mb: number;
  /** In milliseconds. */
  readonly at: number;
}

/**
 * When to read the memory of a busy session again: in half of the time in which it would reach the limit if it grew on
 * like this, since it may grow faster.
 */
export function nextReadingMs(before: MemoryReading | undefined, now: MemoryReading, maxMb: number): number {
  const growth = before?.pid === now.pid ? (now.mb - before.mb) / Math.max(1, now.at - before.at) : 0;
  if (growth <= 0) return READING_MS;
  return Math.min(READING_MS, Math.max(MIN_READING_MS, (maxMb - now.mb) / growth / 2));
}

/** Memory in megabytes; of a child, only what it does not share with other processes counts. */
async function readMemory(pid: number): Promise<{ readonly all: number; readonly anonymous: number }> {
  // Only Linux has this file. Elsewhere only the heap is limited.
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const read = (field: string): number =>
    Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0) / 1024;
  return { all: read("VmRSS"), anonymous: read("RssAnon") };
}

export function closedError(): ConnectionError {
  return new ConnectionError("closed", "This live server is closed; create a new one", { mayHaveRun: false });
}

function formatDuration(ms: number): string {
  if (ms < 120_000) return `${ms / 1000} s`;
  return ms < 120 * 60_000 ? `${Math.round(ms / 60_000)} minutes` : `${Math.round(ms / 3_600_000)} hours`;
}

/** Names have no newline, so everything before the last newline of a key is the owner. */
function sessionKey(owner: string, name: string): string {
  if (!NAME.test(name)) throw new Error("A session name has 1 to 64 letters, digits, and _ - : .");
  return `${owner}\n${name}`;
}

function ownerOfKey(key: string): string {
  return key.slice(0, key.lastIndexOf("\n"));
}
