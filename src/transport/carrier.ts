// A carrier takes what answers a request back to its sender. There are two: the lines of a duplex connection, which all
// calls share, and an HTTP reply (http/server/reply.ts), which belongs to one call. A part of a batch is a view of one.

import type { RawHead } from "../core/handler.ts";
import type { Message, ResponseMessage } from "../jsonrpc/message.ts";

/** Takes what answers a request back to its sender. */
export interface Carrier {
  /** Whether it carries one request only, so that it ends with the response. */
  readonly isAlone: boolean;
  /** Whether nothing can be delivered any more. */
  readonly isGone: boolean;
  /** Whether it is a part of a batch, which is counted as a whole. */
  readonly isPart?: boolean;
  /** The length of the request, if it is long enough to be counted. */
  readonly bodyLength?: number;
  /** Sends a message that belongs to the request and is not its response. Never throws. */
  send(message: Message): void;
  /** Sends the response, the last message. Rejects if it cannot be encoded; undefined if there is nothing to wait for. */
  finish(response: ResponseMessage | readonly ResponseMessage[]): Promise<void> | undefined;
  /** Ends without a response, since the request was cancelled. */
  drop(): void;
  /** Tells the call that it will get no answer through when the client has gone. */
  watch?(call: CarrierListener): void;
  /** Called with what else the client says of the call, if something watches it: the answer to a question, a cancel. */
  received?(message: Message): void;
  /** Over HTTP, returns the head of the request, and calls back with that of the response. */
  watchHead?(listener: (head: RawHead) => void): RawHead | undefined;
  /** Ends the response stream early, so that the client reconnects for the rest. Does nothing if it cannot do so. */
  hangUp?(retryMs: number): void;
}

/** Learns that its client has gone. An object and not a function, since a function for each request costs more. */
export interface CarrierListener {
  onGone(): void;
}

/** Carries by another carrier. For classes that look at what passes. */
export class PassingCarrier implements Carrier {
  protected readonly carrier: Carrier;

  constructor(carrier: Carrier) {
    this.carrier = carrier;
  }

  get isAlone(): boolean {
    return this.carrier.isAlone;
  }

  get isGone(): boolean {
    return this.carrier.isGone;
  }

  get bodyLength(): number {
    return this.carrier.bodyLength ?? 0;
  }

  send(message: Message): void {
    this.carrier.send(message);
  }

  finish(response: ResponseMessage | readonly ResponseMessage[]): Promise<void> | undefined {
    return this.carrier.finish(response);
  }

  drop(): void {
    this.carrier.drop();
  }

  watch(call: CarrierListener): void {
    this.carrier.watch?.(call);
  }

  received(message: Message): void {
    this.carrier.received?.(message);
  }

  watchHead(listener: (head: RawHead) => void): RawHead | undefined {
    return this.carrier.watchHead?.(listener);
  }

  hangUp(retryMs: number): void {
    this.carrier.hangUp?.(retryMs);
  }
}

const ignore = (): void => undefined;

/** For messages that have no answer. */
export const NO_CARRIER: Carrier = {
  isAlone: true,
  isGone: false,
  send: ignore,
  finish: () => undefined,
  drop: ignore,
};
