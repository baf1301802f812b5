// Sessions of single requests: begun for one, ended with it. So many at once; who finds no room waits for some. Whoever
// has its answer does not wait until the program behind it has ended.

import type { Context } from "../../core/handler.ts";
import type { Request, Result } from "../../core/handler.ts";
import { abortable, within } from "../../core/async.ts";
import { isObject } from "../../core/objects.ts";
import { McpError } from "../../protocol/errors.ts";
import { TASKS } from "../../protocol/tasks.ts";
import { styleOf } from "./caller-key.ts";
import type { UpstreamPoolOptions } from "./pool.ts";
import type { UpstreamSession } from "./session.ts";

/** How long a request waits for room. */
const PATIENCE_MS = 60_000;

export class SingleSessions {
  readonly #most: number;
  readonly #options: Pick<UpstreamPoolOptions, "make" | "name">;
  /** With those that are ending. */
  readonly sessions: Set<UpstreamSession> = new Set();
  readonly #waiting = new Set<() => void>();
  #closed = false;

  constructor(most: number, options: Pick<UpstreamPoolOptions, "make" | "name">) {
    this.#most = most;
    this.#options = options;
  }

  async handle(request: Request, context: Context): Promise<Result> {
    await this.#untilRoom(context.signal);
    const session = this.#options.make(context.caller, {
      style: styleOf(context),
      isForAll: false,
      isOwn: true,
      isExtra: true,
      mayBegin: () => undefined,
    });
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

  /** Each is woken when one is gone, and looks again. */
  async #untilRoom(signal: AbortSignal): Promise<void> {
    const until = performance.now() + PATIENCE_MS;
    for (;;) {
      if (this.#closed) throw McpError.of("shutting_down", `The end ${this.#options.name()} is closed`);
      if (this.sessions.size < this.#most) return;
      const leftMs = until - performance.now();
      if (leftMs <= 0) {
        const why = `the end ${this.#options.name()} has been busy for ${PATIENCE_MS / 1_000} s`;
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

/** A task lives in the session that made it, and that is gone with its request. */
function withoutTasks(discovered: Result): Result {
  const { capabilities } = discovered;
  const extensions = isObject(capabilities) ? capabilities["extensions"] : undefined;
  if (!isObject(capabilities) || !isObject(extensions) || !(TASKS in extensions)) return discovered;
  const { [TASKS]: _tasks, ...others } = extensions;
  return { ...discovered, capabilities: { ...capabilities, extensions: others } };
}
