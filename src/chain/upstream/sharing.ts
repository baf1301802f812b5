// Decides which callers share a session with an upstream. By default, callers share a session if they look the same to
// the upstream: the same principal, style and capabilities. If the upstream does not say to which call its requests
// belong, a caller that has a session and can be asked gets a session of its own, so that a request never reaches
// another caller. The option `share` overrides this.

import type { Caller, Context } from "../../core/handler.ts";
import { fingerprint } from "../../protocol/caller.ts";
import type { Share } from "./options.ts";

/** A key that is the same for all callers that may share a session with an upstream, and for no others. */
export function sharedKey(caller: Caller): string {
  return keyFor(caller, fingerprint(caller.capabilities));
}

/** A key for upstreams without sessions. It does not depend on the capabilities that a principal's calls declare. */
function principalKey(caller: Caller): string {
  return keyFor(caller, "");
}

/** Only the last part may contain line breaks, so that different parts never give the same key. */
function keyFor({ style, principal }: Caller, capabilities: string): string {
  return `${style}\n${capabilities}\n${principal === undefined ? "" : `is ${principal}`}`;
}

/** Identifies the session that a caller uses. */
export interface SessionKey {
  /** The same for all callers that share the session. */
  readonly key: string;
  /** The key if the upstream turns out to have sessions. */
  readonly statefulKey: string;
  /** The key if the upstream turns out not to attribute its requests to calls. */
  readonly exclusiveKey: string;
  /** Whether the session belongs to one connection of a caller, and ends with it. */
  readonly isExclusive: boolean;
}

export interface UpstreamTraits {
  /** Whether it says to which call its requests belong. */
  readonly attributesRequests: boolean;
  /** Whether it has no sessions, as far as is known. */
  readonly isStateless: boolean;
}

/** Undefined if the caller gets a new session for each request. */
export function sessionKeyFor(
  share: Share | undefined,
  context: Context,
  { attributesRequests, isStateless }: UpstreamTraits,
): SessionKey | undefined {
  if (share === "per-request") return undefined;
  if (share === "shared") return { key: "", statefulKey: "", exclusiveKey: "", isExclusive: false };
  const { caller } = context;
  const statefulKey = sharedKey(caller);
  // Stateless calls with one key may still come from different clients.
  const hasSession = caller.style === "session";
  const isAskable = hasSession && caller.canBeAsked;
  const isExclusive =
    hasSession &&
    (share === "per-session" ||
      (share === "per-caller" && caller.principal === undefined) ||
      (isAskable && !attributesRequests));
  const exclusiveKey = isExclusive || isAskable ? `${caller.key} ${statefulKey}` : statefulKey;
  if (isExclusive) return { key: exclusiveKey, statefulKey: exclusiveKey, exclusiveKey, isExclusive };
  const key = isStateless && caller.style === "stateless" ? principalKey(caller) : statefulKey;
  return { key, statefulKey, exclusiveKey, isExclusive };
}
