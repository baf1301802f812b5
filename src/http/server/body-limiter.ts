// Limits the bodies that are still arriving. If there are too many, the oldest one is given up: a body that takes long
// must not keep out those that come at once.

import type { ByteBudget, ByteHolder } from "../../core/byte-budget.ts";

export class BodyLimiter {
  readonly #max: number;
  readonly #budget: ByteBudget;
  readonly #bodies = new Set<ByteHolder>();

  constructor(max: number, budget: ByteBudget) {
    this.#max = max;
    this.#budget = budget;
  }

  update(body: ByteHolder): void {
    this.#bodies.add(body);
    for (const oldest of this.#bodies) {
      if (this.#bodies.size <= this.#max) break;
      this.#bodies.delete(oldest);
      oldest.disconnect();
    }
    if (this.#bodies.has(body)) this.#budget.update(body);
  }

  release(body: ByteHolder): void {
    this.#bodies.delete(body);
    this.#budget.release(body);
  }
}
