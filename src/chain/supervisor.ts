// One session with an end, over all the lives of what is behind it. It is begun when somebody needs it, by whoever
// comes first and for all who come meanwhile; it is ended when nobody has needed it for a while; and when it ends by
// itself it is begun anew, after a pause, and not for ever. A call that may have run is never sent again. What listens
// need of all this is in standing-listens; which callers share a session is decided by the pool.

import { onAbort } from "../core/abort.ts";
import type { Context } from "../core/context.ts";
import { LinkError, type LinkErrorKind } from "../core/errors.ts";
import type { Handler, Request, Result } from "../core/handler.ts";
import { forgettable } from "../core/promises.ts";
import { textOf } from "../core/text.ts";
import { unlessAborted } from "../core/unless-aborted.ts";
import { unref } from "../core/unref.ts";
import { within } from "../core/within.ts";
import type { Program } from "../client/command.ts";
import type { Opened } from "../dialogue/open.ts";
import { pause } from "../dialogue/pacing.ts";
import { McpError } from "../protocol/errors.ts";
import type { EndState } from "./end-status.ts";
import { following } from "./following.ts";
import { Restarts, type RestartOptions } from "./restarts.ts";
import { StartSlots } from "./start-slots.ts";

/** What was opened: the session, and the program behind it where there is one. */
export interface Life {
  readonly opened: Opened;
  readonly program?: Program;
}

export interface SupervisorOptions {
  /** As errors name it. */
  readonly name: string;
  /** Begins a session; what it begins ends with the signal. */
  open(signal: AbortSignal): Promise<Life>;
  /** Pauses between lives; undefined where nothing is started, and trying again costs nothing. */
  readonly restart?: RestartOptions | undefined;
  /** Failures to start, of all sessions with the end: those are the program's; its deaths may be the callers'. */
  readonly stillbirths?: Restarts | undefined;
  /** Milliseconds without a call after which the session is ended; 0: never. */
  readonly idleMs: number;
  /** Whether somebody needs it, though no call is under way. */
  isNeeded(): boolean;
  /** A session has begun; whether it is not the first. */
  onBegin?(life: Life, isAgain: boolean): void;
  onState?(): void;
}

/** A pause that is longer than this is not waited for: who asks is told of it. */
const PATIENCE_MS = 10_000;
const starts = new StartSlots();

