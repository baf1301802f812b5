// Manages all sessions with one upstream: those that callers share (sharing.ts), or one for each request with `share:
// "per-request"`. A session that belongs to one client ends with it; the others end when they are idle. Limits the
// number of sessions.

import { abortable, forwardAbort, unref, within } from "../../core/async.ts";
import { BoundedMap } from "../../core/collections.ts";
import { shareOfOne } from "../../core/budgets.ts";
import type { Caller, Context, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { INPUT_METHODS } from "../../protocol/client-requests.ts";
import { McpError } from "../../protocol/errors.ts";
import { TASKS_EXTENSION } from "../../protocol/tasks.ts";
import { CatalogueStore, type CatalogueFile } from "./catalogue.ts";
import { SESSION_BUSY } from "./client-requests.ts";
import type { Share, UpstreamState, UpstreamStatus } from "./options.ts";
import type { UpstreamSession, UpstreamSessionHost } from "./session.ts";
import { Ownership } from "./ownership.ts";
import { declaredCapabilities, sessionKeyFor } from "./sharing.ts";
import type { Grant } from "./subscriptions.ts";

/** Creates a session. `client` is the client as the upstream sees it. */
export type CreateSession = (client: Caller, host: UpstreamSessionHost) => UpstreamSession;

interface PooledSession {
  readonly session: UpstreamSession;
  /** The principal it was created for, if any. */
  readonly principal: string | undefined;
}

export interface UpstreamPoolOptions {
  name(): string;
  readonly target: string;
  readonly share: Share | undefined;
  /** The most sessions at the same time. Default: 100. */
  readonly maxSessions?: number;
  readonly createSession: CreateSession;
  /** The file for what is known of the upstream for one principal; undefined if nothing is stored. */
  catalogueFile(principal: string | undefined): CatalogueFile | undefined;
}

/** A session is kept this long after its client has left, since requests sent before may still arrive. */
const LEAVE_MS = 1_000;
/** The reason for ending a subscription at a session that is no longer the one of its caller. */
const MOVED = new Error("The subscription moves to another session");
/** How many principals' catalogues are known at a time. */
const MAX_STORES = 1_000;

export class UpstreamPool {
  readonly #options: UpstreamPoolOptions;
  readonly #sessions = new Map<string, PooledSession>();
  /** By principal. */
  readonly #stores = new BoundedMap<string | undefined, CatalogueStore>(MAX_STORES);
  readonly #perRequest: PerRequestSessions;
  readonly #owners = new Ownership();
  readonly #onHandedOut = (request: Request, result: Result, caller: Caller): void =>
    this.#owners.record(request, result, caller);
  /** For each subscription, a function that moves it if its caller has another session now. */
  readonly #subscribers = new Set<() => void>();
  /** Sessions that are closing; their processes may still run. */
  readonly #leaving = new Set<Promise<void>>();
  readonly #limits: SessionLimits;
  /** Whether the upstream has been seen to send requests to its clients. */
  #asks = false;
  /** The restarts of sessions that have ended. */
  #pastRestarts = 0;
  #closed = false;

  constructor(options: UpstreamPoolOptions) {
    this.#options = options;
    this.#limits = new SessionLimits(options.maxSessions, () => options.name());
    this.#perRequest = new PerRequestSessions(this.#limits.maxSessions, options, this.#onHandedOut);
  }

  async handle(given: Request, context: Context): Promise<Result> {
    const { caller } = context;
    const request = this.#owners.check(given, caller);
    if (this.#options.share === "per-request") return this.#perRequest.handle(request, context);
    const store = this.#storeFor(caller);
    // Who shares a session is decided before the call, so what is known must have been read.
    if (store !== undefined && !store.isRead) await store.known();
    this.#asks ||= store?.asks === true;
    const ofTask = this.#sessionOfTask(request, caller);
    if (ofTask !== undefined) return ofTask.handle(request, context);
    if (request.method === "subscriptions/listen") return this.#listen(request, context, store);
    for (;;) {
      try {
        return await this.#sessionFor(context, store, request.method).handle(request, context);
      } catch (error) {
        if (error !== SESSION_BUSY) throw error;
      }
    }
  }

  /** Keeps a subscription at the session of its caller, even if the caller gets a session of its own meanwhile. */
  async #listen(request: Request, context: Context, store: CatalogueStore | undefined): Promise<Result> {
    const { signal } = context;
    const grant: Grant = { granted: undefined };
    for (;;) {
      const session = this.#sessionFor(context, store);
      const stop = forwardAbort(signal);
      const moveIfOther = (): void => {
        if (!this.#closed && this.#sessionFor(context, store) !== session) stop.abort(MOVED);
      };
      this.#subscribers.add(moveIfOther);
      const isMoved = (): boolean => stop.signal.reason === MOVED && !signal.aborted;
      try {
        const result = await session.handle(request, { ...context, signal: stop.signal }, grant);
        if (!isMoved()) return result;
      } catch (error) {
        if (!isMoved()) throw error;
      } finally {
        this.#subscribers.delete(moveIfOther);
        stop.forget();
      }
    }
  }

  #storeFor({ principal: given }: Caller): CatalogueStore | undefined {
    const principal = this.#options.share === "shared" ? undefined : given;
    const known = this.#stores.get(principal);
    if (known !== undefined) return known;
    const file = this.#options.catalogueFile(principal);
    if (file === undefined) return undefined;
    const store = new CatalogueStore(file);
    this.#stores.set(principal, store);
    return store;
  }

  /** The session that created the request's task. */
  #sessionOfTask({ method, params }: Request, { principal }: Caller): UpstreamSession | undefined {
    const filter = method === "subscriptions/listen" ? params["notifications"] : undefined;
    const listed = isObject(filter) && Array.isArray(filter["taskIds"]) ? (filter["taskIds"] as unknown[]) : [];
    const [taskId] = method.startsWith("tasks/") ? [params["taskId"]] : listed;
    if (taskId === undefined) return undefined;
    const isShared = this.#options.share === "shared";
    for (const entry of this.#sessions.values()) {
      if ((isShared || entry.principal === principal) && entry.session.created(taskId)) return entry.session;
    }
    return undefined;
  }

  /** A call that would queue behind a parked call gets another session of the same kind. */
  #sessionFor(context: Context, store: CatalogueStore | undefined, method?: string): UpstreamSession {
    const { caller } = context;
    const { key, isOwn } = sessionKeyFor(this.#options.share, caller, this.#asks);
    const mayQueue = method !== undefined && caller.canBeAsked && INPUT_METHODS.has(method);
    for (let number = 1; ; number += 1) {
      const numbered = number === 1 ? key : `${number} ${key}`;
      const session = this.#sessions.get(numbered)?.session ?? this.#add(numbered, isOwn, context, store);
      if (!mayQueue || !session.isParked) return session;
    }
  }

  #add(key: string, isOwn: boolean, context: Context, store: CatalogueStore | undefined): UpstreamSession {
    if (this.#closed) throw closed(this.#options.name());
    const evicted = this.#limits.evictFor([...this.#sessions.values()]);
    if (evicted !== undefined) this.#drop(evicted.session);
    const { share, createSession } = this.#options;
    const { caller, revision } = context;
    const { principal } = caller;
    const capabilities = declaredCapabilities(share, caller, { isOwn, asks: this.#asks });
    const { info: _info, ...anyone } = caller;
    const session: UpstreamSession = createSession(
      { ...(isOwn ? caller : anyone), capabilities },
      {
        isOwn,
        // The catalogue is for callers of all revisions, so it is read in the newest one.
        ...(isOwn && store === undefined && { revision }),
        store,
        asks: () => this.#asks,
        checkCapacity: () => this.#limits.makeRoom(principal, [...this.#sessions.values()]),
        onAsked: () => this.#onAsked(session, store),
        onHandedOut: this.#onHandedOut,
        onLeave: () => this.#onLeave(session),
        onIdle: () => (session.isWaitedFor ? undefined : this.#drop(session)),
      },
    );
    this.#sessions.set(key, { session, principal });
    return session;
  }

  /**
   * Called when the upstream has sent a request to its client. From now on, each client that can be asked gets a
   * session of its own. If only one client has called something in this session, the session becomes its own.
   */
  #onAsked(session: UpstreamSession, store: CatalogueStore | undefined): void {
    void store?.setAsks();
    if (this.#asks) return;
    this.#asks = true;
    const client = session.onlyClient;
    if (client?.canBeAsked === true) {
      // Before its first call, there is no state to lose, and a new session declares what this client can answer.
      if (session.hasState) this.#makeOwn(session, client);
      else this.#dropSoon(session);
    }
    for (const moveIfOther of [...this.#subscribers]) moveIfOther();
  }

  #makeOwn(session: UpstreamSession, client: Caller): void {
    const { key, isOwn } = sessionKeyFor(this.#options.share, client, true);
    const before = this.#keyOf(session);
    if (!isOwn || before === undefined || before === key) return;
    this.#sessions.delete(before);
    this.#sessions.set(key, { session, principal: client.principal });
    session.isOwn = true;
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
      restarts: supervisors.reduce((sum, { recovery }) => sum + recovery.count, this.#pastRestarts),
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

  /** Ends the session of a client that has left. A stateless client may end a subscription and stay. */
  #onLeave(session: UpstreamSession): void {
    if (!session.isOwn || session.onlyClient?.style !== "session") return;
    this.#dropSoon(session);
  }

  /** Drops the session after a moment, unless it is used again. */
  #dropSoon(session: UpstreamSession): void {
    const dropIfUnused = (): void => {
      if (!session.isWaitedFor && !session.isInUse) this.#drop(session);
    };
    unref(setTimeout(dropIfUnused, LEAVE_MS));
  }

  #keyOf(session: UpstreamSession): string | undefined {
    for (const [key, entry] of this.#sessions) if (entry.session === session) return key;
    return undefined;
  }

  #drop(session: UpstreamSession): void {
    const key = this.#keyOf(session);
    if (key === undefined) return;
    this.#sessions.delete(key);
    this.#pastRestarts += session.supervisor.recovery.count;
    const leaving = session.close().catch(() => undefined);
    this.#leaving.add(leaving);
    void leaving.then(() => this.#leaving.delete(leaving));
  }

  #all(): UpstreamSession[] {
    return [...[...this.#sessions.values()].map(({ session }) => session), ...this.#perRequest.sessions];
  }
}

function closed(name: string): McpError {
  return McpError.of("shutting_down", `The upstream ${name} is closed`);
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
  evictFor(sessions: readonly PooledSession[]): PooledSession | undefined {
    if (sessions.length < MAX_IN_ALL) return undefined;
    const unused = sessions.find(({ session }) => !session.isInUse && !session.isWaitedFor);
    if (unused === undefined) throw this.#refusal(`the upstream ${this.#name()} has ${MAX_IN_ALL} callers`);
    return unused;
  }

  #refusal(why: string): McpError {
    return McpError.of("rate_limited", `Too many callers: ${why}; try again later`);
  }
}

/** A session for one request belongs to one client, and nothing is remembered of it. */
const PER_REQUEST: UpstreamSessionHost = {
  isOwn: true,
  store: undefined,
  asks: () => true,
  checkCapacity: () => undefined,
};

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
  readonly #host: UpstreamSessionHost;
  readonly #waiting = new Set<() => void>();
  #closed = false;

  constructor(
    maxSessions: number,
    options: Pick<UpstreamPoolOptions, "createSession" | "name">,
    onHandedOut: NonNullable<UpstreamSessionHost["onHandedOut"]>,
  ) {
    this.#maxSessions = maxSessions;
    this.#options = options;
    this.#host = { ...PER_REQUEST, onHandedOut };
  }

  async handle(request: Request, context: Context): Promise<Result> {
    await this.#waitForFreeSession(context.signal);
    const session = this.#options.createSession(context.caller, this.#host);
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
