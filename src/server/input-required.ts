// Rounds without memory: a handler that needs something of its caller, and wants to hold nothing until the
// answer comes, returns `inputRequired(questions, state)`. The state travels with the caller, sealed, and is
// bound to the principal, the method and the arguments; the retry is a new run that finds both the answers
// and the state in its context. What waits in memory instead (`context.ask`) is not made here.

import type { Context, Request, Result } from "../core/handler.ts";
import type { Seal } from "../core/seal.ts";
import { isObject } from "../core/objects.ts";
import { invalidParams } from "../protocol/errors.ts";
import type { InputRequests, InputResponses } from "../protocol/model/index.ts";
import type { Brought } from "./call-context.ts";
import type { Frame } from "./result-builder.ts";

/** How long a caller may take over its answers. */
const STATE_TTL_MS = 600_000;

/** What a handler returns that wants to be called again with answers. */
export class InputRequired {
  readonly requests: InputRequests;
  readonly state: unknown;

  constructor(requests: InputRequests, state: unknown) {
    this.requests = requests;
    this.state = state;
  }
}

/**
 * What a handler returns to be called again with answers, holding nothing until then. The questions have keys of your
 * choice; the answers come back in `context.answers` under the same keys, and the state in `context.state`. The state
 * travels with the caller, sealed; it must be JSON.
 *
 * @example
 * server.tool("where", {}, (_args, { answers }) => answers["roots"] ?? inputRequired({ roots: { method: "roots/list" } }));
 */
export function inputRequired(requests: InputRequests, state?: unknown): InputRequired {
  return new InputRequired(requests, state);
}

/** What is sealed. The first field tells it from whatever else the same key may seal. */
interface Sealed {
  readonly is: "state";
  readonly principal: string | undefined;
  readonly call: string;
  readonly state: unknown;
}

const NOTHING: Brought = Object.freeze({ answers: Object.freeze({}), state: undefined });

export class Rounds {
  readonly #frame: Frame;
  readonly #sealKey: string | Uint8Array | undefined;
  #seal: Seal | undefined;

  constructor(frame: Frame, sealKey: string | Uint8Array | undefined) {
    if (sealKey?.length === 0) throw new TypeError("createServer(): its sealKey must not be empty");
    this.#frame = frame;
    this.#sealKey = sealKey;
  }

  /** Throws where the caller cannot answer one of the questions. */
  async result(required: InputRequired, request: Request, context: Context): Promise<Result> {
    const { checkAsk } = await import("../protocol/asks.ts");
    for (const { method, params } of Object.values(required.requests)) {
      checkAsk({ method, params: params ?? {} }, context.caller.capabilities);
    }
    const sealed: Sealed = {
      is: "state",
      principal: context.caller.principal,
      call: await digestOf(request),
      state: required.state,
    };
    return {
      resultType: "input_required",
      inputRequests: required.requests,
      requestState: (await this.#sealer()).seal(sealed, STATE_TTL_MS),
      _meta: this.#frame.meta,
    };
  }

  /** Throws invalid params where a state is not ours, is not for this call, or answers are no answers. */
  brought(request: Request, context: Context): Brought | Promise<Brought> {
    const { requestState, inputResponses } = request.params;
    if (requestState === undefined && inputResponses === undefined) return NOTHING;
    if (inputResponses !== undefined && !isAnswers(inputResponses)) {
      throw invalidParams("inputResponses must be an object that holds an object for each key");
    }
    const answers = inputResponses ?? NOTHING.answers;
    if (requestState === undefined) return { answers, state: undefined };
    return this.#open(requestState, request, context).then((state) => ({ answers, state }));
  }

  /** Made when it is needed: few servers ever seal. */
  async #sealer(): Promise<Seal> {
    const { createSeal } = await import("../core/seal.ts");
    return (this.#seal ??= createSeal(this.#sealKey));
  }

  async #open(token: unknown, request: Request, context: Context): Promise<unknown> {
    const seal = await this.#sealer();
    const sealed: Partial<Sealed> | undefined = typeof token === "string" ? seal.open(token) : undefined;
    if (sealed?.is !== "state") {
      throw invalidParams("requestState is not ours, was altered or has expired; call again without it");
    }
    if (sealed.principal !== context.caller.principal || sealed.call !== (await digestOf(request))) {
      throw invalidParams("requestState belongs to another call; a retry repeats the same method and arguments");
    }
    return sealed.state;
  }
}

function isAnswers(value: unknown): value is InputResponses {
  return isObject(value) && Object.values(value).every(isObject);
}

/** Blind to what differs between a call and its retry. */
async function digestOf({ method, params }: Request): Promise<string> {
  const { digest } = await import("../core/seal.ts");
  const { _meta, inputResponses: _answers, requestState: _state, ...rest } = params;
  return digest([method, rest]);
}
