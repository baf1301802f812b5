// What a task asks of its caller and has no answer to yet, by keys that are never used twice: an answer that comes
// late must not meet another question. Answers come from outside and are looked at before any of them is taken. Whose
// task it is, and what becomes of its status, is for others.

import { onAbort } from "../core/async.ts";
import type { AskOptions, Request, Result } from "../core/handler.ts";
import { checkAnswer } from "./asks.ts";
import { isObject } from "../core/objects.ts";
import { invalidParams } from "./errors.ts";
import type { InputRequests } from "./model/index.ts";

interface Question {
  readonly request: Request;
  readonly resolve: (answer: Result) => void;
  readonly reject: (reason: unknown) => void;
  /** Its own signal is no longer waited for. */
  readonly forget: () => void;
}

export class OpenQuestions {
  readonly #open = new Map<string, Question>();
  readonly #used = new Set<string>();
  /** Told whenever a question has come up, or is no longer one. */
  readonly #changed: () => void;

  constructor(changed: () => void) {
    this.#changed = changed;
  }

  get size(): number {
    return this.#open.size;
  }

  /** As a task shows them; undefined where nothing is asked. */
  get requests(): InputRequests | undefined {
    if (this.#open.size === 0) return undefined;
    return Object.fromEntries([...this.#open].map(([key, { request }]) => [key, request])) as InputRequests;
  }

  ask(request: Request, { key, signal }: AskOptions = {}): Promise<Result> {
    return new Promise<Result>((resolve, reject) => {
      // Throws, and so rejects, where it has no JSON: it would keep the task from being shown at all.
      JSON.stringify(request);
      if (signal?.aborted === true) {
        reject(signal.reason as Error);
        return;
      }
      const name = this.#newKey(key);
      const forget = onAbort(signal, () => {
        if (this.#open.delete(name)) reject(signal?.reason as Error);
        this.#changed();
      });
      this.#open.set(name, { request, resolve, reject, forget });
      this.#changed();
    });
  }

  /** Some or all answers; those to other keys are no longer, or were never, wanted. Throws where one is none. */
  answer(responses: { readonly [key: string]: unknown }): void {
    const met = [...this.#open].filter(([key]) => Object.hasOwn(responses, key));
    // All are looked at before one is taken: what was refused can be sent again as a whole.
    for (const [key, { request }] of met) {
      const answer = responses[key];
      if (!isObject(answer)) throw invalidParams(`inputResponses: the answer to ${key} must be an object`, { key });
      checkAnswer(request.method, answer);
    }
    for (const [key, { resolve, forget }] of met) {
      this.#open.delete(key);
      forget();
      resolve(responses[key] as Result);
    }
    if (met.length > 0) this.#changed();
  }

  /** Nobody will answer any more; nothing is told of that. */
  drop(reason: Error): void {
    const asked = [...this.#open.values()];
    this.#open.clear();
    for (const { reject, forget } of asked) {
      forget();
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
