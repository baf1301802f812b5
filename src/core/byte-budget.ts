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

type ByteLimits = Readonly<Record<"peerBytes" | "totalBytes", number>>;

interface Held {
  bytes: number;
  readonly since: number;
}

export class ByteBudget {
  readonly #limits: ByteLimits;
  readonly #held = new Map<ByteHolder, Held>();
  /** Of all holders, as of their last updates. */
  bytes = 0;

  constructor(limits: ByteLimits) {
    this.#limits = limits;
  }

  /** Whether this holder may get more. If not, disconnect it. */
  admits(holder: ByteHolder): boolean {
    return holder.heldBytes <= this.#limits.peerBytes;
  }

  /** Call this when the holder may hold more than before. Holders that hold less are looked at again when needed. */
  update(holder: ByteHolder): void {
    this.#count(holder);
    if (this.bytes > this.#limits.totalBytes) this.#reclaim();
  }

  /** Call this when the holder holds nothing any more. */
  release(holder: ByteHolder): void {
    this.bytes -= this.#held.get(holder)?.bytes ?? 0;
    this.#held.delete(holder);
  }

  #count(holder: ByteHolder): void {
    const bytes = holder.heldBytes;
    const held = this.#held.get(holder);
    if (bytes === 0) return this.release(holder);
    this.bytes += bytes - (held?.bytes ?? 0);
    if (held === undefined) this.#held.set(holder, { bytes, since: performance.now() });
    else held.bytes = bytes;
  }

  #reclaim(): void {
    for (const holder of [...this.#held.keys()]) this.#count(holder);
    const now = performance.now();
    // A second is added to the time, so that among new holders the largest counts most.
    const weight = ({ bytes, since }: Held): number => bytes * (1_000 + now - since);
    const heaviest = [...this.#held].toSorted(([, a], [, b]) => weight(b) - weight(a));
    for (const [holder] of heaviest) {
      if (this.bytes <= this.#limits.totalBytes) return;
      holder.disconnect();
      this.release(holder);
    }
  }
}

/**
 * Limits the messages that are still arriving. If there are too many, the oldest one is given up: one that takes long
 * must not keep out those that come at once.
 */
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
