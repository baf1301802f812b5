// Which callers share a session with an end. By default those who are the same to it: the same person, as far as the
// wire proves it, in the same style, who can be asked the same. A caller that has a session of its own and can be asked
// gets one at an end that does not say whom it asks, since a question must never come to another. A policy draws the
// line elsewhere.

import type { Context } from "../../core/handler.ts";
import { callerKey, canBeAsked, personKey, styleOf } from "./caller-key.ts";
import type { Share } from "./upstream.ts";

/** By connection, a number: what a key is made of must be text. */
const numbers = new WeakMap<object, number>();
let last = 0;

function numberOf(origin: object): number {
  let number = numbers.get(origin);
  if (number === undefined) {
    number = last += 1;
    numbers.set(origin, number);
  }
  return number;
}

export interface Place {
  /** The same for all who share. */
  readonly key: string;
  /** The same if it turns out that the end has sessions. */
  readonly ownKey: string;
  /** The same if it turns out that the end does not say whom it asks. */
  readonly loneKey: string;
  /** Whether it belongs to one connection of a caller, and ends with it. */
  readonly isOwn: boolean;
}

export interface UpstreamKind {
  /** Whether it says whom it asks. */
  readonly saysWhose: boolean;
  /** Whether it has turned out to have no sessions, or may do so yet. */
  readonly isSessionless: boolean;
}

/** Undefined: nobody shares. */
export function placeOf(
  share: Share | undefined,
  context: Context,
  { saysWhose, isSessionless }: UpstreamKind,
): Place | undefined {
  if (share === "per-request") return undefined;
  if (share === "shared") return { key: "", ownKey: "", loneKey: "", isOwn: false };
  const ownKey = callerKey(context);
  const { origin, principal } = context.caller;
  // A caller without sessions has no connection either that would mean anything.
  const hasSession = origin !== undefined && styleOf(context) === "session";
  const isLone = hasSession && canBeAsked(context.caller);
  const isOwn =
    hasSession &&
    (share === "per-session" || (share === "per-caller" && principal === undefined) || (isLone && !saysWhose));
  const loneKey = isOwn || isLone ? `${numberOf(origin)} ${ownKey}` : ownKey;
  if (isOwn) return { key: loneKey, ownKey: loneKey, loneKey, isOwn };
  const key = isSessionless && styleOf(context) === "stateless" ? personKey(context) : ownKey;
  return { key, ownKey, loneKey, isOwn };
}
