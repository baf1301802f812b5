// A session with an upstream, used by one client or by all callers of a principal (sharing.ts). While the
// upstream does not run, lists are answered from the stored ones, and any other request starts it. A request from the
// upstream reaches the call that it belongs to. Subscriptions stay open while the upstream stops, fails and
// restarts; only those to resources or tasks start and restart it.

import { backoffMs, within } from "../../core/async.ts";
import { isOfPages } from "../../core/authentication.ts";
import { ConnectionError } from "../../core/errors.ts";
import { ExpiringMap } from "../../core/expiring-map.ts";
import type { Caller, Context, Notification, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { INTERNAL_CALLER } from "../../protocol/caller.ts";
import { canAnswer, INPUT_METHODS } from "../../protocol/client-requests.ts";
import { McpError } from "../../protocol/errors.ts";
import {
  isLasting,
  keepSubscribed,
  type EndedSubscription,
  type Grant,
  type Reopens,
} from "../../protocol/keep-subscribed.ts";
import { changedMethod, LISTS, type ListCapability } from "../../protocol/lists.ts";
import { isVendorMethod, NEWEST } from "../../protocol/revisions/index.ts";
import {
  acknowledgement,
  changedList,
  changingLists,
  filterFor,
  filterOf,
  isConcerned,
  listsIn,
  namesIn,
} from "../../protocol/subscription.ts";
import { LISTS_BY_METHOD } from "../result-items.ts";
import { isMethodNotFound } from "../router/failures.ts";
import { answerFrom, ListsKeeper, type ListsOwner, type ListsStore } from "./stored-lists.ts";
import { AskableCallQueue, refusal, StrayRequests } from "./client-requests.ts";
import { UPSTREAM } from "./options.ts";
import type { RecoveryOptions } from "./recovery.ts";
import { Supervisor, type UpstreamConnection } from "./supervisor.ts";

/** What one session gets from the pool. */
export interface UpstreamSessionHost {
  /** The client as the upstream sees it. */
  readonly client: Caller;
  /** Whether it belongs to one client. */
  readonly isOwn: boolean;
  /** The revision of the client that it belongs to, to be offered to the upstream. */
  readonly revision?: string;
  /** Where its lists are stored; undefined if they are not. */
  readonly store: ListsStore | undefined;
  /** Whether the upstream has been seen to send requests to its clients. */
  asks(): boolean;
  /** Throws if too many sessions are open to start another. */
  checkCapacity?(): void;
  /** Called when the upstream has sent a request to its client. */
  onAsked?(): void;
  /** Called with a result that refers to a task or to a parked call. */
  onHandedOut(request: Request, result: Result, caller: Caller): void;
  /** Called when a subscription has ended. */
  onLeave?(): void;
  /** Called when it was stopped because it was not used. */
  onIdle?(): void;
}

/** What all sessions with an upstream have in common. */
export interface UpstreamSettings extends RecoveryOptions {
  /** Opens a connection. `background` receives requests and notifications that belong to no call. */
  open(host: UpstreamSessionHost, background: Context): Promise<UpstreamConnection>;
  /** How long a request waits for a start. */
  readonly startWaitMs: number;
  /** Idle time after which a session is stopped. Default: that of `upstream()`, but not while a caller with a session is connected. */
  readonly idleMs?: number | undefined;
  onState(): void;
}

interface Subscription {
  readonly context: Context;
  /** Whether the upstream must run for it. */
  readonly needsUpstream: boolean;
  readonly grant: Grant;
}

/** The longest time that a task keeps the upstream running. Also applies if the task has no `ttlMs`. */
const TASK_MS = 60 * 60_000;
const MAX_TASKS = 1_000;
/** The timeout of the gateway's own requests, which no caller cancels. */
const BACKGROUND_TIMEOUT_MS = 60_000;
/** How many notifications are held until the first client subscribes. */
const MAX_EARLY = 100;
/** The shortest pause before another attempt to start an upstream for a subscription. */
const MIN_PAUSE_MS = 1_000;
/** The pause before another attempt if the upstream seems to run, but its connection is broken. */
const BROKEN_PAUSE_MS = 100;

export class UpstreamSession implements ListsOwner {
  readonly supervisor: Supervisor;
  /** Whether it belongs to one client. */
  isOwn: boolean;
  /** Whether a tool, prompt or resource was used, which may have left state in the upstream. */
  hasState = false;
  readonly #settings: UpstreamSettings;
  readonly #host: UpstreamSessionHost;
  readonly #queue = new AskableCallQueue();
  readonly #strayRequests = new StrayRequests();
  readonly #subscriptions = new Set<Subscription>();
  /** Ids of the tasks that this session created, oldest first. */
  readonly #taskIds = new ExpiringMap<unknown, true>({ maxEntries: MAX_TASKS });
  readonly #lists: ListsKeeper | undefined;
  #client: Caller | "several" | undefined;
  /** Vendors' notifications that came before the first client with a session subscribed; undefined after that. */
  #early: Notification[] | undefined = [];
  /** The contexts of running lists. */
  readonly #listing = new Set<Context>();
  #neededUntil = 0;

  constructor(settings: UpstreamSettings, host: UpstreamSessionHost) {
    this.#settings = settings;
    this.#host = host;
    this.isOwn = host.isOwn;
    this.#lists = host.store && new ListsKeeper(host.store, this);
    this.supervisor = new Supervisor({
      ...settings,
      idleMs: settings.idleMs ?? UPSTREAM.idleMs.default,
      open: (signal) => settings.open(host, this.background(signal)),
      send: this.#send,
      onUnfinished: (request, result, { caller }) => {
        if (result.resultType === "task") this.#rememberTask(result);
        host.onHandedOut(request, result, caller);
      },
      checkCapacity: () => host.checkCapacity?.(),
      isNeeded: () => this.#isNeeded(),
      onStart: (opened) => this.#lists?.start(opened),
      onIdle: () => host.onIdle?.(),
    });
  }

  /** `grant`: of a subscription that moves here from another session. */
  handle(request: Request, context: Context, grant?: Grant): Promise<Result> {
    const { caller } = context;
    if (this.#client === undefined) this.#client = caller;
    else if (this.#client !== caller && this.#client !== "several" && this.#client.key !== caller.key)
      this.#client = "several";
    const { method } = request;
    if (method === "subscriptions/listen") return this.#listen(request, context, grant ?? { granted: undefined });
    if (STORED_METHODS.has(method)) return this.#list(request, context);
    this.hasState ||= INPUT_METHODS.has(method);
    return this.supervisor.call(request, context);
  }

  async #list(request: Request, context: Context): Promise<Result> {
    const { method } = request;
    this.#listing.add(context);
    try {
      if (this.supervisor.current === undefined) {
        const stored = await this.#host.store?.known();
        const answer = stored && answerFrom(stored, request);
        if (answer !== undefined) return answer;
      }
      const result = await this.supervisor.call(request, context);
      this.supervisor.noteList(method);
      this.#lists?.answered(request, result);
      return result;
    } catch (error) {
      if (this.#isListFailure(error, request)) this.supervisor.noteList(method, error);
      throw error;
    } finally {
      this.#listing.delete(context);
    }
  }

  /** Whether the upstream runs and cannot be listed. Many upstreams declare prompts or resources and list none. */
  #isListFailure(error: unknown, { method, params }: Request): error is McpError {
    const { current } = this.supervisor;
    if (!(error instanceof McpError) || current === undefined || params["cursor"] !== undefined) return false;
    const { capabilities } = current.connection.discovered;
    const hasTools = isObject(capabilities) && capabilities["tools"] !== undefined;
    return !isMethodNotFound(error) || (hasTools && method === LISTS.tools.method);
  }

  async #listen(request: Request, context: Context, grant: Grant): Promise<Result> {
    const { style, canBeAsked } = context.caller;
    if (style === "session") {
      for (const notification of this.#early ?? []) context.notify(notification);
      this.#early = undefined;
    }
    const filter = filterOf(request);
    const names = [...namesIn(filter, "resourceSubscriptions"), ...namesIn(filter, "taskIds")];
    const subscription: Subscription = { context, needsUpstream: names.length > 0, grant };
    const run = (): Promise<Result> => this.#keepOpen(request, subscription);
    this.#subscriptions.add(subscription);
    try {
      // A caller with a session can answer requests outside any call, such as `roots/list`, as long as it listens.
      return await (style === "session" && canBeAsked && this.#hasOneClient
        ? this.#strayRequests.runCall(context, run, true)
        : run());
    } finally {
      this.#subscriptions.delete(subscription);
      this.#host.onLeave?.();
    }
  }

  async #keepOpen(request: Request, { context, needsUpstream, grant }: Subscription): Promise<Result> {
    const { supervisor } = this;
    const { signal } = context;
    if (grant.granted === undefined && supervisor.current === undefined && !needsUpstream) {
      await this.#grantFromStored(request, context, grant);
    }
    let opened: UpstreamConnection | undefined;
    const open = async (listenContext: Context): Promise<Result> => {
      opened = undefined;
      const isUnwanted = isOfPages(context.caller) && supervisor.recovery.isDown;
      opened = await (grant.granted === undefined && !isUnwanted
        ? supervisor.connect(signal)
        : needsUpstream
          ? this.#reconnect(signal)
          : supervisor.nextConnection(signal));
      return this.#send(opened, request, listenContext);
    };
    const reopens = async ({ error, granted, failures }: EndedSubscription): Promise<Reopens> => {
      if (grant.granted === undefined || supervisor.state === "closed") return false;
      const isInterruption = error instanceof ConnectionError && error.kind === "closed";
      // A program that stops ends its subscriptions with a result.
      if (!isInterruption && (error !== undefined || !isLasting(granted))) return false;
      // The pipe may break before the exit of the process is reported, so wait before another attempt.
      const pauseMs = error === undefined ? backoffMs(failures) : supervisor.current === opened ? BROKEN_PAUSE_MS : 0;
      if (pauseMs > 0) await supervisor.pause(pauseMs, signal).catch(() => undefined);
      return "now";
    };
    // The keeper reports changed lists, since it knows whether they differ from those that callers have seen.
    const notify = (notification: Notification): void => {
      const keeper = changedList(notification) === undefined ? undefined : this.#lists;
      if (keeper?.reportsChanges === true) keeper.changed();
      else context.notify(notification);
    };
    try {
      return await keepSubscribed({ ...context, notify }, grant, { open, reopens });
    } catch (error) {
      if (grant.granted === undefined || supervisor.state !== "closed" || signal.aborted) throw error;
      return { resultType: "complete" };
    }
  }

  async #grantFromStored(request: Request, context: Context, grant: Grant): Promise<void> {
    const stored = await this.#host.store?.known();
    if (stored === undefined || context.signal.aborted) return;
    grant.granted = filterFor(listsIn(filterOf(request), changingLists(stored.discovered["capabilities"])));
    context.notify(acknowledgement(grant.granted));
  }

  async #reconnect(signal: AbortSignal): Promise<UpstreamConnection> {
    for (;;) {
      try {
        return await this.supervisor.connect(signal);
      } catch (error) {
        if (signal.aborted || this.supervisor.state === "closed") throw error;
        await this.supervisor.pause(MIN_PAUSE_MS, signal);
      }
    }
  }

  async close(budgetMs?: number): Promise<void> {
    this.#lists?.close();
    await this.supervisor.close(budgetMs);
    await within(budgetMs ?? SAVE_MS, this.#host.store?.saved ?? Promise.resolve());
  }

  /** The only client that has used the session so far. */
  get onlyClient(): Caller | undefined {
    return this.#client === "several" ? undefined : this.#client;
  }

  get #hasOneClient(): boolean {
    return this.isOwn || this.#client !== "several";
  }

  /** Whether this session created the task. */
  created(taskId: unknown): boolean {
    return this.#taskIds.has(taskId);
  }

  /** Whether a call has waited long for its caller's answer. Calls that would queue behind it need another session. */
  get isParked(): boolean {
    return this.#queue.isParked;
  }

  /** Whether stopping it would break a call, a subscription or a task. */
  get isInUse(): boolean {
    return this.#isCalled || this.#mustRun;
  }

  /** Whether a caller waits for an answer or a notification. */
  get isWaitedFor(): boolean {
    return this.#isCalled || this.#subscriptions.size > 0;
  }

  /** Whether a request other than a subscription is running. */
  get #isCalled(): boolean {
    return this.supervisor.calls > 0 || this.#listing.size > 0;
  }

  /** Whether the upstream must run for a subscription or a task. */
  get #mustRun(): boolean {
    return performance.now() < this.#neededUntil || this.#hasSubscription(({ needsUpstream }) => needsUpstream);
  }

  #isNeeded(): boolean {
    // A caller with a session may rely on state that the upstream keeps.
    const isSession = ({ context }: Subscription): boolean => context.caller.style === "session";
    return this.#mustRun || (this.#settings.idleMs === undefined && this.#hasSubscription(isSession));
  }

  #hasSubscription(matches: (subscription: Subscription) => boolean): boolean {
    return [...this.#subscriptions].some(matches);
  }

  /** Sends a request to the upstream. */
  readonly #send = (opened: UpstreamConnection, request: Request, context: Context): Promise<Result> => {
    const { connection } = opened;
    if (!context.caller.canBeAsked || !INPUT_METHODS.has(request.method) || connection.revision.style === "stateless")
      return connection.handler(request, context);
    return this.#sendAskable(opened, request, context);
  };

  /** Sends a call during which the upstream may ask its caller, directly or through the queue. */
  #sendAskable({ connection }: UpstreamConnection, request: Request, context: Context): Promise<Result> {
    const { handler } = connection;
    const [isSession, asks] = [context.caller.style === "session", this.#host.asks()];
    // A client with a session can be asked at any time, so it does not matter to which of its calls a request belongs.
    if (isSession && (this.isOwn || !asks)) return handler(request, context);
    const send = (sent: Context): Promise<Result> =>
      isSession || !this.#hasOneClient
        ? handler(request, sent)
        : this.#strayRequests.runCall(sent, () => handler(request, sent));
    if (connection.attributesRequests) return send(context);
    // Calls wait for each other only if the upstream is known to ask.
    const queued = { ...context, ask: (...question) => this.#queue.asking(() => context.ask(...question)) } as Context;
    return this.#queue.run(context.signal, () => send(queued), asks, context.run);
  }

  #rememberTask({ taskId, ttlMs }: Result): void {
    this.#taskIds.set(taskId, true);
    const ms = typeof ttlMs === "number" && ttlMs > 0 ? Math.min(ttlMs, TASK_MS) : TASK_MS;
    this.#neededUntil = Math.max(this.#neededUntil, performance.now() + ms);
  }

  isCurrent(opened: UpstreamConnection): boolean {
    return this.supervisor.current === opened;
  }

  /** Notifies callers of lists that have changed since they were shown. */
  notifyChanged(changes: readonly ListCapability[]): void {
    const notifications = changes.map((capability) => ({ method: changedMethod(capability) }));
    for (const { context, grant } of this.#subscriptions) {
      for (const change of notifications) if (isConcerned(grant.granted ?? {}, change)) context.notify(change);
    }
  }

  /** The context of the gateway's own requests, and of upstream requests that belong to no call. */
  background(signal: AbortSignal): Context {
    return {
      revision: NEWEST.name,
      caller: { ...this.#host.client, style: NEWEST.style, key: INTERNAL_CALLER.key },
      signal,
      timeouts: { idleMs: BACKGROUND_TIMEOUT_MS },
      notify: (notification) => {
        if (this.#early === undefined || this.#early.length >= MAX_EARLY) return;
        if (isVendorMethod(notification.method)) this.#early.push(notification);
      },
      ask: async (question, options) => {
        const { method } = question;
        if (!this.#hasOneClient) {
          throw refusal(`Several clients share this session, and ${method} does not say which of them it is for`);
        }
        // The upstream may not answer the list before it has this answer, so the request does not wait for another call.
        if (this.#listing.size > 0 && ![...this.#listing].some(({ caller }) => canAnswer(question, caller))) {
          throw refusal(`The caller of the list cannot answer ${method}`);
        }
        return this.#strayRequests.ask(question, options);
      },
    };
  }
}

/** How long a close without a budget waits until the lists are stored: they are only a cache. */
const SAVE_MS = 1_000;
/** Methods that stored lists can answer. */
const STORED_METHODS: ReadonlySet<string> = new Set(["server/discover", ...LISTS_BY_METHOD.keys()]);
