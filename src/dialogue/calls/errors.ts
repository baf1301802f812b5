// Whatever was thrown, as the error that this caller's revision and profile put on the wire.
// A kind decides the code; an error without a kind (it came from an end, or a user chose its code) keeps
// its own. Errors that nobody meant for the wire become -32603 with their message and nothing else.

import { ConnectionError } from "../../core/errors.ts";
import type { Request } from "../../core/handler.ts";
import { errorMessage } from "../../core/text.ts";
import type { ErrorBody } from "../../jsonrpc/message.ts";
import { codeOf, McpError, type ErrorKind, type Profile } from "../../protocol/errors.ts";
import type { Revision } from "../../protocol/revision.ts";
import { NEWEST, REVISIONS } from "../../protocol/revisions/index.ts";

export function toMcpError(error: unknown): McpError {
  if (error instanceof McpError) return error;
  if (error instanceof ConnectionError) {
    const kind: ErrorKind = error.kind === "timeout" ? "timeout" : "unreachable";
    const { kind: link, mayHaveRun } = error;
    return McpError.of(kind, withoutEvidence(error), { link, mayHaveRun }, { cause: error });
  }
  return McpError.of("internal_error", `Internal error: ${errorMessage(error)}`, undefined, { cause: error });
}

/** What a program has written for whoever runs it may be about another caller, and is no caller's business. */
function withoutEvidence(error: ConnectionError): string {
  let { message } = error;
  for (let one: unknown = error; one instanceof ConnectionError; one = one.cause) {
    if (one.evidence !== undefined && one.evidence !== "") message = message.replaceAll(one.evidence, "");
  }
  return message;
}

/** The kind of an error that has one; of what bites when it is looked at, none. */
export function kindOf(error: unknown): ErrorKind | undefined {
  try {
    return error instanceof McpError ? error.kind : undefined;
  } catch {
    return undefined;
  }
}

/** Why a call was cancelled, as the reason of its signal; what the other side says of it is text or nothing. */
export function cancellation(reason: unknown, by: string): Error {
  return new Error(`Cancelled by ${by}${typeof reason === "string" ? `: ${reason}` : ""}`);
}

/** What a caller is told whose revision is not spoken here. */
export function unsupported(requested: unknown, supported: readonly Revision[]): McpError {
  const names = supported.map(({ name }) => name);
  const message = `Unsupported protocol revision ${String(requested)}; supported: ${names.join(", ")}`;
  return McpError.of("unsupported_revision", message, { supported: names, requested: String(requested) });
}

/** Never throws: what was thrown is a user's own, and may bite. */
export function errorBody(error: unknown, request: Request, revision: Revision, profile: Profile): ErrorBody {
  try {
    return wordsFor(error, request, revision, profile);
  } catch {
    return McpError.of("internal_error", "Internal error: something was thrown that cannot be read").toBody();
  }
}

function wordsFor(error: unknown, request: Request, revision: Revision, profile: Profile): ErrorBody {
  const known = toMcpError(error);
  const { kind } = known;
  const body = known.toBody();
  const coded =
    kind !== undefined && isCodeOf(kind, known.code) ? { ...body, code: codeOf(kind, revision, profile) } : body;
  return lawful(revision.lower.error(coded, request), revision);
}

/** An end's error may name a kind of its own by a word of ours: only with one of our codes is it ours. */
function isCodeOf(kind: ErrorKind, code: number): boolean {
  return REVISIONS.some((known) => codeOf(kind, known) === code || codeOf(kind, known, "chain") === code);
}

/** Exchange-style revisions keep some codes for themselves and forbid others: a handler that chose one is quoted. */
function lawful(body: ErrorBody, revision: Revision): ErrorBody {
  if (revision.style !== "stateless" || OWN_CODES.has(body.code)) return body;
  const reserved = (body.code <= -32020 && body.code >= -32099) || body.code === -32002;
  return reserved ? McpError.of("internal_error", body.message, { upstream: body }).toBody() : body;
}

const OWN_CODES: ReadonlySet<number> = new Set(
  (["header_mismatch", "missing_capability", "unsupported_revision"] as const).map((kind) => codeOf(kind, NEWEST)),
);
