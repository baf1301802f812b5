// `client.listen`: one long `subscriptions/listen` request. It is open from the server's acknowledgement until either
// side closes it. Events go to a callback, or into a bounded buffer for iteration. Every change is also passed to the
// cache. Other notifications, such as the log messages of a session, go to the listeners of the client.

import { attempt, deferred, onAbort } from "../core/async.ts";
import { CancelToken } from "../core/cancel.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler, Notification } from "../core/handler.ts";
import { callListener, type ListenerErrors } from "../core/listeners.ts";
import { checkOptions, type OptionNames, optionNames } from "../core/options.ts";
import { asError } from "../core/values.ts";
import { DEFAULT_TIMEOUTS } from "../dialogue/calls/pending-calls.ts";
import type {
  RequestParams,
  ResourceUpdatedParams,
  SubscriptionFilter,
  TaskNotificationParams,
} from "../protocol/model/index.ts";
import { CHANGES, grantedIn } from "../protocol/subscription.ts";
import { abortAfter, type CallOptions, cancelled, withMeta } from "./calls.ts";
import type { Contexts } from "./contexts.ts";

/** A notification of a change: of a list, a resource or a task. */
export type ChangeEvent =
  | { readonly method: "notifications/tools/list_changed"; readonly params?: RequestParams }
  | { readonly method: "notifications/prompts/list_changed"; readonly params?: RequestParams }
  | { readonly method: "notifications/resources/list_changed"; readonly params?: RequestParams }
  | { readonly method: "notifications/resources/updated"; readonly params: ResourceUpdatedParams }
  | { readonly method: "notifications/tasks"; readonly params: TaskNotificationParams };

/** `timeoutMs` limits the time until the acknowledgement. */
export type ListenOptions = Pick<CallOptions, "signal" | "timeoutMs" | "meta">;

const OPTION_NAMES: OptionNames<ListenOptions> = optionNames("signal timeoutMs meta");

