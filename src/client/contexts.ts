// What travels with our requests: who we are, the way questions come back to us, and where progress, logs and
// changes go. One context is at home for as long as the connection lives and stands behind what belongs to no
// call; every call has its own. How a request is sent and ended is for calls.ts.

import { onAbort } from "../core/async.ts";
import type { AskOptions, Caller, Context, LogLevel } from "../core/handler.ts";
import { LOG_LEVELS } from "../core/handler.ts";
import type { Notification, Request, Result } from "../core/handler.ts";
import type { LogMessageParams } from "../protocol/model/index.ts";
import { NEWEST } from "../protocol/revisions/index.ts";
import type { Asks } from "./client-requests.ts";
import type { Cache } from "./cache.ts";

export interface Progress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

export interface Listeners {
  /** Log messages of the end. With a listener but no level, the level is "info". */
  readonly onLog?: (message: LogMessageParams) => void;
  readonly onProgress?: (progress: Progress) => void;
}

export interface ContextsOptions extends Listeners {
  readonly info: NonNullable<Caller["info"]>;
  readonly asks: Asks;
  readonly cache?: Cache | undefined;
  /** Who asks, as the end can tell; left out where that never changes. */
  readonly identity?: (() => Promise<string | undefined>) | undefined;
  readonly logLevel?: LogLevel;
  readonly onNotification?: (notification: Notification) => void;
}

/** What one call wants of its context. */
export interface Wanted extends Listeners {
  readonly logLevel?: LogLevel;
}

export class Contexts {
  readonly home: Context;
  readonly cache: Cache | undefined;
  readonly identity: ContextsOptions["identity"];
  /** The level of calls that name none. */
  level: LogLevel | undefined;
  readonly #options: ContextsOptions;
  readonly #caller: Caller;
  readonly #life = new AbortController();

  constructor(options: ContextsOptions) {
    this.#options = options;
    this.cache = options.cache;
    this.identity = options.identity;
    this.level = options.logLevel ?? (options.onLog === undefined ? undefined : "info");
    this.#caller = { info: options.info, capabilities: options.asks.capabilities };
    this.home = {
      revision: NEWEST.name,
      caller: this.#caller,
      signal: this.#life.signal,
      notify: (notification) => this.hear(notification),
      ask: (question, options) => this.#ask(question, this.#life.signal, options),
    };
  }

  /** The connection is over, or never came to be. */
  end(reason: unknown): void {
    this.#life.abort(reason);
  }

  /** Whether calls want progress even if they do not say so. */
  get wantsProgress(): boolean {
    return this.#options.onProgress !== undefined;
  }

  call(signal: AbortSignal, wanted: Wanted, timeouts?: Context["timeouts"]): Context {
    const logLevel = this.#levelOf(wanted);
    return {
      revision: NEWEST.name,
      caller: this.#caller,
      signal,
      ...(logLevel === undefined ? undefined : { logLevel }),
      ...(timeouts === undefined ? undefined : { timeouts }),
      notify: (notification) => this.hear(notification, wanted),
      ask: (question, options) => this.#ask(question, signal, options),
    };
  }

  /** Something came back that is no result. */
  hear(notification: Notification, wanted: Wanted = {}): void {
    const { method, params = {} } = notification;
    if (method === "notifications/message" && this.#isTooMuch(params["level"], wanted)) return;
    this.cache?.changed(notification);
    tell(this.#options.onNotification, notification);
    if (method === "notifications/message") {
      tell(wanted.onLog ?? this.#options.onLog, params as unknown as LogMessageParams);
    } else if (method === "notifications/progress") {
      const { progressToken: _ours, _meta, ...progress } = params;
      tell(wanted.onProgress ?? this.#options.onProgress, progress as unknown as Progress);
    }
  }

  #levelOf(wanted: Wanted): LogLevel | undefined {
    return wanted.logLevel ?? this.level ?? (wanted.onLog === undefined ? undefined : "info");
  }

  /**
   * A session has one level for all its calls, so an end may say more than this call wants. What holds is the level of
   * now: where the level was changed since the call began, another call's message may have come in its name.
   */
  #isTooMuch(level: unknown, wanted: Wanted): boolean {
    const least = this.#levelOf(wanted);
    return least !== undefined && rank(level) < rank(least);
  }

  /** Rejects as soon as nobody waits for the answer, whether or not the handler looks at its signal. */
  async #ask(question: Request, call: AbortSignal, options: AskOptions | undefined): Promise<Result> {
    const signal = options?.signal === undefined ? call : AbortSignal.any([call, options.signal]);
    signal.throwIfAborted();
    let forget = (): void => undefined;
    const gone = new Promise<never>((_, reject) => {
      forget = onAbort(signal, () => reject(signal.reason as Error));
    });
    try {
      return await Promise.race([this.#options.asks.answer(question, signal), gone]);
    } finally {
      forget();
    }
  }
}

/** How urgent; a word that is no level is never taken for a small one. */
function rank(level: unknown): number {
  const at = LOG_LEVELS.indexOf(level as LogLevel);
  return at < 0 ? LOG_LEVELS.length : at;
}

/** A fault in a listener is the program's own: it is thrown where it cannot end the dialogue. */
export function tell<T>(listener: ((event: T) => void) | undefined, event: T): void {
  try {
    listener?.(event);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
