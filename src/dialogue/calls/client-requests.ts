// Questions put to a session-style caller in mid-call: each is a request of ours in the caller's revision,
// taken back when the call that asked has ended. No caller is asked what its revision or its capabilities
// do not know, and nothing goes out that has no JSON.

import { onAbort, ignoreRejection } from "../../core/async.ts";
import type { AskOptions, Caller } from "../../core/handler.ts";
import type { Params, Request, Result } from "../../core/handler.ts";
import { errorMessage } from "../../core/text.ts";
import { encode } from "../../jsonrpc/codec.ts";
import type { Message, ResponseMessage } from "../../jsonrpc/message.ts";
import { checkAsk } from "../../protocol/asks.ts";
import { McpError } from "../../protocol/errors.ts";
import type { Revision } from "../../protocol/revision.ts";
import { Pending, type Timeouts } from "./pending.ts";

/** A person may sit behind a question. */
const TIMEOUTS: Timeouts = { idleMs: 600_000, totalMs: 3_600_000 };

const NEVER_SENT = new Error("The question was never sent");

/** Whom to ask, and the way to them. */
export interface Asked {
  readonly caller: Caller;
  readonly revision: Revision;
  /** Aborted when the call that asks has ended, in one way or another; none where no call stands behind the question. */
  readonly signals?: readonly AbortSignal[];
  send(message: Message): void;
}

export class Questions {
  readonly #pending = new Pending("The caller");

  async ask(question: Request, asked: Asked, options: AskOptions | undefined): Promise<Result> {
    // Whoever writes JavaScript may leave the params out.
    const { method } = question;
    const given = question.params ?? {};
    const { revision, caller } = asked;
    if (!revision.asks.has(method)) {
      const message = `The caller's revision, ${revision.name}, has no ${method}`;
      throw McpError.of("missing_capability", message, { method, requiredCapabilities: {} });
    }
    checkAsk({ method, params: given }, caller.capabilities);
    const params = revision.lower.request(method, given);
    checkSayable(method, params);
    const signals = [...(asked.signals ?? []), ...(options?.signal === undefined ? [] : [options.signal])];
    for (const signal of signals) signal.throwIfAborted();
    const cancel = (reason: string): void =>
      asked.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id, reason } });
    const { id, answer } = this.#pending.open(method, TIMEOUTS, (error) => cancel(error.message));
    void ignoreRejection(answer);
    const forget = signals.map((signal) =>
      onAbort(signal, () => {
        if (this.#pending.fail(id, signal.reason as Error)) cancel("The call that asked has ended");
      }),
    );
    try {
      asked.send({ jsonrpc: "2.0", id, method, ...(Object.keys(params).length > 0 ? { params } : undefined) });
      return revision.lift.result(method, await answer);
    } finally {
      // One that could not go out gets no answer.
      this.#pending.fail(id, NEVER_SENT);
      for (const forgetOne of forget) forgetOne();
    }
  }

  /** False where nobody waits for this answer. */
  settle(message: ResponseMessage): boolean {
    return this.#pending.settle(message);
  }

  failAll(reason: Error): void {
    this.#pending.failAll(reason);
  }
}

/** Throws where the question has no JSON: whoever asks can mend that, a wire cannot. */
export function checkSayable(method: string, params: Params): void {
  try {
    encode({ jsonrpc: "2.0", id: 0, method, params });
  } catch (error) {
    throw McpError.of("internal_error", `The question ${method} cannot be sent: ${errorMessage(error)}`, { method });
  }
}
