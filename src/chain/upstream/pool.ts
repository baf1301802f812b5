// Manages all sessions with one upstream: those that callers share (sharing.ts), or one for each request with
// `share: "per-request"`. A session that belongs to one client ends with it; the others end when they are idle. Limits
// the number of sessions.

import { forwardAbort, ignoreRejection, Semaphore, unref } from "../../core/async.ts";
import { ownerOf } from "../../core/caller-key.ts";
import { ExpiringMap } from "../../core/expiring-map.ts";
import { shareOfOne } from "../../core/fair-limit.ts";
import type { Caller, Context, Request, Result } from "../../core/handler.ts";
import { defined, isObject } from "../../core/values.ts";
import { INTERNAL_CALLER } from "../../protocol/caller.ts";
import { INPUT_METHODS } from "../../protocol/client-requests.ts";
import { McpError } from "../../protocol/errors.ts";
import { LISTS } from "../../protocol/lists.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { keepSubscribed, type Grant } from "../../protocol/keep-subscribed.ts";
import { TASKS_EXTENSION } from "../../protocol/tasks.ts";
import { ListsStore, type ListsFile } from "./stored-lists.ts";
import { SESSION_BUSY } from "./client-requests.ts";
import { Ownership } from "./ownership.ts";
import { declaredCapabilities, sessionKeyFor, type SessionKey } from "./sharing.ts";
import { forwardedHeaders, UPSTREAM, type Share, type UpstreamState, type UpstreamStatus } from "./options.ts";
import { UpstreamSession, type UpstreamSettings } from "./session.ts";

/** For whom a session is opened. */
type Opener = Pick<Context, "caller" | "revision">;

interface PooledSession {
  readonly session: UpstreamSession;
  /** The principal it was created for, if any. */
  readonly principal: string | undefined;
}

export interface UpstreamPoolOptions extends UpstreamSettings {
  readonly target: string;
  readonly share: Share | undefined;
  /** The names of headers of callers that are passed on. */
  readonly forwardHeaders?: readonly string[] | undefined;
  /** The most sessions at the same time. Default: that of `upstream()`. */
  readonly maxSessions?: number | undefined;
  /** The file for what is known of the upstream for one principal; undefined if nothing is stored. */
  readonly listsFile?: ((principal: string | undefined) => ListsFile) | undefined;
}

/** Active and idle sessions together: as many sessions as our own server allows. */
const MAX_IN_ALL = 10_000;
/** How long a request waits for a free session with `share: "per-request"`. */
const FREE_SESSION_TIMEOUT_MS = 60_000;
/** A session is kept this long after its client has left, since requests sent before may still arrive. */
const LEAVE_MS = 1_000;
/** How many principals' lists are known at a time. */
const MAX_STORES = 1_000;

export class UpstreamPool {
  readonly #options: UpstreamPoolOptions;
  readonly #sessions = new Map<string, PooledSession>();
  /** By principal. */
  readonly #stores = new ExpiringMap<string | undefined, ListsStore>({ maxEntries: MAX_STORES });
  /** Sessions for one request each, also those that are closing. */
  readonly #perRequest = new Set<UpstreamSession>();
  readonly #slots: Semaphore;
  readonly #maxSessions: number;
  readonly #owners = new Ownership();
  readonly #onHandedOut = (request: Request, result: Result, caller: Caller): void =>
    this.#owners.record(request, result, caller);
  /** For each subscription, a function that moves it if its caller has another session now. */
  readonly #subscribers = new Set<() => void>();
  /** Sessions that are closing; their processes may still run. */
  readonly #leaving = new Set<UpstreamSession>();
  /** Whether the upstream has been seen to send requests to its clients. */
  #asks = false;
  /** The restarts of sessions that have ended. */
  #pastRestarts = 0;
  #closed = false;

  constructor(options: UpstreamPoolOptions) {
    this.#options = options;
    this.#maxSessions = options.maxSessions ?? UPSTREAM.maxSessions.default;
    this.#slots = new Semaphore(this.#maxSessions);
  }

