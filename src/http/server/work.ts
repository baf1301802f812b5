// How much is worked on at once, over all callers of a front: one request too many is told to come again. What keeps
// work from ending must always get in (the answers to our questions, cancellations), and a listen has a bound of its
// own, because it is no work.

import { isRequest, type RequestMessage } from "../../jsonrpc/message.ts";
import { Refusal } from "./visit.ts";
import { wantsAnswer, type Taken } from "./taken.ts";

/** To be called when the work is over, or is wanted by nobody any more and still runs. Only the first call counts. */
export type Over = (running?: Promise<unknown>) => void;

export class Work {
  readonly #most: number;
  #count = 0;
  #disowned = 0;
  #closed = false;

  constructor(most: number) {
    this.#most = most;
  }

  /** Throws a Refusal where there is no room; otherwise gives what must be called when the work is over. */
  begin(taken: Taken): Over {
    // Looked at here again: the body may have come in after the end had begun.
    this.check();
    const size = sizeOf(taken);
    if (size === 0) return () => undefined;
    // A batch that is larger than all that may be there at once is let in where nothing else is.
    if (this.#count > 0 && this.#count + size > this.#most) {
      throw new Refusal(503, "Too many requests are in flight; try again soon", { "retry-after": "1" });
    }
    this.#count += size;
    let isOver = false;
    return (running) => {
      if (isOver) return;
      isOver = true;
      const give = (): void => {
        this.#count -= size;
      };
      if (running === undefined) give();
      else this.#disown(size, running, give);
    };
  }

  /** Nobody waits for it any more, but it goes on: up to a bound of their own, such give up their room at once. */
  #disown(size: number, running: Promise<unknown>, give: () => void): void {
    const fits = this.#disowned + size <= this.#most;
    if (fits) {
      give();
      this.#disowned += size;
    }
    const ended = (): void => {
      if (fits) this.#disowned -= size;
      else give();
    };
    running.then(ended, ended);
  }

  /** Throws a Refusal where nothing begins any more. */
  check(): void {
    if (this.#closed) throw shuttingDown();
  }

  /** Nothing more begins. */
  close(): void {
    this.#closed = true;
  }
}

export function shuttingDown(): Refusal {
  return new Refusal(503, "The server is shutting down", { "retry-after": "5" }, "shutting_down");
}

/** How many requests of it are work. */
function sizeOf(taken: Taken): number {
  if (!wantsAnswer(taken)) return 0;
  if (taken.kind === "batch") return taken.items.filter((item) => "message" in item && isRequest(item.message)).length;
  const { method } = taken.message as RequestMessage;
  return method === "subscriptions/listen" || method === "ping" ? 0 : 1;
}
