// One line for each request, when it is over: what was asked and of which tool, what came of it, how long it took, and
// who asked. Names come from other people and are shown in a form that can end no line and colour no terminal.
// Arguments, results and the texts of errors are an end's and its callers' own affair, and are only shown where that
// is asked for.

import type { Context } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Link, Request, Result } from "../../core/handler.ts";
import { errorMessage } from "../../core/text.ts";
import { McpError } from "../../protocol/errors.ts";
import { OptionReader } from "../../core/options.ts";

export type Severity = "info" | "warning" | "error";

export interface LogOptions {
  /** The least severe lines that are written; `info`, which is all. Tools that fail are warnings. */
  readonly level?: Severity;
  /** A line for people, or a JSON object; `text`. */
  readonly format?: "text" | "json";
  /** Shows arguments and the texts of errors too, cut to 200 letters, or to so many. They may be secret. */
  readonly arguments?: boolean | number;
  /** Takes each line, without its end; the process's stderr, where it is left out. */
  readonly write?: (line: string) => void;
}

const SEVERITIES: readonly Severity[] = ["info", "warning", "error"];
const CUT = 200;
const MOST_NAME = 120;

export function log(options: LogOptions = {}): Link {
  const read = new OptionReader("log", options, ["level", "format", "arguments", "write"]);
  const least = SEVERITIES.indexOf(read.choice("level", SEVERITIES) ?? "info");
  const form = (read.choice("format", ["text", "json"]) ?? "text") === "json" ? JSON.stringify : asText;
  const given = read.any("arguments");
  const cut = given === true ? CUT : given === undefined || given === false ? 0 : (read.count("arguments") ?? 0);
  const write = (read.function("write") as LogOptions["write"]) ?? toStderr;
  const tell = (request: Request, context: Context, begun: number, outcome: Outcome): void => {
    if (SEVERITIES.indexOf(outcome.level) < least) return;
    try {
      write(form(entryOf(request, context, begun, cut, outcome)));
    } catch {
      // A log that cannot be written is no reason to fail.
    }
  };
  return {
    name: "log",
    run: async (request, context, next) => {
      const begun = performance.now();
      try {
        const result = await next(request, context);
        tell(request, context, begun, outcomeOf(result));
        return result;
      } catch (error) {
        tell(request, context, begun, failureOf(error, context, cut));
        throw error;
      }
    },
  };
}

/** In the order in which it is shown. */
interface Entry {
  readonly time: string;
  readonly level: Severity;
  readonly method: string;
  /** The tool, the prompt or the address. */
  readonly name?: string;
  readonly outcome: string;
  readonly error?: string;
  readonly ms: number;
  readonly caller?: string;
  readonly arguments?: string;
}

type Outcome = Pick<Entry, "level" | "outcome" | "error">;

function entryOf(request: Request, context: Context, begun: number, cut: number, outcome: Outcome): Entry {
  const name = nameOf(request);
  const caller = context.caller.info?.name;
  const args = cut > 0 ? request.params["arguments"] : undefined;
  return {
    time: new Date().toISOString(),
    level: outcome.level,
    method: short(request.method, MOST_NAME),
    ...(name === undefined ? undefined : { name }),
    outcome: outcome.outcome,
    ...(outcome.error === undefined ? undefined : { error: outcome.error }),
    ms: Math.round((performance.now() - begun) * 10) / 10,
    ...(typeof caller === "string" ? { caller: short(caller, MOST_NAME) } : undefined),
    ...(args === undefined ? undefined : { arguments: short(jsonOf(args), cut) }),
  };
}

function nameOf({ params }: Request): string | undefined {
  const { name, uri } = params;
  if (typeof name === "string") return short(name, MOST_NAME);
  // A query, or what stands before an @, may be a secret.
  return typeof uri === "string"
    ? short(uri.replace(/[?#].*$/s, "").replace(/\/\/[^/]*@/, "//"), MOST_NAME)
    : undefined;
}

function outcomeOf({ resultType = "complete", isError }: Result): Outcome {
  return isError === true
    ? { level: "warning", outcome: "tool error" }
    : { level: "info", outcome: short(errorMessage(resultType), MOST_NAME) };
}

function failureOf(error: unknown, { signal }: Context, cut: number): Outcome {
  if (signal.aborted) return { level: "info", outcome: "cancelled" };
  const [level, what] = kindOf(error);
  return { level, outcome: "failed", error: cut > 0 ? `${what}: ${short(errorMessage(error), cut)}` : what };
}

/** A refusal is a warning; what somebody has to look after is an error. */
function kindOf(error: unknown): [Severity, string] {
  try {
    // Its words are ours, and have no secrets.
    if (error instanceof ConnectionError) return ["error", short(`${error.kind}: ${error.message}`, CUT)];
    if (error instanceof McpError) {
      const { kind, code, data } = error;
      const by = (data as { middlewareName?: unknown } | undefined)?.middlewareName;
      const what = `${kind ?? code}${typeof by === "string" ? ` at the link ${short(by, MOST_NAME)}` : ""}`;
      return [kind === "internal_error" || kind === "unreachable" || kind === "timeout" ? "error" : "warning", what];
    }
    if (error instanceof Error) return ["error", short(error.name, MOST_NAME)];
  } catch {
    // What was thrown is a user's own, and may bite.
  }
  return ["error", "something was thrown that is no error"];
}

function asText({ time, level, method, name, outcome, error, ms, caller, ...more }: Entry): string {
  const what = name === undefined ? method : `${method} ${name}`;
  const came = error === undefined ? outcome : `${outcome} (${error})`;
  const who = caller === undefined ? "" : `, for ${caller}`;
  const args = more.arguments === undefined ? "" : `, arguments ${more.arguments}`;
  return `${time} ${level} ${what}: ${came}, ${ms} ms${who}${args}`;
}

/** Cut, and with nothing in it that a terminal or a reader of lines would take for more than letters. */
function short(text: string, most: number): string {
  const cut = text.length > most ? `${text.slice(0, most)}…` : text;
  return cut.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (letter) => {
    return `\\u{${(letter.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "that have no JSON";
  }
}

function toStderr(line: string): void {
  process.stderr.write(`${line}\n`);
}
