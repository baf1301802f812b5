// Two connected transports in one process. Messages are immutable, so they are passed without copying. They are
// delivered in order and in a microtask, so that neither side runs inside a call of the other.

import { ConnectionError } from "../core/errors.ts";
import { isBatch, type Message } from "../jsonrpc/message.ts";
import type { Inbound, Transport } from "./transport.ts";

class MemoryTransport implements Transport {
  peer: MemoryTransport | undefined;
  readonly #gone = new AbortController();
  readonly #unread: (Message | readonly Message[])[] = [];
  #receive: ((inbound: Inbound) => void) | undefined;
  #ended = false;

  async start(receive: (inbound: Inbound) => void): Promise<void> {
    this.#receive = receive;
    for (const message of this.#unread.splice(0)) this.#deliver(message);
    if (this.#ended) this.#deliverEnd();
  }

  async send(message: Message | readonly Message[]): Promise<void> {
    const { peer } = this;
    if (peer === undefined || peer.#ended || this.#gone.signal.aborted) {
      throw new ConnectionError("closed", "The in-memory connection is closed");
    }
    queueMicrotask(() => peer.#deliver(message));
  }

  async close(): Promise<void> {
    const { peer } = this;
    if (this.#gone.signal.aborted) return;
    this.#gone.abort();
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
    const reply: Inbound["reply"] = (response) => this.send(response);
    const gone = this.#gone.signal;
    if (isBatch(message))
      this.#receive({ kind: "batch", batch: message.map((item) => ({ message: item })), gone, reply });
    else this.#receive({ kind: "message", message, gone, reply });
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#gone.abort();
    this.#deliverEnd();
  }

  #deliverEnd(): void {
    this.#receive?.({ kind: "end", gone: this.#gone.signal, reply: (response) => this.send(response) });
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
