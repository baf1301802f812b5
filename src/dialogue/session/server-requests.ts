// Requests that a session-style server makes during calls (elicitation, sampling, roots), and which client answers them:
// the caller of the call on whose stream the request came; if the transport does not say, one of the calls in flight,
// provided that they are all of one client; and outside any call a subscriber. A request never goes to a client that it
// may not be meant for.

import type { Context } from "../../core/handler.ts";
import type { Request, Result } from "../../core/handler.ts";
import { idKey, type Id, type Message, type RequestMessage } from "../../jsonrpc/message.ts";
import { INPUT_METHODS } from "../../protocol/client-requests.ts";
import { McpError, methodNotFound } from "../../protocol/errors.ts";
import type { Revision } from "../../protocol/revision.ts";
import type { Inbound } from "../../transport/transport.ts";
import { cancellationError, toErrorBody } from "../calls/errors.ts";
import type { CallAttribution } from "../calls/call-attribution.ts";
import type { ServerSubscriptions } from "./subscriptions-back.ts";
import type { AskTarget } from "./server-tasks.ts";
import type { TasksBack } from "./tasks-back.ts";
import type { UrlElicitationOwners } from "../calls/url-elicitation.ts";
import type { OutgoingCall, Peer } from "../calls/peer.ts";

/** What the session's back provides. */
export interface ServerRequestsHost {
  readonly peer: Peer;
  readonly defaultContext: Context;
  readonly subscriptions: ServerSubscriptions;
  readonly tasks: TasksBack;
  readonly attribution: CallAttribution;
  readonly urlElicitations: UrlElicitationOwners;
  revision(): Revision;
}

export class ServerRequests {
  readonly #host: ServerRequestsHost;
  /** The requests being answered, by id. */
  readonly #inFlight = new Map<string, AbortController>();

  constructor(host: ServerRequestsHost) {
    this.#host = host;
  }

  /** The server has cancelled its request. */
  cancel(id: Id, reason: unknown): void {
    this.#inFlight.get(idKey(id))?.abort(cancellationError(reason, "the server"));
  }

  /** Never rejects. */
  async answer(message: RequestMessage, inbound: Inbound): Promise<void> {
    const { id, method } = message;
    const request: Request = { method, params: message.params ?? {} };
    const stop = new AbortController();
    this.#inFlight.set(idKey(id), stop);
    const task = this.#host.tasks.askTarget(request.params);
    const named = this.#host.peer.findCall(inbound.about);
    const calls = task !== undefined ? [] : named === undefined ? this.#candidates() : [named];
    for (const call of calls) this.#host.peer.hold(call);
    const isFinal = (): boolean => named !== undefined || stop.signal.aborted || inbound.gone.aborted;
    const run = async (): Promise<Result> => {
      if (!this.#host.revision().clientRequests.has(method)) throw methodNotFound(method);
      const lifted: Request = { method, params: this.#host.revision().lift.request(method, request.params) };
      const target = await task;
      const ask = (context: AskTarget): Promise<Result> => {
        this.#host.urlElicitations.asked(lifted.params, context.caller);
        return context.ask(lifted, { signal: stop.signal });
      };
      const answered = target === undefined ? this.#askOneOf(calls, ask, isFinal) : ask(target);
      return this.#host.revision().lower.result(method, await answered);
    };
    const answer = await run().then(
      (result): Message => ({ jsonrpc: "2.0", id, result }),
      (error: unknown): Message => ({
        jsonrpc: "2.0",
        id,
        error: toErrorBody(asRefusal(error, method), request, this.#host.revision(), "mcp"),
      }),
    );
    this.#inFlight.delete(idKey(id));
    for (const call of calls) this.#host.peer.release(call);
    if (!stop.signal.aborted) await inbound.reply(answer).catch(() => undefined);
  }

  /** The calls that may have caused a request, newest last; none unless all recent calls are of one client. */
  #candidates(): readonly OutgoingCall[] {
    return this.#host.attribution.isUnambiguous
      ? [...this.#host.peer.calls.values()].filter(({ method }) => INPUT_METHODS.has(method))
      : [];
  }

  /** A call that is answered before its client has replied did not make the request: the next candidate is asked. */
  async #askOneOf(
    calls: readonly OutgoingCall[],
    ask: (context: AskTarget) => Promise<Result>,
    isFinal: () => boolean,
  ): Promise<Result> {
    for (let left = calls; ;) {
      const call = left.at(-1);
      try {
        return await ask(call?.context ?? this.#outsideCalls());
      } catch (error) {
        // A call that its client cancelled may have made the request; then the answer no longer matters.
        const isAnswered = call !== undefined && !this.#host.peer.calls.has(call.id) && !call.context.signal.aborted;
        if (!isAnswered || isFinal()) throw error;
        left = left.filter(({ id }) => this.#host.peer.calls.has(id));
      }
    }
  }

  /** Who is asked if no call made the request, or it is unclear which. */
  #outsideCalls(): Context {
    const { attribution, subscriptions, defaultContext } = this.#host;
    if (attribution.isUnambiguous && subscriptions.isUnambiguous)
      return subscriptions.askableContext() ?? defaultContext;
    const why = "Several clients share this connection, and the server's request does not say which of them it is for";
    const message = `${why}; give each client a session of its own`;
    throw McpError.of("missing_capability", message, { requiredCapabilities: {} });
  }
}

const INVALID_PARAMS = -32602;
const METHOD_NOT_FOUND = -32601;

/** A missing capability, with the code that the client pages of the specification require. */
function asRefusal(error: unknown, method: string): unknown {
  if (!(error instanceof McpError) || error.kind !== "missing_capability") return error;
  return new McpError(method === "elicitation/create" ? INVALID_PARAMS : METHOD_NOT_FOUND, error.message, error.data);
}
