// A limit on how long requests take: in all, or in silence, or both. What is over it is aborted, and answered at once,
// whether or not the end heeds the abort. Time in which the caller is being asked something does not count. A listen
// takes as long as it takes.

import type { Context } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Handler, Link, Notification, Request, Result } from "../../core/handler.ts";
import { attempt } from "../../core/async.ts";
import { following, type Following } from "../upstream/following.ts";
import { OptionReader } from "../../core/options.ts";
import { methodsOption } from "../method-names.ts";

export interface TimeoutOptions {
  /** Milliseconds that a request may take in all. */
  readonly ms?: number;
  /** Milliseconds of silence; progress starts them anew. */
  readonly idle?: number;
  /** Only requests of these methods; all but listens, where it is left out. */
  readonly methods?: readonly string[];
}

const LISTEN = "subscriptions/listen";

export function timeout(options: number | TimeoutOptions): Link {
  const names = ["ms", "idle", "methods"];
  const given = typeof options === "number" ? { ms: options } : options;
  const read = new OptionReader("timeout", given, names, "", "a number of milliseconds, or ");
  const ms = read.ms("ms");
  const idle = read.ms("idle");
  const methods = methodsOption(read);
  if (ms === undefined && idle === undefined) throw read.error("ms", "or `idle` must say how many milliseconds");
  if (methods?.has(LISTEN) === true) throw read.error("methods", `must not have ${LISTEN}: a listen is meant to last`);
  return {
    name: "timeout",
    run: (request, context, next) =>
      request.method === LISTEN || methods?.has(request.method) === false
        ? next(request, context)
        : new Limited(request, context, ms ?? Infinity, idle ?? Infinity).run(next),
  };
}

class Limited {
  readonly #request: Request;
  readonly #context: Context;
  readonly #ms: number;
  readonly #idle: number;
  readonly #stop: Following;
  #leftMs: number;
  #heardAt: number;
  #since: number;
  #asking = 0;
  #timer: NodeJS.Timeout | undefined;
  #giveUp: (error: ConnectionError) => void = () => undefined;

  constructor(request: Request, context: Context, ms: number, idle: number) {
    this.#request = request;
    this.#context = context;
    this.#ms = ms;
    this.#idle = idle;
    this.#stop = following(context.signal);
    this.#leftMs = ms;
    this.#since = this.#heardAt = performance.now();
  }

  async run(next: Handler): Promise<Result> {
    const { signal } = this.#stop;
    const context: Context = {
      ...this.#context,
      signal,
      notify: (notification) => this.#hear(notification),
      ask: (question, options) => this.#wait(() => this.#context.ask(question, options)),
    };
    this.#arm();
    try {
      return await new Promise<Result>((resolve, reject) => {
        this.#giveUp = reject;
        attempt(() => next(this.#request, context)).then(resolve, reject);
      });
    } finally {
      clearTimeout(this.#timer);
      this.#stop.forget();
    }
  }

  #hear(notification: Notification): void {
    // One timer for many notes of progress: it looks, when it fires, how long it was quiet.
    if (notification.method === "notifications/progress") this.#heardAt = performance.now();
    this.#context.notify(notification);
  }

  async #wait(ask: () => Promise<Result>): Promise<Result> {
    if (this.#asking++ === 0) {
      clearTimeout(this.#timer);
      this.#leftMs -= performance.now() - this.#since;
    }
    try {
      return await ask();
    } finally {
      if (--this.#asking === 0) {
        this.#since = this.#heardAt = performance.now();
        if (!this.#stop.signal.aborted) this.#arm();
      }
    }
  }

  #arm(): void {
    const now = performance.now();
    const total = this.#since + this.#leftMs - now;
    const quiet = this.#heardAt + this.#idle - now;
    this.#timer = setTimeout(() => this.#look(), Math.max(1, Math.min(total, quiet)));
  }

  #look(): void {
    const now = performance.now();
    const { method } = this.#request;
    if (now >= this.#since + this.#leftMs) {
      this.#end(`${method} was not finished within ${this.#ms} ms; a greater \`ms\` would let it go on`);
    } else if (now >= this.#heardAt + this.#idle) {
      this.#end(`${method} reported nothing for ${this.#idle} ms; a greater \`idle\` would let it go on`);
    } else this.#arm();
  }

  #end(message: string): void {
    this.#giveUp(new ConnectionError("timeout", message));
    // Not the same error: what comes back from behind would look as if it had been made there.
    this.#stop.abort(new Error(message));
  }
}
