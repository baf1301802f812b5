// One session with an end, over all the lives of what is behind it. It is begun when somebody needs it, by whoever
// comes first and for all who come meanwhile; it is ended when nobody has needed it for a while; and when it ends by
// itself it is begun anew, after a pause, and not for ever. A call that may have run is never sent again. What listens
// need of all this is in standing-listens; which callers share a session is decided by the pool.

import { onAbort, ignoreRejection, within, abortable } from "../../core/async.ts";
import type { Context } from "../../core/handler.ts";
import { ConnectionError, type ConnectionErrorKind } from "../../core/errors.ts";
import type { Handler, Request, Result } from "../../core/handler.ts";
import type { Program } from "../../client/command.ts";
import type { Opened } from "../../dialogue/connect.ts";
import { pause } from "../../dialogue/calls/backoff.ts";
import type { UpstreamState } from "./status.ts";
import { following } from "./following.ts";
import { isOtherStyle, named, UNSENT, unsent } from "./end-failures.ts";
import { IdleWatch } from "./idle-watch.ts";
import { Recovery, type RecoveryOptions } from "./recovery.ts";
import { StartSlots } from "./start-slots.ts";

/** What was opened: the session, and the program behind it where there is one. */
export interface Life {
  readonly opened: Opened;
  readonly program?: Program;
}

export interface SupervisorOptions extends RecoveryOptions {
  /** Begins a session; what it begins ends with the signal. */
  open(signal: AbortSignal): Promise<Life>;
  /** Milliseconds without a call after which the session is ended; 0: never. */
  readonly idleMs: number;
  /** Throws where it must not be begun now. */
  mayBegin?(): void;
  /** Whether somebody needs it, though no call is under way. */
  isNeeded(): boolean;
  /** A session has begun; whether it is not the first. */
  onBegin?(life: Life, isAgain: boolean): void;
  onState?(): void;
}

