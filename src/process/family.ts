// Who belongs to a child: the members of its process group and, on Linux, every process that bears its
// mark, wherever it went. Answers who still lives and carries signals to them; when to send which is the
// ladder's affair. Without /proc only the group is known: a process that leaves it is out of reach, as is,
// everywhere, one that leaves the group with an environment made afresh.

import { census, ticksNow } from "./census.ts";
import type { Process } from "./census.ts";

/** The living at one moment. Signal them at once: later their numbers may belong to others. */
export interface Living {
  readonly count: number;
  /** The group may be signalled as a whole. */
  readonly group: boolean;
  /** Those outside the group. */
  readonly strays: readonly number[];
  /** All of them by number, as far as they can be told apart. */
  readonly pids: readonly number[];
}

const NOBODY: Living = { count: 0, group: false, strays: [], pids: [] };

/** How a family sees the world. */
interface Eyes {
  census(): Promise<readonly Process[] | undefined>;
  ticksNow(): number;
}

export class Family {
  readonly #group: number;
  readonly #mark: string;
  readonly #eyes: Eyes;
  #leaderEnd: number | undefined;

  /** `group` is also the number of its leader, the process that we started. */
  constructor(group: number, mark: string, eyes: Eyes = { census, ticksNow }) {
    this.#group = group;
    this.#mark = mark;
    this.#eyes = eyes;
  }

  get leaderGone(): boolean {
    return this.#leaderEnd !== undefined;
  }

  /** To be called in the event that tells of the leader's end: from then on its number may be given anew. */
  leaderEnded(): void {
    this.#leaderEnd ??= this.#eyes.ticksNow();
  }

  async living(): Promise<Living> {
    const all = await this.#eyes.census();
    if (all === undefined) return this.#livingGroup();
    const members = all.filter((one) => one.group === this.#group);
    const group = this.#isOurs(members);
    const strays = all.filter((one) => one.group !== this.#group && this.#bearsMark(one)).map((one) => one.pid);
    const pids = group ? [...members.map((one) => one.pid), ...strays] : strays;
    return pids.length === 0 ? NOBODY : { count: pids.length, group, strays, pids };
  }

  signal(living: Living, signal: NodeJS.Signals): void {
    if (living.group) post(-this.#group, signal);
    for (const pid of living.strays) post(pid, signal);
  }

  /**
   * While the leader lives, or is not yet waited for, the number of its group can be nobody else's. Later
   * it is given anew once the group is empty: then all in it began after the leader's end and lack the mark.
   */
  #isOurs(members: readonly Process[]): boolean {
    if (members.length === 0) return false;
    const end = this.#leaderEnd;
    if (end === undefined) return true;
    return members.some((one) => this.#bearsMark(one) || (one.session === this.#group && one.began <= end));
  }

  #bearsMark(one: Process): boolean {
    return one.marks !== "" && one.marks.split(".").includes(this.#mark);
  }

  #livingGroup(): Living {
    return post(-this.#group, 0) ? { count: 1, group: true, strays: [], pids: [this.#group] } : NOBODY;
  }
}

/** False when there is nobody to get it, or nobody whom we may signal. */
function post(target: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(target, signal);
  } catch {
    return false;
  }
}
