// Reads what a transport receives as text. Separate from the interface, so that code that only names transports does not
// load the codec.

import { decode, DEFAULT_LIMITS, type Limits } from "../jsonrpc/codec.ts";
import type { Inbound } from "./transport.ts";

/**
 * Reads one message or batch from a string, for `receive` of a transport. Input that is not valid becomes a fault with
 * its error response; undefined if it must not be answered.
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
  if (decoded.kind === "fault") {
    return decoded.answerable ? { kind: "fault", fault: decoded.fault, gone, reply } : undefined;
  }
  const batch = decoded.items.filter((item) => !("fault" in item) || item.answerable);
  return batch.length === 0 ? undefined : { kind: "batch", batch, gone, reply };
}
