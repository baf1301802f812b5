// Checks that the caller has the scopes that a tool, resource or prompt needs. On stdio and in memory there are no
// scopes: the caller started the process and may do everything.

import type { Caller } from "../core/handler.ts";
import { McpError } from "./errors.ts";

/** One scope (RFC 6749, 3.3): no spaces, quotes or backslashes. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

export function isScope(value: unknown): value is string {
  return typeof value === "string" && SCOPE.test(value);
}

/** The problem with a list of scopes, as the end of a sentence; undefined if the list is valid. */
export function scopesProblem(scopes: unknown): string | undefined {
  if (!Array.isArray(scopes)) return 'must be an array of strings, such as ["notes:write"]';
  return scopes.every(isScope) ? undefined : "must be strings of visible ASCII, without spaces, quotes and backslashes";
}

export function permits(scopes: readonly string[] | undefined, caller: Caller): boolean {
  if (scopes === undefined || scopes.length === 0) return true;
  if (caller.operatorCall !== undefined) return true;
  const granted = caller.scopes;
  // A caller with headers came over HTTP, where a token must grant the scopes.
  if (granted === undefined) return caller.principal === undefined && caller.headers === undefined;
  return scopes.every((scope) => granted.includes(scope));
}

/** Throws if the caller lacks a scope. The error names all scopes, so that the client can request them together. */
export function demandScopes(scopes: readonly string[] = [], caller: Caller, owner: string): void {
  if (permits(scopes, caller)) return;
  const noun = scopes.length === 1 ? "scope" : "scopes";
  const requiredScopes = [...scopes];
  throw McpError.of("access_denied", `${owner} needs the ${noun} ${scopes.join(", ")}`, { requiredScopes });
}
