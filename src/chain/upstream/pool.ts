// Manages all sessions with one upstream: one for each group of callers that share a session, or one for each request
// with `share: "per-request"`. A session that belongs to one client connection ends with it; the others end when they
// are idle. The pool also limits the number of sessions.

import { abortable, unref, within } from "../../core/async.ts";
import { shareOfOne } from "../../core/fair-limit.ts";
import type { Caller, Context, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { INPUT_METHODS } from "../../protocol/client-requests.ts";
import { McpError } from "../../protocol/errors.ts";
import { TASKS_EXTENSION } from "../../protocol/tasks.ts";
import { SESSION_BUSY } from "./client-requests.ts";
import type { Share, UpstreamState, UpstreamStatus } from "./options.ts";
import type { UpstreamSession } from "./session.ts";
import { canBeAsked, sessionKeyFor, styleOf, type SessionKey, type Style } from "./sharing.ts";

export interface SessionKind {
  /** The style of its callers; undefined if callers of both styles use it. */
  readonly style: Style | undefined;
  /** Whether all callers use it, whatever their capabilities. */
  readonly isShared: boolean;
  /** Whether it belongs to one client connection. */
  readonly isExclusive: boolean;
  /** Whether it was opened because another session was busy, and is not kept for long. */
  readonly isTemporary: boolean;
  /** Throws if too many sessions are open to start another. */
  readonly checkCapacity: () => void;
  readonly onLeave?: ((session: UpstreamSession) => void) | undefined;
}

/** Creates a session for callers like this one. */
export type CreateSession = (caller: Caller, kind: SessionKind) => UpstreamSession;

interface PooledSession {
  readonly session: UpstreamSession;
  /** The principal it was created for, if any. */
  readonly principal: string | undefined;
}

interface PoolEntry extends PooledSession {
  /** Its key if the upstream has sessions. */
  readonly statefulKey: string;
  /** Its key if the upstream does not attribute its requests to calls. */
  readonly exclusiveKey: string;
  readonly isExclusive: boolean;
}

export interface UpstreamPoolOptions {
  name(): string;
  readonly target: string;
  readonly share: Share | undefined;
  /** Whether to assume, before the first session, that the upstream says to which call its requests belong. */
  readonly attributesRequests: boolean;
  /** The most sessions at the same time. Default: 100. */
  readonly maxSessions?: number;
  readonly createSession: CreateSession;
}

/** A session is kept this long after its client connection closed, since requests sent before may still arrive. */
const LEAVE_MS = 1_000;

/** The capabilities of a session that all callers share. A request that the caller cannot answer is refused. */
const ALL_CAPABILITIES: Caller["capabilities"] = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {}, context: {} },
  roots: {},
};

export class UpstreamPool {
  readonly #options: UpstreamPoolOptions;
  readonly #sessions = new Map<string, PoolEntry>();
  /** Whether the upstream is stateless, as far as is known. If so, a principal's stateless calls share one session. */
  isStateless = true;
  /**
   * Whether the upstream says to which call its requests belong, as far as is known. If not, a caller that has a
   * session and can be asked gets a session of its own.
   */
  attributesRequests: boolean;
  readonly #perRequest: PerRequestSessions;
  /** Sessions that are closing; their processes may still run. */
  readonly #leaving = new Set<Promise<void>>();
  readonly #limits: SessionLimits;
  #closed = false;

  constructor(options: UpstreamPoolOptions) {
    this.#options = options;
    this.attributesRequests = options.attributesRequests;
    this.#limits = new SessionLimits(options.maxSessions, () => options.name());
    this.#perRequest = new PerRequestSessions(this.#limits.maxSessions, options);
  }

