// One task: a call of a tool that goes on after its caller was given a handle. It knows what it is doing, what it
// asks, how it ended, and who wants to hear of that. Its status moves between working and input_required until it
// is over, and then never again, whatever the tool does. Whose task it is and how long it is kept is for the store.

import type { AskOptions } from "../core/context.ts";
import type { Request, Result } from "../core/handler.ts";
import { textOf } from "../core/text.ts";
import { McpError } from "../protocol/errors.ts";
import type { DetailedTask, Task as TaskFields, TaskStatus } from "../protocol/model/index.ts";
import { OpenQuestions } from "../protocol/open-questions.ts";
import { isOver } from "../protocol/tasks.ts";

type Outcome = { readonly result: Result } | { readonly error: ReturnType<McpError["toBody"]> };

export type Watcher = (task: DetailedTask) => void;

export class Task {
  readonly id: string = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("hex");
  readonly ttlMs: number;
  readonly #pollIntervalMs: number;
  /** Ends the tool's work. */
  readonly #stop: AbortController;
  readonly #questions = new OpenQuestions(() => this.#move(this.#questions.size === 0 ? "working" : "input_required"));
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
    const inputRequests = this.#questions.requests;
    return {
      ...this.fields(),
      ...(inputRequests === undefined ? undefined : { inputRequests }),
      ...this.#outcome,
    } as DetailedTask;
  }

  /** What it says of itself while it works; nobody is told, but whoever asks hears it. */
  say(message: string): void {
    if (this.isOver || message === this.#message) return;
    this.#message = message;
    this.#updatedAt = new Date().toISOString();
  }

  async ask(request: Request, options: AskOptions = {}): Promise<Result> {
    this.#stop.signal.throwIfAborted();
    if (this.isOver) throw new Error("The task is over: nobody can be asked on its behalf any more");
    return this.#questions.ask(request, options);
  }

  /** Answers, by the keys of the questions. Throws where one is none. */
  update(responses: { readonly [key: string]: unknown }): void {
    this.#questions.answer(responses);
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

  #end(status: TaskStatus, outcome: Outcome | undefined, message?: string): void {
    if (this.isOver) return;
    this.#outcome = outcome;
    this.#message = message;
    this.#questions.drop(new Error("The task is over"));
    this.#move(status);
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
