// `inputRequired(requests, state)`: a handler asks the client for input and keeps nothing in memory. The client keeps
// the state in sealed form, bound to principal, method and arguments, and calls again with the state and its answers.
// `context.ask`, which waits in memory instead, is in call-context.ts.

import type { Context, Meta, Request } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { invalidParams } from "../protocol/errors.ts";
import type { InputRequests, InputRequiredResult, InputResponses } from "../protocol/model/index.ts";
import type { RetryInput, SealedStates } from "./sealed-states.ts";

/** The value that `inputRequired` returns. */
export class InputRequired {
  /** The requests to the client, by key. */
  readonly requests: InputRequests;
  /** What the handler gets back with the answers. */
  readonly state: unknown;

  constructor(requests: InputRequests, state: unknown) {
    this.requests = requests;
    this.state = state;
  }
}

/**
 * Return this from a handler to be called again with the client's answers. You choose the keys of the requests; the
 * answers are in `context.answers` under the same keys, with those of earlier rounds, and the state is in
 * `context.state`. The state must be JSON. The client keeps both in sealed form, so the server stores nothing between
 * the calls.
 *
 * @example
 * server.tool("where", {}, (_args, { answers }) => {
 *   return answers["roots"] ?? inputRequired({ roots: { method: "roots/list" } });
 * });
 */
export function inputRequired(requests: InputRequests, state?: unknown): InputRequired {
  return new InputRequired(requests, state);
}

/** The input of a call that follows nothing. */
export const NO_INPUT: RetryInput = Object.freeze({ answers: Object.freeze({}), state: undefined });

/** Writes `input_required` results and reads the retries that follow them. */
export class InputRequiredCodec {
  readonly #meta: Meta;
  readonly #sealKey: string | Uint8Array | undefined;
  #states: Promise<SealedStates> | undefined;

  constructor(meta: Meta, sealKey: string | Uint8Array | undefined) {
    this.#meta = meta;
    this.#sealKey = sealKey;
  }

  /** `answers` of the input are those that the handler has already had. */
  async encode(
    required: InputRequired,
    request: Request,
    context: Context,
    input: RetryInput,
  ): Promise<InputRequiredResult> {
    const states = await this.#load();
    return { ...states.seal(required, request, context, input), _meta: this.#meta };
  }

  /** Throws an `invalid_params` error if the state is invalid or from another call, or if the answers are malformed. */
  async decode(request: Request, context: Context): Promise<RetryInput> {
    const { requestState, inputResponses } = request.params;
    if (inputResponses !== undefined && !isAnswers(inputResponses)) {
      throw invalidParams("inputResponses must be an object whose values are objects");
    }
    const answers = inputResponses ?? NO_INPUT.answers;
    if (requestState === undefined) return { answers, state: undefined };
    const { state, answers: earlier } = (await this.#load()).open(requestState, request, context);
    return { answers: earlier === undefined ? answers : { ...answers, ...earlier }, state };
  }

  #load(): Promise<SealedStates> {
    this.#states ??= import("./sealed-states.ts").then(({ SealedStates }) => new SealedStates(this.#sealKey));
    return this.#states;
  }
}

function isAnswers(value: unknown): value is InputResponses {
  return isObject(value) && Object.values(value).every(isObject);
}
