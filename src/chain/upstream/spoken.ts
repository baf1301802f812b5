// What a program turned out to speak, so that its next life is not asked again: a program that dies while it is asked
// would be taken for one that cannot stand the question. Whoever has exchanged the program meanwhile is served too: what
// is no longer true is forgotten, and found out anew.

import { ConnectionError } from "../../core/errors.ts";
import type { Style } from "./caller-key.ts";
import type { Life } from "./supervisor.ts";

export class Spoken {
  readonly #wanted: string | undefined;
  readonly #isProgram: boolean;
  /** By the style that its callers prefer. */
  readonly #known = new Map<Style | undefined, string>();

  /** `wanted`: the one revision that a person has asked for. Addresses remember for themselves. */
  constructor(wanted: string | undefined, isProgram: boolean) {
    this.#wanted = wanted;
    this.#isProgram = isProgram;
  }

  async opening(style: Style | undefined, open: (revision: string | undefined) => Promise<Life>): Promise<Life> {
    const known = this.#wanted ?? this.#known.get(style);
    try {
      return this.#note(style, await open(known));
    } catch (error) {
      if (known === this.#wanted || !isOther(error)) throw error;
      this.#known.delete(style);
      return this.#note(style, await open(undefined));
    }
  }

  #note(style: Style | undefined, life: Life): Life {
    if (this.#isProgram) this.#known.set(style, life.opened.revision.name);
    return life;
  }
}

/** It lives, and does not speak what it spoke. */
function isOther(error: unknown): boolean {
  return error instanceof ConnectionError && (error.kind === "protocol" || error.kind === "timeout");
}
