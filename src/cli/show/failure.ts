// Turns errors into an exit code, a message on stderr, and with --json a document on stdout. Errors of the engine get
// their exit code here; commands throw the errors of command.ts.

import { ConnectionError } from "../../core/errors.ts";
import { isObject, errorMessage } from "../../core/values.ts";
import { McpError } from "../../protocol/errors.ts";
import { EXIT, NotFoundError, type Command } from "../command.ts";
import { printJson, stdoutError } from "../terminal/output.ts";
import { sanitizeFor } from "../terminal/sanitize.ts";

/** One for each exit code. */
type FailureKind = "usage" | "not_found" | "auth" | "unreachable" | "failed" | "interrupted";

export interface Failure {
  readonly exit: number;
  readonly kind: FailureKind;
  readonly message: string;
  /** The kind of the underlying error, such as `timeout`, `closed` or `tool_not_found`. */
  readonly reason?: string;
  /** The code of the server's error. */
  readonly code?: number;
  readonly data?: unknown;
}

const KINDS: ReadonlyMap<number, FailureKind> = new Map([
  [EXIT.usage, "usage"],
  [EXIT.notFound, "not_found"],
  [EXIT.auth, "auth"],
  [EXIT.unreachable, "unreachable"],
  [EXIT.toolFailed, "failed"],
  [EXIT.interrupted, "interrupted"],
]);

export function toFailure(error: unknown): Failure {
  const message = errorMessage(error);
  if (error instanceof McpError) {
    return { ...failure(mcpExit(error), withDetails(message, error)), ...serverError(error) };
  }
  if (error instanceof NotFoundError && error.cause instanceof McpError) {
    return { ...failure(EXIT.notFound, message), ...serverError(error.cause) };
  }
  if (error instanceof ConnectionError) {
    return { ...failure(connectionExit(error), withFlags(message)), reason: error.kind };
  }
  return failure(error instanceof Error && "exit" in error ? Number(error.exit) : EXIT.usage, message);
}

/** Some errors have only a title ("Invalid Request") as message and the reason in `data.details`. */
function withDetails(message: string, { data }: McpError): string {
  const details = isObject(data) ? data["details"] : undefined;
  return typeof details !== "string" || message.includes(details) ? message : `${message}: ${details}`;
}

function serverError({ kind: reason, code, data }: McpError): Pick<Failure, "reason" | "code" | "data"> {
  return { ...(reason === undefined ? undefined : { reason }), code, ...(data === undefined ? undefined : { data }) };
}

/** Replaces advice for programmers (options) by advice for the command line (flags). */
const REWORDINGS: readonly (readonly [pattern: RegExp, replacement: string])[] = [
  [/: give `redirect` .*?, or another grant/, ""],
  [/ given to bearerToken/, ""],
  [/configure `client` with one that it knows/, "name one that it knows by --client-id"],
  [/`auth` or an authorization header/, "CATENARY_TOKEN or --header"],
  [/`startTimeoutMs`/, "--timeout"],
  [/raise `timeoutMs`/, "--timeout gives it longer"],
  [/; raise `maxTimeoutMs`/, ""],
  [/; use `cursor` to request single pages/, ""],
  [/ \(limits\.messageBytes\)/, ""],
  [/change "cwd"$/, "change --cwd"],
  [/give its full path as "command"/, "give its full path"],
  [
    /; put the program alone into "command" and its arguments into "args"/,
    "; do not quote it together with its arguments",
  ],
  [/; check "command"$/, ""],
  [/name it as "command"/, "start it by another"],
  [/, with the file in "args"$/, ""],
  [/shorten "args" or "env"/, "shorten them"],
];

function withFlags(message: string): string {
  return REWORDINGS.reduce((text, [pattern, replacement]) => text.replace(pattern, replacement), message);
}

/** The pages that the user must visit first. */
export function requiredPages(error: unknown): string[] {
  if (!(error instanceof McpError) || error.kind !== "url_elicitation_required" || !isObject(error.data)) return [];
  const { elicitations } = error.data;
  const pages: readonly unknown[] = Array.isArray(elicitations) ? elicitations : [];
  return pages.flatMap((page) => (isObject(page) && isHttpUrl(page["url"]) ? [page["url"]] : []));
}

function isHttpUrl(value: unknown): value is string {
  return typeof value === "string" && /^https?:\/\//i.test(value);
}

function failure(exit: number, message: string): Failure {
  return { exit, kind: KINDS.get(exit) ?? "failed", message };
}

function mcpExit(error: McpError): number {
  switch (error.kind) {
    case "tool_not_found":
    case "resource_not_found":
    case "prompt_not_found":
      return EXIT.notFound;
    case "unauthorized":
    case "access_denied":
      return EXIT.auth;
    // A gateway reports that its upstream cannot be reached.
    case "unreachable":
    case "timeout":
      return EXIT.unreachable;
    default:
      return EXIT.toolFailed;
  }
}

function connectionExit({ kind, cause }: ConnectionError): number {
  if (kind === "unauthorized") return EXIT.auth;
  if (kind === "cancelled") return EXIT.interrupted;
  // The cause explains the system's error, which is its own cause.
  const code = ((cause as Error | undefined)?.cause as NodeJS.ErrnoException | undefined)?.code;
  return kind === "spawn" && code === "ENOENT" ? EXIT.notFound : EXIT.unreachable;
}

/** A command whose errors are reported and become its exit code. */
export function defineCommand(help: string, run: (args: readonly string[]) => Promise<number | undefined>): Command {
  return { help, run: (args) => reportFailures(args, () => run(args)) };
}

export async function reportFailures(
  args: readonly string[],
  run: () => Promise<number | undefined>,
): Promise<number | undefined> {
  try {
    const exit = await run();
    const lost = stdoutError();
    if (lost !== undefined) throw new Error(`Cannot write to stdout: ${lost.message}`);
    return exit;
  } catch (error) {
    const { exit, ...document } = toFailure(error);
    const separator = args.indexOf("--");
    if (args.slice(0, separator < 0 ? undefined : separator).includes("--json")) printJson({ error: document });
    const code = error instanceof McpError ? ` (${error.code})` : "";
    const pages = requiredPages(error).map((page) => `Visit this page first: ${page}`);
    for (const line of [`catenary: ${document.message}${code}`, ...pages]) {
      process.stderr.write(`${sanitizeFor(process.stderr, line)}\n`);
    }
    return exit;
  }
}
