// Progress notifications of one request, with the token of the client.

import type { Notification } from "../../core/handler.ts";

/**
 * Adds the client's token to progress notifications. Drops them if the client sent no token, or if the value does not
 * increase. The latter happens if the call is run again with the client's input.
 */
export class IncreasingProgress {
  readonly #token: unknown;
  #last = -Infinity;

  constructor(token: unknown) {
    this.#token = token;
  }

  /** The notification to send; undefined if it is dropped. */
  next({ method, params }: Notification): Notification | undefined {
    const progress = params?.["progress"];
    if (this.#token === undefined || typeof progress !== "number" || !(progress > this.#last)) return undefined;
    this.#last = progress;
    return { method, params: { ...params, progressToken: this.#token } };
  }
}
