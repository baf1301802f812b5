// Makes `context.caller`: what the side that received a request knows about its client. Everything that can be derived
// from the client's info and capabilities is derived here, once: for each session, and for stateless requests once for
// each combination of info and capabilities.

import { ExpiringMap } from "../core/expiring-map.ts";
import type { Caller, CallerIdentity } from "../core/handler.ts";
import { canonical, digest } from "../core/seal.ts";
import { isObject } from "../core/values.ts";
import { TASKS_EXTENSION } from "./tasks.ts";

/** The caller of our own housekeeping requests. They are made for no client, so they never make a message ambiguous. */
export const INTERNAL_CALLER: Caller = Object.freeze({
  style: "stateless",
  key: "internal",
  capabilities: Object.freeze({}),
  canBeAsked: false,
});

let lastNumber = 0;

/** A number for a session, for a connection of stateless clients, or for a client in this process. */
export function nextNumber(): number {
  return (lastNumber += 1);
}

/** A caller with a key of its own: for a session, or for a client in this process. */
export function newCaller(style: Caller["style"], capabilities: Caller["capabilities"], info?: unknown): Caller {
  return describe(style, `${style} ${nextNumber()}`, capabilities, info);
}

const MAX_CACHED = 1_000;
/** Longer capabilities are not cached. A longer fingerprint is replaced with a digest, as it is part of many keys. */
const MAX_LENGTH = 1_000;

const statelessCallers = new ExpiringMap<string, StatelessClient>({ maxEntries: MAX_CACHED });
/** The client of the last request. The next request is often its own, and comparing is faster than encoding. */
let last: StatelessClient | undefined;

interface StatelessClient {
  readonly info: unknown;
  readonly caller: Caller;
  /** The key of its last request. Maps find the same string much faster than one that is put together again. */
  lastKey?: readonly [connection: number, principal: string | undefined, key: string];
}

/**
 * The caller of a stateless request. Its key is made of principal, info and capabilities, since nothing else connects
 * the requests of one client. `connection` is the number of its connection, if a client has only one.
 */
export function statelessCaller(
  info: unknown,
  capabilities: Caller["capabilities"],
  identity: CallerIdentity = {},
  connection = 0,
): Caller {
  const isLast = last !== undefined && isSame(last.info, info) && isSame(last.caller.capabilities, capabilities);
  const client = isLast && last !== undefined ? last : findClient(info, capabilities);
  const { principal } = identity;
  let key = client.lastKey;
  if (key?.[0] !== connection || key[1] !== principal) {
    // The principal comes last, and JSON and digests have no line breaks, so different parts never give the same key.
    const text = `stateless ${connection} ${client.caller.key}${principal === undefined ? "" : `\n${principal}`}`;
    client.lastKey = key = [connection, principal, text];
  }
  return withIdentity(client.caller, identity, key[2]);
}

/**
 * Whether two calls are certainly of one client. Stateless requests over HTTP may come from different clients with the
 * same info and capabilities, so only the same call is.
 */
export function isSameClient(one: Caller, other: Caller): boolean {
  return one === other || (one.key === other.key && !one.key.startsWith("stateless 0 "));
}

function findClient(info: unknown, capabilities: Caller["capabilities"]): StatelessClient {
  const json = JSON.stringify([info, capabilities]);
  let client = statelessCallers.get(json);
  if (client === undefined) {
    const key = fingerprintOf([info, withoutTasks(capabilities)]);
    client = { info, caller: describe("stateless", key, capabilities, info) };
    if (json.length > MAX_LENGTH) return client;
    statelessCallers.set(json, client);
  }
  last = client;
  return client;
}

/** Whether two JSON values are equal. Values with arrays never are, which only costs time. */
function isSame(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (!isObject(one) || !isObject(other)) return false;
  let extra = 0;
  for (const _key in other) extra += 1;
  for (const key in one) {
    if (!Object.hasOwn(other, key) || !isSame(one[key], other[key])) return false;
    extra -= 1;
  }
  return extra === 0;
}

/** The client as the sender of a message. A literal with all fields takes a hundredth of the time of a spread. */
export function withIdentity(client: Caller, identity: CallerIdentity, key: string = client.key): Caller {
  const { style, info, capabilities, canBeAsked, notifiesRoots } = client;
  const { principal, scopes, claims, headers, env, endpoint } = identity;
  return {
    style,
    key,
    info,
    capabilities,
    canBeAsked,
    notifiesRoots,
    principal,
    scopes,
    claims,
    headers,
    env,
    endpoint,
  } as Caller;
}

function describe(style: Caller["style"], key: string, capabilities: Caller["capabilities"], info: unknown): Caller {
  return {
    style,
    key,
    ...(isObject(info) ? { info: info as NonNullable<Caller["info"]> } : undefined),
    capabilities,
    canBeAsked: ["elicitation", "sampling", "roots"].some((name) => capabilities[name] !== undefined),
  };
}

/** A value as a string that does not depend on the order of keys. */
function fingerprintOf(value: unknown): string {
  const json = canonical(value);
  return json.length > MAX_LENGTH ? digest(json) : json;
}

/** A caller may declare tasks in only some of its calls, but all its calls must find its tasks. */
export function withoutTasks(capabilities: Caller["capabilities"]): Caller["capabilities"] {
  const { extensions, ...rest } = capabilities;
  if (!isObject(extensions)) return rest;
  const { [TASKS_EXTENSION]: _tasks, ...others } = extensions;
  return Object.keys(others).length === 0 ? rest : { ...rest, extensions: others };
}
