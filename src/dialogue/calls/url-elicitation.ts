// An end has answered with the error that a person must visit an address first, and the caller's revision does not know
// that error: an exchange is asked to visit and to come again, and to an older session it is said in words. Nothing
// waits for the visit: whoever comes again is simply passed on to the end. How the error looks to a caller that knows
// it, its revision says.

import type { Caller } from "../../core/handler.ts";
import type { Request, Result, Params } from "../../core/handler.ts";
import { ASKABLE, checkAsk } from "../../protocol/asks.ts";
import { isObject } from "../../core/objects.ts";
import { McpError } from "../../protocol/errors.ts";
import type { Revision } from "../../protocol/revision.ts";
import { type Visit, VISITED, visitsIn, nameOf } from "../../protocol/visits.ts";
import { kindOf } from "./errors.ts";

/** The result that an exchange gets instead. Throws the error where it is another, or its caller has said no. */
export function askedToVisit(error: unknown, { method, params }: Request, { capabilities }: Caller): Result {
  const visits = visitsIn(error);
  if (visits === undefined || !ASKABLE.has(method)) throw error;
  const questions = visits.map(({ url, message }) => ({
    method: "elicitation/create",
    params: { mode: "url", message, url },
  }));
  try {
    for (const question of questions) checkAsk(question, capabilities);
  } catch (missing) {
    // Somebody may read it, and visit by hand.
    if (kindOf(missing) !== "missing_capability") throw missing;
    const { data } = missing as McpError;
    throw McpError.of("missing_capability", `${(missing as McpError).message}: ${inWords(error, visits)}`, {
      ...(isObject(data) ? data : undefined),
      elicitations: questions.map((question) => question.params),
    });
  }
  const keyed = questions.map((question, index) => [`visit-${index + 1}`, question] as const);
  const given = params["inputResponses"];
  // Asked again, whoever refused would refuse again.
  if (isObject(given) && keyed.some(([key]) => isRefusal(given[key]))) throw error;
  return { resultType: "input_required", inputRequests: Object.fromEntries(keyed) };
}

function isRefusal(answer: unknown): boolean {
  return isObject(answer) && answer["action"] !== "accept";
}

/** What a session gets instead; throws the error, with the addresses in its text where its caller would not see them. */
export function toldToVisit(error: unknown, { method }: Request, revision: Revision): Result {
  const visits = visitsIn(error);
  if (visits === undefined || revision.endNotifications.has(VISITED)) throw error;
  const text = inWords(error, visits);
  if (method === "tools/call") return { resultType: "complete", content: [{ type: "text", text }], isError: true };
  const { code, data } = error as McpError;
  throw new McpError(code, text, data, { cause: error });
}

function inWords(error: unknown, visits: readonly Visit[]): string {
  const addresses = visits.map(({ url, message }) => (message === "" ? url : `${url} (${message})`));
  return `${(error as McpError).message}: visit ${addresses.join(", ")}, then try again`;
}

// Who was asked to visit an address, by the name that the end gave the question: that the visit is over is said later,
// perhaps when the call is long answered, and is for nobody else to know. Only names are kept, and not for ever.


const MOST_KEPT = 1_000;

export class VisitOwners {
  readonly #owners = new Map<string, Caller>();

  /** A question that goes to somebody. */
  asked(params: Params, owner: Caller): void {
    this.#note(nameOf(params), owner);
  }

  /** An error that goes to somebody. */
  failed(error: unknown, owner: Caller): void {
    for (const { id } of visitsIn(error) ?? []) this.#note(id, owner);
  }

  /** Asked for once: a visit is over only once. */
  take(id: unknown): Caller | undefined {
    if (typeof id !== "string") return undefined;
    const owner = this.#owners.get(id);
    this.#owners.delete(id);
    return owner;
  }

  #note(id: unknown, owner: Caller): void {
    if (typeof id !== "string") return;
    this.#owners.delete(id);
    if (this.#owners.size >= MOST_KEPT)
      for (const oldest of this.#owners.keys()) if (this.#owners.delete(oldest)) break;
    this.#owners.set(id, owner);
  }
}