export class Supervisor {
  readonly #options: SupervisorOptions;
  /** Of this session. */
  readonly #restarts: Restarts;
  /** All by which it may have to wait. */
  readonly #counts: readonly Restarts[];
  readonly #over = new AbortController();
  readonly #waiting = new Set<() => void>();
  /** Lives that are over and may have processes yet. */
  readonly #leaving = new Set<Life>();
  #life: Life | undefined;
  #starting: Promise<Life> | undefined;
  #lives = 0;
  #calls = 0;
  #idle: NodeJS.Timeout | undefined;
  #restingSince = 0;
  #problem: string | undefined;
  #failure: unknown;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#restarts = new Restarts(options.restart);
    this.#counts = [this.#restarts, ...(options.stillbirths === undefined ? [] : [options.stillbirths])];
  }

  get state(): EndState {
    if (this.#over.signal.aborted) return "closed";
    if (this.#life !== undefined) return "running";
    if (this.#stopped !== undefined) return "stopped";
    if (this.#waitMs > 0) return "waiting";
    return this.#starting === undefined ? "asleep" : "starting";
  }

  get #stopped(): Restarts | undefined {
    return this.#counts.find((one) => one.isStopped());
  }

  get #waitMs(): number {
    return Math.max(...this.#counts.map((one) => one.waitMs()));
  }

  get life(): Life | undefined {
    return this.#life;
  }

  get restarts(): number {
    return Math.max(0, this.#lives - 1);
  }

  get problem(): string | undefined {
    return this.#problem;
  }

  /** A request to the end that runs, or is started for it. */
  async call(request: Request, context: Context, by: (life: Life) => Handler): Promise<Result> {
    this.#calls += 1;
    try {
      const result = await this.#attempt(request, context, by);
      this.#reached();
      return result;
    } catch (error) {
      this.#missed(error);
      throw this.#named(error, request.method);
    } finally {
      this.#calls -= 1;
      this.#rest();
    }
  }

  async #attempt(request: Request, context: Context, by: (life: Life) => Handler): Promise<Result> {
    const life = this.#life ?? (await this.#begun(context.signal));
    try {
      return await by(life)(request, context);
    } catch (error) {
      // It ended before the request was sent: surely nothing ran, and the next life may take it.
      const isUnsent = error instanceof LinkError && error.kind === "closed" && !error.mayHaveRun;
      if (!isUnsent || context.signal.aborted || this.#over.signal.aborted || this.#options.restart === undefined)
        throw error;
      this.#ended(life, error);
      return by(await this.#begun(context.signal))(request, context);
    }
  }

  /** The session for a call, which has surely not run where none could be begun. */
  async #begun(signal: AbortSignal): Promise<Life> {
    try {
      return await this.running(signal);
    } catch (error) {
      if (!(error instanceof LinkError) || !error.mayHaveRun || error === signal.reason) throw error;
      const { kind, message, status } = error;
      throw new LinkError(kind, message, {
        cause: error,
        ...UNSENT,
        ...(status === undefined ? undefined : { status }),
      });
    }
  }

  /** The session, begun if it must be. */
  async running(signal: AbortSignal): Promise<Life> {
    signal.throwIfAborted();
    if (this.#life !== undefined) return this.#life;
    if (this.#over.signal.aborted) throw new LinkError("closed", `The end ${this.#options.name} is closed`, UNSENT);
    this.refuseIfResting(PATIENCE_MS);
    if (this.#starting === undefined) {
      this.#starting = forgettable(this.#start().finally(() => this.#started()));
      this.#options.onState?.();
    }
    return unlessAborted(signal, this.#starting);
  }

  /** The next session that somebody else has a reason to begin. */
  async nextLife(signal: AbortSignal): Promise<Life> {
    for (;;) {
      signal.throwIfAborted();
      if (this.#life !== undefined) return this.#life;
      this.#over.signal.throwIfAborted();
      let wake = (): void => undefined;
      const begun = new Promise<void>((resolve) => {
        wake = resolve;
      });
      this.#waiting.add(wake);
      try {
        await unlessAborted(signal, begun);
      } finally {
        this.#waiting.delete(wake);
      }
    }
  }

  /** Milliseconds until trying is worth it. */
  get pauseMs(): number {
    return this.#stopped?.stoppedMs() ?? this.#waitMs;
  }

  /** Waits until trying again is worth it, but no shorter than this. */
  async pause(leastMs: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const stop = following(this.#over.signal);
    const forget = onAbort(signal, () => stop.abort(signal.reason));
    try {
      await pause(Math.max(leastMs, this.pauseMs), stop.signal);
    } finally {
      forget();
      stop.forget();
    }
  }

  async close(budgetMs?: number): Promise<void> {
    this.#over.abort(new LinkError("closed", `The end ${this.#options.name} is closed`, UNSENT));
    clearTimeout(this.#idle);
    for (const wake of [...this.#waiting]) wake();
    const starting: Promise<unknown> = this.#starting ?? Promise.resolve();
    // What has not begun is ended by whoever begins it.
    await (budgetMs === undefined ? starting : within(budgetMs, starting)).catch(() => undefined);
    if (this.#life !== undefined) this.#leaving.add(this.#life);
    this.#life = undefined;
    await Promise.all([...this.#leaving].map((life) => life.opened.close(budgetMs).catch(() => undefined)));
    this.#options.onState?.();
  }

  /** What is left of a life (a family of processes, a socket) goes with it. */
  async #leave(life: Life): Promise<void> {
    this.#leaving.add(life);
    await life.opened.close().catch(() => undefined);
    this.#leaving.delete(life);
  }

  async #start(): Promise<Life> {
    const { signal } = this.#over;
    const waitMs = this.#waitMs;
    if (waitMs > 0) {
      await pause(waitMs, signal);
      this.#options.onState?.();
    }
    const isProgram = this.#options.restart !== undefined;
    const started = isProgram ? await starts.take(signal) : undefined;
    let life: Life;
    try {
      signal.throwIfAborted();
      life = await this.#options.open(signal);
    } catch (error) {
      this.#fail(error, this.#options.stillbirths);
      // That we ended it is no news of the end.
      throw signal.aborted ? (signal.reason as Error) : error;
    } finally {
      started?.();
    }
    if (signal.aborted) {
      await life.opened.close().catch(() => undefined);
      throw signal.reason as Error;
    }
    this.#lives += 1;
    this.#life = life;
    if (!isProgram) this.#problem = undefined;
    life.opened.ended(signal).catch((error: unknown) => this.#ended(life, error));
    for (const wake of [...this.#waiting]) wake();
    this.#options.onBegin?.(life, this.#lives > 1);
    this.#options.onState?.();
    this.#rest();
    return life;
  }

  #started(): void {
    this.#starting = undefined;
    if (this.#life === undefined) this.#options.onState?.();
  }

  /** An address has no life that ends when nobody is there any more, and begins when somebody is: its calls tell. */
  #missed(error: unknown): void {
    if (this.#options.restart !== undefined || this.#life === undefined || !(error instanceof LinkError)) return;
    const isAway = AWAY.has(error.kind) && !error.mayHaveRun;
    if (isAway && error.message !== this.#problem) this.#fail(error);
  }

  #reached(): void {
    if (this.#options.restart !== undefined || this.#problem === undefined) return;
    this.#problem = undefined;
    this.#options.onState?.();
  }

  #ended(life: Life, error: unknown): void {
    if (this.#life !== life) return;
    this.#life = undefined;
    void this.#leave(life);
    this.#fail(error);
  }

  #fail(error: unknown, count: Restarts = this.#restarts): void {
    if (this.#over.signal.aborted) return;
    this.#problem = textOf(error);
    this.#failure = error;
    if (this.#options.restart !== undefined) count.failed();
    this.#options.onState?.();
  }

  /** Throws where it rests after a failure, for longer than somebody wants to wait. */
  refuseIfResting(patienceMs: number): void {
    const { name } = this.#options;
    const why = this.#problem === undefined ? "" : `: ${this.#problem}`;
    const stopped = this.#stopped;
    if (stopped !== undefined) {
      const seconds = Math.ceil(stopped.stoppedMs() / 1_000);
      const what = `The end ${name} has failed ${stopped.rule} and is left alone for ${seconds} s`;
      throw new LinkError("closed", `${what}; the last failure${why}`, { ...UNSENT, cause: this.#failure });
    }
    const waitMs = this.#waitMs;
    if (waitMs <= patienceMs) return;
    const seconds = Math.ceil(waitMs / 1_000);
    const what = `The end ${name} has failed and is started again in ${seconds} s`;
    throw new LinkError("closed", `${what}${why}`, { ...UNSENT, cause: this.#failure });
  }

  /** With the end's name, since a chain has many; and whoever called a tool must know whether to do it again. */
  #named(error: unknown, method: string): unknown {
    if (error instanceof McpError || !(error instanceof LinkError)) return error;
    const { kind, message, mayHaveRun, status } = error;
    if (kind === "cancelled" || message.startsWith(`The end ${this.#options.name} `)) return error;
    const doubt = mayHaveRun && method === "tools/call" ? " and the call may have run" : "";
    return new LinkError(kind, `The end ${this.#options.name} failed${doubt}: ${message}`, {
      cause: error,
      mayHaveRun,
      ...(status === undefined ? undefined : { status }),
    });
  }

  /** One timer for many calls: it looks, when it fires, how long nobody has called. */
  #rest(): void {
    const { idleMs } = this.#options;
    if (idleMs === 0 || this.#life === undefined) return;
    this.#restingSince = performance.now();
    this.#idle ??= unref(setTimeout(() => this.#sleep(), idleMs));
  }

  #sleep(): void {
    this.#idle = undefined;
    const life = this.#life;
    const { idleMs } = this.#options;
    if (life === undefined) return;
    const isInUse = this.#calls > 0 || this.#options.isNeeded();
    const leftMs = isInUse ? idleMs : this.#restingSince + idleMs - performance.now();
    if (leftMs > 0) {
      this.#idle = unref(setTimeout(() => this.#sleep(), leftMs));
      return;
    }
    this.#life = undefined;
    void this.#leave(life);
    this.#options.onState?.();
  }
}

const UNSENT = { mayHaveRun: false };
/** What a call fails with where nobody is at an address, or nobody who lets us in. */
const AWAY: ReadonlySet<LinkErrorKind> = new Set<LinkErrorKind>(["refused", "timeout", "unauthorized"]);
