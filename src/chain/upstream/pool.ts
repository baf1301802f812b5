// All sessions with one end: one for each group of callers that share, found by their place. Sessions of one
// connection end with it; those of nobody in particular rest when they are not used, and the longest unused makes room
// when there are too many.

import type { Caller, Context } from "../../core/handler.ts";
import type { Request, Result } from "../../core/handler.ts";
import { unref } from "../../core/async.ts";
import { ASKABLE } from "../../protocol/asks.ts";
import { isObject } from "../../core/objects.ts";
import { McpError } from "../../protocol/errors.ts";
import { canBeAsked, styleOf, type Style } from "./caller-key.ts";
import type { UpstreamSession } from "./session.ts";
import type { UpstreamState, UpstreamStatus } from "./status.ts";
import type { Share } from "./upstream.ts";
import { SessionRoom, type Roomer } from "./session-room.ts";
import { placeOf, type Place } from "./sharing.ts";
import { SingleSessions } from "./single-sessions.ts";
import { ELSEWHERE } from "./turns.ts";

export interface SessionKind {
  /** The style of its callers; undefined: both. */
  readonly style: Style | undefined;
  /** Whether it is for callers of all kinds, whatever they can be asked. */
  readonly isForAll: boolean;
  /** Whether it is of one connection alone. */
  readonly isOwn: boolean;
  /** Whether it stands in for another that is taken, and is not worth keeping for long. */
  readonly isExtra: boolean;
  /** Throws where it must not be begun now. */
  readonly mayBegin: () => void;
  readonly onLeave?: ((session: UpstreamSession) => void) | undefined;
}

/** A session for callers like this one. */
export type MakeSession = (caller: Caller, kind: SessionKind) => UpstreamSession;

interface Kept extends Roomer {
  /** Where it belongs if the end has sessions. */
  readonly ownKey: string;
  /** Where it belongs if the end does not say whom it asks. */
  readonly loneKey: string;
  /** Whether it belongs to one connection of a caller, and ends with it. */
  readonly isOwn: boolean;
}

export interface UpstreamPoolOptions {
  name(): string;
  readonly target: string;
  readonly share: Share | undefined;
  /** Whether its wire says to which call a question of the end belongs, as far as that is known beforehand. */
  readonly saysWhose: boolean;
  /** Sessions at once; 100. */
  readonly mostSessions?: number;
  readonly make: MakeSession;
}

/** A connection that ends may have a request under way that comes a moment later. */
const FAREWELL_MS = 1_000;

/** What a session that all share says that it can be asked: what a caller cannot, is refused in its name. */
const EVERYTHING: Caller["capabilities"] = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {}, context: {} },
  roots: {},
};

export class UpstreamPool {
  readonly #options: UpstreamPoolOptions;
  readonly #sessions = new Map<string, Kept>();
  /** Whether the end has no sessions, as far as is known: then one of ours does for all that a person calls. */
  isSessionless = true;
  /** Whether it says whom it asks, as far as is known: whoever has a session and can be asked shares none otherwise. */
  saysWhose: boolean;
  /** Sessions of single requests. */
  readonly #single: SingleSessions;
  /** Those that are over and may have processes yet. */
  readonly #leaving = new Set<Promise<void>>();
  readonly #room: SessionRoom;
  #closed = false;

  constructor(options: UpstreamPoolOptions) {
    this.#options = options;
    this.saysWhose = options.saysWhose;
    this.#room = new SessionRoom(options.mostSessions, () => options.name());
    this.#single = new SingleSessions(this.#room.most, options);
  }

  async handle(request: Request, context: Context): Promise<Result> {
    for (;;) {
      const place = placeOf(this.#options.share, context, this);
      if (place === undefined) return this.#single.handle(request, context);
      const session = this.#makerOf(request, place) ?? this.#sessionAt(place, context, mayWait(request, context));
      try {
        return await session.handle(request, context);
      } catch (error) {
        if (error !== ELSEWHERE) throw error;
      } finally {
        this.#learnFrom(session, context);
      }
    }
  }

  /** What an end is turns out when it is spoken to: sessions that were begun for whoever came are for others then. */
  #learnFrom(session: UpstreamSession, context: Context): void {
    if (session.style !== "session") return;
    if (this.isSessionless && styleOf(context) === "stateless") {
      this.isSessionless = false;
      this.#move((_key, { ownKey }) => ownKey);
    }
    if (this.saysWhose && session.saysWhose === false) {
      this.saysWhose = false;
      this.#move((key, { ownKey, loneKey }) => (loneKey === ownKey ? key : loneKey));
    }
  }

  #move(whither: (key: string, kept: Kept) => string): void {
    const all = [...this.#sessions];
    this.#sessions.clear();
    for (const [before, kept] of all) {
      const key = whither(before, kept);
      this.#sessions.set(key, { ...kept, isOwn: kept.isOwn || (key === kept.loneKey && key !== kept.ownKey) });
    }
  }

