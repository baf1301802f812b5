// Requests to a session-style client during a call (elicitation, sampling, roots), in the client's revision. They are
// cancelled when the call that made them ends. Only what the client's revision and capabilities allow is sent.

import { onAbort, ignoreRejection } from "../../core/async.ts";
import type { AskOptions, Caller, Params, Request, Result } from "../../core/handler.ts";
import { errorMessage } from "../../core/values.ts";
import { encode } from "../../jsonrpc/codec.ts";
import type { Message, ResponseMessage } from "../../jsonrpc/message.ts";
import { checkClientRequest } from "../../protocol/client-requests.ts";
import { McpError } from "../../protocol/errors.ts";
import type { Revision } from "../../protocol/revision.ts";
import { PendingCalls, type Timeouts } from "./pending.ts";

/** Generous, since a person may have to answer. */
const TIMEOUTS: Timeouts = { idleMs: 600_000, totalMs: 3_600_000 };

const NEVER_SENT = new Error("The request was never sent");

/** The client to ask, and how to reach it. */
export interface ClientRequestTarget {
  readonly caller: Caller;
  readonly revision: Revision;
  /** Aborted when the call that asks has ended; absent for requests outside any call. */
  readonly signals?: readonly AbortSignal[];
  send(message: Message): void;
}

export class ClientRequests {
  readonly #pending = new PendingCalls("The client");

  async ask(request: Request, target: ClientRequestTarget, options: AskOptions | undefined): Promise<Result> {
    const { method } = request;
    // Untyped code may leave the params out.
    const given = request.params ?? {};
    const { revision, caller } = target;
    if (!revision.clientRequests.has(method)) {
      const message = `The client's revision, ${revision.name}, has no ${method}`;
      throw McpError.of("missing_capability", message, { method, requiredCapabilities: {} });
    }
    checkClientRequest({ method, params: given }, caller.capabilities);
    const params = revision.lower.request(method, given);
    checkEncodable(method, params);
    const signals = [...(target.signals ?? []), ...(options?.signal === undefined ? [] : [options.signal])];
    for (const signal of signals) signal.throwIfAborted();
    const cancel = (reason: string): void =>
      target.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id, reason } });
    const { id, answer } = this.#pending.open(method, TIMEOUTS, (error) => cancel(error.message));
    void ignoreRejection(answer);
    const forget = signals.map((signal) =>
      onAbort(signal, () => {
        if (this.#pending.fail(id, signal.reason as Error)) cancel("The call that asked has ended");
      }),
    );
    try {
      target.send({ jsonrpc: "2.0", id, method, ...(Object.keys(params).length > 0 ? { params } : undefined) });
      return revision.lift.result(method, await answer);
    } finally {
      // Still pending only if `send` threw.
      this.#pending.fail(id, NEVER_SENT);
      for (const forgetOne of forget) forgetOne();
    }
  }

  /** Returns false if no request waits for this response. */
  settle(message: ResponseMessage): boolean {
    return this.#pending.settle(message);
  }

  failAll(reason: Error): void {
    this.#pending.failAll(reason);
  }
}

/** Throws if a request to the client has no JSON form, so that the code which makes it gets the error. */
export function checkEncodable(method: string, params: Params): void {
  try {
    encode({ jsonrpc: "2.0", id: 0, method, params });
  } catch (error) {
    throw McpError.of("internal_error", `The request ${method} cannot be sent: ${errorMessage(error)}`, { method });
  }
}
