// One live session: a name, a process, and a queue before it. Evaluations are run one after the other; each has a
// deadline, and what does not end by itself is stopped by the gentlest step that works, up to ending the process. A
// process that is gone is started again when it is next needed, and what was lost with it is said once.

import { ConnectionError } from "../core/errors.ts";
import { isCancelled, onCancel } from "../core/cancel.ts";
import { Background, Capture } from "./output.ts";
import { Deadline, Queue } from "./session-queue.ts";
import { Guest, GuestGone, type Filled, type Opening, type Reply, type Hear } from "./guest.ts";
import { checkedEvaluation } from "./guest-messages.ts";
import { ending, Losses } from "./state-loss.ts";
import type { Definition, Limits, Runtime, Rung } from "./runtime.ts";
import type { Context } from "../core/handler.ts";

/** Why it was stopped: its time was up, or somebody wanted it. */
type Cause = "timeout" | "stopped";

/** What runs now. */
interface Running {
  readonly id: number;
  readonly guest: Guest;
  readonly since: number;
  readonly op: string;
  /** Ends it before its time; resolves when that is done. */
  readonly stop: (why: Cause) => Promise<void>;
  /** What it lost with its process, where somebody else has ended that. */
  lost?: string;
}

export interface SessionOptions {
  readonly name: string;
  readonly runtime: Runtime;
  readonly limits: Limits;
  /** Waits until a process may be started. */
  readonly mayStart: <T>(start: () => Promise<T>) => Promise<T>;
  readonly onBusy: () => void;
}