  async handle(request: Request, context: Context): Promise<Result> {
    for (;;) {
      const key = sessionKeyFor(this.#options.share, context, this);
      if (key === undefined) return this.#perRequest.handle(request, context);
      const session = this.#sessionOfTask(request, key) ?? this.#sessionFor(key, context, mayWait(request, context));
      try {
        return await session.handle(request, context);
      } catch (error) {
        if (error !== SESSION_BUSY) throw error;
      } finally {
        this.#learnFrom(session, context);
      }
    }
  }

  /** Learns the traits of the upstream from an open session. The keys of existing sessions change with them. */
  #learnFrom(session: UpstreamSession, context: Context): void {
    if (session.style !== "session") return;
    if (this.isStateless && styleOf(context) === "stateless") {
      this.isStateless = false;
      this.#rekey((_key, { statefulKey }) => statefulKey);
    }
    if (this.attributesRequests && session.attributesRequests === false) {
      this.attributesRequests = false;
      this.#rekey((key, { statefulKey, exclusiveKey }) => (exclusiveKey === statefulKey ? key : exclusiveKey));
    }
  }

  #rekey(keyFor: (key: string, entry: PoolEntry) => string): void {
    const all = [...this.#sessions];
    this.#sessions.clear();
    for (const [before, entry] of all) {
      const key = keyFor(before, entry);
      const isExclusive = entry.isExclusive || (key === entry.exclusiveKey && key !== entry.statefulKey);
      this.#sessions.set(key, { ...entry, isExclusive });
    }
  }

  /** The session that created the request's task. Several sessions may have this key, with a number in front of it. */
  #sessionOfTask({ method, params }: Request, { key }: SessionKey): UpstreamSession | undefined {
    const filter = method === "subscriptions/listen" ? params["notifications"] : undefined;
    const listed = isObject(filter) && Array.isArray(filter["taskIds"]) ? (filter["taskIds"] as unknown[]) : [];
    const [taskId] = method.startsWith("tasks/") ? [params["taskId"]] : listed;
    if (taskId === undefined) return undefined;
    const isSame = (other: string): boolean => other === key || other.endsWith(`\n${key}`);
    return [...this.#sessions].find(([other, { session }]) => isSame(other) && session.created(taskId))?.[1].session;
  }

