// What went wrong, for the person and for programs: an exit code, one sentence, and with --json one document on stdout.
// Every error of the engine finds its exit code here; what a command knows better it throws as an error of its own.

import { LinkError } from "../core/errors.ts";
import { textOf } from "../core/text.ts";
import { isObject } from "../protocol/check.ts";
import { McpError } from "../protocol/errors.ts";
import { EXIT } from "./exit-codes.ts";
import { fitFor } from "./harmless.ts";
import { printJson } from "./print.ts";

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
  const message = [textOf(error), ...pagesOf(error)].join("\n");
  if (error instanceof McpError) {
    const { kind: reason, code, data } = error;
    const about = {
      ...(reason === undefined ? undefined : { reason }),
      code,
      ...(data === undefined ? undefined : { data }),
    };
    return { ...failed(exitOf(error), message), ...about };
  }
  if (error instanceof LinkError) return { ...failed(exitOfLink(error), message), reason: error.kind };
  return failed(error instanceof Error && "exit" in error ? Number(error.exit) : EXIT.usage, message);
}

/** Where a person has to go first. */
function pagesOf(error: unknown): string[] {
  if (!(error instanceof McpError) || error.kind !== "url_elicitation_required" || !isObject(error.data)) return [];
  const { elicitations } = error.data;
  const pages: readonly unknown[] = Array.isArray(elicitations) ? elicitations : [];
  return pages.flatMap((page) =>
    isObject(page) && typeof page["url"] === "string" ? [`Visit first: ${page["url"]}`] : [],
  );
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
    default:
      return EXIT.toolFailed;
  }
}

function exitOfLink({ kind, cause }: LinkError): number {
  if (kind === "unauthorized") return EXIT.auth;
  if (kind === "cancelled") return EXIT.interrupted;
  // The system's own answer is the cause of the explanation that is the cause.
  const code = ((cause as Error | undefined)?.cause as NodeJS.ErrnoException | undefined)?.code;
  return kind === "spawn" && code === "ENOENT" ? EXIT.notFound : EXIT.unreachable;
}

/** Runs a command; what it throws is said, and becomes its exit code. */
export async function reporting(args: readonly string[], run: () => Promise<number>): Promise<number> {
  try {
    return await run();
  } catch (error) {
    const { exit, ...failure } = failureOf(error);
    const end = args.indexOf("--");
    if (args.slice(0, end < 0 ? undefined : end).includes("--json")) printJson({ error: failure });
    const code = failure.code === undefined ? "" : ` (${failure.code})`;
    process.stderr.write(`catenary: ${fitFor(process.stderr, failure.message)}${code}\n`);
    return exit;
  }
}
