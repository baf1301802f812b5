// What one kind of caller sees of an end: a session with it, whether it runs or not. While it does not, what can be
// told from the catalogue is; everything else starts it. Here it is also seen to that what the end asks in mid-call
// comes to the call that it belongs to, where the callers are of the style that cannot be asked otherwise.

import type { Caller, Context } from "../../core/handler.ts";
import type { Handler, Request, Result } from "../../core/handler.ts";
import { NOBODY } from "../../dialogue/calls/call-attribution.ts";
import { ASKABLE } from "../../protocol/asks.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";
import { canBeAsked, fingerprint, styleOf, type Style } from "./caller-key.ts";
import { answerFrom, LISTS } from "./catalogue.ts";
import type { CatalogueFile } from "./catalogue-file.ts";
import { CatalogueKeeper } from "./catalogue-keeper.ts";
import { HeldAsks } from "./held-asks.ts";
import type { RestartOptions, Restarts } from "./restarts.ts";
import { StandingListens } from "./standing-listens.ts";
import { Supervisor, type Life } from "./supervisor.ts";
import { ELSEWHERE, Turns } from "./turns.ts";

export interface UpstreamSessionOptions {
  readonly name: string;
  /** Whom the end sees at the other side of its session. */
  readonly caller: Caller;
  /** Whether it is for callers of all kinds, whatever they can be asked. */
  readonly isForAll: boolean;
  /** Begins a session in whose name what belongs to no call is asked and told. */
  open(home: Context): Promise<Life>;
  readonly restart?: RestartOptions | undefined;
  /** Failures to start, of all sessions with the end. */
  readonly stillbirths?: Restarts | undefined;
  /** Whether it is of one connection alone: what that changes in the end's lists is not for others. */
  readonly isOwn: boolean;
  /** Milliseconds of rest after which it is ended; left out, it lives as long as a caller's own session does. */
  readonly idleMs?: number | undefined;
  /** Where its catalogue is kept; undefined: it is not remembered. */
  readonly file?: CatalogueFile | undefined;
  /** Throws where it must not be begun now, because too many others are. */
  readonly mayBegin: () => void;
  onState?(): void;
  /** Nobody listens any more. */
  onLeave?(session: UpstreamSession): void;
}

const IDLE_MS = 30 * 60_000;
/** A task that does not say how long it is kept keeps its end awake for so long. */
const TASK_MS = 60 * 60_000;
const MOST_TASKS = 1_000;

export class UpstreamSession {
  readonly supervisor: Supervisor;
  readonly listens: StandingListens;
  readonly #options: UpstreamSessionOptions;
  readonly #turns = new Turns();
  readonly #held = new HeldAsks();
  /** By person, what stands for all calls of exchange-style callers: they are told apart by their turns. */
  readonly #origins = new Map<string, object>();
  /** Tasks that were made here, the oldest first: whoever asks for one must come here. */
  readonly #made = new Set<unknown>();
  readonly #keeper: CatalogueKeeper | undefined;
  #awakeUntil = 0;
  #handling = 0;
  /** The same without listens. */
  #calls = 0;

  constructor(options: UpstreamSessionOptions) {
    this.#options = options;
    const { name, restart, stillbirths, idleMs } = options;
    this.supervisor = new Supervisor({
      name,
      restart,
      stillbirths,
      idleMs: idleMs ?? IDLE_MS,
      open: (signal) => options.open(this.#home(signal)),
      mayBegin: () => options.mayBegin(),
      isNeeded: () => this.#isNeeded(),
      onBegin: (life) => this.#keeper?.begin(life),
      onState: () => options.onState?.(),
    });
    const { file } = options;
    this.#keeper =
      file &&
      new CatalogueKeeper({
        file,
        isOwn: options.isOwn,
        home: (signal) => this.#home(signal),
        isCurrent: (life) => this.supervisor.life === life,
        tell: (changes) => this.listens.tell(changes),
      });
    this.listens = new StandingListens(
      this.supervisor,
      async () => this.#keeper?.known(),
      (life, context) => this.#way(life, "subscriptions/listen", context),
      () => options.onLeave?.(this),
    );
  }

  async handle(request: Request, context: Context): Promise<Result> {
    const calls = request.method === "subscriptions/listen" ? 0 : 1;
    this.#handling += 1;
    this.#calls += calls;
    try {
      return await this.#handle(request, context);
    } finally {
      this.#handling -= 1;
      this.#calls -= calls;
    }
  }

  async #handle(request: Request, context: Context): Promise<Result> {
    const { method } = request;
    if (method === "subscriptions/listen") return this.#listen(request, context);
    if (this.supervisor.life === undefined && SHOWN.has(method)) {
      const catalogue = await this.#keeper?.known();
      const answer = catalogue === undefined ? undefined : answerFrom(catalogue, request);
      if (answer !== undefined) return answer;
      // A list is asked for of many ends at once: the others must not wait for one that has failed.
      this.supervisor.recovery.refuse(0);
    }
    const result = await this.supervisor.call(request, context, (life) => this.#way(life, method, context));
    if (result.resultType === "task") this.#keep(result);
    return result;
  }

  /** Who has a session can be asked outside any call, such as for roots right after the handshake. */
  #listen(request: Request, context: Context): Promise<Result> {
    const listen = (): Promise<Result> => this.listens.listen(request, context);
    const isAskable = styleOf(context) === "session" && canBeAsked(context.caller);
    return isAskable && !this.#options.isForAll && this.#isOf(context)
      ? this.#held.during(context, listen, true)
      : listen();
  }