  handle(request: Request, context: Context): Promise<Result> {
    const store = this.#storeFor(context.caller);
    // Who shares a session is decided before the call, so what is known must have been read.
    if (store === undefined || store.isRead) return this.#send(request, context, store);
    return store.known().then(() => this.#send(request, context, store));
  }

  #send(received: Request, context: Context, store: ListsStore | undefined): Promise<Result> {
    try {
      const { caller } = context;
      const request = this.#owners.check(received, caller);
      const { method } = request;
      if (this.#options.share === "per-request") return this.#handleAlone(request, context);
      if (store?.asks === true) this.#asks = true;
      const isSubscription = method === "subscriptions/listen";
      if (isSubscription || method.startsWith("tasks/")) {
        const ofTask = this.#sessionOfTask(request, caller);
        if (ofTask !== undefined) return ofTask.handle(request, context);
      }
      if (isSubscription) return this.#listen(request, context, store);
      if (caller.canBeAsked && INPUT_METHODS.has(method)) return this.#sendToFree(request, context, store);
      return this.#sessionFor(context, store).handle(request, context);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** A call that would queue behind a parked call goes to another session of the same kind. */
  async #sendToFree(request: Request, context: Context, store: ListsStore | undefined): Promise<Result> {
    for (;;) {
      try {
        return await this.#sessionFor(context, store, true).handle(request, context);
      } catch (error) {
        if (error !== SESSION_BUSY) throw error;
      }
    }
  }

  /** Keeps a subscription at the session of its caller, even if the caller gets a session of its own meanwhile. */
  #listen(request: Request, context: Context, store: ListsStore | undefined): Promise<Result> {
    const grant: Grant = { granted: undefined };
    const open = async (listenContext: Context, move: () => void): Promise<Result> => {
      const session = this.#sessionFor(context, store);
      const moveIfOther = (): void => {
        if (!this.#closed && this.#sessionFor(context, store) !== session) move();
      };
      this.#subscribers.add(moveIfOther);
      // The session itself makes sure that there is only one acknowledgement.
      return session
        .handle(request, { ...context, signal: listenContext.signal }, grant)
        .finally(() => this.#subscribers.delete(moveIfOther));
    };
    return keepSubscribed(context, grant, { open });
  }

  /** Handles a request in a session that ends with it. The answer does not wait until the process has ended. */
  async #handleAlone(request: Request, context: Context): Promise<Result> {
    const { caller, signal } = context;
    const { name } = this.#options;
    const release = await this.#takeSlot(signal);
    if (this.#closed) {
      release();
      throw closed(name);
    }
    const session = new UpstreamSession(this.#options, {
      client: caller,
      isOwn: true,
      store: undefined,
      asks: () => true,
      onHandedOut: this.#onHandedOut,
    });
    this.#perRequest.add(session);
    try {
      const result = await session.handle(request, context);
      return request.method === "server/discover" ? withoutTasks(result) : result;
    } finally {
      void session
        .close()
        .catch(() => undefined)
        .then(() => {
          this.#perRequest.delete(session);
          release();
        });
    }
  }

  /** The slot is not raced against the signal: one that is given as the caller leaves must be released. */
  async #takeSlot(signal: AbortSignal): Promise<() => void> {
    const why = `the upstream ${this.#options.name} was busy for ${FREE_SESSION_TIMEOUT_MS / 1_000} s`;
    const wait = forwardAbort(signal);
    const giveUp = (): void => wait.abort(tooMany(`No session was free for the request: ${why}`));
    const timer = setTimeout(giveUp, FREE_SESSION_TIMEOUT_MS);
    try {
      return await this.#slots.take(wait.signal);
    } finally {
      clearTimeout(timer);
      wait.forget();
    }
  }

