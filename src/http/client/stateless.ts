// An exchange-style end over HTTP, as a transport: every request is a POST of its own, and its answer, with what
// belongs to it, comes back on the same. Nothing is kept between two requests. To end the reading is to cancel
// (specification, basic/transports/streamable-http, cancellation), so the word for it is never sent.

import { onAbort } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { encode } from "../../jsonrpc/codec.ts";
import { Exact, isNotification, isRequest, type Id, type Message, type RequestMessage } from "../../jsonrpc/message.ts";
import type { HttpResponse } from "./requester.ts";
import type { Inbound, SendOptions, Transport } from "../../transport/transport.ts";
import { Cursor, readFailure, isEvents, isSuccess, isJson, noMessages, readJson, readMessages, MessageReceiver } from "./read-response.ts";
import type { HttpConnection } from "./http-connection.ts";
import { statelessHeaders, POSTED } from "../headers.ts";
import type { ToolFacts } from "./tool-facts.ts";

export class StatelessHttpTransport implements Transport {
  readonly #link: HttpConnection;
  readonly #tools: ToolFacts;
  readonly #life = new AbortController();
  readonly #inbounds: MessageReceiver;
  /** What ends each request that is under way. */
  readonly #live = new Map<Id, AbortController>();

  constructor(link: HttpConnection, tools: ToolFacts) {
    this.#link = link;
    this.#tools = tools;
    this.#inbounds = new MessageReceiver(
      (message) => this.send(message),
      this.#life.signal,
      () => tools.forget(),
    );
  }

  async start(receive: (inbound: Inbound) => void): Promise<void> {
    this.#inbounds.start(receive);
  }

  async send(message: Message | readonly Message[], { signal, onWait }: SendOptions = {}): Promise<void> {
    if (this.#life.signal.aborted)
      throw new ConnectionError("closed", "The connection was closed", { mayHaveRun: false });
    if (Array.isArray(message)) throw new ConnectionError("protocol", "There are no batches in this style");
    const one = message as Message;
    if (isRequest(one)) await this.#call(one, signal, onWait);
    else if (isNotification(one)) await this.#tell(one);
    // An answer could only be to a question that no end of this style may ask.
  }

  async close(): Promise<void> {
    const reason = new ConnectionError("closed", "The connection was closed");
    this.#life.abort(reason);
    for (const stop of this.#live.values()) stop.abort(reason);
    this.#link.close();
  }

  async #call(message: RequestMessage, signal: AbortSignal | undefined, onWait: SendOptions["onWait"]): Promise<void> {
    const { id, method } = message;
    const stop = new AbortController();
    const forget = onAbort(signal, () => stop.abort(signal?.reason));
    this.#live.set(id, stop);
    try {
      const answer = await this.#link.ask({
        method: "POST",
        headers: { ...statelessHeaders(message), ...this.#tools.headersFor(message) },
        body: encode(message),
        signal: stop.signal,
        onWait,
      });
      await this.#take(answer, id, method, stop.signal);
    } finally {
      forget();
      this.#live.delete(id);
    }
  }

  async #take(answer: HttpResponse, id: Id, method: string, signal: AbortSignal): Promise<void> {
    if (!isSuccess(answer)) {
      const failure = await readFailure(answer, method);
      if ("error" in failure) throw failure.error;
      this.#inbounds.fail(id, failure.body);
    } else if (isJson(answer)) this.#inbounds.handOnly(await readJson(answer, this.#link.limits), id, method);
    else if (isEvents(answer)) {
      const cursor = new Cursor();
      // What is still to be read of a call that is over belongs to nobody: others must not be taken for its caller.
      const hand = (decoded: Parameters<MessageReceiver["hand"]>[0]): boolean =>
        signal.aborted || this.#inbounds.hand(decoded, id);
      if (await readMessages(answer, this.#link.limits, cursor, hand)) return;
      throw new ConnectionError(
        "closed",
        `The end closed the stream of ${method} before it had answered; it may have run: look before you call it again`,
      );
    } else throw noMessages(answer, method);
  }

  async #tell(message: Message): Promise<void> {
    const params = "params" in message ? message.params : undefined;
    if ("method" in message && message.method === "notifications/cancelled") {
      const given = params?.["requestId"] as Id;
      this.#live
        .get(given instanceof Exact ? given.value : given)
        ?.abort(new ConnectionError("cancelled", "Cancelled"));
      return;
    }
    const answer = await this.#link.ask({
      method: "POST",
      headers: POSTED,
      body: encode(message),
      signal: this.#life.signal,
    });
    answer.discard();
  }
}
