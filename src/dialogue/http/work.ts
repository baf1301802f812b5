// How much is worked on at once, over all callers of a front: one request too many is told to come again. What keeps
// work from ending must always get in (the answers to our questions, cancellations), and a listen has a bound of its
// own, because it is no work.

import type { RequestMessage } from "../../jsonrpc/message.ts";
import { Refusal } from "../../transport/http/visit.ts";
import { wantsAnswer, type Taken } from "./taken.ts";

export class Work {
  readonly #most: number;
  #count = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Throws a Refusal where there is no room; otherwise gives what must be called when the work is over. */
  begin(taken: Taken): () => void {
    if (!isWork(taken)) return () => undefined;
    if (this.#count >= this.#most) {
      throw new Refusal(503, "Too many requests are in flight; try again soon", { "retry-after": "1" });
    }
    this.#count += 1;
    let isOver = false;
    return () => {
      if (!isOver) this.#count -= 1;
      isOver = true;
    };
  }
}

function isWork(taken: Taken): boolean {
  if (!wantsAnswer(taken)) return false;
  if (taken.kind === "batch") return true;
  const { method } = taken.message as RequestMessage;
  return method !== "subscriptions/listen" && method !== "ping";
}
