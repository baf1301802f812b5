// The transport to a stateless server over HTTP. Every request is one POST; its result and notifications arrive in the
// HTTP response, so `send` resolves with the result. Aborting the POST cancels the request (specification, basic/transports/streamable-http), so
// notifications/cancelled is never sent.

import { onAbort } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { encode, faultText, type Decoded } from "../../jsonrpc/codec.ts";
import {
  ExactId,
  isNotification,
  isRequest,
  isResponse,
  type ErrorMessage,
  type Id,
  type Message,
  type NotificationMessage,
  type RequestMessage,
  type ResponseMessage,
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
  notTheResponse,
  readJson,
  readMessages,
  sameId,
  TOOLS_CHANGED,
} from "./read-response.ts";
import type { HttpConnection } from "./http-connection.ts";
import { statelessHeaders, POST_HEADERS } from "../headers.ts";
import type { ToolFacts } from "../../protocol/tool-facts.ts";

export class StatelessHttpTransport implements Transport {
  readonly #http: HttpConnection;
  readonly #tools: ToolFacts;
  readonly #closed = new AbortController();
  /** The abort controllers of the requests in flight, by id. */
  readonly #inFlight = new Map<Id, AbortController>();
  #receive: (inbound: Inbound) => void = () => undefined;

  constructor(http: HttpConnection, tools: ToolFacts) {
    this.#http = http;
    this.#tools = tools;
  }

  async start(receive: (inbound: Inbound) => void): Promise<void> {
    this.#receive = receive;
  }

  async send(
    message: Message | readonly Message[],
    { signal, onWait }: SendOptions = {},
  ): Promise<ResponseMessage | void> {
    if (this.#closed.signal.aborted)
      throw new ConnectionError("closed", "The connection was closed", { mayHaveRun: false });
    if (Array.isArray(message)) throw new ConnectionError("protocol", "Stateless revisions have no batches");
    const one = message as Message;
    if (isRequest(one)) return this.#call(one, signal, onWait);
    if (isNotification(one)) await this.#notify(one);
    // Stateless servers send no requests, so there are no responses to send.
  }

  async close(): Promise<void> {
    const reason = new ConnectionError("closed", "The connection was closed");
    this.#closed.abort(reason);
    for (const controller of this.#inFlight.values()) controller.abort(reason);
    this.#http.close();
  }

  async #call(
    message: RequestMessage,
    signal: AbortSignal | undefined,
    onWait: SendOptions["onWait"],
  ): Promise<ResponseMessage> {
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
      return await this.#read(response, id, method, controller.signal);
    } finally {
      removeListener();
      this.#inFlight.delete(id);
    }
  }

  async #read(response: HttpResponse, id: Id, method: string, signal: AbortSignal): Promise<ResponseMessage> {
    if (!isSuccess(response)) {
      const failure = await readFailure(response, method);
      if ("error" in failure) throw failure.error;
      return { jsonrpc: "2.0", id, error: failure.body };
    }
    if (isJson(response)) {
      const decoded = await readJson(response, this.#http.limits);
      const answer = this.#take(decoded, id);
      if (answer === undefined) throw notTheResponse(decoded, method);
      return answer;
    }
    if (!isEventStream(response)) throw noMessages(response, method);
    let answer: ResponseMessage | undefined;
    const take = (decoded: Decoded): boolean => {
      // Messages that arrive after the abort belong to no call.
      if (!signal.aborted) answer = this.#take(decoded, id);
      return signal.aborted || answer !== undefined;
    };
    await readMessages(this.#http, response, new StreamPosition(), take);
    if (answer !== undefined) return answer;
    const advice = "the request may have run, so check before you call it again";
    throw new ConnectionError("closed", `The server closed the stream of ${method} before it answered; ${advice}`);
  }

  /** Passes notifications on. Returns the response to the request, if it is there. */
  #take(decoded: Decoded, id: Id): ResponseMessage | undefined {
    let answer: ResponseMessage | undefined;
    for (const item of decoded.kind === "batch" ? decoded.items : [decoded]) {
      if ("fault" in item) {
        if (item.fault.id !== null && sameId(item.fault.id, id)) throw invalidAnswer(item.fault);
      } else if (isNotification(item.message)) this.#pass(item.message, id);
      // An error without an id can only belong to the request whose HTTP response contains it.
      else if (isResponse(item.message) && (item.message.id === null || sameId(item.message.id, id)))
        answer = item.message;
    }
    return answer;
  }

  #pass(message: NotificationMessage, about: Id): void {
    if (this.#closed.signal.aborted) return;
    if (message.method === TOOLS_CHANGED) this.#tools.forget();
    const reply = async (): Promise<void> => undefined;
    this.#receive({ kind: "message", message, about, gone: this.#closed.signal, reply });
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

function invalidAnswer(fault: ErrorMessage): ConnectionError {
  return new ConnectionError("protocol", `The server's answer is not a valid message: ${faultText(fault)}`);
}
