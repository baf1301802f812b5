// Errors that handlers throw: who learns of them, and what callers read. A tool's error becomes a result for the model;
// resources and prompts have no such result, so theirs become protocol errors. A stack is never sent. The message of an
// unexpected error is sent too, unless `maskErrors` hides it: it may contain what callers must not know.

import { UserError } from "../core/errors.ts";
import type { Caller, Context, Request } from "../core/handler.ts";
import { callListener, printProblem } from "../core/listeners.ts";
import { asError, errorMessage } from "../core/values.ts";
import { McpError, withoutDiagnostics } from "../protocol/errors.ts";

/** Where a handler failed. The second argument of `onError`. */
export interface FailedRequest {
  /** The method of the request, such as "tools/call". */
  readonly method: string;
  /** The name of the tool or prompt, the URI of the resource, or the method. */
  readonly name: string;
  /** Who sent the request. */
  readonly caller: Caller;
}

/** Gets the errors that handlers throw unexpectedly, for a log or an error tracker. */
export type ErrorListener = (error: unknown, failed: FailedRequest) => void;

/** A handler returned what the protocol does not allow. Its author and its caller both get the message. */
export class InvalidResult extends UserError {}

/** The part of the options of a server that concerns errors of its handlers. */
export interface ErrorOptions {
  readonly onError?: ErrorListener | undefined;
  readonly maskErrors?: boolean | undefined;
}

const NOUNS: Readonly<Record<string, string>> = {
  "tools/call": "tool",
  "resources/read": "resource",
  "prompts/get": "prompt",
};

export class HandlerErrors {
  readonly #isProduction = globalThis.process?.env?.["NODE_ENV"] === "production";
  readonly #onError: ErrorListener;
  readonly #masks: boolean;

  constructor({ onError, maskErrors }: ErrorOptions) {
    this.#onError = onError ?? ((error, failed) => this.#print(error, failed));
    this.#masks = maskErrors ?? this.#isProduction;
  }

  /** The text of an error for the caller. Rethrows a protocol error, and any error of a cancelled call. */
  describe(thrown: unknown, request: Request, context: Context): string {
    const error = asError(thrown);
    if (error instanceof McpError || context.signal.aborted) throw thrown;
    const isMeant = error instanceof UserError;
    if (!isMeant || error instanceof InvalidResult) this.#report(thrown, request, context);
    const isShown = isMeant || !this.#masks;
    return isShown
      ? messageOf(error, withoutDiagnostics(error))
      : `${subject(request)} failed because of an internal error`;
  }

  /** Runs a handler of a resource, a prompt, a completion or a method. Its errors become McpErrors. */
  async run<Value>(request: Request, context: Context, run: () => Value | Promise<Value>): Promise<Value> {
    try {
      return await run();
    } catch (thrown) {
      throw McpError.of("internal_error", this.describe(thrown, request, context), {}, { cause: thrown });
    }
  }

  #report(thrown: unknown, request: Request, { caller }: Context): void {
    callListener("onError", this.#onError, [thrown, { method: request.method, name: nameOf(request), caller }]);
  }

  #print(thrown: unknown, { method, name }: FailedRequest): void {
    const error = asError(thrown);
    const stack = this.#isProduction || error !== thrown ? undefined : error.stack;
    const noun = Object.hasOwn(NOUNS, method) ? `${NOUNS[method]} ${name}` : name;
    const text =
      thrown instanceof InvalidResult
        ? thrown.message
        : `${noun} failed: ${stack ?? messageOf(error, errorMessage(error))}`;
    printProblem(text);
  }
}

function subject(request: Request): string {
  const noun = Object.hasOwn(NOUNS, request.method) ? NOUNS[request.method] : undefined;
  return noun === undefined ? request.method : `The ${noun} ${nameOf(request)}`;
}

function nameOf({ method, params }: Request): string {
  const { name, uri } = params;
  return typeof name === "string" ? name : typeof uri === "string" ? uri : method;
}

/** The error's message, or its name if it has none. */
function messageOf({ name }: Error, message: string): string {
  return message || name || "Error";
}
