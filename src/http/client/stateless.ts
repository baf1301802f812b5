// Requests to a stateless server over HTTP. Each is one POST; its result and notifications arrive in the HTTP response.
// Aborting the POST cancels the request (specification, basic/transports/streamable-http), so notifications/cancelled is
// never sent.

import { ConnectionError } from "../../core/errors.ts";
import { type Decoded, faultText } from "../../jsonrpc/codec.ts";
import { isNotification, isResponse } from "../../jsonrpc/message.ts";
import type { NotificationMessage, RequestMessage, ResponseMessage } from "../../jsonrpc/message.ts";
import { type Cancellation, CancelToken } from "../../core/cancel.ts";
import { addFields } from "../../core/values.ts";
import type { PendingCall } from "../../dialogue/calls/pending-calls.ts";
import type { NotificationReceiver, UnaryTransport } from "../../dialogue/stateless/back.ts";
import { changedMethod } from "../../protocol/lists.ts";
import type { ToolFacts } from "../../tools/facts.ts";
import { POST_HEADERS, statelessHeaders } from "../headers.ts";
import type { HttpConnection } from "./http-connection.ts";
import {
  isEventStream,
  isJson,
  isSameId,
  isSuccess,
  noMessages,
  notTheResponse,
  PROBES,
  readFailure,
  readJson,
  readMessages,
  StreamPosition,
} from "./responses.ts";

const TOOLS_CHANGED = changedMethod("tools");

export class StatelessHttp implements UnaryTransport {
  readonly #http: HttpConnection;
  readonly #tools: ToolFacts;

  constructor(http: HttpConnection, tools: ToolFacts) {
    this.#http = http;
    this.#tools = tools;
  }

  async unary(message: RequestMessage, call: PendingCall, receiver: NotificationReceiver): Promise<ResponseMessage> {
    const { id, method } = message;
    const http = this.#http;
    const stop = new CancelToken();
    const onStop = (reason: unknown): void => stop.abort(reason);
    call.onStop = onStop;
    const response = await http.send({
      method: "POST",
      headers: addFields(statelessHeaders(message), this.#tools.headersFor(message)),
      body: http.encode(message),
      signal: stop,
      added: call.context.headers,
      waiter: call,
      id: PROBES.has(method) ? undefined : id,
      message,
      wire: call.context.observer?.wire,
    });
    if (!isSuccess(response)) {
      const { error, body } = await readFailure(response, method);
      if (body === undefined) throw error;
      return { jsonrpc: "2.0", id, error: body };
    }
    if (isJson(response)) {
      const decoded = await readJson(response, http.limits);
      const answer = this.#take(decoded, call, receiver);
      if (answer === undefined) throw notTheResponse(decoded, method);
      return answer;
    }
    if (!isEventStream(response)) throw noMessages(response, method);
    let answer: ResponseMessage | undefined;
    const take = (decoded: Decoded): boolean => {
      // Messages that arrive after the abort belong to no call.
      if (!call.isOver) answer = this.#take(decoded, call, receiver);
      return call.isOver || answer !== undefined;
    };
    await readMessages(http, response, new StreamPosition(), take);
    if (answer !== undefined) return answer;
    const advice = "the request may have run, so check before you call it again";
    throw new ConnectionError("closed", `The server closed the stream of ${method} before it answered; ${advice}`);
  }

  async notify(message: NotificationMessage, signal: Cancellation): Promise<void> {
    const body = this.#http.encode(message);
    (await this.#http.send({ method: "POST", headers: POST_HEADERS, body, signal })).discard();
  }

  /** Passes notifications on. Returns the response to the request, if it is there. */
  #take(decoded: Decoded, call: PendingCall, receiver: NotificationReceiver): ResponseMessage | undefined {
    let answer: ResponseMessage | undefined;
    for (const item of decoded.kind === "batch" ? decoded.items : [decoded]) {
      if ("fault" in item) {
        if (!isSameId(item.fault.id, call.id)) continue;
        throw new ConnectionError("protocol", `The server's answer is not a valid message: ${faultText(item.fault)}`);
      }
      const { message } = item;
      if (isResponse(message)) {
        // An error without an id can only belong to the request whose HTTP response contains it.
        if (message.id === null || isSameId(message.id, call.id)) answer = message;
      } else if (isNotification(message)) {
        if (message.method === TOOLS_CHANGED) this.#tools.forget();
        answer ??= receiver.receive(message, call);
      }
      // Stateless servers send no requests.
    }
    return answer;
  }
}
