// The carrier of a call that something observes: reports what the client gets for the call, and what it answers. It takes
// the place of the call's carrier only then, so that calls that nothing observes are carried as they are.

import type { RawHead, WireObserver } from "../../core/handler.ts";
import { isBatch, type Message, type ResponseMessage } from "../../jsonrpc/message.ts";
import { type Carrier, PassingCarrier } from "../../transport/carrier.ts";

export class WatchedCarrier extends PassingCarrier {
  readonly #observer: WireObserver;
  readonly #revision: string;

  /** `request`: what the carrier has brought, which is reported at once. */
  constructor(carrier: Carrier, request: Message, observer: WireObserver, revision: string) {
    super(carrier);
    this.#observer = observer;
    this.#revision = revision;
    const http = this.watchHead((head) => observer.passed({ side: "client", sender: "server", revision, http: head }));
    this.#report("client", request, http);
  }

  /** The head of a response goes before it. */
  override send(message: Message): void {
    super.send(message);
    this.#report("server", message);
  }

  override finish(response: ResponseMessage | readonly ResponseMessage[]): Promise<void> | undefined {
    const sending = super.finish(response);
    for (const single of isBatch(response) ? response : [response]) this.#report("server", single);
    return sending;
  }

  override received(message: Message): void {
    super.received(message);
    this.#report("client", message);
  }

  #report(sender: "client" | "server", message: Message, http?: RawHead): void {
    this.#observer.passed({ side: "client", sender, message, revision: this.#revision, http });
  }
}