export class Session {
  readonly name: string;
  limits: Limits;
  usedAt: number = performance.now();
  evaluations = 0;
  /** What its process may take: as it was when that was started. */
  memoryMb = 0;
  readonly #options: SessionOptions;
  readonly #losses: Losses;
  readonly #queue: Queue;
  readonly #background = new Background();
  readonly #deadline = new Deadline(() => void this.#running?.stop("timeout"));
  #guest: Guest | undefined;
  #starting: Promise<Guest> | undefined;
  #opening: Opening = {};
  #running: Running | undefined;
  /** Whether what waits for its process is not to be run any more. */
  #isUnwanted = false;
  #isClosed = false;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.name = options.name;
    this.limits = options.limits;
    this.#losses = new Losses(options.name);
    this.#queue = new Queue(options.name);
  }

  get state(): "asleep" | "idle" | "starting" | "busy" {
    if (this.#starting !== undefined) return "starting";
    if (this.#queue.isTaken) return "busy";
    return this.#guest === undefined ? "asleep" : "idle";
  }

  get pid(): number | undefined {
    return this.#guest?.pid;
  }

  get version(): string {
    return this.#guest?.version ?? "";
  }

  get waiting(): number {
    return this.#queue.length;
  }

  get runningFor(): { readonly op: string; readonly ms: number } | undefined {
    return this.#running && { op: this.#running.op, ms: performance.now() - this.#running.since };
  }

  /** Asks the evaluator, in turn. Rejects only where nothing was begun. */
  async run(op: string, params: Filled, wish: Wish): Promise<Ran> {
    const turn = this.#queue.take(wish.context);
    if (turn !== undefined) await turn;
    this.#options.onBusy();
    try {
      const guest = this.#guest ?? (await this.#start());
      // Who has gone while it started must not be run for.
      if (isCancelled(wish.context)) throw wish.context.signal.reason;
      if (this.#isUnwanted) return unbegun(wish.timeoutMs ?? this.limits.timeoutMs);
      return await this.#runIn(guest, op, params, wish);
    } finally {
      this.#isUnwanted = false;
      this.usedAt = performance.now();
      this.#queue.give();
    }
  }

  /** Asks the reader, whatever the evaluator does; undefined where there is no process, or it ends before it answers. */
  async aside(op: string, params: Reply): Promise<Reply | undefined> {
    return this.#guest?.tell(op, { ...params, target: this.#running?.id ?? 0 }).catch((error: unknown) => {
      if (!(error instanceof GuestGone)) throw error;
      return undefined;
    });
  }

  /** Stops what runs; false where nothing does. */
  async interrupt(): Promise<boolean> {
    const running = this.#running;
    if (running === undefined && this.#starting !== undefined) {
      this.#isUnwanted = true;
      return true;
    }
    await running?.stop("stopped");
    return running !== undefined;
  }

  /** Ends the process: the next evaluation finds a fresh one. What is said of it then, is said once. */
  async end(notice: string | undefined, budgetMs?: number): Promise<void> {
    const guest = this.#guest;
    this.#guest = undefined;
    if (this.#starting !== undefined) this.#isUnwanted = true;
    if (notice === undefined) {
      // Who runs there has not wanted it so.
      if (this.#running !== undefined)
        this.#running.lost = this.#losses.lost(`it was ${this.#isClosed ? "closed" : "reset"} by another call`);
      this.#losses.forget();
      this.#background.take();
    }
    if (guest === undefined) return;
    if (notice !== undefined) this.#losses.happened(notice);
    // Its last words are nothing to the next evaluation.
    if (this.#running === undefined) guest.hearRaw = () => undefined;
    await guest.close(budgetMs);
  }

  /** For ever. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#deadline.close();
    this.#queue.open();
    await this.end(undefined);
    this.#opening.isGivenUp = true;
    await this.#opening.guest?.close(0);
    await this.#starting?.catch(() => undefined);
  }

  #start(): Promise<Guest> {
    const starting = this.#begin().finally(() => (this.#starting = undefined));
    this.#starting = starting;
    return starting;
  }

  async #begin(): Promise<Guest> {
    const guest = await this.#options.mayStart(() => {
      this.#checkOpen();
      this.memoryMb = this.limits.memoryMb;
      this.#opening = {};
      return Guest.start(this.#options.runtime, this.limits, this.#opening).catch((error: unknown) => {
        this.#checkOpen();
        throw error;
      });
    });
    if (this.#isClosed) await guest.close();
    this.#checkOpen();
    guest.onGone = (how) => {
      if (this.#guest !== guest) return;
      this.#guest = undefined;
      if (this.#running !== undefined) return;
      this.#losses.happened(ending(how, guest.child.stderrTail(), this.memoryMb, "ended by itself"));
    };
    return (this.#guest = guest);
  }

  #checkOpen(): void {
    if (this.#isClosed)
      throw new ConnectionError("closed", `The session ${this.name} was closed`, { mayHaveRun: false });
  }

  async #runIn(guest: Guest, op: string, params: Filled, wish: Wish): Promise<Ran> {
    const { limits } = this;
    const timeoutMs = wish.timeoutMs ?? limits.timeoutMs;
    const isEvaluation = op === "eval";
    // No other tool has a place for it.
    const also = isEvaluation ? wish.hear : this.#background.keep;
    const capture = new Capture(limits.outputChars, wish.tell, also);
    // Programs look for it in evaluations: who has only looked about has not heard it for them.
    const notice = isEvaluation ? this.#losses.take() : this.#losses.untold;
    const background = isEvaluation ? this.#background.take() : "";
    this.#background.release(guest);
    guest.hearRaw = capture.hear;
    guest.outputChars = limits.outputChars;
    params["printLength"] = limits.printLength;
    params["printLevel"] = limits.printDepth;
    params["maxOutput"] = limits.outputChars;
    const { id, reply } = guest.ask(op, params, capture.hear);
    let cause: Cause | undefined;
    let stopping: Promise<Step> | undefined;
    const stop = async (why: Cause): Promise<void> => {
      cause ??= why;
      await (stopping ??= climb(guest, this.#options.runtime.ladder, id, reply));
    };
    const running: Running = { id, guest, op, since: performance.now(), stop };
    this.#running = running;
    if (timeoutMs > 0) this.#deadline.set(timeoutMs);
    const forget = onCancel(wish.context, () => void stop("stopped"));
    // Not spread together from parts: this is the path of every evaluation.
    const ran = (end: Ran["end"], said: Reply, step: Step | undefined, why?: string): Ran => {
      const state = step === "restart" ? "lost" : "kept";
      return { end, reply: said, step, state, why, notice, background, timeoutMs, capture };
    };
    try {
      const said = await reply;
      if (isEvaluation) this.#note(checkedEvaluation(said));
      // Where nobody here has stopped it, it has done so itself.
      const step = said["status"] === "interrupted" ? ((await stopping) ?? "interrupt") : undefined;
      const end = step === undefined ? "answered" : (cause ?? "stopped");
      if (said["damaged"] !== true) return ran(end, said, step);
      await this.#give(guest);
      return ran(end, said, "restart", this.#losses.lost("its memory was damaged, so its process was ended"));
    } catch (error) {
      if (!(error instanceof GuestGone)) return ran("refused", {}, undefined, (error as Error).message);
      const how = cause === undefined ? ending(error.message, capture.of("stderr").text, this.memoryMb) : "";
      const why = running.lost ?? this.#losses.take() ?? this.#losses.lost(how);
      await this.#give(guest);
      return ran(cause ?? "lost", {}, "restart", why);
    } finally {
      this.#deadline.clear();
      forget();
      capture.close();
      if (this.#guest === guest) this.#background.listen(guest);
      else guest.hearRaw = () => undefined;
      this.#running = undefined;
    }
  }

  /** The process is of no use any more. */
  async #give(guest: Guest): Promise<void> {
    if (this.#guest === guest) this.#guest = undefined;
    await guest.close(0);
  }

  #note(said: Reply): void {
    this.evaluations += 1;
    const { defined } = said;
    if (Array.isArray(defined)) this.#losses.defined(defined as readonly Definition[]);
  }
}

// What is wanted of a run in a session, and what became of it: the two sides between whoever calls and the session.

export interface Wish {
  /** Whose signal stops it. */
  readonly context: Pick<Context, "signal">;
  /** In the place of the session's own limit; 0: none. */
  readonly timeoutMs?: number | undefined;
  /** Told of what is printed, and of how many characters there have been. */
  readonly tell?: ((text: string, total: number) => void) | undefined;
  /** Told of all that is printed, at once and as it is. */
  readonly hear?: Hear | undefined;
}

/** How a run ended, and what it printed. */
export interface Ran {
  /** "stopped": somebody else has interrupted it. */
  readonly end: "answered" | "refused" | "timeout" | "stopped" | "lost";
  /** What the guest said; empty where it said nothing. */
  readonly reply: Reply;
  /** By which step it was stopped. */
  readonly step: Step | undefined;
  readonly state: "kept" | "lost";
  /** Why it was refused, or lost. */
  readonly why: string | undefined;
  /** What was lost before it began. */
  readonly notice: string | undefined;
  /** What was printed between the run before and this one. */
  readonly background: string;
  readonly timeoutMs: number;
  readonly capture: Capture;
}

/** Of what was stopped before its process was there. */
export function unbegun(timeoutMs: number): Ran {
  const common = { why: undefined, notice: undefined, background: "", timeoutMs, capture: new Capture(0) };
  return { ...common, end: "stopped", reply: {}, step: "interrupt", state: "kept" };
}

// How an evaluation is stopped that does not end by itself: by the gentlest step that works. First it is interrupted;
// then, where the language can do that, another evaluator takes the place of the one that does not heed; at last the
// process is ended, and with it goes all that was defined.

export type Step = Rung | "restart";

/** How long each step may take until the next is tried. */
const RUNG_MS = 2_000;

/** Stops the request `target`, whose answer is `reply`; says which step it took. */
export async function climb(
  guest: Guest,
  rungs: readonly Rung[],
  target: number,
  reply: Promise<Reply>,
): Promise<Step> {
  const answered = reply.then(
    () => true,
    () => true,
  );
  for (const rung of rungs) {
    // A guest that cannot do this says so at once.
    const refused = guest.tell(rung, { target }).then(
      () => new Promise<false>(() => undefined),
      () => false,
    );
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), RUNG_MS);
    });
    const isOver = await Promise.race([answered, late, refused]);
    clearTimeout(timer);
    if (guest.isGone) break;
    if (isOver) return rung;
  }
  await guest.close(0);
  return "restart";
}
