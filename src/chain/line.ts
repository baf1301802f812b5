// The links of a gateway as they are at one time, on their handler, and what is on its way through them: a request goes
// to its end with the links with which it began. A line that was replaced is told so, and says when nothing runs
// through it any more. Which line is the present one is the gateway's affair.

import { onAbort, unref } from "../core/async.ts";
import type { Context } from "../core/handler.ts";
import type { Handler, Link, Request, Result } from "../core/handler.ts";
import { SETTLE_MS } from "../dialogue/calls/in-flight.ts";
import { compose } from "./compose.ts";

interface Underway {
  readonly context: Context;
}

export class Line {
  readonly links: readonly Link[];
  readonly #handler: Handler;
  readonly #underway = new Set<Underway>();
  #drained: (() => void) | undefined;

  constructor(links: readonly Link[], end: Handler) {
    this.links = links;
    this.#handler = compose(links, end);
  }

  async run(request: Request, context: Context): Promise<Result> {
    const call: Underway = { context };
    this.#underway.add(call);
    try {
      return await this.#handler(request, context);
    } finally {
      this.#leave(call);
    }
  }

  /** Resolves when nothing runs through it any more. Nothing new may be begun from now on. */
  retire(): Promise<void> {
    if (this.#underway.size === 0) return Promise.resolve();
    for (const call of this.#underway) {
      // A link that never answers must not keep another from being closed: who has gone is not waited for.
      const { signal } = call.context;
      const leave = (): void => void unref(setTimeout(() => this.#leave(call), SETTLE_MS));
      if (signal.aborted) leave();
      else onAbort(signal, leave);
    }
    return new Promise<void>((resolve) => {
      this.#drained = resolve;
    });
  }

  #leave(call: Underway): void {
    if (this.#underway.delete(call) && this.#underway.size === 0) this.#drained?.();
  }
}
