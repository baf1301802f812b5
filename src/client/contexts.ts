// Contexts of outgoing requests: who we are, how requests from the server are answered, and where progress, logs and
// changes go. Every call has its own context; `defaultContext` is for everything outside a call.

import { abortable } from "../core/async.ts";
import {
  type AskOptions,
  type Caller,
  type Context,
  LOG_LEVELS,
  type LogLevel,
  type Notification,
  type Request,
  type Result,
} from "../core/handler.ts";
import { defined } from "../core/values.ts";
import { newCaller } from "../protocol/caller.ts";
import type { LogMessageParams } from "../protocol/model/index.ts";
import { NEWEST } from "../protocol/revisions/index.ts";
import type { ClientRequests } from "./client-requests.ts";
import type { Cache } from "../protocol/result-cache.ts";

/** How far a call has got, as the server reports it. */
export interface Progress {
  /** Grows with each report. */
  readonly progress: number;
  /** The value of `progress` at the end, if known. */
  readonly total?: number;
  /** What is being done. */
  readonly message?: string;
}

/** Listeners for the whole connection, or for one call. */
export interface NotificationListeners {
  /** Log messages of the server. With a listener but no level, the level is "info". */
  readonly onLog?: (message: LogMessageParams) => void;
  /** Called with each progress report. */
  readonly onProgress?: (progress: Progress) => void;
}

export interface ContextsOptions extends NotificationListeners {
  readonly info: NonNullable<Caller["info"]>;
  readonly requests: ClientRequests;
  readonly cache?: Cache | undefined;
  /** Returns a key for the identity that the server sees. Undefined if the identity never changes. */
  readonly identity?: (() => Promise<string | undefined>) | undefined;
  readonly logLevel?: LogLevel;
  readonly onNotification?: (notification: Notification) => void;
}

/** The options of one call that concern notifications. */
export interface CallListeners extends NotificationListeners {
  readonly logLevel?: LogLevel;
}

export class Contexts {
  readonly defaultContext: Context;
  readonly cache: Cache | undefined;
  readonly identity: ContextsOptions["identity"];
  /** The level of calls that do not set one. */
  logLevel: LogLevel | undefined;
  readonly #options: ContextsOptions;
  readonly #caller: Caller;
  readonly #closed = new AbortController();

  constructor(options: ContextsOptions) {
    this.#options = options;
    this.cache = options.cache;
    this.identity = options.identity;
    this.logLevel = options.logLevel ?? (options.onLog === undefined ? undefined : "info");
    this.#caller = newCaller(NEWEST.style, options.requests.capabilities, options.info);
    this.defaultContext = {
      revision: NEWEST.name,
      caller: this.#caller,
      signal: this.#closed.signal,
      notify: (notification) => this.notify(notification),
      ask: (request, askOptions) => this.#ask(request, this.#closed.signal, askOptions),
    };
  }

  /** Call this when the connection has ended or could not be opened. */
  end(reason: unknown): void {
    this.#closed.abort(reason);
  }

  /** Whether all calls ask for progress, even those without a listener of their own. */
  get wantsProgress(): boolean {
    return this.#options.onProgress !== undefined;
  }

  forCall(signal: AbortSignal, listeners: CallListeners, timeouts?: Context["timeouts"]): Context {
    const notify: Context["notify"] = (notification) => this.notify(notification, listeners);
    const ask: Context["ask"] = (request, options) => this.#ask(request, signal, options);
    const logLevel = this.#levelFor(listeners);
    return defined({ revision: NEWEST.name, caller: this.#caller, signal, logLevel, timeouts, notify, ask });
  }

  /** Passes a notification to the cache and to the listeners. */
  notify(notification: Notification, listeners: CallListeners = {}): void {
    const { method, params = {} } = notification;
    if (method === "notifications/message" && this.#isBelowLevel(params["level"], listeners)) return;
    this.cache?.invalidate(notification);
    callListener(this.#options.onNotification, notification);
    if (method === "notifications/message") {
      callListener(listeners.onLog ?? this.#options.onLog, params as unknown as LogMessageParams);
    } else if (method === "notifications/progress") {
      const { progressToken: _ours, _meta, ...progress } = params;
      callListener(listeners.onProgress ?? this.#options.onProgress, progress as unknown as Progress);
    }
  }

  #levelFor(listeners: CallListeners): LogLevel | undefined {
    return listeners.logLevel ?? this.logLevel ?? (listeners.onLog === undefined ? undefined : "info");
  }

  /**
   * A session has one log level for all its calls, so the server may send more than this call wants. The minimum level
   * is read for each message, because it may have changed since the call started.
   */
  #isBelowLevel(level: unknown, listeners: CallListeners): boolean {
    const min = this.#levelFor(listeners);
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
  const index = LOG_LEVELS.indexOf(level as LogLevel);
  return index < 0 ? LOG_LEVELS.length : index;
}

/** Calls a listener. Its errors become uncaught exceptions of the program, so that they do not end the connection. */
export function callListener<T>(listener: ((event: T) => void) | undefined, event: T): void {
  try {
    listener?.(event);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
