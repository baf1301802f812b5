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
 *   const inbound = decodeInbound(String(data));
 *   if (inbound !== undefined) receive(inbound);
 * });
 */
export function decodeInbound(text: string, limits: Limits = DEFAULT_LIMITS): Inbound | undefined {
  const decoded = decode(text, limits);
  if (decoded.kind === "message") return decoded;
  if (decoded.kind === "fault") {
    if (!isOfUse(decoded)) return undefined;
    // With neither a result nor an error, and nothing of a request, it may be an empty response.
    const isEmpty = decoded.fault.id !== null && !/"(?:method|params)"/.test(text);
    return decoded.answerable && isEmpty ? { kind: "fault", fault: decoded.fault } : decoded;
  }
  const items = decoded.items.filter((item) => !("fault" in item) || isOfUse(item));
  return items.length === 0 ? undefined : { kind: "batch", items };
}

function isOfUse({ answerable, fault }: Fault): boolean {
  return answerable || fault.id !== null;
}
