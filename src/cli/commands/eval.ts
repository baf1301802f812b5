// `catenary eval LANGUAGE CODE`: runs one evaluation in a live session of its own. Prints output as it arrives, then
// the values. Ctrl-C interrupts the evaluation.

import { readFile } from "node:fs/promises";
import { text as readStream } from "node:stream/consumers";
import { abortable, within } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { boolean } from "../../core/fields.ts";
import { defined } from "../../core/values.ts";
import type { EvaluationRecord } from "../../live/evaluation.ts";
import { findLanguage, LANGUAGE_NAMES, LANGUAGES, languageSettings, suggestLanguage } from "../../live/languages.ts";
import { DEFAULT_LIMITS, type Runtime } from "../../live/runtime.ts";
import type { LanguageEntry } from "../../live/tool.ts";
import { EXIT, Interruption, NotFoundError, UsageError } from "../command.ts";
import { command, type Command } from "../define.ts";
import { flag, parseFlags, seconds, type Flag } from "../flags.ts";
import { isTerminal, paint, printJson, printStatus } from "../terminal/output.ts";

/** The settings of a config that are a flag here too: those that are a string. */
const SETTINGS = [...languageSettings()].filter(([, { field }]) => field.schema?.["type"] === "string");

/** The languages, for the help of `eval` and `repl`. */
export const LANGUAGES_ABOUT: string = LANGUAGES.map(
  ({ name, description }) => `  ${name.padEnd(22)} ${description}`,
).join("\n");

/** Which program runs the language. Typed as the one flag that every language has; the others are only passed on. */
export const LANGUAGE_FLAGS = {
  program: flag(
    "PATH",
    "The program that runs the LANGUAGE, such as `gst`, as in [a config](config.md#live-live-sessions).",
  ),
  ...Object.fromEntries(
    SETTINGS.map(([name, { field, titles }]) => {
      const text = `For ${titles.join(" and ")}: the same as \`${name}\` in [a config](smalltalk.md#options).`;
      return [name, flag(field.isPath === true ? "PATH" : "URL", text)];
    }),
  ),
} as { readonly program: Flag<string> };

export const SANDBOX_FLAG = {
  sandbox: boolean(
    "Runs the code in [a sandbox](live.md#sandbox): without network, your files and your environment. Needs bubblewrap.",
  ),
};

/** The settings that the flags give. Throws if the language does not have one of them, or cannot work with them. */
export function languageSettingsOf(
  language: LanguageEntry,
  values: Readonly<Record<string, unknown>>,
): { readonly program?: string; readonly [setting: string]: unknown } {
  const languageFlags = Object.keys(LANGUAGE_FLAGS).map((name) => [name, values[name]] as const);
  const settings = defined(Object.fromEntries(languageFlags)) as { readonly program?: string };
  for (const name of Object.keys(settings)) {
    if (name !== "program" && !Object.hasOwn(language.settings, name))
      throw new UsageError(`--${name} is not an option of ${language.title}`);
  }
  const problem = language.problem?.(settings);
  if (problem !== undefined) throw new UsageError(`--${problem.setting} ${problem.message}`);
  return settings;
}

/** The longest delay of a Node timer, in seconds. */
const MAX_SECONDS = 2_147_483;

const FLAGS = {
  file: flag("PATH", "Evaluates the code in this file. Errors name the file.", {
    expected: "the path of a file",
  }),
  timeout: seconds(
    `How long the evaluation may take. Default ${DEFAULT_LIMITS.timeoutMs / 1_000}; 0: no limit.`,
    MAX_SECONDS,
  ),
  ...LANGUAGE_FLAGS,
  ...SANDBOX_FLAG,
  json: boolean(
    'Prints one JSON document on stdout at the end: [the structured content](live.md#structured-content), `{"status", "values", "stdout", "stderr", "warnings", "condition", "timing", ...}`.',
  ),
};

export const evalCommand: Command = command({
  name: "eval",
  usage: `LANGUAGE CODE [OPTIONS] [-- ARGS...]
LANGUAGE - [OPTIONS] [-- ARGS...]
LANGUAGE --file PATH [OPTIONS] [-- ARGS...]`,
  about: `Evaluates CODE in a new live session. The languages are:

${LANGUAGES_ABOUT}

Output of the code goes to stdout and stderr at once; then the values of its last expression go to stdout, one per line,
on a terminal each after =>. undefined is not printed. An error goes to stderr with its frames and their variables. The
session ends with the evaluation: a top-level await is awaited, timers and threads are not. The code can read stdin, and
has ARGS as the arguments of its program. With - as CODE, the code itself is read from stdin. If no CODE comes before --,
the first word after it is the CODE, which may then begin with a dash.`,
  flags: FLAGS,
  exits: `0 ok; 1 wrong command line; 2 no such file; 4 the session could not be started (such as a program that is not
installed); 5 the evaluation failed or timed out; 130 interrupted.`,
  runArguments: evaluate,
});

