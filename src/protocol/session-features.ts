// Features of session-style revisions that the newest revision lacks: ids of URL elicitations with their notification
// and error, and notifications of changed roots. Fields that the newest revision has no place for travel under symbols
// within a process. Symbols are never sent.

import type { Params } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { McpError } from "./errors.ts";

/** On the params of an elicitation: the id that the server gave it. */
export const ELICITATION_ID: unique symbol = Symbol("catenary.elicitationId");

export type WithElicitationId = { readonly [ELICITATION_ID]?: unknown };

/** Sent by a server when a URL elicitation is finished. */
export const ELICITATION_COMPLETE = "notifications/elicitation/complete";

export interface UrlElicitation {
  readonly url: string;
  readonly message: string;
  readonly id: unknown;
}

/** The URL elicitations that an error requires before its request can succeed; undefined for any other error. */
export function requiredUrlElicitations(error: unknown): readonly [UrlElicitation, ...UrlElicitation[]] | undefined {
  try {
    if (!(error instanceof McpError) || error.kind !== "url_elicitation_required" || !isObject(error.data)) {
      return undefined;
    }
    const { elicitations } = error.data;
    const [first, ...rest] = Array.isArray(elicitations) ? elicitations.flatMap(readUrlElicitation) : [];
    return first === undefined ? undefined : [first, ...rest];
  } catch {
    // The error may come from user code, and its getters may throw.
    return undefined;
  }
}

function readUrlElicitation(elicitation: unknown): readonly UrlElicitation[] {
  if (!isObject(elicitation) || typeof elicitation["url"] !== "string") return [];
  const { url, message, elicitationId } = elicitation;
  return [{ url, message: typeof message === "string" ? message : "", id: elicitationId }];
}

export function elicitationIdOf(params: Params & WithElicitationId): string | undefined {
  const id = params[ELICITATION_ID];
  return typeof id === "string" ? id : undefined;
}

export const ROOTS_LIST_CHANGED = "notifications/roots/list_changed";

/** On `roots` of a caller's capabilities: the caller sends notifications of changed roots. */
export const NOTIFIES_ROOTS: unique symbol = Symbol("catenary.notifiesRoots");
/** On the context of a subscription: registers a callback for changed roots; returns a function that removes it. */
export const ON_ROOTS_CHANGED: unique symbol = Symbol("catenary.onRootsChanged");

export type RootsChangeSource = { readonly [ON_ROOTS_CHANGED]?: (changed: () => void) => () => void };

export function notifiesRoots(capabilities: { readonly [key: string]: unknown }): boolean {
  const { roots } = capabilities;
  return isObject(roots) && (roots as { readonly [NOTIFIES_ROOTS]?: unknown })[NOTIFIES_ROOTS] === true;
}
