// Keeps one upstream session alive across restarts of the process behind it. The process starts with the first request
// that needs it, stops when it is idle, and restarts after a failure with a pause, within limits. A call that may have
// run is never sent again. The pool decides which callers share a session.

import type { Program } from "../../client/command.ts";
import {
  abortable,
  deferred,
  ignoreRejection,
  MAX_DELAY_MS,
  pause,
  Semaphore,
  unref,
  within,
  withTimeout,
} from "../../core/async.ts";
import { isOfPages } from "../../core/authentication.ts";
import { ConnectionError, type ConnectionErrorKind } from "../../core/errors.ts";
import type { Context, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import type { ServerConnection } from "../../dialogue/connect.ts";
import { codeOf, McpError, METHOD_NOT_FOUND } from "../../protocol/errors.ts";
import { LISTS } from "../../protocol/lists.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import type { FailureCause, UpstreamState } from "./options.ts";
import { Recovery, type RecoveryOptions } from "./recovery.ts";

/** An open connection, with the program behind it if there is one. */
export interface UpstreamConnection {
  readonly connection: ServerConnection;
  readonly program?: Program;
}

export interface SupervisorOptions extends RecoveryOptions {
  /** Opens a connection. Aborting the signal stops the attempt. */
  open(signal: AbortSignal): Promise<UpstreamConnection>;
  /** Sends a request over an open connection. */
  send(opened: UpstreamConnection, request: Request, context: Context): Promise<Result>;
  /** Called with a result that is not the end of its call: the call waits for an answer, or goes on as a task. */
  onUnfinished?(request: Request, result: Result, context: Context): void;
  /** How long a request waits for a start. The start goes on after that. */
  readonly startWaitMs: number;
  /** Milliseconds without a call after which it stops; 0 means never. */
  readonly idleMs: number;
  /** Throws if it must not be started now. */
  checkCapacity?(): void;
  /** Whether it must keep running although no call is in flight. */
  isNeeded(): boolean;
  onStart?(opened: UpstreamConnection): void;
  /** Called when it was stopped because it was not used. */
  onIdle?(): void;
  onState?(): void;
}

/** A call does not wait for a longer pause, but fails with an error that says how long the pause is. */
const MAX_WAIT_MS = 10_000;
/** The shortest time between two reconnects to a URL whose server may have changed its style (session or stateless). */
const MIN_RECONNECT_INTERVAL_MS = 1_000;
const UNSENT = { mayHaveRun: false } as const;

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly recovery: Recovery;
  /** Its reason is the error of all later calls. */
  readonly #closed = new AbortController();
  /** Functions that wake callers waiting for a connection that another caller opens. */
  readonly #waiting = new Set<() => void>();
  /** Connections that are closing; their processes may still run. */
  readonly #leaving = new Set<UpstreamConnection>();
  #current: UpstreamConnection | undefined;
  #starting: Promise<UpstreamConnection> | undefined;
  #calls = 0;
  #usedAt = 0;
  #idleTimer: NodeJS.Timeout | undefined;
  #reconnectedAt = -Infinity;
  #hasChangedStyle = false;
  /** The errors of lists that cannot be read, by method. */
  readonly #unlisted = new Map<string, string>();

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.recovery = new Recovery(options);
  }

  get state(): UpstreamState {
    if (this.#closed.signal.aborted) return "closed";
    if (this.#current !== undefined) return "running";
    if (this.recovery.exhausted !== undefined) return "failed";
    if (this.recovery.waitMs > 0) return "restarting";
    return this.#starting === undefined ? "idle" : "starting";
  }

  get current(): UpstreamConnection | undefined {
    return this.#current;
  }

  /** Why it runs and cannot be listed. */
  get unlisted(): string | undefined {
    if (this.#current === undefined || this.#unlisted.size === 0) return undefined;
    return [...this.#unlisted].map(([method, message]) => `${method} failed: ${message}`).join("; ");
  }

  /** Records that a list was read, or the error. */
  noteList(method: string, error?: McpError): void {
    if (this.#unlisted.get(method) === error?.message) return;
    if (error === undefined) this.#unlisted.delete(method);
    else this.#unlisted.set(method, error.message);
    this.#options.onState?.();
  }

  /** How many calls are running. */
  get calls(): number {
    return this.#calls;
  }

  /** Whether it is running or starting. */
  get isActive(): boolean {
    return this.#current !== undefined || this.#starting !== undefined;
  }

  /** Sends a request, after starting the upstream if necessary. */
  async call(request: Request, context: Context): Promise<Result> {
    const options = this.#options;
    this.#calls += 1;
    try {
      if (isOfPages(context.caller) && !this.isActive) this.recovery.throwIfDown();
      const opened = this.#current ?? (await this.#connectForCall(context.signal));
      let result: Result;
      try {
        result = await options.send(opened, request, context);
      } catch (error) {
        const again = await this.#reconnectAfter(error, opened, request, context);
        result = await options.send(again, request, context);
      }
      if (this.recovery.problem !== undefined) this.#noteAnswer();
      const { resultType } = result;
      if (resultType !== undefined && resultType !== "complete") options.onUnfinished?.(request, result, context);
      return result;
    } catch (error) {
      this.#noteUnreachable(error);
      throw withUpstreamName(error, options.name, request.method);
    } finally {
      this.#calls -= 1;
      if (this.#current !== undefined) this.#used();
    }
  }

  /** Connects once more for a request that was not sent, or throws the error. */
  async #reconnectAfter(
    error: unknown,
    opened: UpstreamConnection,
    request: Request,
    { signal }: Context,
  ): Promise<UpstreamConnection> {
    const isOver = signal.aborted || this.#closed.signal.aborted;
    // The process ended before the request was sent, so the request can be sent to the restarted process.
    const isUnsent = error instanceof ConnectionError && error.kind === "closed" && !error.mayHaveRun;
    const isProgram = this.#options.restart !== undefined;
    const mayRetry = isProgram ? isUnsent || this.#isInOtherStyle(error, opened, request) : this.#mayReconnect(error);
    if (isOver || !mayRetry) throw error;
    if (isUnsent && isProgram) this.#onEnd(opened, error);
    else if (this.#current === opened) this.stop();
    return this.#connectForCall(signal);
  }

  /** Whether a stateless program does not know a list that it declares, as if it were in a session. True only once. */
  #isInOtherStyle(error: unknown, { connection }: UpstreamConnection, { method }: Request): boolean {
    const { capabilities } = connection.discovered;
    const hasTools = isObject(capabilities) && capabilities["tools"] !== undefined;
    if (this.#hasChangedStyle || connection.revision.style !== "stateless" || !hasTools) return false;
    if (method !== LISTS.tools.method || !(error instanceof McpError) || error.code !== METHOD_NOT_FOUND) return false;
    return (this.#hasChangedStyle = true);
  }

  /** Whether to reconnect because the server of a URL may have changed its style. True at most once in an interval. */
  #mayReconnect(error: unknown): boolean {
    const now = performance.now();
    if (!isWrongStyle(error) || now - this.#reconnectedAt < MIN_RECONNECT_INTERVAL_MS) return false;
    this.#reconnectedAt = now;
    return true;
  }

  /** Connects for a call. Errors get `mayHaveRun: false`, since the call was not sent. */
  async #connectForCall(signal: AbortSignal): Promise<UpstreamConnection> {
    try {
      return await this.connect(signal);
    } catch (error) {
      if (!(error instanceof ConnectionError) || !error.mayHaveRun || error === signal.reason) throw error;
      throw error.with(UNSENT);
    }
  }

  /** Returns the connection. Opens it if necessary. */
  async connect(signal: AbortSignal): Promise<UpstreamConnection> {
    signal.throwIfAborted();
    if (this.#current !== undefined) return this.#current;
    this.#closed.signal.throwIfAborted();
    this.recovery.throwIfPausing(MAX_WAIT_MS);
    if (this.#starting === undefined) {
      this.#options.checkCapacity?.();
      this.#starting = ignoreRejection(this.#start().finally(() => this.#onStartSettled()));
      this.#options.onState?.();
    }
    const { startWaitMs, name } = this.#options;
    const starting = this.#starting;
    const subject = `The upstream ${name}`;
    const late = `${subject} has not answered in ${startWaitMs} ms and is still starting; try again later`;
    // A start that is aborted may take a while to end.
    return withTimeout(startWaitMs, signal, () => abortable(this.#closed.signal, starting), late, { subject });
  }

  /** Waits for a connection that another caller opens. */
  async nextConnection(signal: AbortSignal): Promise<UpstreamConnection> {
    for (;;) {
      signal.throwIfAborted();
      if (this.#current !== undefined) return this.#current;
      this.#closed.signal.throwIfAborted();
      const { promise, resolve } = deferred();
      this.#waiting.add(resolve);
      await abortable(signal, promise).finally(() => this.#waiting.delete(resolve));
    }
  }

  /** Waits until the next start is allowed, but at least this long. */
  async pause(minMs: number, signal: AbortSignal): Promise<void> {
    await pause(Math.max(minMs, this.recovery.pauseMs), AbortSignal.any([signal, this.#closed.signal]));
  }

  async close(budgetMs?: number): Promise<void> {
    const subject = `The upstream ${this.#options.name}`;
    this.#closed.abort(new ConnectionError("closed", `${subject} is closed`, { ...UNSENT, subject }));
    clearTimeout(this.#idleTimer);
    for (const wake of [...this.#waiting]) wake();
    const starting: Promise<unknown> = this.#starting ?? Promise.resolve();
    // A connection that is still opening is closed by #start.
    await (budgetMs === undefined ? starting : within(budgetMs, starting)).catch(() => undefined);
    if (this.#current !== undefined) this.#leaving.add(this.#current);
    this.#current = undefined;
    await Promise.all([...this.#leaving].map(({ connection }) => connection.close(budgetMs).catch(() => undefined)));
    this.#options.onState?.();
  }

  #used(): void {
    const { idleMs } = this.#options;
    this.#usedAt = performance.now();
    if (idleMs > 0) this.#idleTimer ??= this.#checkIdle(idleMs);
  }

  /** Stops it after a time without use. A use only records its time; when the timer fires, it checks that time. */
  #checkIdle(afterMs: number): NodeJS.Timeout {
    const options = this.#options;
    const { idleMs } = options;
    const check = (): void => {
      const isInUse = this.#calls > 0 || options.isNeeded();
      const leftMs = isInUse ? idleMs : this.#usedAt + idleMs - performance.now();
      this.#idleTimer = leftMs > 0 ? this.#checkIdle(leftMs) : undefined;
      if (leftMs > 0) return;
      this.stop();
      options.onIdle?.();
    };
    return unref(setTimeout(check, Math.min(afterMs, MAX_DELAY_MS)));
  }

  /** Ends the processes or the socket of a connection. */
  async #leave(opened: UpstreamConnection): Promise<void> {
    this.#leaving.add(opened);
    await opened.connection.close().catch(() => undefined);
    this.#leaving.delete(opened);
  }

  async #start(): Promise<UpstreamConnection> {
    const { signal } = this.#closed;
    const { waitMs } = this.recovery;
    if (waitMs > 0) {
      await pause(waitMs, signal);
      this.#options.onState?.();
    }
    const isProgram = this.#options.restart !== undefined;
    const releaseSlot = isProgram ? await starts.take(signal, MAX_HELD_MS) : undefined;
    let opened: UpstreamConnection;
    try {
      signal.throwIfAborted();
      opened = await this.#options.open(signal);
    } catch (error) {
      this.#recordFailure(error, "start");
      // If we closed it ourselves, the error says nothing about the upstream.
      throw signal.aborted ? (signal.reason as Error) : error;
    } finally {
      releaseSlot?.();
    }
    if (signal.aborted) {
      await opened.connection.close().catch(() => undefined);
      throw signal.reason as Error;
    }
    this.recovery.started();
    this.#unlisted.clear();
    this.#current = opened;
    if (!isProgram) this.recovery.problem = undefined;
    opened.connection.ended(signal).catch((error: unknown) => this.#onEnd(opened, error));
    for (const wake of [...this.#waiting]) wake();
    this.#options.onStart?.(opened);
    this.#options.onState?.();
    this.#used();
    return opened;
  }

  #onStartSettled(): void {
    this.#starting = undefined;
    if (this.#current === undefined) this.#options.onState?.();
  }

  /** A URL has no process whose exit could be noticed, so only failed calls show that it cannot be reached. */
  #noteUnreachable(error: unknown): void {
    const isAddress = this.#options.restart === undefined;
    if (!isAddress || this.#current === undefined || !(error instanceof ConnectionError)) return;
    const isUnreachable = UNREACHABLE.has(error.kind) && !error.mayHaveRun;
    if (isUnreachable && error.message !== this.recovery.problem) this.#recordFailure(error, "crash");
  }

  #noteAnswer(): void {
    if (this.#options.restart !== undefined) return;
    this.recovery.problem = undefined;
    this.#options.onState?.();
  }

  #onEnd(opened: UpstreamConnection, error: unknown): void {
    if (this.#current !== opened) return;
    this.#current = undefined;
    void this.#leave(opened);
    this.#recordFailure(error, "crash");
  }

  #recordFailure(error: unknown, cause: FailureCause): void {
    if (this.#closed.signal.aborted) return;
    this.recovery.failed(error, cause);
    this.#options.onState?.();
  }

  /** Closes the connection. The next request opens another. */
  stop(): void {
    const opened = this.#current;
    if (opened === undefined) return;
    this.#current = undefined;
    void this.#leave(opened);
    this.#options.onState?.();
  }
}

/** Kinds of errors that mean that a URL cannot be reached, or that its server rejects our credentials. */
const UNREACHABLE: ReadonlySet<ConnectionErrorKind> = new Set<ConnectionErrorKind>([
  "refused",
  "timeout",
  "unauthorized",
]);

/**
 * Adds the name of the upstream to an error and, for a tool call, whether it may have run. Also to scopes that are
 * missing there: the credentials of the gateway lack them, so the caller is not asked for them.
 */
function withUpstreamName(error: unknown, name: string, method: string): unknown {
  if (error instanceof McpError && isObject(error.data) && error.data["requiredScopes"] !== undefined) {
    return new McpError(error.code, error.message, { ...error.data, upstreamName: name }, { cause: error });
  }
  if (!(error instanceof ConnectionError)) return error;
  const { kind, problem, mayHaveRun } = error;
  const subject = `The upstream ${name}`;
  if (kind === "cancelled" || error.subject === subject) return error;
  const doubt = mayHaveRun && method === "tools/call" ? " and the call may have run" : "";
  return error.with({ subject, problem: `${subject} failed${doubt}: ${problem}` });
}

/** HTTP statuses of a server that no longer accepts the style it accepted before. */
const NO_LONGER_ACCEPTED: ReadonlySet<number | undefined> = new Set([400, 404, 405]);

const UNSUPPORTED_REVISION = codeOf("unsupported_revision", NEWEST);

/** Whether the upstream rejected the style of the request. If so, the request has not run. */
function isWrongStyle(error: unknown): boolean {
  if (error instanceof ConnectionError) {
    const isRefused = error.kind === "http" && NO_LONGER_ACCEPTED.has(error.status);
    return !error.mayHaveRun && (isRefused || error.kind === "protocol");
  }
  if (!(error instanceof McpError)) return false;
  // The newest revision reserves this code. An error of a session-style upstream with this code was converted to
  // another code, and has the original one in `data.upstream`.
  const { data } = error;
  const code = isObject(data) && isObject(data["upstream"]) ? data["upstream"]["code"] : error.code;
  return code === UNSUPPORTED_REVISION;
}

/** How many programs start at once, over all upstreams, since each may run a package manager. */
const starts = new Semaphore(8);
/** A start that takes longer gives up its slot, so that a slow or silent program does not delay others. */
const MAX_HELD_MS = 3_000;
