// Who may see a task of which only its maker is known. Who speaks on a wire is proved anew with each message, and may
// be allowed less than before; what the tool itself needed, only its server knows.

import type { Caller } from "../../core/context.ts";
import { McpError } from "../../protocol/errors.ts";

/** Whether what a caller may see can differ from one of its messages to the next. */
export function isProved({ principal, scopes }: Caller): boolean {
  return principal !== undefined || scopes !== undefined;
}

/** What the tool needed is not known here: whoever was allowed as much as its caller is allowed to see what came of it. */
export function checkAllowed(now: Caller, then: Caller): void {
  const { scopes = [] } = then;
  if (scopes.every((scope) => now.scopes?.includes(scope))) return;
  throw McpError.of("access_denied", "The task needs the scopes of the call that made it", { requiredScopes: scopes });
}
