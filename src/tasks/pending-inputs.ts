// The requests to the client that a task, or a parked call, waits for. Each has a key, under which the client answers it.
// Keys are never reused, since a late response must not reach another request.

import { type Deferred, deferred, onAbort } from "../core/async.ts";
import type { AskOptions, Request, Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { checkClientResult } from "../protocol/client-results.ts";
import { invalidParams } from "../protocol/errors.ts";
import type { InputRequests } from "../protocol/model/index.ts";

interface PendingInput extends Deferred<Result> {
  readonly request: Request;
  /** Stops watching the request's own signal. */
  readonly unwatch: () => void;
}

/** The open requests of a task or a parked call. Keys are never reused, since a late response must not reach another request. */
export class PendingInputs {
  readonly #open = new Map<string, PendingInput>();
  readonly #used = new Set<string>();
  readonly #onChange: () => void;

  /** `onChange` is called when a request is added, answered or withdrawn. */
  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  get size(): number {
    return this.#open.size;
  }

  /** The `inputRequests` of the task; undefined if there are none. */
  get requests(): InputRequests | undefined {
    if (this.#open.size === 0) return undefined;
    return Object.fromEntries([...this.#open].map(([key, { request }]) => [key, request])) as InputRequests;
  }

  async ask(request: Request, { key: wantedKey, signal }: AskOptions = {}): Promise<Result> {
    // Throws for a request that has no JSON form, since a task with such a request could not be sent.
    JSON.stringify(request);
    signal?.throwIfAborted();
    const key = this.#newKey(wantedKey);
    const answer = deferred<Result>();
    const unwatch = onAbort(signal, () => {
      if (this.#open.delete(key)) answer.reject(signal?.reason);
      this.#onChange();
    });
    this.#open.set(key, { ...answer, request, unwatch });
    this.#onChange();
    return answer.promise;
  }

  /** Resolves open requests by key; ignores unknown keys. If any response is invalid, throws and resolves none. */
  answer(responses: { readonly [key: string]: unknown }): void {
    // Check all responses before resolving any request, so that the client can send all responses again.
    for (const [key, { request }] of this.#open) {
      if (!Object.hasOwn(responses, key)) continue;
      const result = responses[key];
      if (!isObject(result)) throw invalidParams(`inputResponses: the answer to ${key} must be an object`, { key });
      checkClientResult(request.method, result);
    }
    this.take(responses);
  }

  /** Like `answer`, without checks. A request whose response is not an object stays open. */
  take(responses: { readonly [key: string]: unknown }): void {
    const open = this.#open.size;
    for (const [key, { resolve, unwatch }] of this.#open) {
      const result = Object.hasOwn(responses, key) ? responses[key] : undefined;
      if (!isObject(result)) continue;
      this.#open.delete(key);
      unwatch();
      resolve(result);
    }
    if (this.#open.size < open) this.#onChange();
  }

  /** Rejects all open requests, without calling `onChange`. */
  drop(reason: unknown): void {
    const dropped = [...this.#open.values()];
    this.#open.clear();
    for (const { reject, unwatch } of dropped) {
      unwatch();
      reject(reason);
    }
  }

  #newKey(wantedKey: string | undefined): string {
    let count = this.#used.size + 1;
    let key = wantedKey ?? String(count);
    while (this.#used.has(key)) key = `${wantedKey ?? ""}${++count}`;
    this.#used.add(key);
    return key;
  }
}
