// The lines of a connection, which carry the answers to all its calls, and what belongs to none of them.

import { attempt, ignoreRejection } from "../core/async.ts";
import type { Message, ResponseMessage } from "../jsonrpc/message.ts";
import type { Carrier } from "./carrier.ts";
import type { Transport } from "./transport.ts";

export class LineCarrier implements Carrier {
  readonly isAlone = false;
  readonly #transport: Transport;
  #isGone = false;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** Call this when the connection has broken. */
  break(): void {
    this.#isGone = true;
  }

  send(message: Message): void {
    void ignoreRejection(attempt(() => this.#transport.send(message)));
  }

  finish(response: ResponseMessage | readonly ResponseMessage[]): Promise<void> {
    return this.#transport.send(response);
  }

  drop(): void {}
}
