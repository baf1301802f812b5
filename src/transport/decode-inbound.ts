// Reads what a transport receives as text. Separate from the interface, so that code that only names transports does not
// load the codec.

import { decode, DEFAULT_LIMITS, type Fault, type Limits } from "../jsonrpc/codec.ts";
import type { Inbound } from "./transport.ts";

/**
 * Reads one message or batch from a string, for `receive` of a transport. Input that is not valid becomes a fault: a
 * request gets its error response, and a response fails the request that it belongs to. Undefined if it is a response
 * whose request cannot be known.
 *
 * @example
 * socket.on("message", (data) => {
 *   const inbound = decodeInbound(String(data), gone.signal, send);
 *   if (inbound !== undefined) receive(inbound);
 * });
 */
export function decodeInbound(
  text: string,
  gone: AbortSignal,
  reply: Inbound["reply"],
  limits: Limits = DEFAULT_LIMITS,
): Inbound | undefined {
  const decoded = decode(text, limits);
  if (decoded.kind === "message") return { kind: "message", message: decoded.message, gone, reply };
  const isOfUse = ({ answerable, fault }: Fault): boolean => answerable || fault.id !== null;
  if (decoded.kind === "fault") {
    const { fault } = decoded;
    // With neither a result nor an error, and nothing of a request, it may be an empty response.
    const isEmpty = fault.id !== null && !/"(?:method|params)"/.test(text);
    const answerable = decoded.answerable && isEmpty ? undefined : decoded.answerable;
    return isOfUse(decoded) ? { kind: "fault", fault, answerable, gone, reply } : undefined;
  }
  const batch = decoded.items.filter((item) => !("fault" in item) || isOfUse(item));
  return batch.length === 0 ? undefined : { kind: "batch", batch, gone, reply };
}
