// Says of every message on a wire whether the official schema of its revision allows it, and allows it to the side
// that sent it: a request or notification by its method, a result by the request that it answers, and what is asked
// and answered inside the messages of an exchange likewise. The revision is the session's, or, for a request that
// stands by itself, the one that it names. Errors with id null are not judged: the seeds and JSON-RPC ask for
// them, no schema has them. Where the official schemas are missing it says once that nothing is judged.

import { idKey, isNotification, isRequest, isResponse } from "../../../src/jsonrpc/message.ts";
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
  /** By the side that asked. */
  readonly #asked: Readonly<Record<Side, Map<string, PendingRequest>>> = { client: new Map(), server: new Map() };
  /** What an end asked inside a result, by the state that comes back with the answers. */
  readonly #rounds = new Map<unknown, Json>();

  /** The revision that a session on this wire speaks; `closed` allows no field that the revision has no name for. */
  constructor(revision: string, options: { readonly closed?: boolean } = {}) {
    this.#revision = revision;
    this.#closed = options.closed === true;
  }

  /** Only notes what is asked, for what may be wrong on purpose. */
  observe(from: Side, message: Message): void {
    if (!isRequest(message)) return;
    const named = metaOf(message.params)[REVISION];
    // A request that names a revision stands by itself; whoever does not know the name answers in the newest.
    const alone = typeof named === "string" ? (revisionNamed(named) ?? NEWEST).name : undefined;
    this.#asked[from].set(idKey(message.id), { method: message.method, revision: alone ?? this.#revision });
  }

  /** Everything that is wrong with a message of this side. */
  validate(from: Side, message: Message): string[] {
    this.observe(from, message);
    if (!hasSpec("every message on a wire is valid in its revision")) return [];
    const options = { from, closed: this.#closed };
    if (isRequest(message)) {
      const revision = this.#asked[from].get(idKey(message.id))?.revision ?? this.#revision;
      return [...validateMessage(revision, "request", message.method, message, options), ...this.#answers(message)];
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
    const asked = this.#asked[from === "client" ? "server" : "client"].get(idKey(id));
    if ("error" in message) {
      // Without a request to it, the request was no message, but its id could be read.
      return validateMessage(asked?.revision ?? this.#revision, "error", asked?.method ?? "", message);
    }
    if (asked === undefined) return [`An answer to nothing: ${JSON.stringify(message)}`];
    const { resultType, requestState, inputRequests } = message.result;
    if (resultType === "input_required") this.#rounds.set(requestState, (inputRequests ?? {}) as Json);
    // No revision has `shutdown`; its result is an empty one.
    const method = asked.method === "shutdown" ? "ping" : asked.method;
    return validateMessage(asked.revision, "result", method, message, { closed: this.#closed });
  }

  /** The schema allows any answer to any question; each must be one to its own. */
  #answers({ params }: RequestMessage): string[] {
    if (params?.["inputResponses"] === undefined || params["requestState"] === undefined) return [];
    const questions = this.#rounds.get(params["requestState"]);
    if (questions === undefined) return ["Answers with a state that no result has given"];
    return Object.entries(params["inputResponses"] as Json).flatMap(([key, answer]) => {
      const question = questions[key] as { readonly method: string } | undefined;
      if (question === undefined) return [`An answer to ${key}, which was not asked`];
      return validateResult(NEWEST.name, question.method, answer, { closed: this.#closed });
    });
  }
}

function metaOf(params: Json | undefined): Json {
  const meta = params?.["_meta"];
  return typeof meta === "object" && meta !== null ? (meta as Json) : {};
}
