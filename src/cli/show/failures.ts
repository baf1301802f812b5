// Turns errors into an exit code, a message on stderr, and with --json a document on stdout. Errors from a connection
// or a server get their exit code here. The errors of command.ts, which commands throw, already have one.

import { ConnectionError } from "../../core/errors.ts";
import { defined, errorMessage, isObject } from "../../core/values.ts";
import { McpError } from "../../protocol/errors.ts";
import { EXIT, NotFoundError, withKey } from "../command.ts";

type FailureKind = "usage" | "not_found" | "auth" | "unreachable" | "failed" | "interrupted";

/** One for each exit code except 0. */
const KINDS: Readonly<Record<number, FailureKind>> = {
  [EXIT.usage]: "usage",
  [EXIT.notFound]: "not_found",
  [EXIT.auth]: "auth",
  [EXIT.unreachable]: "unreachable",
  [EXIT.toolFailed]: "failed",
  [EXIT.interrupted]: "interrupted",
};

/** The exit codes of errors that a server answers with; any other kind means that the tool failed. */
const SERVER_EXITS: ReadonlyMap<unknown, number> = new Map([
  ["tool_not_found", EXIT.notFound],
  ["resource_not_found", EXIT.notFound],
  ["prompt_not_found", EXIT.notFound],
  ["unauthorized", EXIT.auth],
  ["access_denied", EXIT.auth],
  // A gateway uses these kinds if its upstream cannot be reached.
  ["unreachable", EXIT.unreachable],
  ["timeout", EXIT.unreachable],
]);

export interface Failure {
  readonly exit: number;
  readonly kind: FailureKind;
  readonly message: string;
  /** The kind of the underlying error, such as `timeout`, `closed` or `tool_not_found`. */
  readonly reason?: string;
  /** The JSON-RPC error code, if the server answered with an error. */
  readonly code?: number;
  readonly data?: unknown;
}

export function toFailure(error: unknown): Failure {
  const message = errorMessage(error);
  if (error instanceof McpError) {
    const exit = SERVER_EXITS.get(error.kind) ?? EXIT.toolFailed;
    return { ...failure(exit, withDetails(message, error)), ...serverError(error) };
  }
  if (error instanceof NotFoundError && error.cause instanceof McpError) {
    return { ...failure(EXIT.notFound, message), ...serverError(error.cause) };
  }
  if (error instanceof ConnectionError) {
    return { ...failure(connectionExit(error), withFlags(error)), reason: error.kind };
  }
  return failure(error instanceof Error && "exit" in error ? Number(error.exit) : EXIT.usage, message);
}

/** Some errors have only a title ("Invalid Request") as their message, and the reason in `data.details`. */
function withDetails(message: string, { data }: McpError): string {
  const details = isObject(data) ? data["details"] : undefined;
  return typeof details !== "string" || message.includes(details) ? message : `${message}: ${details}`;
}

function serverError({ kind: reason, code, data }: McpError): Pick<Failure, "reason" | "code" | "data"> {
  return { ...defined({ reason, data }), code };
}

/** The message with the hint for the command line (flags) in place of the one for programmers (options). */
export function withFlags(error: Pick<ConnectionError, "problem" | "hint" | "diagnostics">): string {
  const { problem, hint, diagnostics = "" } = error;
  const advice = hint?.flags ?? hint?.text ?? "";
  return `${problem}${advice && `; ${advice}`}${diagnostics}`;
}

/** The pages that the user must visit before the call can succeed. */
export function requiredPages(error: unknown): string[] {
  if (!(error instanceof McpError) || error.kind !== "url_elicitation_required" || !isObject(error.data)) return [];
  const { elicitations } = error.data;
  return withKey<{ readonly url: string }>(elicitations, "url").flatMap(({ url }) =>
    /^https?:\/\//i.test(url) ? [url] : [],
  );
}

function failure(exit: number, message: string): Failure {
  return { exit, kind: KINDS[exit] ?? "failed", message };
}

function connectionExit({ kind, cause }: ConnectionError): number {
  if (kind === "unauthorized") return EXIT.auth;
  if (kind === "cancelled") return EXIT.interrupted;
  // The system's error; see process/program.ts.
  const { code } = (cause ?? {}) as NodeJS.ErrnoException;
  return kind === "spawn" && code === "ENOENT" ? EXIT.notFound : EXIT.unreachable;
}
