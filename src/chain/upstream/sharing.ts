// Decides which callers share a session with an upstream. By default, callers share a session if they look the same to
// the upstream: the same principal, style and capabilities. If the upstream does not say to which call its requests
// belong, a caller that has a session and can be asked gets a session of its own, so that a request never reaches
// another caller. The option `share` overrides this.

import type { Caller, Context } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { digest } from "../../core/seal.ts";
import { knownRevision } from "../../protocol/revisions/index.ts";
import { TASKS_EXTENSION } from "../../protocol/tasks.ts";
import type { Share } from "./options.ts";

export type Style = "session" | "stateless";

export function styleOf({ revision }: Pick<Context, "revision">): Style {
  return knownRevision(revision).style;
}

/** Caches fingerprints: by object, since a session has one capabilities object for all its calls, and by JSON. */
const byObject = new WeakMap<Caller["capabilities"], string>();
const byJson = new Map<string, string>();
const MAX_CACHED = 1_000;
/** A longer fingerprint is replaced with a digest, because it is part of many keys. */
const MAX_FINGERPRINT_LENGTH = 1_000;

/**
 * The capabilities of a caller as a string that does not depend on the order of keys. Leaves out the tasks
 * extension: a caller may declare it in only some of its calls, but all its calls must find its tasks.
 */
export function fingerprint(capabilities: Caller["capabilities"]): string {
  const known = byObject.get(capabilities);
  if (known !== undefined) return known;
  const json = JSON.stringify(capabilities);
  let found = byJson.get(json);
  if (found === undefined) {
    const sorted = toSortedJson(withoutTasks(capabilities));
    found = sorted.length > MAX_FINGERPRINT_LENGTH ? digest(sorted) : sorted;
    if (byJson.size >= MAX_CACHED) byJson.clear();
    if (json.length <= MAX_FINGERPRINT_LENGTH) byJson.set(json, found);
  }
  byObject.set(capabilities, found);
  return found;
}

function toSortedJson(capabilities: Caller["capabilities"]): string {
  return JSON.stringify(capabilities, (_key, value: unknown) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
}

function withoutTasks(capabilities: Caller["capabilities"]): Caller["capabilities"] {
  const { extensions, ...rest } = capabilities;
  if (!isObject(extensions)) return rest;
  const { [TASKS_EXTENSION]: _tasks, ...others } = extensions;
  return Object.keys(others).length === 0 ? rest : { ...rest, extensions: others };
}

/** A key that is the same for all callers that may share a session with an upstream, and for no others. */
export function callerKey(context: Context): string {
  return keyFor(context, fingerprint(context.caller.capabilities));
}

/** A key for upstreams without sessions. It does not depend on the capabilities that a principal's calls declare. */
function principalKey(context: Context): string {
  return keyFor(context, "");
}

/** Only the last part may contain line breaks, so that different parts never give the same key. */
function keyFor(context: Context, capabilities: string): string {
  const { principal } = context.caller;
  return `${styleOf(context)}\n${capabilities}\n${principal === undefined ? "" : `is ${principal}`}`;
}

/** Whether an upstream may send requests to the caller during a call. */
export function canBeAsked({ capabilities }: Caller): boolean {
  return ["elicitation", "sampling", "roots"].some((name) => capabilities[name] !== undefined);
}

/** A number for each connection, because keys are strings. */
const connectionNumbers = new WeakMap<object, number>();
let lastNumber = 0;

function numberOf(origin: object): number {
  let number = connectionNumbers.get(origin);
  if (number === undefined) {
    number = lastNumber += 1;
    connectionNumbers.set(origin, number);
  }
  return number;
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
  const statefulKey = callerKey(context);
  const { origin, principal } = context.caller;
  // Stateless calls on one connection may come from different callers.
  const hasSession = origin !== undefined && styleOf(context) === "session";
  const isAskable = hasSession && canBeAsked(context.caller);
  const isExclusive =
    hasSession &&
    (share === "per-session" ||
      (share === "per-caller" && principal === undefined) ||
      (isAskable && !attributesRequests));
  const exclusiveKey = isExclusive || isAskable ? `${numberOf(origin)} ${statefulKey}` : statefulKey;
  if (isExclusive) return { key: exclusiveKey, statefulKey: exclusiveKey, exclusiveKey, isExclusive };
  const key = isStateless && styleOf(context) === "stateless" ? principalKey(context) : statefulKey;
  return { key, statefulKey, exclusiveKey, isExclusive };
}
