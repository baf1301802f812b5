// One live session: a name, a guest process, and a queue of calls. Each evaluation has a deadline. After it, the
// evaluation is stopped with the gentlest step that works; the last step ends the process. The next call then starts a
// new process and reports once what was lost.

import { abortable, deferred, ignoreRejection, Semaphore, unref } from "../core/async.ts";
import { onCancel } from "../core/cancel.ts";
import { ConnectionError } from "../core/errors.ts";
import type { LiveDefinition } from "../core/live-server.ts";
import { McpError } from "../protocol/errors.ts";
import { Deadline } from "./deadline.ts";
import { Guest, GuestExited, stopRequest, type GuestParams, type GuestReply, type Step } from "./guest.ts";
import { BackgroundOutput, exitReason, OutputCapture, startHeartbeat } from "./output.ts";
import { interruptedBeforeStart, type RunChannel, type RunOptions, type RunResult } from "./run.ts";
import { KEPT_CHARS, type CallableTool, type Condition, type Limits, type Runtime } from "./runtime.ts";
import { SessionLog, type TurnListeners } from "./session-log.ts";
import { StateLoss } from "./state-loss.ts";

type StopCause = "timeout" | "interrupted";

interface ActiveRun {
  readonly id: number;
  readonly guest: Guest;
  readonly since: number;
  readonly op: string;
  readonly isRead: boolean;
  readonly capture: OutputCapture;
  /** Stops the run; resolves when it has stopped. */
  readonly stop: (cause: StopCause) => Promise<void>;
  /** The notice for this run, if another call has ended its process. */
  lost?: string;
}

interface StartedGuest {
  readonly guest: Guest;
  /** The memory limit with which it was started. */
  readonly memoryMb: number;
}

export interface SessionOptions {
  readonly name: string;
  /** Whose session it is, and who follows it, for its operator. */
  readonly owner?: string;
  readonly listeners?: TurnListeners;
  readonly runtime: Runtime;
  readonly limits: Limits;
  /** Calls `start` as soon as a process may be started; rejects if too many sessions have one. */
  readonly mayStart: <T>(start: () => Promise<T>) => Promise<T>;
  readonly onBusy: () => void;
  /** How the caller can raise the memory limit, for notices. */
  readonly memoryAdvice?: string;
  /** The session is for one evaluation: a notice only says why its process ended. */
  readonly isOnce?: true;
  /** Called if the libraries that are loaded have changed. */
  readonly onLoaded?: () => void;
  /** Called if there is background output that was not read yet. */
  readonly onBackground?: () => void;
}

/** How many calls may wait for one session. */
const MAX_WAITING = 100;
/** How many clients a session remembers by name. */
const MAX_USERS = 8;

