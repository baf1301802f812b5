// The transport to a stateless server over HTTP. Every request is one POST; its result and notifications arrive in the
// HTTP response, so `send` resolves with the result. Aborting the POST cancels the request (specification,
// basic/transports/streamable-http), so notifications/cancelled is never sent.

import { onAbort } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { faultText } from "../../jsonrpc/codec.ts";
import type { Decoded } from "../../jsonrpc/codec.ts";
import { isNotification, isRequest, isResponse } from "../../jsonrpc/message.ts";
import type { Id, Message, NotificationMessage, RequestMessage, ResponseMessage } from "../../jsonrpc/message.ts";
import type { SendOptions } from "../../transport/transport.ts";
import { POST_HEADERS, statelessHeaders } from "../headers.ts";
import {
  answerableId,
  HttpTransport,
  isEventStream,
  isJson,
  isSameId,
  isSuccess,
  noMessages,
  notTheResponse,
  readFailure,
  readJson,
  readMessages,
  StreamPosition,
} from "./http-transport.ts";
import type { HttpResponse } from "./requester.ts";

export class StatelessHttpTransport extends HttpTransport {
  protected call(message: RequestMessage, options: SendOptions): Promise<ResponseMessage> {
    const { signal } = options;
    return this.track(message.id, options, async ({ controller }) => {
      const removeListener = onAbort(signal, () => controller.abort(signal?.reason));
      try {
        const response = await this.post(message, undefined, controller.signal, options);
        return await this.#read(response, message, controller.signal);
      } finally {
        removeListener();
      }
    });
  }

  protected post(
    message: Message,
    _session: undefined,
    signal: AbortSignal,
    { headers: added, onWait }: Pick<SendOptions, "onWait" | "headers"> = {},
  ): Promise<HttpResponse> {
    const headers = isRequest(message)
      ? { ...statelessHeaders(message), ...this.tools.headersFor(message) }
      : POST_HEADERS;
    const id = answerableId(message);
    return this.http.send({ method: "POST", headers, added, body: this.http.encode(message), signal, onWait, id });
  }

  protected acknowledged(response: HttpResponse): void {
    response.discard();
  }

  protected override async notify(message: NotificationMessage): Promise<void> {
    this.acknowledged(await this.post(message, undefined, this.closed.signal));
  }

  async #read(response: HttpResponse, { id, method }: RequestMessage, signal: AbortSignal): Promise<ResponseMessage> {
    if (!isSuccess(response)) {
      const { error, body } = await readFailure(response, method);
      if (body === undefined) throw error;
      return { jsonrpc: "2.0", id, error: body };
    }
    if (isJson(response)) {
      const decoded = await readJson(response, this.http.limits);
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
    await readMessages(this.http, response, new StreamPosition(), take);
    if (answer !== undefined) return answer;
    const advice = "the request may have run, so check before you call it again";
    throw new ConnectionError("closed", `The server closed the stream of ${method} before it answered; ${advice}`);
  }

  /** Passes notifications on. Returns the response to the request, if it is there. */
  #take(decoded: Decoded, id: Id): ResponseMessage | undefined {
    let answer: ResponseMessage | undefined;
    for (const item of decoded.kind === "batch" ? decoded.items : [decoded]) {
      if ("fault" in item) {
        if (!isSameId(item.fault.id, id)) continue;
        throw new ConnectionError("protocol", `The server's answer is not a valid message: ${faultText(item.fault)}`);
      }
      const { message } = item;
      // Stateless servers send no requests.
      if (isNotification(message)) this.pass({ kind: "message", message }, id);
      // An error without an id can only belong to the request whose HTTP response contains it.
      else if (isResponse(message) && (message.id === null || isSameId(message.id, id))) answer = message;
    }
    return answer;
  }
}
