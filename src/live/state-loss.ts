// What a session has made, and what of it is gone: for the one sentence that says so when a process was lost.

import type { Definition } from "./runtime.ts";

/** Names that are remembered, and of these, those that are named. */
const MOST_NAMES = 1_000;
const MOST_NAMED = 20;
/** Characters of a name. */
const MOST_CHARS = 200;

export class Losses {
  readonly #session: string;
  readonly #names = new Set<string>();
  #untold: string | undefined;

  constructor(session: string) {
    this.#session = session;
  }

  defined(definitions: readonly Definition[]): void {
    for (const one of definitions as readonly (Partial<Definition> | null)[]) {
      const name: unknown = one?.name;
      // What runs in a guest may speak in its name.
      if (typeof name === "string" && this.#names.size < MOST_NAMES) this.#names.add(name.slice(0, MOST_CHARS));
    }
  }

  /** Something ended while nobody looked: the next to come is told. */
  happened(how: string): void {
    this.#untold = this.lost(how);
  }

  /** The sentence for whoever is there, after which everything begins anew. */
  lost(how: string): string {
    const names = [...this.#names];
    this.#names.clear();
    const rest = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : "";
    const what = names.length === 0 ? "nothing was defined in it" : `${names.slice(0, MOST_NAMED).join(", ")}${rest}`;
    const why = how === "" ? "" : `: ${how}`;
    return `The state of the session ${this.#session} is lost${why}; defined were: ${what}`.replace(
      "defined were: nothing",
      "nothing",
    );
  }

  /** What no evaluation has said yet; undefined where all was said. */
  get untold(): string | undefined {
    return this.#untold;
  }

  /** The same, to be said now. */
  take(): string | undefined {
    const untold = this.#untold;
    this.#untold = undefined;
    return untold;
  }

  /** Somebody wanted it so. */
  forget(): void {
    this.#names.clear();
    this.#untold = undefined;
  }
}

/** Why a process ended: who runs out of memory says so on stderr on its way out, in many words. */
export function ending(how: string, stderr: string, memoryMb: number, ended = "ended"): string {
  if (!/heap out of memory|Heap exhausted/.test(stderr)) return `its process ${ended} (${how})`;
  return `its memory was full (it may take ${memoryMb} MB; configure-limits sets that for the time after a reset)`;
}