/** A pause that is longer than this is not waited for: who asks is told of it. */
const PATIENCE_MS = 10_000;
const starts = new StartSlots();
/** The least time between two looks at which style an address speaks. */
const RENEWAL_MS = 1_000;

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #recovery: Recovery;
  readonly #over = new AbortController();
  readonly #idle: IdleWatch;
  /** Whoever waits for a life that others begin. */
  readonly #waiting = new Set<() => void>();
  /** Lives that are over and may have processes yet. */
  readonly #leaving = new Set<Life>();
  #life: Life | undefined;
  #starting: Promise<Life> | undefined;
  #lives = 0;
  #calls = 0;
  #renewedAt = -Infinity;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#recovery = new Recovery(options);
    const isInUse = (): boolean => this.#calls > 0 || options.isNeeded();
    this.#idle = new IdleWatch(options.idleMs, isInUse, () => this.sleep());
  }

  get state(): UpstreamState {
    if (this.#over.signal.aborted) return "closed";
    if (this.#life !== undefined) return "running";
    if (this.#recovery.isStopped) return "stopped";
    if (this.#recovery.waitMs > 0) return "waiting";
    return this.#starting === undefined ? "asleep" : "starting";
  }

  get life(): Life | undefined {
    return this.#life;
  }

  /** Whether there is a session, or one is being begun. */
  get isLiving(): boolean {
    return this.#life !== undefined || this.#starting !== undefined;
  }

  get recovery(): Recovery {
    return this.#recovery;
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
      throw named(error, this.#options.name, request.method);
    } finally {
      this.#calls -= 1;
      if (this.#life !== undefined) this.#idle.used();
    }
  }

  async #attempt(request: Request, context: Context, by: (life: Life) => Handler): Promise<Result> {
    const life = this.#life ?? (await this.#begun(context.signal));
    try {
      return await by(life)(request, context);
    } catch (error) {
      const isOver = context.signal.aborted || this.#over.signal.aborted;
      // It ended before the request was sent: surely nothing ran, and the next life may take it.
      const isUnsent = error instanceof ConnectionError && error.kind === "closed" && !error.mayHaveRun;
      const mayTryAgain = this.#options.restart === undefined ? this.#isOtherNow(error) : isUnsent;
      if (isOver || !mayTryAgain) throw error;
      if (isUnsent && this.#options.restart !== undefined) this.#ended(life, error);
      else if (this.#life === life) this.sleep();
      return by(await this.#begun(context.signal))(request, context);
    }
  }

  /** Whether the end at an address has come back and speaks in the other style; found out anew, not more than so often. */
  #isOtherNow(error: unknown): boolean {
    const now = performance.now();
    if (!isOtherStyle(error) || now - this.#renewedAt < RENEWAL_MS) return false;
    this.#renewedAt = now;
    return true;
  }

  /** The session for a call, which has surely not run where none could be begun. */
  async #begun(signal: AbortSignal): Promise<Life> {
    try {
      return await this.running(signal);
    } catch (error) {
      if (!(error instanceof ConnectionError) || !error.mayHaveRun || error === signal.reason) throw error;
      throw unsent(error);
    }
  }

  /** The session, begun if it must be. */
  async running(signal: AbortSignal): Promise<Life> {
    signal.throwIfAborted();
    if (this.#life !== undefined) return this.#life;
    if (this.#over.signal.aborted)
      throw new ConnectionError("closed", `The end ${this.#options.name} is closed`, UNSENT);
    this.#recovery.refuse(PATIENCE_MS);
    if (this.#starting === undefined) {
      this.#options.mayBegin?.();
      this.#starting = ignoreRejection(this.#start().finally(() => this.#started()));
      this.#options.onState?.();
    }
    return abortable(signal, this.#starting);
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
        await abortable(signal, begun);
      } finally {
        this.#waiting.delete(wake);
      }
    }
  }

  /** Waits until trying again is worth it, but no shorter than this. */
  async pause(leastMs: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const stop = following(this.#over.signal);
    const forget = onAbort(signal, () => stop.abort(signal.reason));
    try {
      await pause(Math.max(leastMs, this.#recovery.pauseMs), stop.signal);
    } finally {
      forget();
      stop.forget();
    }
  }

  async close(budgetMs?: number): Promise<void> {
    this.#over.abort(new ConnectionError("closed", `The end ${this.#options.name} is closed`, UNSENT));
    this.#idle.close();
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
    const { waitMs } = this.#recovery;
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
      this.#fail(() => this.#recovery.notStarted(error));
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
    this.#recovery.begun();
    this.#life = life;
    if (!isProgram) this.#recovery.problem = undefined;
    life.opened.ended(signal).catch((error: unknown) => this.#ended(life, error));
    for (const wake of [...this.#waiting]) wake();
    this.#options.onBegin?.(life, this.#lives > 1);
    this.#options.onState?.();
    this.#idle.used();
    return life;
  }

  #started(): void {
    this.#starting = undefined;
    if (this.#life === undefined) this.#options.onState?.();
  }

  /** An address has no life that ends when nobody is there any more, and begins when somebody is: its calls tell. */
  #missed(error: unknown): void {
    if (this.#options.restart !== undefined || this.#life === undefined || !(error instanceof ConnectionError)) return;
    const isAway = AWAY.has(error.kind) && !error.mayHaveRun;
    if (isAway && error.message !== this.#recovery.problem) this.#fail(() => this.#recovery.died(error));
  }

  #reached(): void {
    if (this.#options.restart !== undefined || this.#recovery.problem === undefined) return;
    this.#recovery.problem = undefined;
    this.#options.onState?.();
  }

  #ended(life: Life, error: unknown): void {
    if (this.#life !== life) return;
    this.#life = undefined;
    void this.#leave(life);
    this.#fail(() => this.#recovery.died(error));
  }

  #fail(note: () => void): void {
    if (this.#over.signal.aborted) return;
    note();
    this.#options.onState?.();
  }

  /** Ends the session for now; whoever needs it begins another. */
  sleep(): void {
    const life = this.#life;
    if (life === undefined) return;
    this.#life = undefined;
    void this.#leave(life);
    this.#options.onState?.();
  }
}

/** What a call fails with where nobody is at an address, or nobody who lets us in. */
const AWAY: ReadonlySet<ConnectionErrorKind> = new Set<ConnectionErrorKind>(["refused", "timeout", "unauthorized"]);
