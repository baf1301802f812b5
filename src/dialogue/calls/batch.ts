// The reply to a batch: each message of the batch is handled as if it had come alone, and the responses go out together,
// in the order of the requests, when the last one is ready. All else is sent at once.

import { encode } from "../../jsonrpc/codec.ts";
import { isRequest, type Message, type ResponseMessage } from "../../jsonrpc/message.ts";
import type { Carrier } from "../../transport/carrier.ts";
import type { BatchItem } from "../../transport/transport.ts";
import type { CallPlaces, CountedCall } from "./call-places.ts";
import { unsendableResponse } from "./errors.ts";

export class Batch implements CountedCall {
  readonly principal: string | undefined;
  readonly size: number;
  readonly length: number;
  readonly isBackground = false;
  countedAs: CountedCall["countedAs"] = "nothing";
  readonly #carrier: Carrier;
  readonly #places: CallPlaces | undefined;
  readonly #responses: (ResponseMessage | undefined)[];
  #open: number;

  /** Throws a CallRefused if there are not enough places. A larger batch than there are is taken if it is the only one. */
  constructor(
    carrier: Carrier,
    items: readonly BatchItem[],
    principal: string | undefined,
    places: CallPlaces | undefined,
  ) {
    this.principal = principal;
    this.size = items.filter((item) => "message" in item && isRequest(item.message)).length;
    this.length = carrier.bodyLength ?? 0;
    this.#carrier = carrier;
    this.#places = places;
    this.#responses = items.map(() => undefined);
    this.#open = items.length;
    places?.take(this);
  }

  /** Whether the responses have been sent, or will not be. */
  get isDone(): boolean {
    return this.#open === 0;
  }

  /** The carrier of the item at this place. It must be finished or dropped. */
  part(index: number): Carrier {
    return new BatchPart(this.#carrier, (response) => this.#settle(index, response));
  }

  #settle(index: number, response: ResponseMessage | undefined): Promise<void> | undefined {
    this.#responses[index] = response;
    this.#open -= 1;
    if (this.#open > 0) return undefined;
    this.#places?.release(this);
    const responses = this.#responses.filter((settled) => settled !== undefined);
    if (responses.length > 0) return this.#finish(responses);
    this.#carrier.drop();
    return undefined;
  }

  async #finish(responses: readonly ResponseMessage[]): Promise<void> {
    try {
      await this.#carrier.finish(responses.map(encodable));
    } catch {
      // The batch may be too long. Each response is sent alone; one that is still too long becomes an error.
      for (const response of responses) {
        try {
          await this.#carrier.finish(response);
        } catch (error) {
          this.#carrier.send(unsendableResponse(response, error));
        }
      }
    }
  }
}

class BatchPart implements Carrier {
  readonly isAlone = false;
  readonly isPart = true;
  readonly #carrier: Carrier;
  #settle: ((response: ResponseMessage | undefined) => Promise<void> | undefined) | undefined;

  constructor(carrier: Carrier, settle: (response: ResponseMessage | undefined) => Promise<void> | undefined) {
    this.#carrier = carrier;
    this.#settle = settle;
  }

  get isGone(): boolean {
    return this.#carrier.isGone;
  }

  send(message: Message): void {
    this.#carrier.send(message);
  }

  finish(response: ResponseMessage | readonly ResponseMessage[]): Promise<void> | undefined {
    return this.#end(response as ResponseMessage);
  }

  /** One cancelled request does not drop the reply of the whole batch. */
  drop(): void {
    void this.#end(undefined);
  }

  #end(response: ResponseMessage | undefined): Promise<void> | undefined {
    const settle = this.#settle;
    this.#settle = undefined;
    return settle?.(response);
  }
}

/** Replaces a response that cannot be encoded as JSON, so that the others of the batch can be sent. */
function encodable(response: ResponseMessage): ResponseMessage {
  try {
    encode(response);
    return response;
  } catch (error) {
    return unsendableResponse(response, error);
  }
}
