// The session that one group of callers has with an upstream. While the upstream does not run, lists are answered from
// the catalogue, and any other request starts it. For stateless callers, the session also makes sure that a request
// from the upstream reaches the call that it belongs to.

import type { Caller, Context, Handler, Request, Result } from "../../core/handler.ts";
import { fingerprint, INTERNAL_CALLER } from "../../protocol/caller.ts";
import { INPUT_METHODS } from "../../protocol/client-requests.ts";
import { LISTS } from "../../protocol/lists.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { answerFrom, CatalogueKeeper, type CatalogueFile } from "./catalogue.ts";
import { AskableCallQueue, SESSION_BUSY, StrayRequests } from "./client-requests.ts";
import type { RestartOptions } from "./options.ts";
import type { RestartPolicy } from "./restart-policy.ts";
import { UpstreamSubscriptions } from "./subscriptions.ts";
import { Supervisor, type UpstreamConnection } from "./supervisor.ts";

export interface UpstreamSessionOptions {
  readonly name: string;
  /** The client as the upstream sees it. */
  readonly caller: Caller;
  /** Whether all callers use it, whatever their capabilities (`share: "shared"`). */
  readonly isShared: boolean;
  /** Whether it belongs to one connection of a caller. If so, later list changes are not written to `file`. */
  readonly isExclusive: boolean;
  /** Opens a connection. `background` receives requests and notifications that belong to no call. */
  open(background: Context): Promise<UpstreamConnection>;
  readonly restart?: RestartOptions | undefined;
  /** How long a request waits for a start. */
  readonly startWaitMs: number;
  /** Counts the failed starts of all sessions with the upstream. */
  readonly startFailures?: RestartPolicy | undefined;
  /** Idle time after which it is stopped. Default: IDLE_MS, but not while a caller with a session is connected. */
  readonly idleMs?: number | undefined;
  /** Where its catalogue is stored; undefined if it has none. */
  readonly file?: CatalogueFile | undefined;
  /** Throws if too many sessions are open to start another. */
  readonly checkCapacity: () => void;
  onState?(): void;
  /** Called when a subscription has ended. */
  onLeave?(session: UpstreamSession): void;
}

const IDLE_MS = 30 * 60_000;
/** The longest time that a task keeps the upstream running. Also applies if the task has no `ttlMs`. */
const TASK_MS = 60 * 60_000;
const MAX_TASKS = 1_000;
/** The timeout of the gateway's own requests, which no caller cancels. */
const BACKGROUND_TIMEOUT_MS = 60_000;

export class UpstreamSession {
  readonly supervisor: Supervisor;
  readonly subscriptions: UpstreamSubscriptions;
  readonly #options: UpstreamSessionOptions;
  readonly #queue = new AskableCallQueue();
  readonly #strayRequests = new StrayRequests();
  /** Ids of the tasks that this session created, oldest first. */
  readonly #taskIds = new Set<unknown>();
  readonly #catalogue: CatalogueKeeper | undefined;
  #neededUntil = 0;
  #requests = 0;
  /** Like `#requests`, but without subscriptions. */
  #calls = 0;

