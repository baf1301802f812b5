// `inputRequired(requests, state)`: a handler asks the client for input and keeps nothing in memory. The client keeps
// the state in sealed form, bound to principal, method and arguments, and calls again with the state and its answers.
// `context.ask`, which waits in memory instead, is in call-context.ts.

import type { Context, Meta, Request, Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { createSeal, digest, type Seal } from "../core/seal.ts";
import { checkClientRequest } from "../protocol/client-requests.ts";
import { invalidParams, McpError } from "../protocol/errors.ts";
import type { InputRequests, InputResponses } from "../protocol/model/index.ts";
import type { RetryInput } from "./call-context.ts";

/** How long the client may take to answer. */
const STATE_TTL_MS = 600_000;
/** How long the answers of earlier rounds may be together, as JSON: the client sends them with each retry. */
const MAX_ANSWERS_LENGTH = 1_048_576;

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

/** The sealed content. `is` distinguishes it from other data sealed with the same key. */
interface SealedState {
  readonly is: "state";
  readonly principal: string | undefined;
  readonly call: string;
  readonly state: unknown;
  /** The answers of earlier rounds, by key; absent if there are none. */
  readonly answers?: Partial<InputResponses>;
}

const FIRST_CALL: RetryInput = Object.freeze({ answers: Object.freeze({}), state: undefined });

/** Writes `input_required` results and reads the retries that follow them. */
export class InputRequiredCodec {
  readonly #meta: Meta;
  readonly #sealKey: string | Uint8Array | undefined;
  #seal: Seal | undefined;

  constructor(meta: Meta, sealKey: string | Uint8Array | undefined) {
    this.#meta = meta;
    this.#sealKey = sealKey;
  }

  /**
   * `answers` are those that the handler has already had. Throws if the client lacks the capability for one of the
   * requests, or if the answers are too long.
   */
  async encode(required: InputRequired, request: Request, context: Context, input: RetryInput): Promise<Result> {
    // What is asked again gets a new answer; the other answers are final.
    const kept = Object.entries(input.answers).filter(([key]) => !Object.hasOwn(required.requests, key));
    const answers = Object.fromEntries(kept);
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
      requestState: this.#getSeal().seal(sealed, STATE_TTL_MS),
      _meta: this.#meta,
    };
  }

  /** Throws an `invalid_params` error if the state is invalid or from another call, or if the answers are malformed. */
  decode(request: Request, context: Context): RetryInput | Promise<RetryInput> {
    const { requestState, inputResponses } = request.params;
    if (requestState === undefined && inputResponses === undefined) return FIRST_CALL;
    if (inputResponses !== undefined && !isAnswers(inputResponses)) {
      throw invalidParams("inputResponses must be an object whose values are objects");
    }
    const answers = inputResponses ?? FIRST_CALL.answers;
    if (requestState === undefined) return { answers, state: undefined };
    return this.#open(requestState, request, context).then(({ state, answers: earlier }) => ({
      answers: earlier === undefined ? answers : { ...answers, ...earlier },
      state,
    }));
  }

  /** Created on first use, since few servers need it. */
  #getSeal(): Seal {
    return (this.#seal ??= createSeal(this.#sealKey));
  }

  async #open(token: unknown, request: Request, context: Context): Promise<Partial<SealedState>> {
    const seal = this.#getSeal();
    const sealed: Partial<SealedState> | undefined = typeof token === "string" ? seal.open(token) : undefined;
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

function isAnswers(value: unknown): value is InputResponses {
  return isObject(value) && Object.values(value).every(isObject);
}

/** Ignores the fields in which a retry differs from the first call. */
function callDigest({ method, params }: Request): string {
  const { _meta, inputResponses: _answers, requestState: _state, ...rest } = params;
  return digest([method, rest]);
}
