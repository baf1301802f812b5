// A session with an upstream, used by one client or by all callers of a principal (sharing.ts). While the upstream does
// not run, lists are answered from the catalogue, and any other request starts it. The session also makes sure that a
// request from the upstream reaches the call that it belongs to.

import type { Caller, Context, Handler, Notification, Request, Result } from "../../core/handler.ts";
import { INTERNAL_CALLER } from "../../protocol/caller.ts";
import { INPUT_METHODS } from "../../protocol/client-requests.ts";
import { LISTS } from "../../protocol/lists.ts";
import { isVendorMethod, NEWEST } from "../../protocol/revisions/index.ts";
import type { Grant } from "../../protocol/subscription.ts";
import { answerFrom, CatalogueKeeper, type CatalogueStore } from "./catalogue.ts";
import { AskableCallQueue, refusal, StrayRequests } from "./client-requests.ts";
import type { RecoveryOptions } from "./restart-policy.ts";
import { UpstreamSubscriptions } from "./subscriptions.ts";
import { Supervisor, type UpstreamConnection } from "./supervisor.ts";

/** What one session gets from the pool. */
export interface UpstreamSessionHost {
  /** The client as the upstream sees it. */
  readonly client: Caller;
  /** Whether it belongs to one client. */
  readonly isOwn: boolean;
  /** The revision of the client that it belongs to, to be offered to the upstream. */
  readonly revision?: string;
  /** Where its catalogue is stored; undefined if it has none. */
  readonly store: CatalogueStore | undefined;
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
  /** Idle time after which a session is stopped. Default: IDLE_MS, but not while a caller with a session is connected. */
  readonly idleMs?: number | undefined;
  onState(): void;
}

const IDLE_MS = 30 * 60_000;
/** The longest time that a task keeps the upstream running. Also applies if the task has no `ttlMs`. */
const TASK_MS = 60 * 60_000;
const MAX_TASKS = 1_000;
/** The timeout of the gateway's own requests, which no caller cancels. */
const BACKGROUND_TIMEOUT_MS = 60_000;
/** How many notifications are held until the first client subscribes. */
const MAX_EARLY = 100;

export class UpstreamSession {
  readonly supervisor: Supervisor;
  readonly subscriptions: UpstreamSubscriptions;
  /** Whether it belongs to one client. */
  isOwn: boolean;
  /** Whether a tool, prompt or resource was used, which may have left state in the upstream. */
  hasState = false;
  readonly #settings: UpstreamSettings;
  readonly #host: UpstreamSessionHost;
  readonly #queue = new AskableCallQueue();
  readonly #strayRequests = new StrayRequests();
  /** Ids of the tasks that this session created, oldest first. */
  readonly #taskIds = new Set<unknown>();
  readonly #catalogue: CatalogueKeeper | undefined;
  #client: Caller | "several" | undefined;
  /** Vendors' notifications that came before the first client with a session subscribed; undefined after that. */
  #early: Notification[] | undefined = [];
  #neededUntil = 0;
  #requests = 0;
  /** Like `#requests`, but without subscriptions. */
  #calls = 0;

