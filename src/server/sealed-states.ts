// The state of `inputRequired` in sealed form, bound to principal, method and arguments. Loaded on first use, since few
// servers need it.

import type { Context, Request } from "../core/handler.ts";
import { callDigest, Seal } from "../core/seal.ts";
import { checkClientRequest } from "../protocol/client-requests.ts";
import { invalidParams, McpError } from "../protocol/errors.ts";
import type { InputRequests, InputRequiredResult, InputResponses } from "../protocol/model/index.ts";

/** How long the client may take to answer. */
const STATE_TTL_MS = 600_000;
/** How long the answers of earlier rounds may be together, as JSON: the client sends them with each retry. */
const MAX_ANSWERS_LENGTH = 1_048_576;

/** The input of a call that follows `inputRequired`. */
export interface RetryInput {
  readonly answers: Partial<InputResponses>;
  readonly state: unknown;
}

/** The sealed content. `is` distinguishes it from other data sealed with the same key. */
export interface SealedState {
  readonly is: "state";
  readonly principal: string | undefined;
  readonly call: string;
  readonly state: unknown;
  /** The answers of earlier rounds, by key; absent if there are none. */
  readonly answers?: Partial<InputResponses>;
}

export class SealedStates {
  readonly #seal: Seal;

  constructor(sealKey: string | Uint8Array | undefined) {
    this.#seal = new Seal(sealKey);
  }

  /**
   * `input` has the answers that the handler has already had. Throws if the client lacks the capability for one of the
   * requests, or if the answers are too long.
   */
  seal(
    required: { readonly requests: InputRequests; readonly state: unknown },
    request: Request,
    context: Context,
    input: RetryInput,
  ): InputRequiredResult {
    // What is asked again gets a new answer; the other answers are final.
    const earlier = Object.entries(input.answers).filter(([key]) => !Object.hasOwn(required.requests, key));
    const answers = Object.fromEntries(earlier);
    for (const { method, params } of Object.values(required.requests)) {
      checkClientRequest({ method, params: params ?? {} }, context.caller.capabilities);
    }
    const sealed: SealedState = {
      is: "state",
      principal: context.caller.principal,
      call: callDigest(request),
      state: required.state,
      ...(Object.keys(answers).length > 0 && { answers }),
    };
    if (sealed.answers !== undefined && JSON.stringify(answers).length > MAX_ANSWERS_LENGTH) {
      const limit = `${MAX_ANSWERS_LENGTH} characters of JSON`;
      throw McpError.of("internal_error", `The answers of the rounds of inputRequired() are longer than ${limit}`);
    }
    return {
      resultType: "input_required",
      inputRequests: required.requests,
      requestState: this.#seal.seal(sealed, STATE_TTL_MS),
    };
  }

  open(token: unknown, request: Request, context: Context): Partial<SealedState> {
    const sealed: Partial<SealedState> | undefined = typeof token === "string" ? this.#seal.open(token) : undefined;
    if (sealed?.is !== "state") {
      throw invalidParams(
        "requestState was not issued by this server, was altered or has expired; call again without it",
      );
    }
    if (sealed.principal !== context.caller.principal || sealed.call !== callDigest(request)) {
      throw invalidParams("requestState belongs to another call; a retry repeats the same method and arguments");
    }
    return sealed;
  }
}
