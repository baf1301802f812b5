// Looks at both directions of a line and says of every message that the server sends whether the official schema
// of its revision allows it. The revision is the session's, or, for a request that stands by itself, the one that
// the request names. Errors with id null are not judged: the seeds and JSON-RPC ask for them, no schema has them.
// Where the official schemas are missing nothing is judged.

import { decode } from "../../src/jsonrpc/codec.ts";
import { idKey, isNotification, isRequest, isResponse } from "../../src/jsonrpc/message.ts";
import type { Message } from "../../src/jsonrpc/message.ts";
import { NEWEST, revisionNamed } from "../../src/protocol/revisions/index.ts";
import { specFound, validateMessage } from "../schema.ts";

const REVISION = "io.modelcontextprotocol/protocolVersion";
const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

interface Asked {
  readonly method: string;
  readonly revision: string;
}

export class Judge {
  readonly #revision: string;
  readonly #asked = new Map<string, Asked>();

  /** The revision that a session on this line speaks. */
  constructor(revision: string) {
    this.#revision = revision;
  }

  /** What the caller wrote, whatever it was. */
  sent(text: string): void {
    for (const message of messagesOf(text)) {
      if (!isRequest(message)) continue;
      const named = metaOf(message.params)[REVISION];
      // A request that names a revision stands by itself; whoever does not know the name answers in the newest.
      const alone = typeof named === "string" ? (revisionNamed(named) ?? NEWEST).name : undefined;
      const revision = alone ?? this.#revision;
      this.#asked.set(idKey(message.id), { method: message.method, revision });
    }
  }

  /** Everything that is wrong with a line of the server. */
  received(text: string): string[] {
    const decoded = decode(text);
    if (decoded.kind === "fault") return [`Not a message: ${JSON.stringify(decoded.fault.error)}`];
    return messagesOf(text).flatMap((message) => this.#judge(message));
  }

  #judge(message: Message): string[] {
    if (!specFound) return [];
    if (isRequest(message)) return validateMessage(this.#revision, "request", message.method, message);
    if (isNotification(message)) {
      const revision = SUBSCRIPTION in metaOf(message.params) ? NEWEST.name : this.#revision;
      return validateMessage(revision, "notification", message.method, message);
    }
    if (!isResponse(message) || message.id === null) return [];
    const asked = this.#asked.get(idKey(message.id));
    if (asked === undefined) {
      // The request was no message, but its id could be read.
      return "error" in message
        ? validateMessage(this.#revision, "error", "", message)
        : [`An answer to nothing: ${JSON.stringify(message)}`];
    }
    if ("error" in message) return validateMessage(asked.revision, "error", asked.method, message);
    // No revision has `shutdown`; its result is an empty one.
    const method = asked.method === "shutdown" ? "ping" : asked.method;
    return validateMessage(asked.revision, "result", method, message);
  }
}

function messagesOf(text: string): Message[] {
  const decoded = decode(text);
  if (decoded.kind === "message") return [decoded.message];
  if (decoded.kind === "batch") return decoded.items.flatMap((item) => ("message" in item ? [item.message] : []));
  return [];
}

function metaOf(params: { readonly [key: string]: unknown } | undefined): Record<string, unknown> {
  const meta = params?.["_meta"];
  return typeof meta === "object" && meta !== null ? (meta as Record<string, unknown>) : {};
}
