// Which error becomes which HTTP status, and how what is refused before any message is looked at is put into words.
// Exchange style has statuses for a few errors; everything else, and all of session style, is a 200 whose body says
// what went wrong.

import type { ErrorBody, ErrorMessage } from "../../jsonrpc/message.ts";
import { codeOf, McpError, type ErrorKind } from "../../protocol/errors.ts";
import { NEWEST } from "../../protocol/revisions/index.ts";

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

/** The body of an answer with this status, where there is no message that it could answer. */
export function refusalBody(status: number, message: string, kind?: ErrorKind): ErrorMessage {
  const known = kind ?? KINDS.get(status) ?? "invalid_request";
  return { jsonrpc: "2.0", id: null, error: McpError.of(known, message).toBody() };
}
