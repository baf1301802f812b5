// A `subscriptions/listen` outlives the links through which it was begun. When they are replaced it goes on through the
// new ones: asked for again there, and let go of here once it is granted, so that nothing is missed in between. Its
// caller hears of one acknowledgement only; but since other links may show other names, it is told that the lists it
// was granted have changed.

import type { Context } from "../core/handler.ts";
import type { Notification, Request, Result } from "../core/handler.ts";
import { isObject } from "../core/objects.ts";
import { following, type Following } from "./upstream/following.ts";
import type { Line } from "./line.ts";
import { changeOf, FAMILIES, flagOf } from "./router/kinds.ts";

const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";

/** The listen through one line. */
interface Leg {
  readonly stop: Following;
}

export class MovingListen {
  /** Settles when the listening is over. */
  readonly outcome: Promise<Result>;
  readonly #request: Request;
  readonly #context: Context;
  #resolve: (result: Result) => void = () => undefined;
  #reject: (error: unknown) => void = () => undefined;
  /** What its caller knows to be granted. */
  #granted: Readonly<Record<string, unknown>> | undefined;
  /** Whose words reach the caller. */
  #heard: Leg | undefined;
  /** The one through the present line. */
  #newest: Leg | undefined;
  #isOver = false;

  constructor(line: Line, request: Request, context: Context) {
    this.#request = request;
    this.#context = context;
    this.outcome = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.moveTo(line);
  }

  moveTo(line: Line): void {
    if (this.#isOver) return;
    const leg: Leg = { stop: following(this.#context.signal) };
    const before = this.#newest;
    this.#newest = leg;
    // Until the new one is granted, the old one is heard; unless it was never granted itself.
    if (before !== undefined && (before !== this.#heard || this.#granted === undefined)) before.stop.abort(MOVED);
    if (this.#granted === undefined) this.#heard = leg;
    const context: Context = { ...this.#context, signal: leg.stop.signal, notify: (said) => this.#take(leg, said) };
    line.run(this.#request, context).then(
      (result) => this.#settle(leg, () => this.#resolve(result)),
      (error: unknown) => this.#settle(leg, () => this.#reject(error)),
    );
  }

  /** Nothing more will come. */
  end(): void {
    this.#finish(() => this.#resolve({ resultType: "complete" }));
  }

  #take(leg: Leg, notification: Notification): void {
    if (this.#isOver) return;
    if (notification.method === ACKNOWLEDGED && leg === this.#newest) this.#acknowledge(leg, notification);
    else if (leg === this.#heard) this.#context.notify(notification);
  }

  #acknowledge(leg: Leg, notification: Notification): void {
    const granted = notification.params?.["notifications"];
    if (this.#granted === undefined) {
      this.#granted = isObject(granted) ? granted : {};
      this.#context.notify(notification);
      return;
    }
    // One that an end repeats says nothing new.
    if (leg === this.#heard) return;
    this.#heard?.stop.abort(MOVED);
    this.#heard = leg;
    for (const family of FAMILIES) {
      if (this.#granted[flagOf(family)] === true) this.#context.notify({ method: changeOf(family) });
    }
  }

  #settle(leg: Leg, settle: () => void): void {
    leg.stop.forget();
    if (leg === this.#newest) this.#finish(settle);
  }

  #finish(settle: () => void): void {
    if (this.#isOver) return;
    this.#isOver = true;
    settle();
    this.#heard?.stop.abort(OVER);
    this.#newest?.stop.abort(OVER);
  }
}

const MOVED = new Error("The listen goes on through other links");
const OVER = new Error("The listen is over");
