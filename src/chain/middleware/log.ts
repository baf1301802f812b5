// Writes one line for each request when it is finished: the method and the tool, the upstream, the outcome, the duration
// and the caller. Names come from outside, so characters that could end a line or control a terminal are escaped.
// Arguments, errors of upstreams and the output of programs may contain secrets. They are only written if the option
// `arguments` is set. The message of a ConnectionError is always written, and may quote a line of an upstream. In all of
// these, what can be recognized as a secret is replaced.

import { callListener } from "../../core/listeners.ts";
import { copyContext } from "../../core/cancel.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context, Middleware, Request, Result } from "../../core/handler.ts";
import { boolean, choice, count, either, func, type OptionsOf } from "../../core/fields.ts";
import { sanitize } from "../../core/text.ts";
import { errorMessage } from "../../core/values.ts";
import { trusted } from "../../protocol/compose.ts";
import { McpError, withoutDiagnostics } from "../../protocol/errors.ts";
import { withoutSecrets } from "../../protocol/redactor.ts";
import { define, type DefinedMiddleware } from "../define.ts";

/** The level of a line that `log()` writes. */
export type Severity = "info" | "warning" | "error";

const SEVERITIES: readonly Severity[] = ["info", "warning", "error"];
const DEFAULT_LENGTH = 200;
const MAX_NAME_LENGTH = 120;

const OPTIONS = {
  level: choice("The lowest level that is written. Default: info, which is everything.", SEVERITIES),
  format: choice("A line for people, or a JSON object. Default: text.", ["text", "json"]),
  arguments: either(
    "Also writes arguments and error messages, without secrets that are recognized, cut to 200 characters or to this number.",
    boolean(""),
    count(""),
  ),
  /** Gets each line, without a line break. Default: writes it to stderr. */
  write: func<(line: string) => void>(),
};

/** Options of `log()`. */
export type LogOptions = OptionsOf<typeof OPTIONS>;

/**
 * Writes one line for each request when it is finished: method, tool, upstream, outcome, duration and caller.
 *
 * @example
 * log({ level: "warning", format: "json" })
 */
export const log: DefinedMiddleware<[options?: LogOptions]> = define({
  name: "log",
  summary: "Writes a line to stderr for each request.",
  options: OPTIONS,
  middleware: createLog,
});

function createLog({
  level = "info",
  format: form,
  arguments: given = false,
  write = writeToStderr,
}: LogOptions): Middleware {
  const lowest = SEVERITIES.indexOf(level);
  const format = form === "json" ? JSON.stringify : formatText;
  const maxLength = typeof given === "number" ? given : given ? DEFAULT_LENGTH : 0;
  const writeLine = (request: Request, context: Context, pending: Pending, outcome: Outcome): unknown =>
    write(format(createEntry(request, context, pending, maxLength, outcome)));
  const writeEntry = (request: Request, context: Context, pending: Pending, outcome: Outcome): void => {
    if (SEVERITIES.indexOf(outcome.level) < lowest) return;
    // A log that cannot be written must not fail the request.
    callListener("write", writeLine, [request, context, pending, outcome]);
  };
  return trusted(function log(request, context, next) {
    const pending: Pending = { begun: performance.now(), upstream: undefined };
    const onRoute: Context["onRoute"] = (upstream, sent) => {
      pending.upstream = upstream;
      context.onRoute?.(upstream, sent);
    };
    return next(request, copyContext(context, { onRoute })).then(
      (result) => {
        writeEntry(request, context, pending, successOf(result));
        return result;
      },
      (error: unknown) => {
        writeEntry(request, context, pending, failureOf(error, context, maxLength));
        throw error;
      },
    );
  });
}

/** A request that is not finished. */
interface Pending {
  readonly begun: number;
  /** The upstream that got the request last. */
  upstream: string | undefined;
}

/** The fields in the order in which they are written. */
interface Entry {
  readonly time: string;
  readonly level: Severity;
  readonly method: string;
  /** The tool, the prompt or the URI. */
  readonly name?: string;
  /** Of a gateway with several. */
  readonly upstream?: string;
  readonly outcome: string;
  readonly error?: string;
  readonly ms: number;
  readonly caller?: string;
  /** In code mode: the id of the run of `run-code` that made the call. */
  readonly run?: string;
  readonly arguments?: string;
}

type Outcome = Pick<Entry, "level" | "outcome" | "error">;