  /**
   * The session with this key. A parked call has waited long for its caller's answer. A call that must not queue behind
   * a parked call gets another session of this kind.
   */
  #sessionFor(key: SessionKey, context: Context, avoidsParked: boolean): UpstreamSession {
    for (let number = 1; ; number += 1) {
      const prefix = number === 1 ? "" : `${number}\n`;
      const known = this.#sessions.get(`${prefix}${key.key}`)?.session;
      const session = known ?? this.#add(key, prefix, context);
      if (!avoidsParked || !session.isParked) return session;
    }
  }

  status(): UpstreamStatus {
    const supervisors = this.#all().map(({ supervisor }) => supervisor);
    const connections = supervisors.flatMap(({ current }) => current ?? []);
    const revision = connections.at(-1)?.connection.revision.name;
    const problem = supervisors.findLast(({ recovery }) => recovery.problem !== undefined)?.recovery.problem;
    const state = this.#closed ? "closed" : overallState(supervisors.map((one) => one.state));
    const waits = supervisors.filter((one) => one.state === "restarting").map(({ recovery }) => recovery.waitMs);
    return {
      state,
      target: this.#options.target,
      sessions: connections.length,
      pids: connections.flatMap(({ program }) => program?.pid ?? []),
      restarts: supervisors.reduce((sum, { recovery }) => sum + recovery.count, 0),
      ...(revision === undefined ? undefined : { revision }),
      ...(state === "restarting" && waits.length > 0 ? { restartInMs: Math.min(...waits) } : undefined),
      ...(problem === undefined ? undefined : { problem }),
    };
  }

  async close(budgetMs?: number): Promise<void> {
    this.#closed = true;
    const all = [...this.#sessions.values()].map(({ session }) => session.close(budgetMs));
    await Promise.all([...all, ...this.#leaving, this.#perRequest.close(budgetMs)]);
  }

  #add(key: SessionKey, prefix: string, context: Context): UpstreamSession {
    if (this.#closed) throw closed(this.#options.name());
    const others = [...this.#sessions].map(([other, entry]) => ({ ...entry, key: other }));
    const evicted = this.#limits.evictFor(others);
    if (evicted !== undefined) this.#drop(evicted.key, evicted.session);
    const isShared = this.#options.share === "shared";
    const caller: Caller = isShared ? { capabilities: ALL_CAPABILITIES } : context.caller;
    const { principal } = context.caller;
    const session = this.#options.createSession(caller, {
      style: isShared ? undefined : styleOf(context),
      isShared,
      isExclusive: key.isExclusive,
      isTemporary: prefix !== "",
      checkCapacity: () => this.#limits.makeRoom(principal, [...this.#sessions.values()]),
      onLeave: (left) => this.#onLeave(left),
    });
    this.#sessions.set(`${prefix}${key.key}`, {
      session,
      statefulKey: `${prefix}${key.statefulKey}`,
      exclusiveKey: `${prefix}${key.exclusiveKey}`,
      isExclusive: key.isExclusive,
      principal,
    });
    return session;
  }

  #onLeave(session: UpstreamSession): void {
    if (session.subscriptions.hasSessions) return;
    const dropIfUnused = (): void => {
      const [key, entry] = [...this.#sessions].find(([, { session: one }]) => one === session) ?? [];
      if (key !== undefined && entry?.isExclusive === true && !session.subscriptions.hasSessions) {
        this.#drop(key, session);
      }
    };
    unref(setTimeout(dropIfUnused, LEAVE_MS));
  }

  #drop(key: string, session: UpstreamSession): void {
    this.#sessions.delete(key);
    void this.#leave(session);
  }

  async #leave(session: UpstreamSession): Promise<void> {
    const leaving = session.close().catch(() => undefined);
    this.#leaving.add(leaving);
    await leaving;
    this.#leaving.delete(leaving);
  }

  #all(): UpstreamSession[] {
    return [...[...this.#sessions.values()].map(({ session }) => session), ...this.#perRequest.sessions];
  }
}

function closed(name: string): McpError {
  return McpError.of("shutting_down", `The upstream ${name} is closed`);
}

/** Whether a call may have to queue behind calls whose callers are asked. */
function mayWait({ method }: Request, context: Context): boolean {
  return INPUT_METHODS.has(method) && styleOf(context) === "stateless" && canBeAsked(context.caller);
}

/** The state of the upstream, from the states of its sessions. */
function overallState(states: readonly UpstreamState[]): UpstreamState {
  const order: readonly UpstreamState[] = ["running", "starting", "restarting", "failed", "idle", "closed"];
  return order.find((state) => states.includes(state)) ?? "idle";
}

const MAX_ACTIVE = 100;
/** Active and idle sessions together: as many sessions as our own server allows. */
const MAX_IN_ALL = 10_000;

/**
 * Limits how many sessions with an upstream are active, since each may be a process. No principal may have all of them.
 * All callers without a principal count as one principal. An unused session is stopped to make room. If all are in use,
 * the caller is refused. Idle sessions cost little and have a limit of their own.
 */
class SessionLimits {
  readonly maxSessions: number;
  readonly #name: () => string;

  constructor(maxSessions: number = MAX_ACTIVE, name: () => string) {
    this.maxSessions = maxSessions;
    this.#name = name;
  }

  /** Called before a session is started for this principal. Throws if all are in use. */
  makeRoom(principal: string | undefined, sessions: readonly PooledSession[]): void {
    const active = sessions.filter(({ session }) => session.isActive);
    const own = active.filter((one) => one.principal === principal);
    const isFull = active.length >= this.maxSessions;
    const hasTooMany = own.length >= shareOfOne(this.maxSessions);
    if (!isFull && !hasTooMany) return;
    const unused = (hasTooMany ? own : active).find(({ session }) => !session.isInUse);
    if (unused === undefined) {
      const which = isFull ? `all ${this.maxSessions} sessions` : "all sessions that one caller may have";
      throw this.#refusal(`${which} with the upstream ${this.#name()} are in use`);
    }
    unused.session.supervisor.stop();
  }

