// What a caller must be allowed to do before it gets something: the scopes that a registration names, held against
// those that the wire has proved. Where no wire proves anything (stdio, memory) whoever calls is whoever started us,
// and may do all. How a scope is proved is for an authenticator; how a refusal looks on HTTP is for the front.

import type { Caller } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";

/** One scope (RFC 6749, 3.3): no blanks, no quotes, no backslash. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

export function isScope(value: unknown): value is string {
  return typeof value === "string" && SCOPE.test(value);
}

/** What is wrong with a list of scopes, as the rest of a sentence; undefined where nothing is. */
export function scopesProblem(scopes: unknown): string | undefined {
  if (!Array.isArray(scopes)) return 'must be a list of strings, as in ["notes:write"]';
  return scopes.every(isScope) ? undefined : "must be strings of visible ASCII, without blanks, quotes and backslashes";
}

export function permits(scopes: readonly string[] | undefined, caller: Caller): boolean {
  if (scopes === undefined || scopes.length === 0) return true;
  const held = caller.scopes;
  // A wire with headers is open to others, so what it has not proved is not so.
  if (held === undefined) return caller.principal === undefined && caller.headers === undefined;
  return scopes.every((scope) => held.includes(scope));
}

/** Throws an error that names all that is needed, so that a caller need ask for it only once. */
export function demandScopes(scopes: readonly string[] = [], caller: Caller, owner: string): void {
  if (permits(scopes, caller)) return;
  const what = scopes.length === 1 ? "scope" : "scopes";
  const requiredScopes = [...scopes];
  throw McpError.of("access_denied", `${owner} needs the ${what} ${scopes.join(", ")}`, { requiredScopes });
}
