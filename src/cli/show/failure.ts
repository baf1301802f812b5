// What went wrong, for the person and for programs: an exit code, one sentence, and with --json one document on stdout.
// Every error of the engine finds its exit code here; what a command knows better it throws as an error of its own.

import { ConnectionError } from "../../core/errors.ts";
import { errorMessage } from "../../core/text.ts";
import { isObject } from "../../core/objects.ts";
import { McpError } from "../../protocol/errors.ts";
import { EXIT, NotFoundError } from "../exit-codes.ts";
import { fitFor } from "../terminal/harmless.ts";
import { lostOutput, printJson } from "../terminal/print.ts";

/** One for each exit code. */
type Kind = "usage" | "not_found" | "auth" | "unreachable" | "failed" | "interrupted";

export interface Failure {
  readonly exit: number;
  readonly kind: Kind;
  readonly message: string;
  /** What the engine calls it: `timeout`, `closed`, `tool_not_found` and the like. */
  readonly reason?: string;
  /** Of the error that the end answered with. */
  readonly code?: number;
  readonly data?: unknown;
}

const KINDS: ReadonlyMap<number, Kind> = new Map([
  [EXIT.usage, "usage"],
  [EXIT.notFound, "not_found"],
  [EXIT.auth, "auth"],
  [EXIT.unreachable, "unreachable"],
  [EXIT.toolFailed, "failed"],
  [EXIT.interrupted, "interrupted"],
]);

export function failureOf(error: unknown): Failure {
  const message = errorMessage(error);
  if (error instanceof McpError) return { ...failed(exitOf(error), detailed(message, error)), ...answerOf(error) };
  if (error instanceof NotFoundError && error.cause instanceof McpError) {
    return { ...failed(EXIT.notFound, message), ...answerOf(error.cause) };
  }
  if (error instanceof ConnectionError)
    return { ...failed(exitOfLink(error), inOurWords(message)), reason: error.kind };
  return failed(error instanceof Error && "exit" in error ? Number(error.exit) : EXIT.usage, message);
}

/** Some errors have a name for a message ("Invalid Request"), and say what is wrong beside it. */
function detailed(message: string, { data }: McpError): string {
  const details = isObject(data) ? data["details"] : undefined;
  return typeof details !== "string" || message.includes(details) ? message : `${message}: ${details}`;
}

/** What the end has answered. */
function answerOf({ kind: reason, code, data }: McpError): Pick<Failure, "reason" | "code" | "data"> {
  return { ...(reason === undefined ? undefined : { reason }), code, ...(data === undefined ? undefined : { data }) };
}

/** The engine advises programmers; whoever sits at a command line has flags. */
const WORDS: readonly (readonly [theirs: RegExp, ours: string])[] = [
  [/: give `redirect` .*?, or another grant/, ""],
  [/ given to bearerToken/, ""],
  [/configure `client` with one that it knows/, "name one that it knows by --client-id"],
  [/`auth`, or a header/, "CATENARY_TOKEN, or --header"],
  [/`startTimeout`/, "--timeout"],
  [/raise the timeout/, "--timeout gives it longer"],
  [/; ask for single pages with `cursor`/, ""],
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

function inOurWords(message: string): string {
  return WORDS.reduce((text, [theirs, ours]) => text.replace(theirs, ours), message);
}

/** Where a person has to go first. */
export function pagesOf(error: unknown): string[] {
  if (!(error instanceof McpError) || error.kind !== "url_elicitation_required" || !isObject(error.data)) return [];
  const { elicitations } = error.data;
  const pages: readonly unknown[] = Array.isArray(elicitations) ? elicitations : [];
  return pages.flatMap((page) => (isObject(page) && isPage(page["url"]) ? [page["url"]] : []));
}

function isPage(address: unknown): address is string {
  return typeof address === "string" && /^https?:\/\//i.test(address);
}

function failed(exit: number, message: string): Failure {
  return { exit, kind: KINDS.get(exit) ?? "failed", message };
}

function exitOf(error: McpError): number {
  switch (error.kind) {
    case "tool_not_found":
    case "resource_not_found":
    case "prompt_not_found":
      return EXIT.notFound;
    case "unauthorized":
    case "access_denied":
      return EXIT.auth;
    // Of a gateway: it answers for an end that does not.
    case "unreachable":
    case "timeout":
      return EXIT.unreachable;
    default:
      return EXIT.toolFailed;
  }
}

function exitOfLink({ kind, cause }: ConnectionError): number {
  if (kind === "unauthorized") return EXIT.auth;
  if (kind === "cancelled") return EXIT.interrupted;
  // The system's own answer is the cause of the explanation that is the cause.
  const code = ((cause as Error | undefined)?.cause as NodeJS.ErrnoException | undefined)?.code;
  return kind === "spawn" && code === "ENOENT" ? EXIT.notFound : EXIT.unreachable;
}

/** Runs a command; what it throws is said, and becomes its exit code. One that goes on running has none yet. */
export async function reporting<Code extends number | undefined>(
  args: readonly string[],
  run: () => Promise<Code>,
): Promise<Code | number> {
  try {
    const exit = await run();
    const lost = lostOutput();
    if (lost !== undefined) throw new Error(`stdout cannot be written: ${lost.message}`);
    return exit;
  } catch (error) {
    const { exit, ...failure } = failureOf(error);
    const end = args.indexOf("--");
    if (args.slice(0, end < 0 ? undefined : end).includes("--json")) printJson({ error: failure });
    const code = error instanceof McpError ? ` (${error.code})` : "";
    const lines = [`catenary: ${failure.message}${code}`, ...pagesOf(error).map((page) => `Visit first: ${page}`)];
    for (const line of lines) process.stderr.write(`${fitFor(process.stderr, line)}\n`);
    return exit;
  }
}
