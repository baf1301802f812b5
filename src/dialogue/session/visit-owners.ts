// Who was asked to visit an address, by the name that the end gave the question: that the visit is over is said later,
// perhaps when the call is long answered, and is for nobody else to know. Only names are kept, and not for ever.

import type { Caller } from "../../core/context.ts";
import type { Params } from "../../core/handler.ts";
import { nameOf, visitsIn } from "../../protocol/visits.ts";

const MOST_KEPT = 1_000;

export class VisitOwners {
  readonly #owners = new Map<string, Caller>();

  /** A question that goes to somebody. */
  asked(params: Params, owner: Caller): void {
    this.#note(nameOf(params), owner);
  }

  /** An error that goes to somebody. */
  failed(error: unknown, owner: Caller): void {
    for (const { id } of visitsIn(error) ?? []) this.#note(id, owner);
  }

  /** Asked for once: a visit is over only once. */
  take(id: unknown): Caller | undefined {
    if (typeof id !== "string") return undefined;
    const owner = this.#owners.get(id);
    this.#owners.delete(id);
    return owner;
  }

  #note(id: unknown, owner: Caller): void {
    if (typeof id !== "string") return;
    this.#owners.delete(id);
    if (this.#owners.size >= MOST_KEPT)
      for (const oldest of this.#owners.keys()) if (this.#owners.delete(oldest)) break;
    this.#owners.set(id, owner);
  }
}
