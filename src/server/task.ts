// One task: a call of a tool that goes on after its caller was given a handle. It knows what it is doing, what it
// asks, how it ended, and who wants to hear of that. Its status moves between working and input_required until it
// is over, and then never again, whatever the tool does. Whose task it is and how long it is kept is for the store.

import { onAbort } from "../core/abort.ts";
import type { AskOptions } from "../core/context.ts";
import type { Request, Result } from "../core/handler.ts";
import { textOf } from "../core/text.ts";
import { checkAnswer } from "../protocol/asks.ts";
import { isObject } from "../protocol/check.ts";
import { invalidParams, McpError } from "../protocol/errors.ts";
import type { DetailedTask, InputRequests, Task as TaskFields, TaskStatus } from "../protocol/model/index.ts";
import { isOver } from "../protocol/tasks.ts";

interface Question {
  readonly request: Request;
  readonly resolve: (answer: Result) => void;
  readonly reject: (reason: unknown) => void;
  /** Its own signal is no longer waited for. */
  readonly forget: () => void;
}

type Outcome = { readonly result: Result } | { readonly error: ReturnType<McpError["toBody"]> };

export type Watcher = (task: DetailedTask) => void;

export class Task {
  readonly id: string = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("hex");
  readonly ttlMs: number;
  readonly #pollIntervalMs: number;
  /** Ends the tool's work. */
  readonly #stop: AbortController;
  readonly #questions = new Map<string, Question>();
  /** A key is never used again: an answer that comes late must not meet another question. */
  readonly #keys = new Set<string>();
  readonly #watchers = new Set<Watcher>();
  readonly #createdAt = new Date().toISOString();
  #updatedAt = this.#createdAt;
  #status: TaskStatus = "working";
  #message: string | undefined;
  #outcome: Outcome | undefined;
  #telling = false;

  constructor(stop: AbortController, times: { readonly ttlMs: number; readonly pollIntervalMs: number }) {
    this.#stop = stop;
    this.ttlMs = times.ttlMs;
    this.#pollIntervalMs = times.pollIntervalMs;
  }

  get isOver(): boolean {
    return isOver(this.#status);
  }

  /** Without what belongs to its status. */
  fields(): TaskFields {
    return {
      taskId: this.id,
      status: this.#status,
      ...(this.#message === undefined ? undefined : { statusMessage: this.#message }),
      createdAt: this.#createdAt,
      lastUpdatedAt: this.#updatedAt,
      ttlMs: this.ttlMs,
      pollIntervalMs: this.#pollIntervalMs,
    };
  }

  detailed(): DetailedTask {
    const asked = [...this.#questions].map(([key, { request }]) => [key, request]);
    return {
      ...this.fields(),
      ...(asked.length > 0 ? { inputRequests: Object.fromEntries(asked) as InputRequests } : undefined),
      ...this.#outcome,
    } as DetailedTask;
  }

  /** What it says of itself while it works; nobody is told, but whoever asks hears it. */
  say(message: string): void {
    if (this.isOver || message === this.#message) return;
    this.#message = message;
    this.#updatedAt = new Date().toISOString();
  }

  ask(request: Request, options: AskOptions = {}): Promise<Result> {
    const { key, signal } = options;
    return new Promise<Result>((resolve, reject) => {
      // Throws, and so rejects, where it has no JSON: it would keep the task from being shown at all.
      JSON.stringify(request);
      const over = [this.#stop.signal, signal].find((one) => one?.aborted === true);
      if (over !== undefined || this.isOver) {
        reject(
          over === undefined ? new Error("The task is over: nobody can be asked on its behalf any more") : over.reason,
        );
        return;
      }
      const name = this.#newKey(key);
      const forget = onAbort(signal, () => {
        if (this.#questions.delete(name)) reject(signal?.reason);
        this.#move(this.#questions.size === 0 ? "working" : "input_required");
      });
      this.#questions.set(name, { request, resolve, reject, forget });
      this.#move("input_required");
    });
  }

  /** Answers, by the keys of the questions; others are no longer, or were never, asked. Throws where one is none. */
  update(responses: { readonly [key: string]: unknown }): void {
    const met = [...this.#questions].filter(([key]) => Object.hasOwn(responses, key));
    // All are looked at before one is taken: what was refused can be sent again as a whole.
    for (const [key, { request }] of met) {
      const answer = responses[key];
      if (!isObject(answer)) throw invalidParams(`inputResponses: the answer to ${key} must be an object`, { key });
      checkAnswer(request.method, answer);
    }
    for (const [key, { resolve, forget }] of met) {
      this.#questions.delete(key);
      forget();
      resolve(responses[key] as Result);
    }
    if (met.length > 0) this.#move(this.#questions.size === 0 ? "working" : "input_required");
  }

  /** What has no JSON could never be shown to anybody who asks. */
  complete(result: Result): void {
    try {
      JSON.stringify(result);
    } catch (error) {
      this.fail(McpError.of("internal_error", `The result has no JSON: ${textOf(error)}`));
      return;
    }
    this.#end("completed", { result });
  }

  /** Never throws: what was thrown is a tool's own, and may bite. */
  fail(error: unknown): void {
    let body: ReturnType<McpError["toBody"]>;
    try {
      body = (error instanceof McpError ? error : McpError.of("internal_error", textOf(error))).toBody();
      JSON.stringify(body);
    } catch {
      body = McpError.of("internal_error", "The tool threw something that cannot be read").toBody();
    }
    this.#end("failed", { error: body }, body.message);
  }

  cancel(reason: string): void {
    this.#end("cancelled", undefined, reason);
    this.#stop.abort(new Error(reason));
  }

  /** Its time is up; a tool that still runs hears it from its signal. */
  expire(): void {
    if (this.isOver) return;
    const error = McpError.of("timeout", `The task was not finished within its ${this.ttlMs} ms`);
    this.fail(error);
    this.#stop.abort(error);
  }

  /** Told of every change from now on; returns how to take that back. */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  #newKey(wanted: string | undefined): string {
    let count = this.#keys.size + 1;
    let key = wanted ?? String(count);
    while (this.#keys.has(key)) key = `${wanted ?? ""}${++count}`;
    this.#keys.add(key);
    return key;
  }

  #end(status: TaskStatus, outcome: Outcome | undefined, message?: string): void {
    if (this.isOver) return;
    this.#outcome = outcome;
    this.#message = message;
    const asked = [...this.#questions.values()];
    this.#questions.clear();
    this.#move(status);
    for (const { reject, forget } of asked) {
      forget();
      reject(new Error("The task is over"));
    }
  }

  #move(status: TaskStatus): void {
    if (this.isOver) return;
    this.#status = status;
    this.#updatedAt = new Date().toISOString();
    // What changes in one breath is told once.
    if (this.#telling || this.#watchers.size === 0) return;
    this.#telling = true;
    queueMicrotask(() => {
      this.#telling = false;
      const detailed = this.detailed();
      for (const watcher of [...this.#watchers]) watcher(detailed);
    });
  }
}
