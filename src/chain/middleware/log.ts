// Writes one line for each request when it is finished: the method and the tool, the upstream, the outcome, the duration
// and the caller. Names come from outside, so characters that could end a line or control a terminal are escaped.
// Arguments, errors of upstreams and the output of programs may contain secrets. They are only written if the option
// `arguments` is set. The message of a ConnectionError is always written, and may quote a line of an upstream. In all of
// these, what can be recognized as a secret is replaced.

import { callListener } from "../../core/listeners.ts";
import { ConnectionError } from "../../core/errors.ts";
import { boolean, choice, count, documented, either, func, type OptionsOf, type ValuesOf } from "../../core/fields.ts";
import type { Middleware } from "../../core/handler.ts";
import { sanitize } from "../../core/text.ts";
import { errorMessage } from "../../core/values.ts";
import { McpError, withoutDiagnostics } from "../../protocol/errors.ts";
import { withoutSecrets } from "../../core/redactor.ts";
import { define, type DefinedMiddleware } from "../define.ts";
import { jsonOf, readBy, type CallReader, type ObservedCall } from "../observe.ts";

/** The level of a line that `log()` writes. */
export type Severity = "info" | "warning" | "error";

const SEVERITIES: readonly Severity[] = ["info", "warning", "error"];
const DEFAULT_LENGTH = 200;
const MAX_NAME_LENGTH = 120;

const OPTIONS = {
  level: choice("The lowest level that is written.", SEVERITIES).or("info"),
  format: choice("A line for people, or a JSON object.", ["text", "json"]).or("text"),
  arguments: either(
    "Also writes arguments and error messages, without secrets that are recognized, cut to 200 characters or to this number.",
    boolean(""),
    count(""),
  ).or(false),
  write: documented("Gets each line, without a line break. Default: stderr.", func<(line: string) => void>()),
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
  keepsLists: true,
  middleware: createLog,
});

function createLog({
  level,
  format: form,
  arguments: logsArguments,
  write = writeToStderr,
}: ValuesOf<typeof OPTIONS>): Middleware {
  const lowest = SEVERITIES.indexOf(level);
  const format = form === "json" ? JSON.stringify : formatText;
  const maxLength = typeof logsArguments === "number" ? logsArguments : logsArguments ? DEFAULT_LENGTH : 0;
  const writeLine = (call: ObservedCall, outcome: Outcome): unknown =>
    write(format(createEntry(call, outcome, maxLength)));
  const reader: CallReader = {
    end: (call) => {
      const outcome = outcomeOf(call, maxLength);
      // A log that cannot be written must not fail the request.
      if (SEVERITIES.indexOf(outcome.level) >= lowest) callListener("write", writeLine, [call, outcome]);
    },
  };
  return readBy(reader);
}

interface Outcome {
  readonly level: Severity;
  readonly outcome: string;
  readonly error?: string;
}

type Entry = ReturnType<typeof createEntry>;

/** The fields in the order in which they are written. Those that are undefined are left out. */
function createEntry(call: ObservedCall, { level, outcome, error }: Outcome, maxLength: number) {
  const { name, upstream, caller, request, context } = call;
  const args = maxLength > 0 ? request.params["arguments"] : undefined;
  return {
    time: new Date().toISOString(),
    level,
    method: shortText(request.method),
    name: shortText(name),
    upstream: shortText(upstream),
    outcome,
    error,
    ms: Math.round(call.ms * 10) / 10,
    caller: shortText(caller.info?.name),
    run: context.run,
    arguments: args === undefined ? undefined : sanitize(withoutSecrets(jsonOf(args)), maxLength),
  };
}

function shortText<Text extends string | undefined>(text: Text): Text;
function shortText(text: unknown): string | undefined {
  return typeof text === "string" ? sanitize(text, MAX_NAME_LENGTH) : undefined;
}

const COMPLETE: Outcome = { level: "info", outcome: "complete" };

function outcomeOf(call: ObservedCall, maxLength: number): Outcome {
  const { outcome } = call;
  if (outcome === "complete") return COMPLETE;
  if (outcome === "tool_error") return { level: "warning", outcome: "tool error" };
  if (call.status !== "failed") return { level: "info", outcome: shortText(outcome) };
  const [level, summary, ownMessage] = summaryOf(call);
  const message = maxLength > 0 ? errorMessage(call.error) : ownMessage;
  if (message === undefined) return { level, outcome, error: summary };
  // Secrets are replaced before the message is cut, since the rest of one would not be recognized.
  const errorText = sanitize(withoutSecrets(message), maxLength > 0 ? maxLength : DEFAULT_LENGTH);
  return { level, outcome, error: `${summary}: ${errorText}` };
}

/** The kinds of errors that an operator should look at. Other answers refuse a request, which is a warning. */
const SERIOUS: ReadonlySet<unknown> = new Set(["internal_error", "unreachable", "timeout"]);

/** The level, what failed, and the message if it is written even without the option `arguments`. */
function summaryOf({ error, errorKind }: ObservedCall): [Severity, string, string?] {
  try {
    if (error instanceof ConnectionError) return ["error", error.kind, withoutDiagnostics(error)];
    if (error instanceof McpError) {
      const by = (error.data as { middlewareName?: unknown } | undefined)?.middlewareName;
      const where = typeof by === "string" ? ` in the middleware ${shortText(by)}` : "";
      return [SERIOUS.has(errorKind) ? "error" : "warning", `${errorKind}${where}`];
    }
    if (error instanceof Error) return ["error", shortText(error.name)];
  } catch {
    // The thrown value may be a Proxy whose traps throw.
  }
  return ["error", "the thrown value is not an Error"];
}

function formatText(entry: Entry): string {
  const { time, level, method, name, upstream, outcome, error, ms, caller, run, arguments: args } = entry;
  const what = name === undefined ? method : `${method} ${name}`;
  const where = upstream === undefined ? "" : ` (${upstream})`;
  const how = error === undefined ? outcome : `${outcome} (${error})`;
  const who = `${caller === undefined ? "" : `, for ${caller}`}${run === undefined ? "" : `, run ${run}`}`;
  return `${time} ${level} ${what}${where}: ${how}, ${ms} ms${who}${args === undefined ? "" : `, arguments ${args}`}`;
}

function writeToStderr(line: string): void {
  process.stderr.write(`${line}\n`);
}