  constructor(options: UpstreamSessionOptions) {
    this.#options = options;
    const { name, restart, startFailures, startWaitMs, idleMs } = options;
    this.supervisor = new Supervisor({
      name,
      restart,
      startFailures,
      startWaitMs,
      idleMs: idleMs ?? IDLE_MS,
      open: (signal) => options.open(this.#background(signal)),
      checkCapacity: () => options.checkCapacity(),
      isNeeded: () => this.#isNeeded(),
      onStart: (opened) => this.#catalogue?.start(opened),
      onState: () => options.onState?.(),
    });
    const { file } = options;
    this.#catalogue =
      file &&
      new CatalogueKeeper({
        file,
        isExclusive: options.isExclusive,
        background: (signal) => this.#background(signal),
        isCurrent: (opened) => this.supervisor.current === opened,
        onChanges: (changes) => this.subscriptions.notify(changes),
      });
    this.subscriptions = new UpstreamSubscriptions(
      this.supervisor,
      async () => this.#catalogue?.known(),
      (opened, context) => this.#handlerFor(opened, "subscriptions/listen", context),
      () => options.onLeave?.(this),
    );
  }

  async handle(request: Request, context: Context): Promise<Result> {
    const calls = request.method === "subscriptions/listen" ? 0 : 1;
    this.#requests += 1;
    this.#calls += calls;
    try {
      return await this.#handle(request, context);
    } finally {
      this.#requests -= 1;
      this.#calls -= calls;
    }
  }

  async #handle(request: Request, context: Context): Promise<Result> {
    const { method } = request;
    if (method === "subscriptions/listen") return this.#listen(request, context);
    if (this.supervisor.current === undefined && IN_CATALOGUE.has(method)) {
      const catalogue = await this.#catalogue?.known();
      const answer = catalogue === undefined ? undefined : answerFrom(catalogue, request);
      if (answer !== undefined) return answer;
      // The router lists many upstreams at once, and must not wait for the restart of one that has failed.
      this.supervisor.recovery.throwIfPausing(0);
    }
    const result = await this.supervisor.call(request, context, (opened) => this.#handlerFor(opened, method, context));
    if (result.resultType === "task") this.#rememberTask(result);
    return result;
  }

  /** A caller with a session can answer requests outside any call, such as `roots/list`, as long as it listens. */
  #listen(request: Request, context: Context): Promise<Result> {
    const listen = (): Promise<Result> => this.subscriptions.listen(request, context);
    const { style, canBeAsked } = context.caller;
    return style === "session" && canBeAsked && !this.#options.isShared && this.#belongsTo(context)
      ? this.#strayRequests.during(context, listen, true)
      : listen();
  }

  async close(budgetMs?: number): Promise<void> {
    this.#catalogue?.close();
    await this.supervisor.close(budgetMs);
  }

  /** The negotiated style; undefined while the upstream does not run. */
  get style(): Caller["style"] | undefined {
    return this.supervisor.current?.connection.revision.style;
  }

  /** Whether the upstream says to which call its requests belong; undefined while it does not run. */
  get attributesRequests(): boolean | undefined {
    return this.supervisor.current?.connection.attributesRequests;
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
    if (connection.revision.style === "stateless") return handler;
    if (style === "session") {
      if (!connection.attributesRequests && canBeAsked && !this.#belongsTo(context)) throw SESSION_BUSY;
      return handler;
    }
    // The handshake has declared the capabilities of one caller, and cannot be repeated for another.
    if (this.#hasOtherCapabilities(context)) throw SESSION_BUSY;
    const ours = withCommonKey(context);
    if (!INPUT_METHODS.has(method) || !canBeAsked) return (request) => handler(request, ours);
    if (connection.attributesRequests)
      return (request) => this.#strayRequests.during(ours, () => handler(request, ours));
    const asking: Context = { ...ours, ask: (...question) => this.#queue.asking(() => ours.ask(...question)) };
    const run = (request: Request): Promise<Result> =>
      this.#strayRequests.during(asking, () => handler(request, asking));
    return (request) => this.#queue.run(context.signal, `The upstream ${this.#options.name}`, () => run(request));
  }

  /** Whether the caller may get requests that the upstream does not attribute to a call. */
  #belongsTo({ caller: { key } }: Context): boolean {
    const { isShared, caller } = this.#options;
    return isShared || key === INTERNAL_CALLER.key || key === caller.key;
  }

  #hasOtherCapabilities({ caller: { capabilities } }: Context): boolean {
    return !this.#options.isShared && fingerprint(capabilities) !== fingerprint(this.#options.caller.capabilities);
  }

  #isNeeded(): boolean {
    if (this.subscriptions.needUpstream || performance.now() < this.#neededUntil) return true;
    // A caller with a session may rely on state that the upstream keeps.
    return this.#options.idleMs === undefined && this.subscriptions.hasSessions;
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
      caller: { ...this.#options.caller, style: NEWEST.style, key: INTERNAL_CALLER.key },
      signal,
      timeouts: { idleMs: BACKGROUND_TIMEOUT_MS },
      notify: () => undefined,
      ask: (question, options) => this.#strayRequests.ask(question, options),
    };
  }
}

/** All stateless calls of one principal count as calls of one client, whatever their info and capabilities are. */
function withCommonKey(context: Context): Context {
  const { caller } = context;
  return { ...context, caller: { ...caller, key: `principal ${caller.principal ?? ""}` } };
}

/** Methods that a catalogue can answer. */
const IN_CATALOGUE: ReadonlySet<string> = new Set([
  "server/discover",
  ...Object.values(LISTS).map(({ method }) => method),
]);