  async close(budgetMs?: number): Promise<void> {
    this.#keeper?.close();
    await this.supervisor.close(budgetMs);
  }

  /** Whether it has been begun in the style that has sessions; undefined: not known. */
  get style(): Style | undefined {
    return this.supervisor.life?.opened.revision.style;
  }

  /** Whether its wire says whom the end asks; undefined: not known. */
  get saysWhose(): boolean | undefined {
    return this.supervisor.life?.opened.saysWhose;
  }

  /** Whether this task was made here. */
  made(taskId: unknown): boolean {
    return this.#made.has(taskId);
  }

  /** Whether calls that may be asked must go elsewhere for now. */
  get isParked(): boolean {
    return this.#turns.isParked;
  }

  /** Whether it has begun, or is about to. */
  get isLiving(): boolean {
    return this.supervisor.isLiving;
  }

  /** Whether somebody would lose something if it were put to rest. */
  get isInUse(): boolean {
    return this.#calls > 0 || this.listens.isWaking || performance.now() < this.#awakeUntil;
  }

  /** Whether somebody listens, or waits for an answer. */
  get isHeard(): boolean {
    return this.#handling > 0;
  }

  /** How a request gets to the end: straight, or in its turn. */
  #way({ opened }: Life, method: string, context: Context): Handler {
    const { handler } = opened;
    if (opened.revision.style === "stateless") return handler;
    if (styleOf(context) === "session") {
      if (!opened.saysWhose && canBeAsked(context.caller) && !this.#isOf(context)) throw ELSEWHERE;
      return handler;
    }
    // A session is begun for what one caller can be asked; only where there are none, does it not matter.
    if (this.#isForOthers(context)) throw ELSEWHERE;
    const ours = this.#oneOfMany(context);
    if (!ASKABLE.has(method) || !canBeAsked(context.caller)) return (request) => handler(request, ours);
    if (opened.saysWhose) return (request) => this.#held.during(ours, () => handler(request, ours));
    const asking: Context = { ...ours, ask: (...question) => this.#turns.asking(() => ours.ask(...question)) };
    const inTurn = (request: Request): Promise<Result> => this.#held.during(asking, () => handler(request, asking));
    return (request) => this.#turns.take(context.signal, `The end ${this.#options.name}`, () => inTurn(request));
  }

  /** Whether it is of this very caller: what an end asks that does not say whom could come to another. */
  #isOf({ caller: { origin } }: Context): boolean {
    const { isForAll, caller } = this.#options;
    return isForAll || origin === undefined || origin === NOBODY || origin === caller.origin;
  }

  #isForOthers({ caller: { capabilities } }: Context): boolean {
    return !this.#options.isForAll && fingerprint(capabilities) !== fingerprint(this.#options.caller.capabilities);
  }

  /** Requests of this style may each come by a connection of their own: of one person they are of one caller. */
  #oneOfMany(context: Context): Context {
    const { principal = "" } = context.caller;
    const origin = this.#origins.get(principal) ?? {};
    this.#origins.set(principal, origin);
    return { ...context, caller: { ...context.caller, origin } };
  }

  #isNeeded(): boolean {
    if (this.listens.isWaking || performance.now() < this.#awakeUntil) return true;
    // A caller that has a session may count on what the end keeps in it.
    return this.#options.idleMs === undefined && this.listens.hasSessions;
  }

  #keep({ taskId, ttlMs }: Result): void {
    if (this.#made.size >= MOST_TASKS) for (const oldest of this.#made) if (this.#made.delete(oldest)) break;
    this.#made.add(taskId);
    const ms = typeof ttlMs === "number" && ttlMs > 0 ? Math.min(ttlMs, TASK_MS) : TASK_MS;
    this.#awakeUntil = Math.max(this.#awakeUntil, performance.now() + ms);
  }

  #home(signal: AbortSignal): Context {
    return {
      revision: NEWEST.name,
      caller: { ...this.#options.caller, origin: NOBODY },
      signal,
      notify: () => undefined,
      ask: (question, options) => this.#held.ask(question, options),
    };
  }
}

/** What a catalogue may answer. */
const SHOWN: ReadonlySet<string> = new Set(["server/discover", ...LISTS.map(({ method }) => method)]);
