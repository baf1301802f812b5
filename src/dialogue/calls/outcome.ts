// A request, answered: whatever a front made of it, as the response that goes out. One place, because a result that is
// no object and an error that nobody meant for the wire are the same on every wire.

import type { ErrorBody, RequestMessage, ResponseMessage } from "../../jsonrpc/message.ts";
import { isObject } from "../../core/objects.ts";
import { McpError } from "../../protocol/errors.ts";
import type { Inbound } from "../../transport/transport.ts";
import type { Flight } from "./in-flight.ts";

/** Our side toward callers of one style. */
export interface Front {
  answer(message: RequestMessage, inbound: Inbound, flight: Flight): Promise<{ readonly [key: string]: unknown }>;
  fault(error: unknown, message: RequestMessage): ErrorBody;
}

/** Why a question is taken back that its own call no longer waits for. */
export const ANSWERED = "The call has been answered: nobody can be asked on its behalf any more";

/** How long aborted work may take to say so before its wire is closed over it. */
export const SETTLE_MS = 250;

export async function outcomeOf(
  front: Front,
  message: RequestMessage,
  inbound: Inbound,
  flight: Flight,
): Promise<ResponseMessage> {
  const { id, method } = message;
  try {
    const result: unknown = await front.answer(message, inbound, flight);
    if (!isObject(result)) throw McpError.of("internal_error", `The handler's result of ${method} is no object`);
    return { jsonrpc: "2.0", id, result };
  } catch (error) {
    return { jsonrpc: "2.0", id, error: front.fault(error, message) };
  } finally {
    flight.done = true;
    flight.stop.release();
    flight.asking?.abort(new Error(ANSWERED));
  }
}
