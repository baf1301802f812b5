// What a transport received, with the fields of every kind, for tests that look at all of them.

import type { Message } from "../../../src/jsonrpc/message.ts";
import type { BatchItem, FaultItem, Inbound } from "../../../src/transport/transport.ts";

export interface SeenInbound extends Partial<FaultItem> {
  readonly kind: Inbound["kind"];
  readonly message?: Message;
  readonly items?: readonly BatchItem[];
  readonly error?: Error;
}

/** The message, if it is one. */
export function messageOf(inbound: Inbound): Message | undefined {
  return inbound.kind === "message" ? inbound.message : undefined;
}
