// The places of calls, over all connections of a server: how many requests run, how many characters long requests hold,
// and how many subscriptions are open. No principal may have all of them. Pings, responses and notifications of the
// protocol need no place, since requests in flight may be waiting for them.

import { FairLimit } from "../../core/fair-limit.ts";

/** A call, or a batch of them, as far as it takes places. */
export interface CountedCall {
  readonly principal: string | undefined;
  /** How many requests it counts as. */
  readonly size: number;
  /** The length of a long request, which it holds. */
  readonly length: number;
  readonly isBackground: boolean;
  countedAs: "nothing" | "running" | "abandoned" | "subscription";
}

export interface PlaceLimits {
  readonly requests: number;
  readonly listens: number;
  readonly heldBytes: number;
}

/** A call was not begun; the client may try again. */
export class CallRefused extends Error {
  readonly retryAfterSeconds: number;
  readonly isClosed: boolean;

  constructor(message: string, retryAfterSeconds: number, isClosed = false) {
    super(message);
    this.retryAfterSeconds = retryAfterSeconds;
    this.isClosed = isClosed;
  }
}

export class CallPlaces {
  readonly #running: FairLimit;
  readonly #abandoned: FairLimit;
  readonly #lengths: FairLimit;
  readonly #subscriptions: FairLimit;
  #isClosed = false;

  /** `isFair`: whether callers have principals. Without them, all count as one, who may have all places. */
  constructor({ requests, heldBytes, listens }: PlaceLimits, isFair: boolean) {
    const limit = (max: number): FairLimit => new FairLimit(max, isFair ? undefined : max);
    this.#running = limit(requests);
    this.#abandoned = limit(requests);
    this.#lengths = limit(heldBytes);
    this.#subscriptions = limit(listens);
  }

  /** Throws a CallRefused if all places are taken, or the principal has its share of them. */
  take(call: CountedCall): void {
    if (this.#isClosed) throw shuttingDown();
    const { principal, size, length, isBackground } = call;
    if (isBackground) {
      const refusal = this.#subscriptions.take(principal);
      if (refusal !== undefined) throw tooManyOpen("subscriptions", refusal);
      call.countedAs = "subscription";
    } else if (size > 0) {
      // A batch larger than the limit is accepted if nothing else is in flight.
      const refusal = this.#running.take(principal, size);
      if (refusal !== undefined) throw tooManyInFlight("requests", refusal);
      const lengthRefusal = length === 0 ? undefined : this.#lengths.take(principal, length);
      if (lengthRefusal !== undefined) {
        this.#running.release(principal, size);
        throw tooManyInFlight("long requests", lengthRefusal);
      }
      call.countedAs = "running";
    }
  }

  /**
   * Counts a cancelled call whose handler still runs apart from the others, with the same limit; above it, the call keeps
   * its place. What it holds is counted until the handler returns.
   */
  abandon(call: CountedCall): void {
    const { principal, size } = call;
    if (call.countedAs !== "running" || this.#abandoned.take(principal, size) !== undefined) return;
    this.#running.release(principal, size);
    call.countedAs = "abandoned";
  }

  release(call: CountedCall): void {
    const { principal, size, length, countedAs } = call;
    if (countedAs === "nothing") return;
    call.countedAs = "nothing";
    if (countedAs === "subscription") return this.#subscriptions.release(principal);
    (countedAs === "running" ? this.#running : this.#abandoned).release(principal, size);
    if (length > 0) this.#lengths.release(principal, length);
  }

  /** Throws a CallRefused after `close`. */
  check(): void {
    if (this.#isClosed) throw shuttingDown();
  }

  close(): void {
    this.#isClosed = true;
  }
}

export function shuttingDown(): CallRefused {
  return new CallRefused("The server is shutting down", 5, true);
}

/** For what stays open long, such as sessions. */
export function tooManyOpen(what: string, refusal: "full" | "share"): CallRefused {
  return new CallRefused(`Too many ${what}${whose(refusal)} are open; try again later`, 10);
}

function tooManyInFlight(what: string, refusal: "full" | "share"): CallRefused {
  return new CallRefused(`Too many ${what}${whose(refusal)} are in flight; try again soon`, 1);
}

function whose(refusal: "full" | "share"): string {
  return refusal === "share" ? " of yours" : "";
}
