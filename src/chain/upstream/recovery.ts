// How a session with an end stands with its failures: what the last was, how often it came back from one, and how long it
// rests before the next start. Deaths are counted for the session, failures to start for the whole end. It starts nothing.

import { errorMessage } from "../../core/text.ts";
import { resting } from "./end-failures.ts";
import { Restarts, type RestartOptions } from "./restarts.ts";

export interface RecoveryOptions {
  readonly name: string;
  /** Pauses between lives; undefined where nothing is started, and trying again costs nothing. */
  readonly restart?: RestartOptions | undefined;
  /** Failures to start, of all sessions with the end: those are the program's; its deaths may be the callers'. */
  readonly stillbirths?: Restarts | undefined;
}

export class Recovery {
  /** Why it last failed, in words for whoever runs it. */
  problem: string | undefined;
  /** How often it came back from a failure. */
  count = 0;
  readonly #options: RecoveryOptions;
  readonly #deaths: Restarts;
  readonly #counts: readonly Restarts[];
  #failure: unknown;
  #hasFailed = false;

  constructor(options: RecoveryOptions) {
    this.#options = options;
    this.#deaths = new Restarts(options.restart);
    this.#counts = [this.#deaths, ...(options.stillbirths === undefined ? [] : [options.stillbirths])];
  }

  get #stopped(): Restarts | undefined {
    return this.#counts.find((one) => one.isStopped());
  }

  /** Whether it has failed too often. */
  get isStopped(): boolean {
    return this.#stopped !== undefined;
  }

  /** Milliseconds until it may be started. */
  get waitMs(): number {
    return Math.max(...this.#counts.map((one) => one.waitMs()));
  }

  /** Milliseconds until trying is worth it. */
  get pauseMs(): number {
    return this.#stopped?.stoppedMs() ?? this.waitMs;
  }

  died(error: unknown): void {
    this.#note(error, this.#deaths);
  }

  notStarted(error: unknown): void {
    this.#note(error, this.#options.stillbirths ?? this.#deaths);
  }

  begun(): void {
    if (this.#hasFailed) this.count += 1;
    this.#hasFailed = false;
  }

  /** Throws where it rests for longer than somebody wants to wait. */
  refuse(patienceMs: number): void {
    const rest = { stopped: this.#stopped, waitMs: this.waitMs, failure: this.#failure };
    if (rest.stopped !== undefined || rest.waitMs > patienceMs) throw resting(this.#options.name, rest);
  }

  #note(error: unknown, count: Restarts): void {
    this.problem = errorMessage(error);
    this.#failure = error;
    this.#hasFailed = true;
    if (this.#options.restart !== undefined) count.failed();
  }
}
