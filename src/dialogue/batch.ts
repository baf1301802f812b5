// Several messages in one array, in the revision that has them: each is taken as if it had come alone, and the
// answers go out together, in the order of the requests, when the last of them is there. Everything that is no
// answer goes out as it comes.

import { errorMessage } from "../core/text.ts";
import { encode } from "../jsonrpc/codec.ts";
import { isRequest, isResponse, type Message, type ResponseMessage } from "../jsonrpc/message.ts";
import { McpError } from "../protocol/errors.ts";
import type { BatchItem, Inbound } from "../transport/transport.ts";
import { isStateless } from "./stateless/front.ts";

export async function takeBatch(
  items: readonly BatchItem[],
  inbound: Inbound,
  take: (message: Message, inbound: Inbound) => Promise<void> | undefined,
  respond: (response: ResponseMessage) => Promise<void>,
): Promise<void> {
  const answers = new Map<number, ResponseMessage>();
  const work = items.map(async (item, index) => {
    if ("fault" in item) {
      answers.set(index, item.fault);
      return;
    }
    const { message } = item;
    if (isRequest(message) && (message.method === "initialize" || isStateless(message))) {
      const details = `${message.method} cannot be part of a batch`;
      const error = McpError.of("invalid_request", "Invalid Request", { details }).toBody();
      answers.set(index, { jsonrpc: "2.0", id: message.id, error });
      return;
    }
    const reply: Inbound["reply"] = async (sent, how) => {
      if (!Array.isArray(sent) && isResponse(sent as Message)) answers.set(index, writable(sent as ResponseMessage));
      else await inbound.reply(sent, how);
    };
    // One of them may be cancelled alone; the others still have their answers to come.
    const { caller, gone } = inbound;
    await take(message, { kind: "message", message, ...(caller && { caller }), gone, reply });
  });
  await Promise.all(work);
  const ordered = [...answers].toSorted(([a], [b]) => a - b).map(([, answer]) => answer);
  if (ordered.length === 0) {
    inbound.drop?.();
    return;
  }
  try {
    await inbound.reply(ordered, { last: true });
  } catch {
    // Together they may be too long: then each goes alone, and the one that is too long by itself is said to be so.
    for (const answer of ordered) await respond(answer);
  }
}

/** What is said instead of an answer that cannot be sent. */
export function unsendable({ id }: ResponseMessage, error: unknown): ResponseMessage {
  const refusal = McpError.of("internal_error", `The answer cannot be sent: ${errorMessage(error)}`);
  return { jsonrpc: "2.0", id, error: refusal.toBody() };
}

/** One answer that has no JSON must not cost a batch all the others. */
function writable(response: ResponseMessage): ResponseMessage {
  try {
    encode(response);
    return response;
  } catch (error) {
    return unsendable(response, error);
  }
}
