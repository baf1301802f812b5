// Decides, before a call, which callers share a session with an upstream (for a command: a process). An upstream that
// never asks its clients anything has one session for all callers of one principal, whatever their style and
// capabilities. One that has been seen to ask (elicitation, sampling, roots) has a session for each client that can be
// asked, so that a request never reaches another client. The option `share` overrides this.

import { callerKey } from "../../core/caller-key.ts";
import type { Caller } from "../../core/handler.ts";
import type { Share } from "./options.ts";

/** Identifies the session that a caller uses. */
export interface SessionKey {
  /** The same for all callers that share the session, and for no others. */
  readonly key: string;
  /** Whether the session belongs to one client, and ends with it. */
  readonly isOwn: boolean;
}

const SHARED_BY_ALL: SessionKey = { key: "", isOwn: false };

/** `asks`: whether the upstream has been seen to ask. `share` is not "per-request", which has no shared sessions. */
export function sessionKeyFor(share: Share | undefined, caller: Caller, asks: boolean): SessionKey {
  if (share === "shared") return SHARED_BY_ALL;
  const { style, principal, canBeAsked } = caller;
  const hasOwn =
    style === "session" && (share === "per-session" || (share === "per-caller" && principal === undefined));
  const isOwn = hasOwn || (asks && canBeAsked);
  return { key: isOwn ? `own ${callerKey(caller, "client")}` : `all ${callerKey(caller, "sessions")}`, isOwn };
}

/** What a session declares that several clients share. */
export const ALL_REQUESTS: Caller["capabilities"] = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {}, context: {} },
  roots: {},
};

/**
 * The capabilities to declare to the upstream. A shared session declares all requests, and a request that the caller
 * cannot answer is refused. If the upstream is known to ask, only callers that cannot be asked share a session.
 */
export function declaredCapabilities(
  share: Share | undefined,
  { capabilities }: Caller,
  { isOwn, asks }: { readonly isOwn: boolean; readonly asks: boolean },
): Caller["capabilities"] {
  if (isOwn) return capabilities;
  const { elicitation: _elicitation, sampling: _sampling, roots: _roots, ...others } = capabilities;
  return asks && share !== "shared" ? others : { ...others, ...ALL_REQUESTS };
}
