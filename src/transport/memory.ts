// Two transports joined back to back in one process: the default stage for tests, and the shortest wire.
// Messages are handed over as they are (they are immutable), in order, one turn of the event loop's
// microtask queue later, so that neither side ever runs inside the other's call.

import { ConnectionError } from "../core/errors.ts";
import type { Message } from "../jsonrpc/message.ts";
import type { Inbound, Transport } from "./transport.ts";

class MemoryTransport implements Transport {
  peer: MemoryTransport | undefined;
  readonly #gone = new AbortController();
  readonly #early: (Message | readonly Message[])[] = [];
  #receive: ((inbound: Inbound) => void) | undefined;
  #ended = false;

  async start(receive: (inbound: Inbound) => void): Promise<void> {
    this.#receive = receive;
    for (const message of this.#early.splice(0)) this.#hand(message);
    if (this.#ended) this.#handEnd();
  }

  async send(message: Message | readonly Message[]): Promise<void> {
    const { peer } = this;
    if (peer === undefined || peer.#ended || this.#gone.signal.aborted) {
      throw new ConnectionError("closed", "The in-memory connection is closed");
    }
    queueMicrotask(() => peer.#hand(message));
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

  #hand(message: Message | readonly Message[]): void {
    if (this.#receive === undefined) {
      this.#early.push(message);
      return;
    }
    const reply: Inbound["reply"] = (answer) => this.send(answer);
    const gone = this.#gone.signal;
    if (isBatch(message))
      this.#receive({ kind: "batch", batch: message.map((item) => ({ message: item })), gone, reply });
    else this.#receive({ kind: "message", message, gone, reply });
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#gone.abort();
    this.#handEnd();
  }

  #handEnd(): void {
    this.#receive?.({ kind: "end", gone: this.#gone.signal, reply: (answer) => this.send(answer) });
  }
}

function isBatch(message: Message | readonly Message[]): message is readonly Message[] {
  return Array.isArray(message);
}

export function memoryPair(): [Transport, Transport] {
  const one = new MemoryTransport();
  const other = new MemoryTransport();
  one.peer = other;
  other.peer = one;
  return [one, other];
}
