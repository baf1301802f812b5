// Taps: what passes a connection, each message as it is on the wire, in both directions. A tapped transport or carrier
// is wrapped; one that is not tapped is used as it is, so that taps cost nothing where there are none.

import { callListener } from "../core/listeners.ts";
import { isBatch, type Message, type ResponseMessage } from "../jsonrpc/message.ts";
import { type Carrier, PassingCarrier } from "./carrier.ts";
import { reportsRequests, type Inbound, type ReportingTransport, type Transport } from "./transport.ts";

/** A message on the wire. */
export interface TappedMessage {
  readonly sender: "client" | "server";
  /** The message, in the revision of its connection. The messages of a batch come one by one. */
  readonly message: Message;
  /** Which connection it passed, for example to tell the messages of two sessions apart. */
  readonly connection: number;
}

/** Called with each message. It must not change the message. */
export type Tap = (tapped: TappedMessage) => void;

let connections = 0;

export class Meter {
  readonly #tap: Tap;
  readonly #connection = (connections += 1);
  /** Nothing reaches the wire any more. */
  #hasEnded = false;

  constructor(tap: Tap) {
    this.#tap = tap;
  }

  pass(sender: TappedMessage["sender"], message: Message | readonly Message[]): void {
    if (this.#hasEnded) return;
    for (const single of isBatch(message) ? message : [message]) {
      callListener("tap", this.#tap, [{ sender, message: single, connection: this.#connection }]);
    }
  }

  receive(sender: TappedMessage["sender"], inbound: Inbound): void {
    if (inbound.kind === "end") this.#hasEnded = true;
    else if (inbound.kind === "message") this.pass(sender, inbound.message);
    else if (inbound.kind === "batch")
      for (const item of inbound.items) if ("message" in item) this.pass(sender, item.message);
  }
}

/** Taps a transport of one side: `side` sends, and the other side's messages are received. */
export function tapTransport(transport: Transport, tap: Tap, side: TappedMessage["sender"]): ReportingTransport {
  const meter = new Meter(tap);
  const other = side === "client" ? "server" : "client";
  return {
    reportsRequests: reportsRequests(transport),
    start: (receive) =>
      transport.start((inbound, carrier) => {
        meter.receive(other, inbound);
        receive(inbound, carrier && new TappedCarrier(carrier, meter));
      }),
    send: (message, options) => {
      meter.pass(side, message);
      return transport.send(message, options);
    },
    close: (budgetMs) => transport.close(budgetMs),
  };
}

/** Taps a carrier and the message that came with it. */
export function tapCarrier(carrier: Carrier, tap: Tap, message: Message): TappedCarrier {
  const meter = new Meter(tap);
  meter.pass("client", message);
  return new TappedCarrier(carrier, meter);
}

export class TappedCarrier extends PassingCarrier {
  readonly #meter: Meter;

  constructor(carrier: Carrier, meter: Meter) {
    super(carrier);
    this.#meter = meter;
  }

  override send(message: Message): void {
    this.#meter.pass("server", message);
    super.send(message);
  }

  override finish(response: Parameters<Carrier["finish"]>[0]): Promise<void> | undefined {
    this.#meter.pass("server", response);
    return super.finish(response);
  }

  /** Tells the tap what is sent without the carrier. */
  pass(response: ResponseMessage): void {
    this.#meter.pass("server", response);
  }
}