/** Characters of output kept for --json. */
const MAX_OUTPUT_CHARS = 10_000_000;
/** If preparing or saving takes longer, a notice is printed. */
const NOTICE_AFTER_MS = 1_000;
/** How long to wait for an image that makes the next start faster. */
const SAVE_TIMEOUT_MS = 5_000;

async function parseLine(line: readonly string[]) {
  const at = line.includes("--") ? line.indexOf("--") : line.length;
  const ownWords = line.slice(0, at);
  const args = line.slice(at + 1);
  // A word such as `-1` or `-(` is code, but parseFlags would take it for an option.
  const dash = ownWords.findIndex((word) => /^-[\d.(]/.test(word));
  if (dash > 0 && !/^--(?:file|timeout)$/.test(ownWords[dash - 1] ?? "")) {
    throw new UsageError(`${ownWords[dash]} looks like an option: put -- before it, as in catenary eval js -- '-1'`);
  }
  const { words, values } = parseFlags("eval", ownWords, FLAGS);
  const [name, first, ...more] = words;
  if (name === undefined) {
    throw new UsageError(`eval needs a LANGUAGE: ${LANGUAGE_NAMES.join(", ")}\n\n${evalCommand.usage}`);
  }
  const language = parseLanguage(name);
  if (more.length > 0) {
    const advice = `put it in quotes, as in catenary eval ${name} 'CODE', and arguments of the program after --`;
    throw new UsageError(`eval takes one CODE: ${advice}`);
  }
  const { file, timeout: timeoutMs } = values;
  if (file !== undefined && first !== undefined) throw new UsageError("Give CODE or --file PATH, not both");
  const code = first ?? (file === undefined ? args.shift() : undefined);
  return {
    language,
    code: await readCode(code, file),
    ...{ file, timeoutMs },
    sandbox: values.sandbox === true,
    /** Which program runs the language, and its own settings. */
    settings: languageSettingsOf(language, values),
    json: values.json === true,
    /** The arguments of the program. */
    args,
    /** Whether the code came from stdin, so that the program has none. */
    isStdinUsed: code === "-",
  };
}

/** Throws a UsageError if this is none: the problem, and the language that was probably meant, or all of them. */
export function parseLanguage(
  name: string,
  problem = `There is no language ${name}`,
  all = "the languages are",
): LanguageEntry {
  const language = findLanguage(name);
  if (language !== undefined) return language;
  throw new UsageError(`${problem}; ${suggestLanguage(name) ?? `${all} ${LANGUAGE_NAMES.join(", ")}`}`);
}

async function readCode(code: string | undefined, file: string | undefined): Promise<string> {
  if (code !== undefined && code !== "-") return code;
  if (code === undefined && file === undefined) {
    throw new UsageError(`eval needs CODE, - for stdin, or --file PATH\n\n${evalCommand.usage}`);
  }
  const reading = file === undefined ? readStream(process.stdin) : readFile(file, "utf8");
  const text = await reading.catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") throw new NotFoundError(`There is no file ${file}`, { cause: error });
    throw new UsageError(`Cannot read ${file ?? "stdin"}: ${error.message}`, { cause: error });
  });
  // Removes a byte order mark and a #! line.
  return text.replace(/^\ufeff?(?:#!.*)?/, "");
}

async function evaluate(args: readonly string[]): Promise<number> {
  const { language, code, file, json, isStdinUsed, sandbox, settings, ...line } = await parseLine(args);
  // Imported here, because a wrong command line does not need them.
  const [{ evaluateOnce }, { sandboxed }] = await Promise.all([
    import("../../live/evaluate-once.ts"),
    import("../../live/sandbox.ts"),
  ]);
  const { timeoutMs = DEFAULT_LIMITS.timeoutMs } = line;
  const { program: command, ...others } = settings;
  const onWarning = (text: string): void => printStatus(`catenary: ${text}`);
  const created = await language.create({ ...others, ...defined({ command }), onWarning });
  const runtime = sandboxed(created.runtime, sandbox);
  const printer = new EvaluationPrinter();
  const interruption = new Interruption((text) => printStatus(`catenary: ${text}`));
  // The evaluation stops if stdout is closed, since its output can no longer be read.
  const closed = new AbortController();
  const onClosed = (): void => closed.abort();
  process.stdout.on("error", onClosed);
  const signal = AbortSignal.any([interruption.signal, closed.signal]);
  let preparing: NodeJS.Timeout | undefined;
  try {
    const evaluated = await evaluateOnce(runtime, code, {
      signal,
      limits: { outputChars: MAX_OUTPUT_CHARS, timeoutMs },
      args: line.args,
      ...(!isStdinUsed && { input: process.stdin }),
      onOutput: (text, stream) => {
        clearTimeout(preparing);
        if (!json) printer.write(text, stream);
      },
      onStart: ({ isSlow }) => {
        if (isSlow !== true) return;
        preparing ??= delayedNotice(`Preparing ${language.title}; this takes a few seconds the first time...`);
      },
    });
    clearTimeout(preparing);
    const evaluation = file === undefined ? evaluated : withFileName(file, evaluated);
    if (json) printJson(evaluation);
    else printer.finish(evaluation, timeoutMs);
    const isOk = evaluation.status === "ok" || closed.signal.aborted;
    const exit = interruption.signal.aborted ? EXIT.interrupted : isOk ? EXIT.ok : EXIT.toolFailed;
    if (!signal.aborted) await waitForSave(runtime, signal);
    return exit;
  } catch (error) {
    if (interruption.signal.aborted) throw new ConnectionError("cancelled", "Interrupted", { cause: error });
    throw error;
  } finally {
    clearTimeout(preparing);
    await runtime.close?.();
    interruption.dispose();
    process.stdout.off("error", onClosed);
  }
}

async function waitForSave(runtime: Runtime, signal: AbortSignal): Promise<void> {
  const notice = isTerminal(process.stderr) ? delayedNotice("Saving an image for faster starts...") : undefined;
  await within(SAVE_TIMEOUT_MS, abortable(signal, Promise.resolve(runtime.saved?.()))).catch(() => undefined);
  clearTimeout(notice);
}

/** Prints a message unless the timer is cleared soon. */
function delayedNotice(text: string): NodeJS.Timeout {
  return setTimeout(() => printStatus(`catenary: ${text}`), NOTICE_AFTER_MS);
}

/** Replaces the name that the session gives to the code with the name of the file. */
function withFileName(file: string, { condition, ...evaluation }: EvaluationRecord): EvaluationRecord {
  if (condition === undefined) return evaluation;
  const renamed = (text: string): string => text.replaceAll("<eval 1>:", `${file}:`);
  const frames = condition.frames.map((frame) => ({ ...frame, text: renamed(frame.text) }));
  return { ...evaluation, condition: { ...condition, message: renamed(condition.message), frames } };
}

type Stream = "stdout" | "stderr";

/** Prints one evaluation: output as it arrives, then the values on stdout, or the failure on stderr. */
export class EvaluationPrinter {
  /** The last character written to each stream. */
  readonly #last: Record<Stream, string> = { stdout: "", stderr: "" };

  /** The code is the user's own, so its output is not sanitized. */
  readonly write = (text: string, stream: Stream): void => {
    if (text === "") return;
    this.#last[stream] = text.slice(-1);
    process[stream].write(text);
  };

  finish(evaluation: EvaluationRecord, timeoutMs: number): void {
    for (const stream of ["stdout", "stderr"] as const) this.#endLine(stream);
    if (evaluation.notice !== undefined) printStatus(`catenary: ${evaluation.notice}`);
    for (const { type, message } of evaluation.warnings) {
      printStatus(`${paint("yellow", "Warning:")} ${type}: ${message}`);
    }
    if (evaluation.status !== "ok") {
      for (const text of failureLines(evaluation, timeoutMs)) printStatus(text);
      return;
    }
    const arrow = isTerminal(process.stdout) ? paint("dim", "=> ", process.stdout) : "";
    // Statements have the value undefined.
    for (const value of evaluation.values.filter((text) => text !== "undefined")) {
      process.stdout.write(`${arrow}${value}\n`);
    }
  }

  #endLine(stream: Stream): void {
    if (this.#last[stream] !== "" && this.#last[stream] !== "\n") process[stream].write("\n");
  }
}

function failureLines({ status, condition, step, timing, notice }: EvaluationRecord, timeoutMs: number): string[] {
  const frames =
    condition?.frames.flatMap(({ number, text, locals = [] }) => [
      paint("dim", `  ${number}: ${text}`),
      ...locals.map(({ name, value }) => paint("dim", `       ${name} = ${value}`)),
    ]) ?? [];
  if (status === "error" && condition !== undefined) {
    // The hint names tools, which the command line does not have.
    return [`${paint("red", `${condition.type}:`)} ${condition.message}`, ...frames];
  }
  const how = step === "restart" ? "could not be interrupted, so its process was killed" : "was interrupted";
  switch (status) {
    case "timeout":
      return [`catenary: Timed out after ${timeoutMs / 1_000} s and ${how}; use --timeout to allow more`, ...frames];
    case "interrupted":
      return [`catenary: Interrupted after ${(timing.realMs / 1_000).toFixed(1)} s`, ...frames];
    default:
      return notice === undefined ? ["catenary: The process of the session ended during the evaluation"] : [];
  }
}
