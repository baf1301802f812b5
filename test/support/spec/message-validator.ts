// Validates the messages of a connection with the official schema of their revision, and checks that the side may send
// them: requests and notifications by their method, results by their request, and likewise the requests to the client
// inside `input_required` results. Errors with id null are accepted, since no schema has them. Without the official
// schemas, a warning is printed and nothing is validated.

import { type IdKey, idKey, isNotification, isRequest, isResponse } from "../../../src/jsonrpc/message.ts";
import type { Message, RequestMessage, ResponseMessage } from "../../../src/jsonrpc/message.ts";
import { NEWEST, revisionNamed } from "../../../src/protocol/revisions/index.ts";
import { hasSpec, validateMessage, validateResult } from "./official-schema.ts";
import type { Side } from "./official-schema.ts";

const REVISION = "io.modelcontextprotocol/protocolVersion";
const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";

interface PendingRequest {
  readonly method: string;
  readonly revision: string;
}

type Json = Readonly<Record<string, unknown>>;

export class MessageValidator {
  readonly #revision: string;
  readonly #closed: boolean;
  /** By the side that sent the request. */
  readonly #pending: Readonly<Record<Side, Map<IdKey, PendingRequest>>> = { client: new Map(), server: new Map() };
  /** The input requests of results, by their `requestState`. */
  readonly #inputRequests = new Map<unknown, Json>();

  /** `revision` is that of a session on this connection; `closed` rejects fields that the revision does not define. */
  constructor(revision: string, options: { readonly closed?: boolean } = {}) {
    this.#revision = revision;
    this.#closed = options.closed === true;
  }

  /** Records requests without validating them, since a test may send invalid ones. */
  observe(from: Side, message: Message): void {
    if (!isRequest(message)) return;
    const named = metaOf(message.params)[REVISION];
    // A request that names a revision is stateless. An unknown revision is answered in the newest.
    const stateless = typeof named === "string" ? (revisionNamed(named) ?? NEWEST).name : undefined;
    this.#pending[from].set(idKey(message.id), { method: message.method, revision: stateless ?? this.#revision });
  }

  /** The problems of a message of this side. */
  validate(from: Side, message: Message): string[] {
    this.observe(from, message);
    if (!hasSpec("each message is valid in its revision")) return [];
    const options = { from, closed: this.#closed };
    if (isRequest(message)) {
      const revision = this.#pending[from].get(idKey(message.id))?.revision ?? this.#revision;
      return [
        ...validateMessage(revision, "request", message.method, message, options),
        ...this.#inputResponses(message),
      ];
    }
    if (isNotification(message)) {
      const revision = SUBSCRIPTION in metaOf(message.params) ? NEWEST.name : this.#revision;
      return validateMessage(revision, "notification", message.method, message, options);
    }
    return isResponse(message) ? this.#response(from, message) : [];
  }

  #response(from: Side, message: ResponseMessage): string[] {
    const { id } = message;
    if (id === null) return [];
    const pending = this.#pending[from === "client" ? "server" : "client"].get(idKey(id));
    if ("error" in message) {
      // Without a pending request, the request was invalid, but its id could be read.
      return validateMessage(pending?.revision ?? this.#revision, "error", pending?.method ?? "", message);
    }
    if (pending === undefined) return [`A response without a request: ${JSON.stringify(message)}`];
    const { resultType, requestState, inputRequests } = message.result;
    if (resultType === "input_required") this.#inputRequests.set(requestState, (inputRequests ?? {}) as Json);
    // No revision defines `shutdown`; its result is empty.
    const method = pending.method === "shutdown" ? "ping" : pending.method;
    return validateMessage(pending.revision, "result", method, message, { closed: this.#closed });
  }

  /** The schema allows any result for any input request; each must be valid for its own. */
  #inputResponses({ params }: RequestMessage): string[] {
    if (params?.["inputResponses"] === undefined || params["requestState"] === undefined) return [];
    const inputRequests = this.#inputRequests.get(params["requestState"]);
    if (inputRequests === undefined) return ["Input responses with an unknown requestState"];
    return Object.entries(params["inputResponses"] as Json).flatMap(([key, response]) => {
      const inputRequest = inputRequests[key] as { readonly method: string } | undefined;
      if (inputRequest === undefined) return [`An input response to ${key}, which was not requested`];
      return validateResult(NEWEST.name, inputRequest.method, response, { closed: this.#closed });
    });
  }
}

function metaOf(params: Json | undefined): Json {
  const meta = params?.["_meta"];
  return typeof meta === "object" && meta !== null ? (meta as Json) : {};
}
