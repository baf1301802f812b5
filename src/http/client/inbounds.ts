// Messages that came out of an HTTP answer, as what a wire hands on: with the request on whose answer they came, and
// a way back. Also tells a wire whether the answer that it waits for was among them, and gives our own answers a second
// chance.

import { ConnectionError } from "../../core/errors.ts";
import type { Decoded } from "../../jsonrpc/codec.ts";
import { Exact, isResponse, type ErrorBody, type Id, type Message } from "../../jsonrpc/message.ts";
import type { Inbound, Transport } from "../../transport/transport.ts";

const TOOLS_CHANGED = "notifications/tools/list_changed";

export class Inbounds {
  readonly #send: Transport["send"];
  readonly #gone: AbortSignal;
  readonly #onOtherTools: () => void;
  #receive: (inbound: Inbound) => void = () => undefined;

  /** `onOtherTools` is called when what was known of the end's tools may no longer be so. */
  constructor(send: Transport["send"], gone: AbortSignal, onOtherTools: () => void) {
    this.#send = send;
    this.#gone = gone;
    this.#onOtherTools = onOtherTools;
  }

  start(receive: (inbound: Inbound) => void): void {
    this.#receive = receive;
  }

  /** Hands it on; whether it holds the answer to `about`. What is no message is passed over. */
  hand(decoded: Decoded, about?: Id): boolean {
    if (decoded.kind === "fault") {
      this.#pass({ kind: "fault", fault: decoded.fault }, about);
      return about !== undefined && decoded.fault.id !== null && sameId(decoded.fault.id, about);
    }
    if (decoded.kind === "message") {
      const { message } = decoded;
      // An error that names no request can only be about the one on whose answer it came.
      if (about !== undefined && "error" in message && message.id === null) {
        this.fail(about, message.error);
        return true;
      }
      this.#pass({ kind: "message", message: decoded.message }, about);
      return answers(decoded.message, about);
    }
    const batch = decoded.items.map((item) => ("message" in item ? item : { fault: item.fault }));
    this.#pass({ kind: "batch", batch }, about);
    return batch.some((item) => "message" in item && answers(item.message, about));
  }

  /** The whole body of an answer to one request: that answer, or what is wrong with it. */
  handOnly(decoded: Decoded, about: Id, what: string): void {
    if (this.hand(decoded, about)) return;
    const why =
      decoded.kind === "fault" ? `with what is no message: ${decoded.fault.error.message}` : "with something else";
    throw new ConnectionError("protocol", `The end answered ${what} ${why}`);
  }

  fail(id: Id, error: ErrorBody): void {
    this.#pass({ kind: "message", message: { jsonrpc: "2.0", id, error } }, id);
  }

  /** The session is gone, but the end is not. */
  lose(): void {
    this.#pass({ kind: "lost" }, undefined);
  }

  /** Something may have been said that did not reach us. */
  miss(): void {
    this.#pass({ kind: "gap" }, undefined);
  }

  /** The end does not want to keep the stream of this request open. */
  hangUp(about: Id, retryMs: number): void {
    this.#pass({ kind: "hang-up", retryMs }, about);
  }

  #pass(what: Pick<Inbound, "kind" | "message" | "batch" | "fault" | "retryMs">, about: Id | undefined): void {
    if (this.#gone.aborted) return;
    const { kind, message } = what;
    const isChange = message !== undefined && "method" in message && message.method === TOOLS_CHANGED;
    if (isChange || kind === "lost" || kind === "gap") this.#onOtherTools();
    const reply: Inbound["reply"] = (message) => this.#send(message);
    this.#receive({ ...what, ...(about === undefined ? undefined : { about }), gone: this.#gone, reply });
  }
}

function answers(message: Message, id: Id | undefined): boolean {
  return id !== undefined && isResponse(message) && message.id !== null && sameId(message.id, id);
}

/** 1.0 is our 1, written by another hand. */
function sameId(given: Id, ours: Id): boolean {
  return (given instanceof Exact ? given.value : given) === ours;
}

/** The answer to a question of the end: to say it twice does no harm, and not to say it leaves the end waiting. */
export async function saidTwice(say: () => Promise<void>, mayRepeat: boolean): Promise<void> {
  try {
    await say();
  } catch (error) {
    const isBroken = error instanceof ConnectionError && (error.kind === "closed" || error.kind === "refused");
    if (!mayRepeat || !isBroken) throw error;
    await say();
  }
}