/** An open subscription. Iterate over it, or pass a callback to `client.listen`. */
export interface Subscription extends AsyncIterable<ChangeEvent> {
  /** The part of the filter that the server grants. */
  readonly granted: SubscriptionFilter;
  /** Events that were dropped because the buffer was full. */
  readonly dropped: number;
  /**
   * Resolves when the subscription is over: either side has ended it for good. Over HTTP, one that the server ends is
   * opened again, since the server may be restarting. Rejects if the server refuses it then, or cannot be reached.
   */
  readonly ended: Promise<void>;
  /** Ends the subscription. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const MAX_BUFFERED_EVENTS = 1_000;

export class Subscriptions {
  readonly #handler: Handler;
  readonly #contexts: Contexts;
  readonly #acknowledgeMs: number;
  readonly #open = new Set<OpenSubscription>();

  constructor(handler: Handler, contexts: Contexts, acknowledgeMs: number = DEFAULT_TIMEOUTS.idleMs) {
    this.#handler = handler;
    this.#contexts = contexts;
    this.#acknowledgeMs = acknowledgeMs;
  }

  /** Resolves when the server has acknowledged the subscription. */
  async listen(
    filter: SubscriptionFilter,
    onEvent?: (event: ChangeEvent) => void,
    options: ListenOptions = {},
  ): Promise<Subscription> {
    checkOptions("subscriptions/listen", options, OPTION_NAMES);
    const { signal, timeoutMs = this.#acknowledgeMs } = options;
    if (signal?.aborted === true) throw cancelled("subscriptions/listen", signal.reason, false);
    this.#contexts.throwIfEnded();
    const subscription = new OpenSubscription(onEvent, this.#contexts.onError);
    const { abort } = subscription;
    const forget = onAbort(signal, () => abort.abort(signal?.reason));
    const timer = abortAfter(abort, timeoutMs, () => {
      return new ConnectionError("timeout", `The server did not acknowledge subscriptions/listen in ${timeoutMs} ms`);
    });
    const context = this.#contexts.forCall(abort, {}, filter.taskIds !== undefined);
    const notify = (notification: Notification): void => {
      const granted = grantedIn(notification);
      if (granted !== undefined) {
        clearTimeout(timer);
        subscription.acknowledge(granted);
      } else if (CHANGES.has(notification.method)) {
        context.notify(notification);
        subscription.push(notification as ChangeEvent);
        // All other notifications belong to no subscription, so they go to the listeners of the client.
      } else if (this.#isFirst(subscription)) this.#contexts.notify(notification);
    };
    this.#open.add(subscription);
    const params = withMeta({ notifications: filter }, options.meta);
    subscription.follow(
      attempt(() => this.#handler({ method: "subscriptions/listen", params }, { ...context, notify })).finally(() => {
        clearTimeout(timer);
        forget();
        this.#open.delete(subscription);
      }),
    );
    await subscription.acknowledged;
    return subscription;
  }

  endAll(failure?: ConnectionError): void {
    for (const subscription of this.#open) subscription.end(failure);
  }

  /** A session sends notifications that belong to no call to every subscription. Only the first one passes them on. */
  #isFirst(subscription: OpenSubscription): boolean {
    const [first] = this.#open;
    return first === subscription;
  }
}

class OpenSubscription implements Subscription {
  readonly abort: CancelToken = new CancelToken();
  granted: SubscriptionFilter = {};
  dropped = 0;
  readonly #onEvent: ((event: ChangeEvent) => void) | undefined;
  readonly #onError: ListenerErrors | undefined;
  readonly #buffer: ChangeEvent[] = [];
  #isIterated = false;
  #isOver = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;
  readonly #acknowledged = deferred();
  readonly #ended = deferred();
  readonly acknowledged: Promise<void> = this.#acknowledged.promise;
  readonly ended: Promise<void> = this.#ended.promise;

  constructor(onEvent: ((event: ChangeEvent) => void) | undefined, onError: ListenerErrors | undefined) {
    this.#onEvent = onEvent;
    this.#onError = onError;
    this.abort.watch(() => {
      const { reason } = this.abort;
      this.#acknowledged.reject(reason instanceof ConnectionError ? reason : cancelled("subscriptions/listen", reason));
      this.#end();
    });
  }

  acknowledge(granted: SubscriptionFilter): void {
    this.granted = granted;
    this.#acknowledged.resolve();
  }

  /** Ends the subscription when the request is answered or fails. */
  follow(answer: Promise<unknown>): void {
    answer.then(
      () => this.#end(),
      (error: unknown) => this.#end(asError(error)),
    );
  }

  push(event: ChangeEvent): void {
    if (this.#isOver) return;
    callListener("listen", this.#onEvent, [event], this.#onError);
    // With a callback and no iteration, the buffer would never be emptied.
    if (this.#onEvent !== undefined && !this.#isIterated) return;
    this.#buffer.push(event);
    if (this.#buffer.length > MAX_BUFFERED_EVENTS) {
      this.#buffer.shift();
      this.dropped += 1;
    }
    this.#wake?.();
  }

  end(failure?: ConnectionError): void {
    if (failure !== undefined) this.#end(failure);
    this.abort.abort(failure ?? new ConnectionError("closed", "The subscription was closed"));
  }

  async close(): Promise<void> {
    this.end();
    await this.ended.catch(() => undefined);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Leaving the loop closes the subscription, since nothing would read further events. */
  async *[Symbol.asyncIterator](): AsyncGenerator<ChangeEvent, void, undefined> {
    this.#isIterated = true;
    try {
      for (;;) {
        const event = this.#buffer.shift();
        if (event !== undefined) yield event;
        else if (this.#isOver) break;
        else await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      await this.close();
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  #end(failure?: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#failure = failure;
    if (failure === undefined) {
      // A server that grants nothing may end at once without an acknowledgement.
      this.#acknowledged.resolve();
      this.#ended.resolve();
    } else {
      this.#acknowledged.reject(failure);
      this.#ended.reject(failure);
    }
    this.#wake?.();
  }
}
