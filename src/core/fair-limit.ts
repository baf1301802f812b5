// A FairLimit counts places, such as requests in flight. No principal may have all of them: three quarters is the most.
// All callers without a principal count as one.

const MAX_SHARE = 0.75;

/** How many of `max` places one principal may have. */
export function shareOfOne(max: number): number {
  return Math.max(1, Math.ceil(max * MAX_SHARE));
}

export class FairLimit {
  readonly #max: number;
  readonly #maxEach: number;
  /** Places by principal; empty if one principal may have all of them. */
  readonly #placesOf = new Map<string | undefined, number>();
  #total = 0;

  /** `maxEach` is for one principal. Pass `max` if callers are not authenticated, since all of them count as one. */
  constructor(max: number, maxEach: number = shareOfOne(max)) {
    this.#max = max;
    this.#maxEach = maxEach;
  }

  /** Takes places, or says why not: all are taken, or the principal has its share. Any size fits if none is taken. */
  take(principal: string | undefined, size = 1): "full" | "share" | undefined {
    if (this.#total > 0 && this.#total + size > this.#max) return "full";
    if (this.#maxEach < this.#max) {
      const count = this.#placesOf.get(principal) ?? 0;
      if (count > 0 && count + size > this.#maxEach) return "share";
      this.#placesOf.set(principal, count + size);
    }
    this.#total += size;
    return undefined;
  }

  release(principal: string | undefined, size = 1): void {
    this.#total -= size;
    const count = (this.#placesOf.get(principal) ?? 0) - size;
    if (count > 0) this.#placesOf.set(principal, count);
    else this.#placesOf.delete(principal);
  }
}
