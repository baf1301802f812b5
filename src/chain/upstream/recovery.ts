// Decides when a failed upstream may be restarted: after a pause that grows with each failure. After too many failures
// in a short time, it is not restarted until the failures are old. Only computes times; the supervisor acts on them.

import { backoffMs } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { defaultsOf, type ValuesOf } from "../../core/options.ts";
import { defined, errorMessage } from "../../core/values.ts";
import { withoutDiagnostics } from "../../protocol/errors.ts";
import { RESTART, type FailureCause, type RestartOptions } from "./options.ts";

/** Counts failures of one kind: crashes, or failed starts. */
export class RestartPolicy {
  /** The number of all failures so far. */
  count = 0;
  readonly #options: ValuesOf<typeof RESTART>;
  #failures: number[] = [];
  #notBefore = 0;

  constructor(options: RestartOptions = {}) {
    this.#options = { ...defaultsOf(RESTART), ...defined(options) };
  }

  failed(now: number = performance.now()): void {
    this.count += 1;
    this.#failures = [...this.#recent(now), now];
    this.#notBefore = now + backoffMs(this.#failures.length - 1, this.#options);
  }

  /** Milliseconds left of the pause, regardless of `isExhausted`. */
  waitMs(now: number = performance.now()): number {
    return this.count === 0 ? 0 : Math.max(0, this.#notBefore - now);
  }

  /** Whether there were too many failures within the window. */
  isExhausted(now: number = performance.now()): boolean {
    return this.count > 0 && this.#recent(now).length >= this.#options.maxFailures;
  }

  /** Milliseconds until it is no longer exhausted. */
  exhaustedMs(now: number = performance.now()): number {
    const oldest = this.#recent(now).at(-this.#options.maxFailures);
    return oldest === undefined ? 0 : Math.max(0, oldest + this.#options.windowMs - now);
  }

  /** The limit in words: "5 times in 3 minutes". */
  get limit(): string {
    const minutes = this.#options.windowMs / 60_000;
    const isWhole = minutes > 1 && Number.isInteger(minutes);
    const window = isWhole ? `${minutes} minutes` : `${this.#options.windowMs / 1_000} seconds`;
    return `${this.#options.maxFailures} times in ${window}`;
  }

  #recent(now: number): number[] {
    return this.#failures.filter((at) => at > now - this.#options.windowMs);
  }
}

export interface RecoveryOptions {
  readonly name: string;
  /** Undefined if there is no process to start. Retries then cost little and are not limited. */
  readonly restart?: RestartOptions | undefined;
  /**
   * Counts the failed starts of all sessions. All sessions share it, because the program itself causes a failed start.
   * Crashes are counted for each session, because its caller may have caused them.
   */
  readonly startFailures?: RestartPolicy | undefined;
}

/** Records the failures of one session: the last one, how often it recovered, and the pause before the next start. */
export class Recovery {
  /** The message of the last failure, for operators. */
  problem: string | undefined;
  /** Whether the last failure was a crash, or a start that failed. */
  cause: FailureCause | undefined;
  /** How often it was restarted after a failure. */
  count = 0;
  readonly #options: RecoveryOptions;
  readonly #crashes: RestartPolicy;
  readonly #starts: RestartPolicy;
  #failure: unknown;
  #hasFailed = false;

  constructor(options: RecoveryOptions) {
    this.#options = options;
    this.#crashes = new RestartPolicy(options.restart);
    this.#starts = options.startFailures ?? this.#crashes;
  }

  /** The policy that does not allow a start at this moment. */
  get exhausted(): RestartPolicy | undefined {
    return [this.#crashes, this.#starts].find((policy) => policy.isExhausted());
  }

  /** Milliseconds left of the pause after the last failure, regardless of `exhausted`. */
  get waitMs(): number {
    return Math.max(this.#crashes.waitMs(), this.#starts.waitMs());
  }

  /** Milliseconds until a start is allowed: `waitMs`, or the longer pause that follows too many failures. */
  get pauseMs(): number {
    return this.exhausted?.exhaustedMs() ?? this.waitMs;
  }

  /** `problem` without the output of the program. */
  get reason(): string | undefined {
    return this.problem === undefined ? undefined : withoutDiagnostics(this.#failure);
  }

  /** The last failure as one of the connection; undefined if `problem` is, or it is another one. */
  get failure(): ConnectionError | undefined {
    return this.problem !== undefined && this.#failure instanceof ConnectionError ? this.#failure : undefined;
  }

  failed(error: unknown, cause: FailureCause): void {
    this.problem = errorMessage(error);
    this.cause = cause;
    this.#failure = error;
    this.#hasFailed = true;
    if (this.#options.restart !== undefined) (cause === "crash" ? this.#crashes : this.#starts).failed();
  }

  /** Whether the last failure is not followed by a start yet; for a URL, by an answer. */
  get isFailing(): boolean {
    return this.#options.restart === undefined ? this.problem !== undefined : this.#hasFailed;
  }

  /** Whether it is a program whose last failure is not followed by a start yet. */
  get isDown(): boolean {
    return this.#options.restart !== undefined && this.#hasFailed;
  }

  /** Throws the last failure if it is a program that is down. */
  throwIfDown(): void {
    if (this.isDown) throw this.#stopped("failed");
  }

  started(): void {
    if (this.#hasFailed) this.count += 1;
    this.#hasFailed = false;
  }

  /** Throws if the next start is more than `maxWaitMs` away. */
  throwIfPausing(maxWaitMs: number): void {
    const { exhausted, waitMs } = this;
    if (exhausted === undefined && waitMs <= maxWaitMs) return;
    throw this.#stopped(
      exhausted === undefined
        ? `failed and can be restarted in ${seconds(waitMs)}`
        : `failed ${exhausted.limit} and will not be restarted for ${seconds(exhausted.exhaustedMs())}; last failure`,
    );
  }

  #stopped(what: string): ConnectionError {
    const subject = `The upstream ${this.#options.name}`;
    const failure = this.#failure;
    const { problem, hint, diagnostics }: Partial<ConnectionError> = failure instanceof ConnectionError ? failure : {};
    const reason = failure instanceof Error ? `: ${problem ?? failure.message}` : "";
    const cause = { mayHaveRun: false, cause: failure, subject, hint, diagnostics };
    return new ConnectionError("closed", `${subject} ${what}${reason}`, cause);
  }
}

function seconds(ms: number): string {
  return `${Math.ceil(ms / 1_000)} s`;
}
