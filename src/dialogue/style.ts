// Decides whether a message is of a session or stateless. This is the only place that does so, for every transport.

import { isObject } from "../core/values.ts";
import type { Message, Params } from "../jsonrpc/message.ts";
import { META } from "../protocol/model/base.ts";
import type { Revision } from "../protocol/revision.ts";

export type Styles = { readonly [Style in Revision["style"]]: boolean };

export function stylesOf(revisions: readonly Revision[]): Styles {
  return {
    session: revisions.some(({ style }) => style === "session"),
    stateless: revisions.some(({ style }) => style === "stateless"),
  };
}

/** Whether a message is meant to be stateless: it has one of the `_meta` keys that only such requests have. */
export function isStateless({ method, params }: { readonly method: string; readonly params?: Params }): boolean {
  const meta = params?.["_meta"];
  if (isObject(meta)) return META.revision in meta || META.clientCapabilities in meta || META.clientInfo in meta;
  // These methods do not exist in a session. The stateless style answers with an error that names the missing keys.
  return method === "server/discover" || method === "subscriptions/listen";
}

/**
 * The style of a message. `isInSession`: whether the sender has a session; `isDeclared`: whether it has declared a
 * stateless revision in a header.
 */
export function styleOf(
  message: Message | undefined,
  serves: Styles,
  isInSession: boolean,
  isDeclared = false,
): Revision["style"] {
  if (!serves.stateless) return "session";
  if (isDeclared) return "stateless";
  // A batch, or a response.
  if (message === undefined || !("method" in message)) return serves.session ? "session" : "stateless";
  // A handshake is answered with the revisions that are served, even if none of them has sessions.
  if (!serves.session) return message.method === "initialize" && !isStateless(message) ? "session" : "stateless";
  return isStateless(message) && (message.params?.["_meta"] !== undefined || !isInSession) ? "stateless" : "session";
}