  /** Called before a session is added. Returns the session that must be dropped first, if any. */
  evictFor<T extends PooledSession>(sessions: readonly T[]): T | undefined {
    if (sessions.length < MAX_IN_ALL) return undefined;
    const unused = sessions.find(({ session }) => !session.isInUse && !session.isWaitedFor);
    if (unused === undefined) throw this.#refusal(`the upstream ${this.#name()} has ${MAX_IN_ALL} callers`);
    return unused;
  }

  #refusal(why: string): McpError {
    return McpError.of("rate_limited", `Too many callers: ${why}; try again later`);
  }
}

/** How long a request waits for a free session. */
const FREE_SESSION_TIMEOUT_MS = 60_000;

/**
 * Sessions for `share: "per-request"`. Each ends with its request, and the answer does not wait until the process has
 * ended.
 */
class PerRequestSessions {
  /** Includes sessions that are closing. */
  readonly sessions: Set<UpstreamSession> = new Set();
  readonly #maxSessions: number;
  readonly #options: Pick<UpstreamPoolOptions, "createSession" | "name">;
  readonly #waiting = new Set<() => void>();
  #closed = false;

  constructor(maxSessions: number, options: Pick<UpstreamPoolOptions, "createSession" | "name">) {
    this.#maxSessions = maxSessions;
    this.#options = options;
  }

  async handle(request: Request, context: Context): Promise<Result> {
    await this.#waitForFreeSession(context.signal);
    const session = this.#options.createSession(context.caller, {
      style: styleOf(context),
      isShared: false,
      isExclusive: true,
      isTemporary: true,
      checkCapacity: () => undefined,
    });
    this.sessions.add(session);
    try {
      const result = await session.handle(request, context);
      return request.method === "server/discover" ? withoutTasks(result) : result;
    } finally {
      void session
        .close()
        .catch(() => undefined)
        .then(() => {
          this.sessions.delete(session);
          this.#wakeAll();
        });
    }
  }

  async close(budgetMs?: number): Promise<void> {
    this.#closed = true;
    this.#wakeAll();
    await Promise.all([...this.sessions].map((session) => session.close(budgetMs)));
  }

  /** All waiting requests wake when a session ends, and check again. */
  async #waitForFreeSession(signal: AbortSignal): Promise<void> {
    const until = performance.now() + FREE_SESSION_TIMEOUT_MS;
    for (;;) {
      if (this.#closed) throw closed(this.#options.name());
      if (this.sessions.size < this.#maxSessions) return;
      const leftMs = until - performance.now();
      if (leftMs <= 0) {
        const why = `the upstream ${this.#options.name()} was busy for ${FREE_SESSION_TIMEOUT_MS / 1_000} s`;
        throw McpError.of("rate_limited", `No session was free for the request: ${why}; try again later`);
      }
      let wake = (): void => undefined;
      const freed = new Promise<void>((resolve) => {
        wake = resolve;
      });
      this.#waiting.add(wake);
      try {
        await abortable(signal, within(leftMs, freed));
      } finally {
        this.#waiting.delete(wake);
      }
    }
  }

  #wakeAll(): void {
    for (const wake of [...this.#waiting]) wake();
  }
}

/** Tasks are not offered: a task belongs to the session that created it, and the session ends with the request. */
function withoutTasks(discovered: Result): Result {
  const { capabilities } = discovered;
  const extensions = isObject(capabilities) ? capabilities["extensions"] : undefined;
  if (!isObject(capabilities) || !isObject(extensions) || !(TASKS_EXTENSION in extensions)) return discovered;
  const { [TASKS_EXTENSION]: _tasks, ...others } = extensions;
  return { ...discovered, capabilities: { ...capabilities, extensions: others } };
}
