// What the last session-style revision had for addresses that a person must visit, and its successor gave up: a name
// for each such question, by which the end says later that the visit is over, and an error that asks for visits. In one
// process the name travels under a symbol, which no wire shows. What a caller is told of all this is not known here.

import type { Params } from "../core/handler.ts";
import { isObject } from "../core/objects.ts";
import { McpError } from "./errors.ts";

/** On the params of a question: the name that its end gave it. */
export const ELICITATION_ID: unique symbol = Symbol("catenary.elicitationId");

export type Named = { readonly [ELICITATION_ID]?: unknown };

/** An end says that a visit is over. */
export const VISITED = "notifications/elicitation/complete";

export interface Visit {
  readonly url: string;
  readonly message: string;
  readonly id: unknown;
}

/** The visits without which a request cannot be done, as its error names them; undefined for any other error. */
export function visitsIn(error: unknown): readonly [Visit, ...Visit[]] | undefined {
  try {
    if (!(error instanceof McpError) || error.kind !== "url_elicitation_required" || !isObject(error.data)) {
      return undefined;
    }
    const { elicitations } = error.data;
    const [first, ...rest] = Array.isArray(elicitations) ? elicitations.flatMap(visitOf) : [];
    return first === undefined ? undefined : [first, ...rest];
  } catch {
    // What was thrown is a user's own, and may bite.
    return undefined;
  }
}

function visitOf(elicitation: unknown): readonly Visit[] {
  if (!isObject(elicitation) || typeof elicitation["url"] !== "string") return [];
  const { url, message, elicitationId } = elicitation;
  return [{ url, message: typeof message === "string" ? message : "", id: elicitationId }];
}

/** The name under which the end knows a question; undefined where it gave none. */
export function nameOf(params: Params & Named): string | undefined {
  const id = params[ELICITATION_ID];
  return typeof id === "string" ? id : undefined;
}