  #storeFor(caller: Caller): ListsStore | undefined {
    const { listsFile } = this.#options;
    if (listsFile === undefined) return undefined;
    const principal = this.#options.share === "shared" ? undefined : ownerOf(caller);
    const known = this.#stores.get(principal);
    if (known !== undefined) return known;
    const store = new ListsStore(listsFile(principal));
    this.#stores.set(principal, store);
    return store;
  }

  /** The session that created the request's task. */
  #sessionOfTask({ method, params }: Request, caller: Caller): UpstreamSession | undefined {
    const filter = method === "subscriptions/listen" ? params["notifications"] : undefined;
    const listed = isObject(filter) && Array.isArray(filter["taskIds"]) ? (filter["taskIds"] as unknown[]) : [];
    const [taskId] = method.startsWith("tasks/") ? [params["taskId"]] : listed;
    if (taskId === undefined) return undefined;
    const isShared = this.#options.share === "shared";
    const principal = ownerOf(caller);
    for (const entry of this.#sessions.values()) {
      if ((isShared || entry.principal === principal) && entry.session.created(taskId)) return entry.session;
    }
    return undefined;
  }

  /** `mayQueue`: for a call, which gets a session without parked calls. */
  #sessionFor(context: Opener, store: ListsStore | undefined, mayQueue = false): UpstreamSession {
    const { key, isOwn } = this.#sessionKey(context.caller, this.#asks);
    for (let number = 1; ; number += 1) {
      const numbered = number === 1 ? key : `${number} ${key}`;
      const session = this.#sessions.get(numbered)?.session ?? this.#add(numbered, isOwn, context, store);
      if (!mayQueue || !session.isParked) return session;
    }
  }

  /** Callers whose headers are passed on share a session only if these headers are the same. */
  #sessionKey(caller: Caller, asks: boolean): SessionKey {
    const { share, forwardHeaders } = this.#options;
    const sessionKey = sessionKeyFor(share, caller, asks);
    if (forwardHeaders === undefined || forwardHeaders.length === 0) return sessionKey;
    const headers = JSON.stringify(forwardedHeaders(forwardHeaders, caller.headers));
    return { ...sessionKey, key: `${headers} ${sessionKey.key}` };
  }

  #add(key: string, isOwn: boolean, context: Opener, store: ListsStore | undefined): UpstreamSession {
    if (this.#closed) throw closed(this.#options.name);
    if (this.#sessions.size >= MAX_IN_ALL) this.#dropUnused();
    const { share } = this.#options;
    const { caller, revision } = context;
    const principal = ownerOf(caller);
    const capabilities = declaredCapabilities(share, caller, { isOwn, asks: this.#asks });
    const { info: _info, ...anyone } = caller;
    const session: UpstreamSession = new UpstreamSession(this.#options, {
      client: { ...(isOwn ? caller : anyone), capabilities },
      isOwn,
      // The stored lists are for callers of all revisions, so they are read in the newest one.
      ...(isOwn && store === undefined && { revision }),
      store,
      asks: () => this.#asks,
      checkCapacity: () => this.#makeRoom(principal),
      onAsked: () => this.#onAsked(session, store),
      onHandedOut: this.#onHandedOut,
      onLeave: () => this.#onLeave(session),
      onIdle: () => (session.isWaitedFor ? undefined : this.#drop(session)),
    });
    this.#sessions.set(key, { session, principal });
    return session;
  }

  /**
   * Called when the upstream has sent a request to its client. From now on, each client that can be asked gets a
   * session of its own. If only one client has called something in this session, the session becomes its own.
   */
  #onAsked(session: UpstreamSession, store: ListsStore | undefined): void {
    void store?.setAsks();
    if (this.#asks) return;
    this.#asks = true;
    if (this.#options.share === "shared") return;
    const client = session.onlyClient;
    if (client?.canBeAsked === true) {
      // Before its first call, there is no state to lose, and a new session declares what this client can answer.
      if (session.hasState) this.#makeOwn(session, client);
      else this.#dropSoon(session);
    }
    for (const moveIfOther of [...this.#subscribers]) moveIfOther();
  }

  #makeOwn(session: UpstreamSession, client: Caller): void {
    const { key, isOwn } = this.#sessionKey(client, true);
    const before = this.#keyOf(session);
    if (!isOwn || before === undefined || before === key) return;
    this.#sessions.delete(before);
    this.#sessions.set(key, { session, principal: ownerOf(client) });
    session.isOwn = true;
  }

  /** The tools that are known of it for callers of this principal. Starts nothing. */
  async knownTools(principal: string | undefined): Promise<readonly unknown[] | undefined> {
    const store = this.#storeFor({ ...INTERNAL_CALLER, ...defined({ principal }) });
    return (await store?.known())?.lists[LISTS.tools.method];
  }

  /** Starts the session that callers of this principal share. */
  async start(principal: string | undefined): Promise<void> {
    const { share } = this.#options;
    const isShared = share === undefined || share === "shared" || (share === "per-caller" && principal !== undefined);
    if (!isShared) return;
    const caller: Caller = { ...INTERNAL_CALLER, ...defined({ principal }) };
    const store = this.#storeFor(caller);
    if (store !== undefined && !store.isRead) await store.known();
    this.#asks ||= store?.asks === true;
    const { signal } = new AbortController();
    await this.#sessionFor({ caller, revision: NEWEST.name }, store).supervisor.connect(signal);
  }

  status(): UpstreamStatus {
    const supervisors = this.#all().map(({ supervisor }) => supervisor);
    const connections = supervisors.flatMap(({ current }) => current ?? []);
    const revision = connections.at(-1)?.connection.revision.name;
    const failed = supervisors.findLast(({ recovery }) => recovery.problem !== undefined)?.recovery;
    const { problem, reason, failure } = failed ?? {};
    const unlisted = supervisors.findLast((supervisor) => supervisor.unlisted !== undefined)?.unlisted;
    const state = this.#closed ? "closed" : overallState(supervisors.map((supervisor) => supervisor.state));
    const waits = supervisors
      .filter((supervisor) => supervisor.state === "restarting")
      .map(({ recovery }) => recovery.waitMs);
    const restartInMs = state === "restarting" && waits.length > 0 ? Math.min(...waits) : undefined;
    // A program with several processes works as long as one of them does.
    const isAddress = this.#options.restart === undefined;
    const cause = isAddress ? undefined : failed?.cause;
    const isFailing = (isAddress || connections.length === 0) && supervisors.some(({ recovery }) => recovery.isFailing);
    return {
      state,
      target: this.#options.target,
      sessions: connections.length,
      pids: connections.flatMap(({ program }) => program?.pid ?? []),
      restarts: supervisors.reduce((sum, { recovery }) => sum + recovery.count, this.#pastRestarts),
      ...defined({ revision, restartInMs, problem, reason, cause, unlisted }),
      ...(failure !== undefined && defined({ hint: failure.hint?.text, kind: failure.kind })),
      ...(isFailing && failure?.hint?.action === "sign-in" && { needsSignIn: true }),
      ...(isFailing && { failing: true }),
    };
  }

  async close(budgetMs?: number): Promise<void> {
    this.#closed = true;
    // The budget also limits a close that has begun.
    await Promise.all([...this.#all(), ...this.#leaving].map((session) => session.close(budgetMs)));
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
    this.#leaving.add(session);
    void ignoreRejection(session.close().finally(() => this.#leaving.delete(session)));
  }

  #all(): UpstreamSession[] {
    return [...[...this.#sessions.values()].map(({ session }) => session), ...this.#perRequest];
  }

  /**
   * Called before a session is started for this principal, since each may be a process. No principal may have all of
   * them; all callers without a principal count as one. An unused session is stopped to make room.
   */
  #makeRoom(principal: string | undefined): void {
    const active = [...this.#sessions.values()].filter(({ session }) => session.supervisor.isActive);
    const ofCaller = active.filter((entry) => entry.principal === principal);
    const isFull = active.length >= this.#maxSessions;
    const hasTooMany = ofCaller.length >= shareOfOne(this.#maxSessions);
    if (!isFull && !hasTooMany) return;
    const unused = (hasTooMany ? ofCaller : active).find(({ session }) => !session.isInUse);
    if (unused === undefined) {
      const which = isFull ? `all ${this.#maxSessions} sessions` : "all sessions that one caller may have";
      throw tooMany(`Too many callers: ${which} with the upstream ${this.#options.name} are in use`);
    }
    unused.session.supervisor.stop();
  }

  /** Drops one session that no call waits for. Idle sessions cost little and have a limit of their own. */
  #dropUnused(): void {
    const all = [...this.#sessions.values()];
    const unused = all.find(({ session }) => !session.isInUse && !session.isWaitedFor);
    const why = `the upstream ${this.#options.name} has ${MAX_IN_ALL} callers`;
    if (unused === undefined) throw tooMany(`Too many callers: ${why}`);
    this.#drop(unused.session);
  }
}

function closed(name: string): McpError {
  return McpError.of("shutting_down", `The upstream ${name} is closed`);
}

function tooMany(message: string): McpError {
  return McpError.of("rate_limited", `${message}; try again later`);
}

/** The state of the upstream, from the states of its sessions. */
function overallState(states: readonly UpstreamState[]): UpstreamState {
  const order: readonly UpstreamState[] = ["running", "starting", "restarting", "failed", "idle", "closed"];
  return order.find((state) => states.includes(state)) ?? "idle";
}

/** Tasks are not offered: a task belongs to the session that created it, and the session ends with the request. */
function withoutTasks(discovered: Result): Result {
  const { capabilities } = discovered;
  const extensions = isObject(capabilities) ? capabilities["extensions"] : undefined;
  if (!isObject(capabilities) || !isObject(extensions) || !(TASKS_EXTENSION in extensions)) return discovered;
  const { [TASKS_EXTENSION]: _tasks, ...others } = extensions;
  return { ...discovered, capabilities: { ...capabilities, extensions: others } };
}
