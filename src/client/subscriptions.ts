// Changes of an end, as one long `subscriptions/listen`: open once the end has acknowledged it, over when
// either side says so. Events go to a callback, or into a bounded store that an iteration empties. The cache
// hears of every change; what else comes along (a session's log messages) goes where the client's own goes.

import { onAbort, attempt } from "../core/async.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler, Notification } from "../core/handler.ts";
import { DEFAULT_TIMEOUTS } from "../dialogue/calls/pending.ts";
import type {
  RequestParams,
  ResourceUpdatedParams,
  SubscriptionFilter,
  TaskNotificationParams,
} from "../protocol/model/index.ts";
import { declaringTasks } from "../protocol/tasks.ts";
import { cancelled, LONGEST_MS, withMeta, type CallOptions } from "./calls.ts";
import { tell, type Contexts } from "./contexts.ts";

export type ChangeEvent =
  | { readonly method: "notifications/tools/list_changed"; readonly params?: RequestParams }
  | { readonly method: "notifications/prompts/list_changed"; readonly params?: RequestParams }
  | { readonly method: "notifications/resources/list_changed"; readonly params?: RequestParams }
  | { readonly method: "notifications/resources/updated"; readonly params: ResourceUpdatedParams }
  | { readonly method: "notifications/tasks"; readonly params: TaskNotificationParams };

/** `timeout` is how long the acknowledgement may take. */
export type ListenOptions = Pick<CallOptions, "signal" | "timeout" | "meta">;

export interface Subscription extends AsyncIterable<ChangeEvent> {
  /** What of the filter the end grants. */
  readonly honoured: SubscriptionFilter;
  /** Events that nobody took in time and that had to make room for newer ones. */
  readonly dropped: number;
  /** Resolves when either side has ended it; rejects when the connection broke. */
  readonly ended: Promise<void>;
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const MOST_KEPT = 1_000;
const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";

const CHANGES: ReadonlySet<string> = new Set<ChangeEvent["method"]>([
  "notifications/tools/list_changed",
  "notifications/prompts/list_changed",
  "notifications/resources/list_changed",
  "notifications/resources/updated",
  "notifications/tasks",
]);

export class Listens {
  readonly #handler: Handler;
  readonly #contexts: Contexts;
  readonly #ackMs: number;
  readonly #open = new Set<Listening>();

  constructor(handler: Handler, contexts: Contexts, ackMs: number = DEFAULT_TIMEOUTS.idleMs) {
    this.#handler = handler;
    this.#contexts = contexts;
    this.#ackMs = ackMs;
  }

  /** Resolves when the end has acknowledged it. */
  async listen(
    filter: SubscriptionFilter,
    onEvent?: (event: ChangeEvent) => void,
    options: ListenOptions = {},
  ): Promise<Subscription> {
    const { signal, timeout = this.#ackMs } = options;
    if (signal?.aborted === true) throw cancelled("subscriptions/listen", signal.reason, false);
    const listening = new Listening(onEvent);
    const { stop } = listening;
    const forget = onAbort(signal, () => stop.abort(signal?.reason));
    const timer =
      timeout > 0 ? setTimeout(() => stop.abort(unacknowledged(timeout)), Math.min(timeout, LONGEST_MS)) : undefined;
    const plain = this.#contexts.call(stop.signal, {});
    const context = filter.taskIds === undefined ? plain : declaringTasks(plain);
    const notify = (notification: Notification): void => {
      if (notification.method === ACKNOWLEDGED) {
        clearTimeout(timer);
        listening.acknowledge((notification.params?.["notifications"] as SubscriptionFilter | undefined) ?? {});
      } else if (CHANGES.has(notification.method)) {
        context.notify(notification);
        listening.take(notification as ChangeEvent);
        // Of no call, so that the level counts which is wanted now, not the one of when the listen began.
      } else if (this.#isFirst(listening)) this.#contexts.hear(notification);
    };
    this.#open.add(listening);
    const params = withMeta({ notifications: filter }, options.meta);
    listening.follow(
      attempt(() => this.#handler({ method: "subscriptions/listen", params }, { ...context, notify })).finally(() => {
        clearTimeout(timer);
        forget();
        this.#open.delete(listening);
      }),
    );
    await listening.acknowledged;
    return listening;
  }

  /** With a failure: what broke them. */
  endAll(failure?: ConnectionError): void {
    for (const listening of this.#open) listening.end(failure);
  }

  /** A session hands what belongs to no call to every listen: one of them is enough. */
  #isFirst(listening: Listening): boolean {
    const [first] = this.#open;
    return first === listening;
  }
}

class Listening implements Subscription {
  readonly stop: AbortController = new AbortController();
  readonly acknowledged: Promise<void>;
  readonly ended: Promise<void>;
  honoured: SubscriptionFilter = {};
  dropped = 0;
  readonly #onEvent: ((event: ChangeEvent) => void) | undefined;
  readonly #kept: ChangeEvent[] = [];
  #iterated = false;
  #over = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;
  #acknowledge: () => void = () => undefined;
  #refuse: (error: unknown) => void = () => undefined;
  #finish: () => void = () => undefined;
  #break: (error: unknown) => void = () => undefined;

