// Who counts as the same caller. What is kept for a caller and given out again is found by a key from here, so a field
// that is missing in a key would show one caller what belongs to another.

import type { Caller } from "./handler.ts";

/** The principal whose sessions a caller uses: its own, except for the operator, who works with those of the callers. */
export function ownerOf({ principal, actsFor }: Caller): string | undefined {
  return actsFor === undefined ? principal : actsFor === "" ? undefined : actsFor;
}

/** The last caller and its view: the next request is often of the same one. */
let last: { readonly caller: Caller; readonly view: string } | undefined;

/**
 * The key, by what it is for:
 *
 * - "owner", for what outlives a connection, and for limits: who has proved to be the same. All
 *   callers that have proved nothing are one owner, as on stdio, where the user has started the process.
 * - "sessions", for sessions, live ones and those with upstreams: the same owner, or the one that the operator acts for.
 * - "reader", for what a call leaves for later ones: the same owner, or one client if it has proved nothing; and the same
 *   endpoint and part of the gateway.
 * - "client", for what must reach one client only, such as a question: one client of one owner.
 * - "view", for what lists and results say: one client with the same scopes and claims, at the same endpoint and part.
 */
export function callerKey(caller: Caller, use: "owner" | "sessions" | "reader" | "client" | "view"): string {
  const { key, principal, endpoint, part, scopes, claims } = caller;
  switch (use) {
    case "owner":
      // A principal is never empty.
      return principal ?? "";
    case "sessions":
      return ownerOf(caller) ?? "";
    case "reader":
      return JSON.stringify([principal, principal === undefined ? key : "", endpoint, part]);
    case "client":
      return JSON.stringify([key, principal]);
    case "view": {
      if (last?.caller === caller) return last.view;
      const isPlain = principal === undefined && endpoint === undefined && part === undefined;
      if (isPlain && scopes === undefined && claims === undefined) return key;
      // Keys of callers do not begin with a bracket.
      last = { caller, view: JSON.stringify([key, principal, endpoint, part, scopes, claims]) };
      return last.view;
    }
  }
}