export class Session {
  readonly name: string;
  limits: Limits;
  usedAt: number = performance.now();
  evaluations = 0;
  /** The memory limit with which the process was started. */
  memoryMb = 0;
  /** The libraries with tools of their own that are loaded. */
  loaded: readonly string[] = [];
  readonly log: SessionLog;
  readonly background: BackgroundOutput;
  /** What the clients that have used it call themselves, the last first. */
  users: readonly string[] = [];
  /** The name of the last checkpoint, which a notice offers after a crash. */
  checkpoint: string | undefined;
  readonly #options: SessionOptions;
  readonly #stateLoss: StateLoss;
  readonly #queue = new Semaphore(1);
  #guest: Guest | undefined;
  /** The start of a process from an image, which will replace the current one. */
  #restoring: { readonly stop: AbortController; readonly started: Promise<StartedGuest> } | undefined;
  #starting: Promise<Guest> | undefined;
  readonly #closing = new AbortController();
  #active: ActiveRun | undefined;
  /** Ends the wait of an evaluation at its error. */
  #errorTimer: NodeJS.Timeout | undefined;
  /** Interrupts the call that waits for the process to start. */
  #interruptStart: (() => void) | undefined;
  /** The tools that were sent to a process, as JSON. */
  #sentTools: { readonly guest: Guest; readonly json: string } | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.name = options.name;
    this.limits = options.limits;
    this.#stateLoss = new StateLoss(options.name);
    this.log = new SessionLog(options.name, options.owner, options.listeners);
    this.background = new BackgroundOutput(options.onBackground);
  }

  /** "stopped": it has no process; the next call starts one. */
  get state(): "stopped" | "idle" | "starting" | "busy" {
    if (this.#starting !== undefined) return "starting";
    if (this.#queue.isFull) return "busy";
    if (this.#guest !== undefined) return "idle";
    return this.#restoring === undefined ? "stopped" : "starting";
  }

  get pid(): number | undefined {
    return this.#guest?.pid;
  }

  /** The pids of the process and, where they can be found, of its descendants; its own comes first. */
  async findPids(): Promise<readonly number[]> {
    const { pid } = this;
    if (pid === undefined) return [];
    const pids = (await this.#guest?.child.findPids()) ?? [];
    return [pid, ...pids.filter((other) => other !== pid)];
  }

  get version(): string {
    return this.#guest?.version ?? "";
  }

  /** What was defined, as far as it is remembered. */
  get names(): readonly string[] {
    return this.#stateLoss.names;
  }

  get definitions(): readonly LiveDefinition[] {
    return this.#stateLoss.definitions;
  }

  /** Whether an evaluation waits at its error. */
  get holdsError(): boolean {
    return this.#errorTimer !== undefined;
  }

  /** What the current run has printed so far. */
  get output(): string {
    const { capture } = this.#active ?? {};
    return capture === undefined ? "" : `${capture.captured("stdout").text}${capture.captured("stderr").text}`;
  }

  get waiting(): number {
    return this.#queue.waiting;
  }

  get running(): { readonly op: string; readonly isRead: boolean; readonly ms: number } | undefined {
    if (this.#active === undefined) return undefined;
    const { op, isRead, since } = this.#active;
    return { op, isRead, ms: performance.now() - since };
  }

  usedBy(client: string | undefined): void {
    if (client === undefined || client === this.users[0]) return;
    this.users = [client, ...this.users.filter((user) => user !== client)].slice(0, MAX_USERS);
  }

  /** Runs a request in the evaluator. Requests run in order of arrival. Rejects only if nothing has run. */
  async run(op: string, params: GuestParams, options: RunOptions): Promise<RunResult> {
    if (this.#queue.waiting >= MAX_WAITING) {
      const advice = "interrupt the running call, or use another session";
      const message = `Session ${this.name} is busy and ${MAX_WAITING} calls are waiting; ${advice}`;
      throw McpError.of("rate_limited", message, { session: this.name });
    }
    // Without a wait, the context need not create its signal.
    const turn = this.#queue.acquire(this.#queue.isFull ? options.context.signal : undefined);
    if (turn !== undefined) {
      options.onWait?.();
      await turn;
    }
    this.#options.onBusy();
    try {
      const guest = this.#guest ?? (await this.#startGuest(options.context.signal));
      if (guest === undefined) return interruptedBeforeStart(options.timeoutMs ?? this.limits.timeoutMs);
      return await this.#runIn(guest, op, params, options);
    } finally {
      this.usedAt = performance.now();
      this.#queue.release();
    }
  }

  /**
   * Sends a request that is answered even while the evaluator is busy. Undefined if there is no process, or it exits
   * first.
   */
  async control(op: string, params: GuestReply): Promise<GuestReply | undefined> {
    return this.#guest?.control(op, { ...params, target: this.#active?.id ?? 0 }).catch((error: unknown) => {
      if (!(error instanceof GuestExited)) throw error;
      return undefined;
    });
  }

  /** Stops the current run, or closes an open error; returns false if there is neither. */
  async interrupt(): Promise<boolean> {
    const active = this.#active;
    if (this.#interruptStart !== undefined) {
      this.#interruptStart();
      return true;
    }
    if (active === undefined && this.#restoring !== undefined) {
      this.#restoring.stop.abort();
      return true;
    }
    await active?.stop("interrupted");
    if (active !== undefined) return true;
    if (this.#errorTimer !== undefined) {
      this.#stopErrorTimer();
      await this.control("close-error", {});
      return true;
    }
    // Callbacks may go on after their evaluation, such as those of timers.
    return (await this.control("interrupt", {}))?.["busy"] === true;
  }

  /**
   * Ends the process. The next call starts a new one and reports the loss with this reason. No reason means that the
   * caller asked for the end; then nothing is reported.
   */
  async end(reason: string | undefined, budgetMs?: number): Promise<void> {
    const guest = this.#guest;
    this.#forgetGuest();
    this.#interruptStart?.();
    if (reason === undefined) {
      this.#restoring?.stop.abort();
      // The caller of the current run did not ask for this, so it gets a notice.
      const how = this.#closing.signal.aborted ? "closed" : "reset";
      const lost = this.#stateLoss.describe(`it was ${how} by another call`);
      if (this.#active !== undefined) this.#active.lost = lost;
      this.#stateLoss.notice = undefined;
      this.background.take();
    }
    if (guest === undefined) return;
    if (reason !== undefined) this.#stateLoss.notice = this.#describeLoss(reason);
    // The last output of this process must not reach the next evaluation.
    if (this.#active === undefined) guest.onRawOutput = () => undefined;
    await guest.close(budgetMs);
  }

  /**
   * Replaces the process with one that starts from an image, and ends what runs. Rejects if the image does not start, or
   * if the restore is stopped; then the session is as it was.
   */
  async restore(image: string, signal: AbortSignal): Promise<void> {
    if (this.#restoring !== undefined) throw new Error("another call is restoring the session");
    const stop = new AbortController();
    this.#options.onBusy();
    // Later, since it is counted as a session that starts.
    const started = Promise.resolve().then(() => this.#launch(image, AbortSignal.any([stop.signal, signal])));
    this.#restoring = { stop, started };
    const restored = await started.finally(() => (this.#restoring = undefined));
    const ended = this.end(undefined);
    // At once, so that the calls that wait run in it.
    this.#install(restored);
    this.usedAt = performance.now();
    await ended;
  }

  /** Ends the process for good. The session cannot be used afterwards. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#queue.releaseAll();
    const starting: readonly (Promise<unknown> | undefined)[] = [this.#starting, this.#restoring?.started];
    await this.end(undefined);
    for (const start of starting) await start?.catch(() => undefined);
  }

  /**
   * Rejects as soon as the signal is aborted; undefined if the call is interrupted. The start goes on in both cases, and
   * the next call gets its process.
   */
  async #startGuest(signal: AbortSignal): Promise<Guest | undefined> {
    signal.throwIfAborted();
    this.#checkOpen();
    this.#starting ??= ignoreRejection(this.#spawn().finally(() => (this.#starting = undefined)));
    const interrupted = deferred<undefined>();
    this.#interruptStart = () => interrupted.resolve(undefined);
    try {
      const guest = await abortable(signal, Promise.race([this.#starting, interrupted.promise]));
      this.#checkOpen();
      return guest;
    } finally {
      this.#interruptStart = undefined;
    }
  }

  async #spawn(): Promise<Guest> {
    const started = await this.#launch();
    const guest = this.#guest;
    if (guest === undefined) return this.#install(started);
    // The session was restored meanwhile.
    await started.guest.close(0);
    return guest;
  }

  /** Starts a process, which is not that of the session until it is installed. */
  #launch(image?: string, signal?: AbortSignal): Promise<StartedGuest> {
    return this.#options.mayStart(async () => {
      this.#checkOpen();
      const { limits } = this;
      const closing = this.#closing.signal;
      const stop = signal === undefined ? closing : AbortSignal.any([closing, signal]);
      const stopped = (error: unknown): never => {
        this.#checkOpen();
        throw stop.aborted ? new Error("it was interrupted") : error;
      };
      const guest = await Guest.start(this.#runtime(image), limits, stop).catch(stopped);
      if (stop.aborted) await guest.close(0).then(stopped);
      return { guest, memoryMb: limits.memoryMb };
    });
  }

  #install({ guest, memoryMb }: StartedGuest): Guest {
    if (this.#closing.signal.aborted) void guest.close(0);
    this.#checkOpen();
    this.memoryMb = memoryMb;
    guest.onExit = (how) => {
      if (this.#guest !== guest) return;
      this.#forgetGuest();
      if (this.#active !== undefined) return;
      const reason = exitReason(how, guest.child.stderrTail(), this.#memoryLimit, "its process ended by itself");
      this.#stateLoss.notice = this.#describeLoss(reason);
      this.background.end();
    };
    this.log.process += 1;
    return (this.#guest = guest);
  }

  #runtime(image: string | undefined): Runtime {
    const { runtime } = this.#options;
    const { checkpoint } = runtime;
    if (image === undefined || checkpoint === undefined) return runtime;
    // A second start would fail in the same way.
    return { ...runtime, start: (limits) => checkpoint.start(limits, image), startFailed: async () => false };
  }

  #checkOpen(): void {
    if (this.#closing.signal.aborted)
      throw new ConnectionError("closed", `Session ${this.name} was closed`, { mayHaveRun: false });
  }

  /** The guest serves its requests in order, so the run need not wait for the reply, and its deadline covers it. */
  #sendTools(guest: Guest, all: readonly CallableTool[]): void {
    const tools = all.map(({ path, name, signature, summary }) => ({ path, name, signature, summary }));
    const json = JSON.stringify(tools);
    if (this.#sentTools?.guest === guest && this.#sentTools.json === json) return;
    const sent = (): void => void (this.#sentTools = { guest, json });
    // A guest that is renewed drops the request; the next run sends it again.
    guest.request("set-tools", { tools }).reply.then(sent, () => undefined);
  }

  async #runIn(guest: Guest, op: string, params: GuestParams, options: RunOptions): Promise<RunResult> {
    const { limits } = this;
    const timeoutMs = options.timeoutMs ?? limits.timeoutMs;
    const { isEvaluation = false, isRead = false, peer } = options;
    const keptChars = Math.max(KEPT_CHARS, limits.outputChars);
    // Evaluations in a frame and restarts that cannot be taken leave the error open.
    const holds = op !== "eval" && this.#errorTimer !== undefined;
    if (isEvaluation) this.#stopErrorTimer();
    // The results of other tools have no field for output, so it becomes background output.
    const onOutput = isEvaluation ? options.onOutput : this.background.write;
    const capture = new OutputCapture(keptChars, options.onProgress, onOutput);
    // Programs look for the notice in the results of evaluations, so other tools show it without clearing it.
    const notice = isEvaluation ? this.#stateLoss.takeNotice() : this.#stateLoss.notice;
    const background = isEvaluation ? this.background.take() : "";
    this.background.release(guest);
    guest.onRawOutput = capture.write;
    guest.outputChars = keptChars;
    params["printLength"] = limits.printLength;
    params["printDepth"] = limits.printDepth;
    params["outputChars"] = keptChars;
    if (limits.errorHoldMs > 0) params["holdErrors"] = true;
    if (peer !== undefined) params["tools"] = true;
    const onMessage = peer && ((message: GuestReply) => peer.receive(message, channel));
    if (peer !== undefined) this.#sendTools(guest, peer.tools);
    const { id, reply } = guest.request(op, params, capture.write, onMessage);
    let cause: StopCause | undefined;
    let stopping: Promise<Step> | undefined;
    const stop = async (why: StopCause): Promise<void> => {
      cause ??= why;
      peer?.end();
      await (stopping ??= stopRequest(guest, this.#options.runtime.stopSteps, id, reply));
    };
    const active: ActiveRun = { id, guest, op, isRead, capture, since: performance.now(), stop };
    this.#active = active;
    const deadline = new Deadline(timeoutMs, guest.cpuMs, () => void stop("timeout"));
    const channel: RunChannel = {
      answer: (answer, maxBytes) => guest.answer(answer, maxBytes),
      holdDeadline: () => deadline.hold(),
    };
    const heartbeat = options.onSilence && startHeartbeat(options.onSilence, capture, active.since);
    const forget = onCancel(options.context, () => void stop("interrupted"));
    // One literal instead of spread parts, for speed: every evaluation comes through here.
    const result = (
      outcome: RunResult["outcome"],
      answer: GuestReply,
      step: Step | undefined,
      reason?: string,
    ): RunResult => {
      const state = step === "restart" ? "lost" : "kept";
      return { outcome, reply: answer, step, state, reason, notice, background, timeoutMs, capture };
    };
    try {
      const answer = await reply;
      const { loaded } = answer;
      if (Array.isArray(loaded)) this.#setLoaded(loaded.filter((name) => typeof name === "string"));
      this.#stateLoss.addDefinitions(answer["defined"]);
      // A restart that was taken has an evaluation for its reply.
      const isTaken = op === "take-restart" && answer["status"] !== undefined;
      if (isEvaluation) this.#count(answer, guest, holds && !isTaken);
      // An evaluation can also interrupt itself; then there is no `stopping`.
      const isInterrupted = answer["status"] === "interrupted";
      const stopped = stopping === undefined && !isInterrupted ? undefined : ((await stopping) ?? "interrupt");
      // Code that got an error since its child was killed replies as if nothing had stopped it.
      const step = isInterrupted || stopped === "children" ? stopped : undefined;
      const outcome = step === undefined ? "answered" : (cause ?? "interrupted");
      if (answer["damaged"] !== true) return result(outcome, answer, step);
      await this.#discard(guest);
      const lost = this.#describeLoss("its memory was damaged, so its process was ended");
      return result(outcome, answer, "restart", lost);
    } catch (error) {
      if (!(error instanceof GuestExited)) return result("refused", {}, undefined, (error as Error).message);
      const { text } = capture.captured("stderr");
      const what = error.isExit && this.#options.isOnce === true ? "the code ended its process" : undefined;
      const how = cause === undefined ? exitReason(error.message, text, this.#memoryLimit, what) : "";
      const lost = active.lost ?? this.#stateLoss.takeNotice() ?? this.#describeLoss(how);
      await this.#discard(guest);
      return result(cause ?? "lost", {}, "restart", lost);
    } finally {
      deadline.stop();
      peer?.end();
      clearInterval(heartbeat);
      forget();
      capture.close();
      if (this.#guest === guest) this.background.listen(guest);
      else guest.onRawOutput = () => undefined;
      this.#active = undefined;
    }
  }

  get #memoryLimit(): string {
    const { memoryAdvice } = this.#options;
    return `${this.memoryMb} MB${memoryAdvice === undefined ? "" : `; ${memoryAdvice}`}`;
  }

  #describeLoss(reason: string): string {
    if (this.#options.isOnce === true) return reason.charAt(0).toUpperCase() + reason.slice(1);
    const lost = this.#stateLoss.describe(reason);
    const { checkpoint } = this;
    return checkpoint === undefined ? lost : `${lost}; restore-session brings back checkpoint ${checkpoint}`;
  }

  async #discard(guest: Guest): Promise<void> {
    if (this.#guest === guest) this.#forgetGuest();
    await guest.close(0);
  }

  #forgetGuest(): void {
    this.#guest = undefined;
    this.#stopErrorTimer();
    this.log.forgetJournal();
    if (this.loaded.length > 0) this.#setLoaded([]);
  }

  #count({ condition }: GuestReply, guest: Guest, holds: boolean): void {
    this.evaluations += 1;
    if (holds || (condition as Partial<Condition> | undefined)?.open === true) this.#startErrorTimer(guest);
  }

  #setLoaded(loaded: readonly string[]): void {
    this.loaded = loaded;
    this.#options.onLoaded?.();
  }

  /** Gives up an error that is not used any more, so that what it holds is released. */
  #startErrorTimer(guest: Guest): void {
    const close = (): void => {
      this.#errorTimer = undefined;
      // Fails if the process has exited, or has no error any more.
      guest.control("close-error", {}).catch(() => undefined);
    };
    this.#errorTimer = unref(setTimeout(close, this.limits.errorHoldMs));
  }

  #stopErrorTimer(): void {
    clearTimeout(this.#errorTimer);
    this.#errorTimer = undefined;
  }
}
