// The HTTP statuses of JSON-RPC errors, and the JSON-RPC errors of HTTP statuses.

import type { ErrorBody, ErrorMessage } from "../../jsonrpc/message.ts";
import type { CompatRules } from "../../protocol/compat-documents.ts";
import { codeOf, type ErrorKind, McpError } from "../../protocol/errors.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";

// In stateless style these errors have a status of their own. Any other error, and every error in session style, is
// sent with a 200.
const STATUSES: ReadonlyMap<number, number> = new Map(
  (
    [
      ["method_not_found", 404],
      ["header_mismatch", 400],
      ["missing_capability", 400],
      ["unsupported_revision", 400],
    ] as const satisfies readonly (readonly [ErrorKind, number])[]
  ).map(([kind, status]) => [codeOf(kind, NEWEST), status]),
);

export function statusOf(error: ErrorBody): number {
  return STATUSES.get(error.code) ?? 200;
}

const KINDS: ReadonlyMap<number, ErrorKind> = new Map([
  [401, "unauthorized"],
  [403, "access_denied"],
  [500, "internal_error"],
  [503, "rate_limited"],
]);

/** The JSON-RPC error response for a status, without an id. */
export function errorResponse(
  status: number,
  message: string,
  kind: ErrorKind = KINDS.get(status) ?? "invalid_request",
  compat?: CompatRules,
): ErrorMessage {
  const body = McpError.of(kind, message).toBody();
  return { jsonrpc: "2.0", id: null, error: compat?.error(body, kind) ?? body };
}
