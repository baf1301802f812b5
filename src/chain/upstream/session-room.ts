// How many sessions with an end may live at once, and who has to make room: each may be a process. No person has all of
// them, nor have all of those together whom the wire does not know. One that nobody uses is put to rest or let go of; if
// all are used, whoever comes is refused. Sessions that sleep cost next to nothing, and have a bound of their own.

import { McpError } from "../../protocol/errors.ts";
import type { UpstreamSession } from "./session.ts";

export interface Roomer {
  readonly session: UpstreamSession;
  /** For whom it was begun, where the wire knows. */
  readonly person: string | undefined;
}

const MOST_LIVING = 100;
/** The part of them that one person may have. */
const MOST_OF_ONE = 0.75;
/** Those that live and those that sleep together: as many as a front has sessions. */
const MOST_IN_ALL = 10_000;

export class SessionRoom {
  readonly #most: number;
  readonly #name: () => string;

  constructor(most: number = MOST_LIVING, name: () => string) {
    this.#most = most;
    this.#name = name;
  }

  get most(): number {
    return this.#most;
  }

  /** Before a session is begun for this person. Throws where there is no room, and none can be made. */
  makeForLife(person: string | undefined, roomers: readonly Roomer[]): void {
    const living = roomers.filter(({ session }) => session.isLiving);
    const own = living.filter((one) => one.person === person);
    const isFull = living.length >= this.#most;
    const isGreedy = own.length >= Math.max(1, Math.ceil(this.#most * MOST_OF_ONE));
    if (!isFull && !isGreedy) return;
    const unused = (isGreedy ? own : living).find(({ session }) => !session.isInUse);
    if (unused === undefined) {
      const whose = isFull ? `all ${this.#most} sessions` : "all sessions that one caller may have";
      throw this.#refusal(`${whose} with the end ${this.#name()} are in use`);
    }
    unused.session.supervisor.sleep();
  }

  /** Before a place for one is made: undefined, or the one that has to go for it. */
  makeForPlace<T extends Roomer>(roomers: readonly T[]): T | undefined {
    if (roomers.length < MOST_IN_ALL) return undefined;
    const unused = roomers.find(({ session }) => !session.isInUse && !session.isHeard);
    if (unused === undefined) throw this.#refusal(`the end ${this.#name()} has ${MOST_IN_ALL} callers`);
    return unused;
  }

  #refusal(why: string): McpError {
    return McpError.of("rate_limited", `No more callers can be served now: ${why}; try again later`);
  }
}
