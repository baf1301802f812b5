// Results of requests that a server sends to the client: their checks, and the pending requests of a call or a task.
// Separate from client-requests.ts, because a server loads it only when a handler asks.

import { onAbort } from "../core/async.ts";
import type { AskOptions, Request, Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { invalidParams } from "./errors.ts";
import type { InputRequests } from "./model/index.ts";

/** By method: returns the problem with a client's result, or undefined if there is none. */
const RESULT_CHECKS: Readonly<Record<string, (result: Result) => string | undefined>> = {
  "roots/list": ({ roots }) =>
    Array.isArray(roots) && roots.every((root) => isObject(root) && typeof root["uri"] === "string")
      ? undefined
      : "must have `roots`, an array of objects with a string `uri`",
  "elicitation/create": ({ action, content }) => {
    if (action !== "accept" && action !== "decline" && action !== "cancel") {
      return "must have an `action`: accept, decline or cancel";
    }
    // Some clients write null for an absent field.
    return content === undefined || content === null || isObject(content)
      ? undefined
      : "has a `content` that is not an object";
  },
  "sampling/createMessage": ({ role, model, content }) => {
    if (typeof role !== "string" || typeof model !== "string") return "must have a `role` and a `model`, both strings";
    return isObject(content) || Array.isArray(content) ? undefined : "must have a `content`, an object or an array";
  },
};

/** Throws an `invalid_params` error if the client's result does not have the fields that handlers rely on. */
export function checkClientResult(method: string, result: Result): void {
  const problem = Object.hasOwn(RESULT_CHECKS, method) ? RESULT_CHECKS[method]?.(result) : undefined;
  if (problem !== undefined) throw invalidParams(`The caller's answer to ${method} ${problem}`, { method });
}

interface PendingInput {
  readonly request: Request;
  readonly resolve: (result: Result) => void;
  readonly reject: (reason: unknown) => void;
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

  ask(request: Request, { key: wanted, signal }: AskOptions = {}): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      // Rejects a request that has no JSON form, since a task with such a request could not be sent.
      JSON.stringify(request);
      if (signal?.aborted === true) {
        reject(signal.reason as Error);
        return;
      }
      const key = this.#newKey(wanted);
      const unwatch = onAbort(signal, () => {
        if (this.#open.delete(key)) reject(signal?.reason as Error);
        this.#onChange();
      });
      this.#open.set(key, { request, resolve, reject, unwatch });
      this.#onChange();
    });
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
  drop(reason: Error): void {
    const dropped = [...this.#open.values()];
    this.#open.clear();
    for (const { reject, unwatch } of dropped) {
      unwatch();
      reject(reason);
    }
  }

  #newKey(wanted: string | undefined): string {
    let count = this.#used.size + 1;
    let key = wanted ?? String(count);
    while (this.#used.has(key)) key = `${wanted ?? ""}${++count}`;
    this.#used.add(key);
    return key;
  }
}
