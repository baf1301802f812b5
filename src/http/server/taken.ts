// What one POST brought, once its body has been read: a message, or several in an array.

import { isRequest, type Message } from "../../jsonrpc/message.ts";
import type { BatchItem, Inbound } from "../../transport/transport.ts";

export type Taken =
  | { readonly kind: "message"; readonly message: Message }
  | { readonly kind: "batch"; readonly items: readonly BatchItem[] };

/** Whether anything in it wants an answer. */
export function wantsAnswer(taken: Taken): boolean {
  if (taken.kind === "message") return isRequest(taken.message);
  return taken.items.some((item) => "fault" in item || isRequest(item.message));
}

/** As a connection takes it. */
export function inboundOf(taken: Taken): Pick<Inbound, "kind" | "message" | "batch"> {
  return taken.kind === "message" ? taken : { kind: "batch", batch: taken.items };
}

/** The way back of what is still waited for. */
export const NEVER_GONE: AbortSignal = new AbortController().signal;