function createEntry(request: Request, context: Context, pending: Pending, maxLength: number, outcome: Outcome): Entry {
  const name = nameIn(request);
  const caller = context.caller.info?.name;
  const args = maxLength > 0 ? request.params["arguments"] : undefined;
  return {
    time: new Date().toISOString(),
    level: outcome.level,
    method: sanitize(request.method, MAX_NAME_LENGTH),
    ...(name === undefined ? undefined : { name }),
    ...(pending.upstream === undefined ? undefined : { upstream: sanitize(pending.upstream, MAX_NAME_LENGTH) }),
    outcome: outcome.outcome,
    ...(outcome.error === undefined ? undefined : { error: outcome.error }),
    ms: Math.round((performance.now() - pending.begun) * 10) / 10,
    ...(typeof caller === "string" ? { caller: sanitize(caller, MAX_NAME_LENGTH) } : undefined),
    ...(context.run === undefined ? undefined : { run: context.run }),
    ...(args === undefined ? undefined : { arguments: sanitize(withoutSecrets(jsonOf(args)), maxLength) }),
  };
}

function nameIn({ params }: Request): string | undefined {
  const { name, uri } = params;
  if (typeof name === "string") return sanitize(name, MAX_NAME_LENGTH);
  return typeof uri === "string" ? sanitize(publicUri(uri), MAX_NAME_LENGTH) : undefined;
}

/** Without the query and the user info before an @, which may be secret. */
export function publicUri(uri: string): string {
  return uri.replace(/[?#].*$/s, "").replace(/\/\/[^/]*@/, "//");
}

const COMPLETE: Outcome = { level: "info", outcome: "complete" };

function successOf({ resultType, isError }: Result): Outcome {
  if (isError === true) return { level: "warning", outcome: "tool error" };
  return resultType === undefined || resultType === "complete"
    ? COMPLETE
    : { level: "info", outcome: sanitize(errorMessage(resultType), MAX_NAME_LENGTH) };
}

function failureOf(error: unknown, { signal }: Context, maxLength: number): Outcome {
  if (signal.aborted) return { level: "info", outcome: "cancelled" };
  const [level, summary, ownMessage] = summaryOf(error);
  const message = maxLength > 0 ? errorMessage(error) : ownMessage;
  if (message === undefined) return { level, outcome: "failed", error: summary };
  // Secrets are replaced before the message is cut, since the rest of one would not be recognized.
  const shown = sanitize(withoutSecrets(message), maxLength > 0 ? maxLength : DEFAULT_LENGTH);
  return { level, outcome: "failed", error: `${summary}: ${shown}` };
}

/**
 * The level, what failed, and the message if it is written even without the option `arguments`. A refused request is a
 * warning. A failure that an operator should look at is an error.
 */
function summaryOf(error: unknown): [Severity, string, string?] {
  try {
    if (error instanceof ConnectionError) return ["error", error.kind, withoutDiagnostics(error)];
    if (error instanceof McpError) {
      const { kind, code, data } = error;
      const by = (data as { middlewareName?: unknown } | undefined)?.middlewareName;
      const where = typeof by === "string" ? ` in the middleware ${sanitize(by, MAX_NAME_LENGTH)}` : "";
      const isError = kind === "internal_error" || kind === "unreachable" || kind === "timeout";
      return [isError ? "error" : "warning", `${kind ?? code}${where}`];
    }
    if (error instanceof Error) return ["error", sanitize(error.name, MAX_NAME_LENGTH)];
  } catch {
    // The thrown value may be a Proxy whose traps throw.
  }
  return ["error", "the thrown value is not an Error"];
}

function formatText({ time, level, method, name, upstream, outcome, error, ms, caller, ...more }: Entry): string {
  const where = upstream === undefined ? "" : ` (${upstream})`;
  const what = `${name === undefined ? method : `${method} ${name}`}${where}`;
  const how = error === undefined ? outcome : `${outcome} (${error})`;
  const who = caller === undefined ? "" : `, for ${caller}`;
  const run = more.run === undefined ? "" : `, run ${more.run}`;
  const args = more.arguments === undefined ? "" : `, arguments ${more.arguments}`;
  return `${time} ${level} ${what}: ${how}, ${ms} ms${who}${run}${args}`;
}

/** Never throws. */
export function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "(not serializable)";
  }
}

function writeToStderr(line: string): void {
  process.stderr.write(`${line}\n`);
}
