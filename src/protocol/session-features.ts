// Features of session-style revisions that the newest revision lacks: ids of URL elicitations with their notification
// and error, and notifications of changed roots.

import { isObject } from "../core/values.ts";
import { McpError } from "./errors.ts";

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

export const ROOTS_LIST_CHANGED = "notifications/roots/list_changed";

/** Whether a client declares, in a session-style revision, that it notifies of changed roots. */
export function notifiesRoots(capabilities: unknown): boolean {
  const roots = isObject(capabilities) ? capabilities["roots"] : undefined;
  return isObject(roots) && roots["listChanged"] === true;
}
