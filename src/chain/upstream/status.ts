// How an end stands, as people and programs are told: what `catenary up` prints, what the console shows, and what an
// error about an end begins with. Told by the end itself; nothing is decided by it.

/**
 * `asleep`: nothing runs, the next request starts it. `starting`, `running`: as they say. `waiting`: it has failed, and
 * is started again in a while. `stopped`: it has failed too often and is left alone. `closed`: for good.
 */
export type UpstreamState = "asleep" | "starting" | "running" | "waiting" | "stopped" | "closed";

export interface UpstreamStatus {
  readonly state: UpstreamState;
  /** How it is reached, fit to be shown: no secrets. */
  readonly target: string;
  /** Sessions that are open with it at the moment, for all its callers. */
  readonly sessions: number;
  /** The revision that it turned out to speak. */
  readonly revision?: string;
  /** Processes that run for it. */
  readonly pids: readonly number[];
  /** How often it was started again after it had failed. */
  readonly restarts: number;
  /** Why it last failed; of an address, only until it has answered again. */
  readonly problem?: string;
}
