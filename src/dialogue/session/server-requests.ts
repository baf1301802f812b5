// What a session-style end asks in mid-call, and who is asked for it: the caller of the call on whose stream the question
// came; where the wire does not say, one of the calls under way, if they are all of one caller; and outside any call
// whoever listens. No question ever goes to a caller who might not be the one that is meant.

import type { Context } from "../../core/handler.ts";
import type { Request, Result } from "../../core/handler.ts";
import { idKey, type Id, type Message, type RequestMessage } from "../../jsonrpc/message.ts";
import { ASKABLE } from "../../protocol/asks.ts";
import { McpError, methodNotFound } from "../../protocol/errors.ts";
import type { Revision } from "../../protocol/revision.ts";
import type { Inbound } from "../../transport/transport.ts";
import { cancellation, errorBody } from "../calls/errors.ts";
import type { Origins } from "../calls/call-attribution.ts";
import type { SessionChanges } from "./subscriptions-back.ts";
import type { Asker, TaskBackDoor } from "./tasks-back.ts";
import type { VisitOwners } from "../calls/url-elicitation.ts";
import type { Outgoing, Wire } from "../calls/peer.ts";

/** What the back lends. */
export interface ServerRequestsHost {
  readonly wire: Wire;
  readonly home: Context;
  readonly changes: SessionChanges;
  readonly tasks: TaskBackDoor;
  readonly origins: Origins;
  readonly visits: VisitOwners;
  revision(): Revision;
}

export class ServerRequests {
  readonly #host: ServerRequestsHost;
  /** Those that are being answered. */
  readonly #asked = new Map<string, AbortController>();

  constructor(host: ServerRequestsHost) {
    this.#host = host;
  }

  /** The end no longer wants to know. */
  withdraw(id: Id, reason: unknown): void {
    this.#asked.get(idKey(id))?.abort(cancellation(reason, "the end"));
  }

  /** Never rejects. */
  async answer(message: RequestMessage, inbound: Inbound): Promise<void> {
    const { id, method } = message;
    const question: Request = { method, params: message.params ?? {} };
    const stop = new AbortController();
    this.#asked.set(idKey(id), stop);
    const task = this.#host.tasks.asker(question.params);
    const named = this.#host.wire.callNamed(inbound.about);
    const calls = task !== undefined ? [] : named === undefined ? this.#guesses() : [named];
    for (const call of calls) this.#host.wire.hold(call);
    const isFinal = (): boolean => named !== undefined || stop.signal.aborted || inbound.gone.aborted;
    const asking = async (): Promise<Result> => {
      if (!this.#host.revision().asks.has(method)) throw methodNotFound(method);
      const lifted: Request = { method, params: this.#host.revision().lift.request(method, question.params) };
      const asker = await task;
      const ask = (context: Asker): Promise<Result> => {
        this.#host.visits.asked(lifted.params, context.caller);
        return context.ask(lifted, { signal: stop.signal });
      };
      const answered = asker === undefined ? this.#askBy(calls, ask, isFinal) : ask(asker);
      return this.#host.revision().lower.result(method, await answered);
    };
    const answer = await asking().then(
      (result): Message => ({ jsonrpc: "2.0", id, result }),
      (error: unknown): Message => ({
        jsonrpc: "2.0",
        id,
        error: errorBody(refusal(error, method), question, this.#host.revision(), "mcp"),
      }),
    );
    this.#asked.delete(idKey(id));
    for (const call of calls) this.#host.wire.release(call);
    // An answer that could not be delivered is not followed by another.
    if (!stop.signal.aborted) await inbound.reply(answer).catch(() => undefined);
  }

  /**
   * Whose question it may be where the wire does not say: the calls that can be asked, the youngest last, if all that
   * has been under way lately is of one caller.
   */
  #guesses(): readonly Outgoing[] {
    return this.#host.origins.isOne
      ? [...this.#host.wire.calls.values()].filter(({ method }) => ASKABLE.has(method))
      : [];
  }

  /** A call that is answered before its caller has replied was not the one that asked: then by another, or by none. */
  async #askBy(
    calls: readonly Outgoing[],
    ask: (context: Asker) => Promise<Result>,
    isFinal: () => boolean,
  ): Promise<Result> {
    for (let left = calls; ;) {
      const call = left.at(-1);
      try {
        return await ask(call?.context ?? this.#outsideCalls());
      } catch (error) {
        // One that its caller has cancelled may have asked, and nobody wants to hear of it any more.
        const isAnswered = call !== undefined && !this.#host.wire.calls.has(call.id) && !call.context.signal.aborted;
        if (!isAnswered || isFinal()) throw error;
        left = left.filter(({ id }) => this.#host.wire.calls.has(id));
      }
    }
  }

  /** Who is asked where no call stands behind the question, or it is not clear which. */
  #outsideCalls(): Context {
    if (this.#host.origins.isOne && this.#host.changes.isOfOne) return this.#host.changes.listener() ?? this.#host.home;
    const why = "Calls of several callers share this end, and the wire does not say whom it asks";
    const message = `${why}; give each caller a session of its own`;
    throw McpError.of("missing_capability", message, { requiredCapabilities: {} });
  }
}

const INVALID_PARAMS = -32602;
const METHOD_NOT_FOUND = -32601;

/** What our caller cannot answer, in the words that the client pages of the specification ask for. */
function refusal(error: unknown, method: string): unknown {
  if (!(error instanceof McpError) || error.kind !== "missing_capability") return error;
  return new McpError(method === "elicitation/create" ? INVALID_PARAMS : METHOD_NOT_FOUND, error.message, error.data);
}