  constructor(onEvent: ((event: ChangeEvent) => void) | undefined) {
    this.#onEvent = onEvent;
    this.acknowledged = new Promise((resolve, reject) => {
      this.#acknowledge = resolve;
      this.#refuse = reject;
    });
    this.ended = new Promise((resolve, reject) => {
      this.#finish = resolve;
      this.#break = reject;
    });
    // Nobody has to look at either.
    this.acknowledged.catch(() => undefined);
    this.ended.catch(() => undefined);
    const { signal } = this.stop;
    signal.addEventListener("abort", () => {
      const reason: unknown = signal.reason;
      this.#refuse(reason instanceof ConnectionError ? reason : cancelled("subscriptions/listen", reason));
      this.#end();
    });
  }

  acknowledge(honoured: SubscriptionFilter): void {
    this.honoured = honoured;
    this.#acknowledge();
  }

  follow(answer: Promise<unknown>): void {
    answer.then(
      () => this.#end(),
      (error: unknown) => this.#end(error as Error),
    );
  }

  take(event: ChangeEvent): void {
    if (this.#over) return;
    tell(this.#onEvent, event);
    // With a callback and no iteration, nobody would ever empty the store.
    if (this.#onEvent !== undefined && !this.#iterated) return;
    this.#kept.push(event);
    if (this.#kept.length > MOST_KEPT) {
      this.#kept.shift();
      this.dropped += 1;
    }
    this.#wake?.();
  }

  end(failure?: ConnectionError): void {
    if (failure !== undefined) this.#end(failure);
    this.stop.abort(failure ?? new ConnectionError("closed", "The subscription was closed"));
  }

  async close(): Promise<void> {
    this.end();
    await this.ended.catch(() => undefined);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Leaving the loop closes the subscription: what else could come would have nobody to take it. */
  async *[Symbol.asyncIterator](): AsyncGenerator<ChangeEvent, void, undefined> {
    this.#iterated = true;
    try {
      for (;;) {
        const event = this.#kept.shift();
        if (event !== undefined) yield event;
        else if (this.#over) break;
        else await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      await this.close();
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  #end(failure?: Error): void {
    if (this.#over) return;
    this.#over = true;
    this.#failure = failure;
    if (failure === undefined) {
      // An end that grants nothing may say so by ending at once.
      this.#acknowledge();
      this.#finish();
    } else {
      this.#refuse(failure);
      this.#break(failure);
    }
    this.#wake?.();
  }
}

function unacknowledged(ms: number): ConnectionError {
  return new ConnectionError("timeout", `The end did not acknowledge subscriptions/listen in ${ms} ms`);
}
