// Budgets over all peers: the bytes that they make us hold, and the places that they take.

// A ByteBudget limits messages that are still arriving and output that a peer does not read. A peer that holds more than
// `peerBytes` gets nothing more. If all peers together hold more than `totalBytes`, those that hold the most for the
// longest time are disconnected. One message may be longer than `peerBytes`: a peer that has read everything so far is
// not slow.

/** A peer, or one of its messages, as far as it makes us hold bytes. */
export interface ByteHolder {
  readonly heldBytes: number;
  /** Frees the bytes at once. Calls `release` of the budget. */
  disconnect(): void;
}

export interface ByteLimits {
  readonly peerBytes: number;
  readonly totalBytes: number;
}

interface Held {
  bytes: number;
  readonly since: number;
}

export class ByteBudget {
  readonly #limits: ByteLimits;
  readonly #now: () => number;
  readonly #held = new Map<ByteHolder, Held>();
  #total = 0;

  constructor(limits: ByteLimits, now: () => number = () => performance.now()) {
    this.#limits = limits;
    this.#now = now;
  }

  /** The bytes of all holders, as of their last updates. */
  get bytes(): number {
    return this.#total;
  }

  /** Whether this holder may get more. If not, disconnect it. */
  admits(holder: ByteHolder): boolean {
    return holder.heldBytes <= this.#limits.peerBytes;
  }

  /** Call this when the holder may hold more than before. Holders that hold less are looked at again when needed. */
  update(holder: ByteHolder): void {
    this.#count(holder);
    if (this.#total > this.#limits.totalBytes) this.#reclaim();
  }

  /** Call this when the holder holds nothing any more. */
  release(holder: ByteHolder): void {
    this.#total -= this.#held.get(holder)?.bytes ?? 0;
    this.#held.delete(holder);
  }

  #count(holder: ByteHolder): void {
    const bytes = holder.heldBytes;
    const held = this.#held.get(holder);
    if (bytes === 0) return this.release(holder);
    this.#total += bytes - (held?.bytes ?? 0);
    if (held === undefined) this.#held.set(holder, { bytes, since: this.#now() });
    else held.bytes = bytes;
  }

  #reclaim(): void {
    for (const holder of [...this.#held.keys()]) this.#count(holder);
    const now = this.#now();
    // A second is added to the time, so that among new holders the largest counts most.
    const weight = ({ bytes, since }: Held): number => bytes * (1_000 + now - since);
    const heaviest = [...this.#held].toSorted(([, a], [, b]) => weight(b) - weight(a));
    for (const [holder] of heaviest) {
      if (this.#total <= this.#limits.totalBytes) return;
      holder.disconnect();
      this.release(holder);
    }
  }
}

// A FairLimit counts places, such as requests in flight. No principal may have all of them: three quarters is the most.
// All callers without a principal count as one.

const MAX_SHARE_OF_ONE = 0.75;

/** How many of `max` places one principal may have. */
export function shareOfOne(max: number): number {
  return Math.max(1, Math.ceil(max * MAX_SHARE_OF_ONE));
}

export class FairLimit {
  readonly #max: number;
  readonly #maxOfOne: number;
  /** Places by principal; empty if one principal may have all of them. */
  readonly #taken = new Map<string | undefined, number>();
  #total = 0;

  /** `maxOfOne` is for one principal. Pass `max` if callers are not authenticated, since all of them count as one. */
  constructor(max: number, maxOfOne: number = shareOfOne(max)) {
    this.#max = max;
    this.#maxOfOne = maxOfOne;
  }

  /**
   * Takes places, or says why there are none: all are taken, or the principal has its share. More places than there are
   * can be taken at once if no others are taken.
   */
  take(principal: string | undefined, size = 1): "full" | "share" | undefined {
    if (this.#total > 0 && this.#total + size > this.#max) return "full";
    if (this.#maxOfOne < this.#max) {
      const own = this.#taken.get(principal) ?? 0;
      if (own > 0 && own + size > this.#maxOfOne) return "share";
      this.#taken.set(principal, own + size);
    }
    this.#total += size;
    return undefined;
  }

  /** Frees places that were taken. */
  release(principal: string | undefined, size = 1): void {
    this.#total -= size;
    const own = (this.#taken.get(principal) ?? 0) - size;
    if (own > 0) this.#taken.set(principal, own);
    else this.#taken.delete(principal);
  }
}
