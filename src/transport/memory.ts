// Two connected transports in one process. Messages are immutable, so they are passed without copying. They are
// delivered in order and in a microtask, so that neither side runs inside a call of the other.

import { ConnectionError } from "../core/errors.ts";
import { isBatch, type Message } from "../jsonrpc/message.ts";
import type { Receive, Transport } from "./transport.ts";

class MemoryTransport implements Transport {
  peer: MemoryTransport | undefined;
  #closed = false;
  readonly #unread: (Message | readonly Message[])[] = [];
  #receive: Receive | undefined;
  #ended = false;

  async start(receive: Receive): Promise<void> {
    this.#receive = receive;
    for (const message of this.#unread.splice(0)) this.#deliver(message);
    if (this.#ended) this.#deliverEnd();
  }

  async send(message: Message | readonly Message[]): Promise<void> {
    const { peer } = this;
    if (peer === undefined || peer.#ended || this.#closed) {
      throw new ConnectionError("closed", "The in-memory connection is closed");
    }
    queueMicrotask(() => peer.#deliver(message));
  }

  async close(): Promise<void> {
    const { peer } = this;
    if (this.#closed) return;
    this.#closed = true;
    queueMicrotask(() => {
      if (peer !== undefined) peer.#end();
      this.#end();
    });
  }

  #deliver(message: Message | readonly Message[]): void {
    if (this.#receive === undefined) {
      this.#unread.push(message);
      return;
    }
    if (isBatch(message)) this.#receive({ kind: "batch", items: message.map((item) => ({ message: item })) });
    else this.#receive({ kind: "message", message });
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#closed = true;
    this.#deliverEnd();
  }

  #deliverEnd(): void {
    this.#receive?.({ kind: "end" });
  }
}

/** Two transports that are connected with each other in memory. */
export function memoryPair(): [Transport, Transport] {
  const first = new MemoryTransport();
  const second = new MemoryTransport();
  first.peer = second;
  second.peer = first;
  return [first, second];
}