  /** The session in which the task was made that is asked for: there may be several at a place. */
  #makerOf({ method, params }: Request, { key: place }: Place): UpstreamSession | undefined {
    const filter = method === "subscriptions/listen" ? params["notifications"] : undefined;
    const listed = isObject(filter) && Array.isArray(filter["taskIds"]) ? (filter["taskIds"] as unknown[]) : [];
    const [taskId] = method.startsWith("tasks/") ? [params["taskId"]] : listed;
    if (taskId === undefined) return undefined;
    const isThere = (key: string): boolean => key === place || key.endsWith(`\n${place}`);
    return [...this.#sessions].find(([key, { session }]) => isThere(key) && session.made(taskId))?.[1].session;
  }

  /** The session of a place, or, for a call that would have to wait for a person, another like it. */
  #sessionAt(place: Place, context: Context, isElsewhere: boolean): UpstreamSession {
    for (let number = 1; ; number += 1) {
      const prefix = number === 1 ? "" : `${number}\n`;
      const key = `${prefix}${place.key}`;
      const known = this.#sessions.get(key)?.session;
      const session = known ?? this.#add(place, prefix, context);
      if (!isElsewhere || !session.isParked) return session;
    }
  }

  status(): UpstreamStatus {
    const supervisors = this.#all().map(({ supervisor }) => supervisor);
    const lives = supervisors.flatMap(({ life }) => (life === undefined ? [] : [life]));
    const revision = lives.at(-1)?.opened.revision.name;
    const problem = supervisors.findLast(({ recovery }) => recovery.problem !== undefined)?.recovery.problem;
    return {
      state: this.#closed ? "closed" : foremost(supervisors.map(({ state }) => state)),
      target: this.#options.target,
      sessions: lives.length,
      pids: lives.flatMap(({ program }) => program?.pid ?? []),
      restarts: supervisors.reduce((sum, { recovery }) => sum + recovery.count, 0),
      ...(revision === undefined ? undefined : { revision }),
      ...(problem === undefined ? undefined : { problem }),
    };
  }

  async close(budgetMs?: number): Promise<void> {
    this.#closed = true;
    const all = [...this.#sessions.values()].map(({ session }) => session.close(budgetMs));
    await Promise.all([...all, ...this.#leaving, this.#single.close(budgetMs)]);
  }

  #add(place: Place, prefix: string, context: Context): UpstreamSession {
    this.#refuseIfClosed();
    const others = [...this.#sessions].map(([key, kept]) => ({ ...kept, key }));
    const gone = this.#room.makeForPlace(others);
    if (gone !== undefined) this.#drop(gone.key, gone.session);
    const isShared = this.#options.share === "shared";
    const caller: Caller = isShared ? { capabilities: EVERYTHING } : context.caller;
    const person = context.caller.principal;
    const session = this.#options.make(caller, {
      style: isShared ? undefined : styleOf(context),
      isForAll: isShared,
      isOwn: place.isOwn,
      isExtra: prefix !== "",
      mayBegin: () => this.#room.makeForLife(person, [...this.#sessions.values()]),
      onLeave: (left) => this.#left(left),
    });
    this.#sessions.set(`${prefix}${place.key}`, {
      session,
      ownKey: `${prefix}${place.ownKey}`,
      loneKey: `${prefix}${place.loneKey}`,
      isOwn: place.isOwn,
      person,
    });
    return session;
  }

  #left(session: UpstreamSession): void {
    if (session.listens.hasSessions) return;
    const part = (): void => {
      const [key, kept] = [...this.#sessions].find(([, { session: one }]) => one === session) ?? [];
      if (key !== undefined && kept?.isOwn === true && !session.listens.hasSessions) this.#drop(key, session);
    };
    unref(setTimeout(part, FAREWELL_MS));
  }

  #drop(key: string, session: UpstreamSession): void {
    this.#sessions.delete(key);
    void this.#leave(session);
  }

  async #leave(session: UpstreamSession): Promise<void> {
    const leaving = session.close().catch(() => undefined);
    this.#leaving.add(leaving);
    await leaving;
    this.#leaving.delete(leaving);
  }

  #all(): UpstreamSession[] {
    return [...[...this.#sessions.values()].map(({ session }) => session), ...this.#single.sessions];
  }

  #refuseIfClosed(): void {
    if (this.#closed) throw McpError.of("shutting_down", `The end ${this.#options.name()} is closed`);
  }
}

/** Whether a call may have to wait for others, because their callers may be asked. */
function mayWait({ method }: Request, context: Context): boolean {
  return ASKABLE.has(method) && styleOf(context) === "stateless" && canBeAsked(context.caller);
}

/** Of several sessions, what is worth telling of the end as a whole. */
function foremost(states: readonly UpstreamState[]): UpstreamState {
  const order: readonly UpstreamState[] = ["running", "starting", "waiting", "stopped", "asleep", "closed"];
  return order.find((state) => states.includes(state)) ?? "asleep";
}
