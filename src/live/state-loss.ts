// The notice that is shown once if the process of a session was lost: why, and which definitions were in it.

import type { LiveDefinition } from "../core/live-server.ts";
import type { Definition } from "./runtime.ts";

/** How many names a session remembers, how many of them a notice lists, and how long each may be. */
const MAX_NAMES = 1_000;
const MAX_LISTED_NAMES = 20;
const MAX_NAME_LENGTH = 200;

/** Remembers the names that a session has defined, and builds the notice that is shown once if its process is lost. */
export class StateLoss {
  readonly #session: string;
  readonly #definitions = new Map<string, LiveDefinition>();
  /** The notice of a loss between two calls, until an evaluation has shown it. */
  notice: string | undefined;

  constructor(session: string) {
    this.#session = session;
  }

  get names(): readonly string[] {
    return [...this.#definitions.keys()];
  }

  /** In the order in which the names were defined first. */
  get definitions(): readonly LiveDefinition[] {
    return [...this.#definitions.values()];
  }

  /** What a guest says that it has defined. The user's code can write to the channel too, so it may be anything. */
  addDefinitions(definitions: unknown): void {
    for (const definition of Array.isArray(definitions) ? (definitions as (Partial<Definition> | null)[]) : []) {
      const { name: given, type: kind }: { name?: unknown; type?: unknown } = definition ?? {};
      if (typeof given !== "string" || this.#definitions.size >= MAX_NAMES) continue;
      const name = given.slice(0, MAX_NAME_LENGTH);
      const type = typeof kind === "string" ? { type: kind.slice(0, MAX_NAME_LENGTH) } : undefined;
      this.#definitions.set(name, { name, ...type, at: Date.now() });
    }
  }

  /** Returns the notice for a loss, and forgets the names. */
  describe(reason: string): string {
    const { names } = this;
    this.#definitions.clear();
    const rest = names.length > MAX_LISTED_NAMES ? ` and ${names.length - MAX_LISTED_NAMES} more` : "";
    const lost =
      names.length === 0
        ? "nothing was defined in it"
        : `lost definitions: ${names.slice(0, MAX_LISTED_NAMES).join(", ")}${rest}`;
    return `The state of session ${this.#session} was lost${reason === "" ? "" : `: ${reason}`}; ${lost}`;
  }

  /** Returns the notice and clears it. */
  takeNotice(): string | undefined {
    const { notice } = this;
    this.notice = undefined;
    return notice;
  }
}
