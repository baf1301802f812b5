// The transport to a stateless server over HTTP. Every request is one POST; its result and notifications arrive in the
// HTTP response. Aborting the POST cancels the request (specification, basic/transports/streamable-http), so
// notifications/cancelled is never sent.

import { onAbort } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { encode } from "../../jsonrpc/codec.ts";
import {
  ExactId,
  isNotification,
  isRequest,
  type Id,
  type Message,
  type RequestMessage,
} from "../../jsonrpc/message.ts";
import type { HttpResponse } from "./requester.ts";
import type { Inbound, SendOptions, Transport } from "../../transport/transport.ts";
import {
  StreamPosition,
  readFailure,
  isEventStream,
  isSuccess,
  isJson,
  noMessages,
  readJson,
  readMessages,
  MessageReceiver,
} from "./read-response.ts";
import type { HttpConnection } from "./http-connection.ts";
import { statelessHeaders, POST_HEADERS } from "../headers.ts";
import type { ToolFacts } from "./tool-facts.ts";

export class StatelessHttpTransport implements Transport {
  readonly #http: HttpConnection;
  readonly #tools: ToolFacts;
  readonly #closed = new AbortController();
  readonly #receiver: MessageReceiver;
  /** The abort controllers of the requests in flight, by id. */
  readonly #inFlight = new Map<Id, AbortController>();

  constructor(http: HttpConnection, tools: ToolFacts) {
    this.#http = http;
    this.#tools = tools;
    this.#receiver = new MessageReceiver(
      (message) => this.send(message),
      this.#closed.signal,
      () => tools.forget(),
    );
  }

  async start(receive: (inbound: Inbound) => void): Promise<void> {
    this.#receiver.start(receive);
  }

  async send(message: Message | readonly Message[], { signal, onWait }: SendOptions = {}): Promise<void> {
    if (this.#closed.signal.aborted)
      throw new ConnectionError("closed", "The connection was closed", { mayHaveRun: false });
    if (Array.isArray(message)) throw new ConnectionError("protocol", "Stateless revisions have no batches");
    const one = message as Message;
    if (isRequest(one)) await this.#call(one, signal, onWait);
    else if (isNotification(one)) await this.#notify(one);
    // Stateless servers send no requests, so there are no responses to send.
  }

  async close(): Promise<void> {
    const reason = new ConnectionError("closed", "The connection was closed");
    this.#closed.abort(reason);
    for (const controller of this.#inFlight.values()) controller.abort(reason);
    this.#http.close();
  }

  async #call(message: RequestMessage, signal: AbortSignal | undefined, onWait: SendOptions["onWait"]): Promise<void> {
    const { id, method } = message;
    const controller = new AbortController();
    const removeListener = onAbort(signal, () => controller.abort(signal?.reason));
    this.#inFlight.set(id, controller);
    try {
      const response = await this.#http.send({
        method: "POST",
        headers: { ...statelessHeaders(message), ...this.#tools.headersFor(message) },
        body: encode(message),
        signal: controller.signal,
        onWait,
      });
      await this.#receive(response, id, method, controller.signal);
    } finally {
      removeListener();
      this.#inFlight.delete(id);
    }
  }

  async #receive(response: HttpResponse, id: Id, method: string, signal: AbortSignal): Promise<void> {
    if (!isSuccess(response)) {
      const failure = await readFailure(response, method);
      if ("error" in failure) throw failure.error;
      this.#receiver.fail(id, failure.body);
    } else if (isJson(response))
      this.#receiver.deliverResponse(await readJson(response, this.#http.limits), id, method);
    else if (isEventStream(response)) {
      const position = new StreamPosition();
      // Messages that arrive after the abort must not reach another call.
      const deliver = (decoded: Parameters<MessageReceiver["deliver"]>[0]): boolean =>
        signal.aborted || this.#receiver.deliver(decoded, id);
      if (await readMessages(this.#http, response, position, deliver)) return;
      const advice = "the request may have run, so check before you call it again";
      throw new ConnectionError("closed", `The server closed the stream of ${method} before it answered; ${advice}`);
    } else throw noMessages(response, method);
  }

  async #notify(message: Message): Promise<void> {
    const params = "params" in message ? message.params : undefined;
    if ("method" in message && message.method === "notifications/cancelled") {
      const given = params?.["requestId"] as Id;
      this.#inFlight
        .get(given instanceof ExactId ? given.value : given)
        ?.abort(new ConnectionError("cancelled", "Cancelled"));
      return;
    }
    const response = await this.#http.send({
      method: "POST",
      headers: POST_HEADERS,
      body: encode(message),
      signal: this.#closed.signal,
    });
    response.discard();
  }
}
