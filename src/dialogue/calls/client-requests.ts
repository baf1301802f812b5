// Sends requests to a session-style client during a call (elicitation, sampling, roots), in the client's revision. They
// are cancelled when the call ends. A request that the client's revision or capabilities do not allow is not sent.

import { onAbort, ignoreRejection } from "../../core/async.ts";
import type { AskOptions, Caller, Request, Result } from "../../core/handler.ts";
import { errorMessage } from "../../core/values.ts";
import type { ResponseMessage } from "../../jsonrpc/message.ts";
import { checkClientRequest } from "../../protocol/client-requests.ts";
import { McpError } from "../../protocol/errors.ts";
import type { Revision } from "../../protocol/revision.ts";
import { isVendorMethod } from "../../protocol/revisions/index.ts";
import type { Carrier } from "../../transport/carrier.ts";
import { checkEncodable } from "./errors.ts";
import { PendingCalls, type Timeouts } from "./pending-calls.ts";

/** Generous, since a person may have to answer. */
const TIMEOUTS: Timeouts = { idleMs: 600_000, totalMs: 3_600_000 };

const NEVER_SENT = new Error("The request was never sent");

export interface ClientRequestTarget {
  readonly caller: Caller;
  readonly revision: Revision;
  /** One of these is aborted when the call that makes the request ends. Absent for requests outside any call. */
  readonly signals?: readonly AbortSignal[];
  readonly carrier: Pick<Carrier, "send" | "received">;
}

export class ClientRequests {
  readonly #pending = new PendingCalls("The client");
  /** Carriers that want the answers, by the id of the request. */
  readonly #watching = new Map<number, Pick<Carrier, "received">>();

  async ask(request: Request, target: ClientRequestTarget, options: AskOptions | undefined): Promise<Result> {
    const { method } = request;
    // Untyped code may leave the params out.
    const modelParams = request.params ?? {};
    const { revision, caller } = target;
    const isVendor = isVendorMethod(method);
    if (!revision.clientRequests.has(method) && !isVendor) {
      const message = `The client's revision, ${revision.name}, has no ${method}`;
      throw McpError.of("missing_capability", message, { method, requiredCapabilities: {} });
    }
    if (!isVendor) checkClientRequest({ method, params: modelParams }, caller.capabilities);
    const params = revision.lower.request(method, modelParams);
    checkEncodable(method, params);
    const signals = [...(target.signals ?? []), ...(options?.signal === undefined ? [] : [options.signal])];
    for (const signal of signals) signal.throwIfAborted();
    const call = this.#pending.openWith(method, TIMEOUTS);
    const { id, answer } = call;
    const cancel = (reason: unknown): void => {
      const params = { requestId: id, reason: errorMessage(reason) };
      if (this.#pending.closed.aborted) return;
      target.carrier.send({ jsonrpc: "2.0", method: "notifications/cancelled", params });
    };
    call.onStop = cancel;
    void ignoreRejection(answer);
    const forget = signals.map((signal) =>
      onAbort(signal, () => call.stop(signal.reason, "The call that sent this request has ended")),
    );
    if (target.carrier.received !== undefined) this.#watching.set(id, target.carrier);
    try {
      target.carrier.send({ jsonrpc: "2.0", id, method, ...(Object.keys(params).length > 0 ? { params } : undefined) });
      return revision.lift.result(method, await answer);
    } finally {
      // At this point the request is still pending only if `send` threw.
      call.fail(NEVER_SENT);
      this.#watching.delete(id);
      for (const forgetOne of forget) forgetOne();
    }
  }

  /** Returns false if no request waits for this response. */
  settle(message: ResponseMessage): boolean {
    const call = this.#pending.find(message);
    if (call !== undefined) this.#watching.get(call.id)?.received?.(message);
    call?.settle(message);
    return call !== undefined;
  }

  failAll(reason: Error): void {
    this.#pending.close(reason);
  }
}