  constructor(settings: UpstreamSettings, host: UpstreamSessionHost) {
    this.#settings = settings;
    this.#host = host;
    const { store } = host;
    this.isOwn = host.isOwn;
    this.supervisor = new Supervisor({
      ...settings,
      idleMs: settings.idleMs ?? IDLE_MS,
      open: (signal) => settings.open(host, this.#background(signal)),
      checkCapacity: () => host.checkCapacity?.(),
      isNeeded: () => this.#isNeeded(),
      onStart: (opened) => this.#catalogue?.start(opened),
      onIdle: () => host.onIdle?.(),
    });
    this.#catalogue =
      store &&
      new CatalogueKeeper({
        store,
        isOwn: () => this.isOwn,
        background: (signal) => this.#background(signal),
        isCurrent: (opened) => this.supervisor.current === opened,
        onChanges: (changes) => this.subscriptions.notify(changes),
      });
    this.subscriptions = new UpstreamSubscriptions(
      this.supervisor,
      async () => store?.known(),
      (opened, context) => this.#handlerFor(opened, "subscriptions/listen", context),
    );
  }

  /** `grant`: of a subscription that moves here from another session. */
  async handle(request: Request, context: Context, grant?: Grant): Promise<Result> {
    const { caller } = context;
    if (this.#client === undefined) this.#client = caller;
    else if (this.#client !== "several" && this.#client.key !== caller.key) this.#client = "several";
    const { method } = request;
    const calls = method === "subscriptions/listen" ? 0 : 1;
    this.#requests += 1;
    this.#calls += calls;
    try {
      if (calls === 0) return await this.#listen(request, context, grant);
      if (this.supervisor.current === undefined && IN_CATALOGUE.has(method)) {
        const answer = await this.#answerFromCatalogue(request);
        if (answer !== undefined) return answer;
      }
      this.hasState ||= INPUT_METHODS.has(method);
      const handlerFor = (opened: UpstreamConnection): Handler => this.#handlerFor(opened, method, context);
      const result = await this.supervisor.call(request, context, handlerFor);
      const { resultType } = result;
      if (resultType !== undefined && resultType !== "complete") {
        if (resultType === "task") this.#rememberTask(result);
        this.#host.onHandedOut(request, result, context.caller);
      }
      return result;
    } finally {
      this.#requests -= 1;
      this.#calls -= calls;
    }
  }

  async #answerFromCatalogue(request: Request): Promise<Result | undefined> {
    const catalogue = await this.#host.store?.known();
    const answer = catalogue === undefined ? undefined : answerFrom(catalogue, request);
    // The router lists many upstreams at once, and must not wait for the restart of one that has failed.
    if (answer === undefined) this.supervisor.recovery.throwIfPausing(0);
    return answer;
  }

  /** A caller with a session can answer requests outside any call, such as `roots/list`, as long as it listens. */
  #listen(request: Request, context: Context, grant: Grant | undefined): Promise<Result> {
    const listen = (): Promise<Result> =>
      this.subscriptions.listen(request, context, grant).finally(() => this.#host.onLeave?.());
    const { style, canBeAsked } = context.caller;
    if (style === "session") {
      for (const notification of this.#early ?? []) context.notify(notification);
      this.#early = undefined;
    }
    return style === "session" && canBeAsked && this.#hasOneClient
      ? this.#strayRequests.during(context, listen, true)
      : listen();
  }

  async close(budgetMs?: number): Promise<void> {
    this.#catalogue?.close();
    await this.supervisor.close(budgetMs);
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

  get isActive(): boolean {
    return this.supervisor.isActive;
  }

  /** Whether stopping it would break a call, a subscription or a task. */
  get isInUse(): boolean {
    return this.#calls > 0 || this.subscriptions.needUpstream || performance.now() < this.#neededUntil;
  }

  /** Whether a caller waits for an answer or a notification. */
  get isWaitedFor(): boolean {
    return this.#requests > 0;
  }

  /** The handler that sends a request to the upstream, directly or through the queue. */
  #handlerFor({ connection }: UpstreamConnection, method: string, context: Context): Handler {
    const { handler } = connection;
    const { style, canBeAsked } = context.caller;
    if (connection.revision.style === "stateless" || !canBeAsked || !INPUT_METHODS.has(method)) return handler;
    const [isSession, asks] = [style === "session", this.#host.asks()];
    // A client with a session can be asked at any time, so it does not matter to which of its calls a request belongs.
    if (isSession && (this.isOwn || !asks)) return handler;
    const during = (own: Context): Handler =>
      isSession || !this.#hasOneClient
        ? (request) => handler(request, own)
        : (request) => this.#strayRequests.during(own, () => handler(request, own));
    if (connection.attributesRequests) return during(context);
    // Calls wait for each other only if the upstream is known to ask.
    const run = during({ ...context, ask: (...question) => this.#queue.asking(() => context.ask(...question)) });
    return (request) => this.#queue.run(context.signal, () => run(request, context), asks);
  }

  #isNeeded(): boolean {
    if (this.subscriptions.needUpstream || performance.now() < this.#neededUntil) return true;
    // A caller with a session may rely on state that the upstream keeps.
    return this.#settings.idleMs === undefined && this.subscriptions.hasSessions;
  }

  #rememberTask({ taskId, ttlMs }: Result): void {
    if (this.#taskIds.size >= MAX_TASKS) for (const oldest of this.#taskIds) if (this.#taskIds.delete(oldest)) break;
    this.#taskIds.add(taskId);
    const ms = typeof ttlMs === "number" && ttlMs > 0 ? Math.min(ttlMs, TASK_MS) : TASK_MS;
    this.#neededUntil = Math.max(this.#neededUntil, performance.now() + ms);
  }

  /** The context of the gateway's own requests, and of upstream requests that belong to no call. */
  #background(signal: AbortSignal): Context {
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
        if (this.#hasOneClient) return this.#strayRequests.ask(question, options);
        throw refusal(
          `Several clients share this session, and ${question.method} does not say which of them it is for`,
        );
      },
    };
  }
}

/** Methods that a catalogue can answer. */
const IN_CATALOGUE: ReadonlySet<string> = new Set([
  "server/discover",
  ...Object.values(LISTS).map(({ method }) => method),
]);
