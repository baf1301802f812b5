// Remembers the names that a session has defined, and words the notice that is shown once if its process is lost.

import type { Definition } from "./runtime.ts";

/** Names that are remembered, and those of them that a notice lists. */
const MAX_NAMES = 1_000;
const MAX_LISTED_NAMES = 20;
const MAX_NAME_LENGTH = 200;

export class StateLoss {
  readonly #session: string;
  readonly #names = new Set<string>();
  #notice: string | undefined;

  constructor(session: string) {
    this.#session = session;
  }

  addDefinitions(definitions: readonly Definition[]): void {
    for (const one of definitions as readonly (Partial<Definition> | null)[]) {
      const name: unknown = one?.name;
      // The user's code can write to the channel too, so the name may be of any type.
      if (typeof name === "string" && this.#names.size < MAX_NAMES) this.#names.add(name.slice(0, MAX_NAME_LENGTH));
    }
  }

  /** Records a loss that happened between two calls: the next call gets the notice. */
  record(reason: string): void {
    this.#notice = this.describe(reason);
  }

  /** The notice for a loss; it also forgets the names. */
  describe(reason: string): string {
    const names = [...this.#names];
    this.#names.clear();
    const rest = names.length > MAX_LISTED_NAMES ? ` and ${names.length - MAX_LISTED_NAMES} more` : "";
    const lost =
      names.length === 0
        ? "nothing was defined in it"
        : `lost definitions: ${names.slice(0, MAX_LISTED_NAMES).join(", ")}${rest}`;
    return `The state of session ${this.#session} was lost${reason === "" ? "" : `: ${reason}`}; ${lost}`;
  }

  /** The notice that no evaluation has shown yet. */
  get notice(): string | undefined {
    return this.#notice;
  }

  /** The same notice, which counts as shown from now on. */
  takeNotice(): string | undefined {
    const notice = this.#notice;
    this.#notice = undefined;
    return notice;
  }

  /** Forgets everything, for a loss that the caller asked for. */
  clear(): void {
    this.#names.clear();
    this.#notice = undefined;
  }
}

/** Why a process ended. Runtimes that run out of memory say so on stderr before they exit. */
export function exitReason(how: string, stderr: string, memoryMb: number, verb = "ended"): string {
  if (!/heap out of memory|Heap exhausted/.test(stderr)) return `its process ${verb} (${how})`;
  return `its process ran out of memory (limit ${memoryMb} MB; configure-limits raises it from the next reset on)`;
}
