// Contexts of outgoing requests: who we are, how requests from the server are answered, and where progress, logs and
// changes go. Every call has its own context; `defaultContext` is for everything outside a call.

import { abortable } from "../core/async.ts";
import { CANCEL_TOKEN, type CancelToken, type ContextBeforeSignal } from "../core/cancel.ts";
import { ConnectionError } from "../core/errors.ts";
import {
  type AskOptions,
  type Caller,
  type Context,
  isLogLevel,
  levelRank,
  LOG_LEVELS,
  type LogLevel,
  type Meta,
  type Notification,
  type Request,
  type Result,
  type Session,
} from "../core/handler.ts";
import { callListener, type ListenerErrors } from "../core/listeners.ts";
import { newCaller } from "../protocol/caller.ts";
import { isNotificationOf } from "../protocol/methods.ts";
import type { LogMessageParams } from "../protocol/model/index.ts";
import type { Cache } from "../protocol/result-cache.ts";
import { NEWEST } from "../protocol/revisions/index.ts";
import { declaringTasks } from "../protocol/tasks.ts";
import { checkNotification } from "../tools/content.ts";
import type { ClientRequests } from "./client-requests.ts";

/** How far a call has got, as the server reports it. */
export interface Progress {
  /** Grows with each report. */
  readonly progress: number;
  /** The value of `progress` at the end, if known. */
  readonly total?: number;
  /** What is being done. */
  readonly message?: string;
  /** What the server says beside that. */
  readonly _meta?: Meta;
}

/** Listeners for the whole connection, or for one call. */
export interface NotificationListeners {
  /** Log messages of the server. With a listener but no level, the level is "info". */
  readonly onLog?: ((message: LogMessageParams) => void) | undefined;
  /** Called with each progress report. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
}

export interface ContextsOptions extends NotificationListeners {
  readonly info: NonNullable<Caller["info"]>;
  readonly requests: ClientRequests;
  readonly cache?: Cache | undefined;
  /** Returns a key for the identity that the server sees. Undefined if the identity never changes. */
  readonly identity?: (() => Promise<string | undefined>) | undefined;
  readonly logLevel?: LogLevel | undefined;
  readonly onNotification?: ((notification: Notification) => void) | undefined;
  readonly onError?: ListenerErrors | undefined;
  /** Whether the server is a handler in this process. Such a client has a session, and an environment if one is set. */
  readonly isLocal?: boolean | undefined;
  readonly env?: unknown;
}

export interface CallListeners extends NotificationListeners {
  readonly logLevel?: LogLevel | undefined;
}

export class Contexts {
  readonly defaultContext: Context;
  readonly cache: Cache | undefined;
  readonly identity: ContextsOptions["identity"];
  readonly onError: ListenerErrors | undefined;
  /** The level of calls that do not set one. */
  logLevel: LogLevel | undefined;
  /** Whether all calls ask for progress, even those without a listener of their own. */
  readonly wantsProgress: boolean;
  readonly #options: ContextsOptions;
  readonly #caller: Caller;
  /** The caller of requests that may be answered with a task. */
  readonly #taskCaller: Caller;
  readonly #session: Session | undefined;
  readonly #closed = new AbortController();

  constructor(options: ContextsOptions) {
    this.#options = options;
    this.cache = options.cache;
    this.identity = options.identity;
    this.onError = options.onError;
    this.logLevel = options.logLevel ?? (options.onLog === undefined ? undefined : "info");
    const caller = newCaller(NEWEST.style, options.requests.capabilities, options.info);
    this.#caller = options.env === undefined ? caller : { ...caller, env: options.env };
    this.#taskCaller = declaringTasks(this.#caller);
    this.wantsProgress = options.onProgress !== undefined;
    if (options.isLocal === true) {
      const notify: Session["notify"] = (notification) => {
        checkNotification(notification);
        if (!this.#closed.signal.aborted) this.notify(notification);
      };
      this.#session = { id: caller.key, state: new Map(), ended: this.#closed.signal, notify };
    }
    this.defaultContext = {
      revision: NEWEST.name,
      caller: this.#caller,
      signal: this.#closed.signal,
      notify: (notification) => this.notify(notification),
      ask: (request, askOptions) => this.#ask(request, this.#closed.signal, askOptions),
      ...(this.#session && { session: this.#session }),
    };
  }

  /** Call this when the connection has ended or could not be opened. */
  end(reason: unknown): void {
    this.#closed.abort(reason);
  }

  /** Throws if the connection has ended. A call that is not sent has certainly not run. */
  throwIfEnded(): void {
    const { signal } = this.#closed;
    if (!signal.aborted) return;
    const reason: unknown = signal.reason;
    throw reason instanceof ConnectionError ? reason.with({ mayHaveRun: false }) : reason;
  }

  forCall(
    token: CancelToken,
    listeners: CallListeners,
    declaresTasks: boolean,
    timeouts?: Context["timeouts"],
  ): Context {
    const notify: Context["notify"] = (notification) => this.notify(notification, listeners);
    const ask: Context["ask"] = (request, options) => this.#ask(request, token.signal, options);
    const context: ContextBeforeSignal = {
      [CANCEL_TOKEN]: token,
      revision: NEWEST.name,
      caller: declaresTasks ? this.#taskCaller : this.#caller,
      session: this.#session,
      logLevel: this.levelFor(listeners),
      timeouts,
      notify,
      ask,
    };
    return token.attachTo(context);
  }

  notify(notification: Notification, listeners: CallListeners = {}): void {
    const known = notification.params === undefined ? { ...notification, params: {} } : notification;
    const isLog = isNotificationOf(known, "notifications/message");
    if (isLog && this.#isBelowLevel(known.params.level, listeners)) return;
    this.cache?.invalidate(notification);
    const { onNotification, onLog, onProgress, onError } = this.#options;
    callListener("onNotification", onNotification, [notification], onError);
    if (isLog) callListener("onLog", listeners.onLog ?? onLog, [known.params], onError);
    else if (isNotificationOf(known, "notifications/progress")) {
      const { progressToken: _ours, ...progress } = known.params;
      callListener("onProgress", listeners.onProgress ?? onProgress, [progress], onError);
    }
  }

  levelFor(listeners: CallListeners): LogLevel | undefined {
    return listeners.logLevel ?? this.logLevel ?? (listeners.onLog === undefined ? undefined : "info");
  }

  /**
   * A session has one log level for all its calls, so the server may send more than this call wants. The minimum level
   * is read for each message, because it may have changed since the call started.
   */
  #isBelowLevel(level: unknown, listeners: CallListeners): boolean {
    const min = this.levelFor(listeners);
    return min !== undefined && rank(level) < rank(min);
  }

  /** Rejects as soon as the answer is no longer needed, even if the handler ignores its signal. */
  async #ask(request: Request, call: AbortSignal, options: AskOptions | undefined): Promise<Result> {
    const signal = options?.signal === undefined ? call : AbortSignal.any([call, options.signal]);
    signal.throwIfAborted();
    return abortable(signal, this.#options.requests.answer(request, signal));
  }
}

/** An unknown level counts as the most urgent one. */
function rank(level: unknown): number {
  return isLogLevel(level) ? levelRank(level) : LOG_LEVELS.length;
}
