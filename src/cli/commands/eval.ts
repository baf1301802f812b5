// `catenary eval LANGUAGE CODE`: one evaluation in a live session of its own, which ends with it. What the code prints
// comes out as it is printed, its values follow; Ctrl-C interrupts the evaluation.

import { readFile } from "node:fs/promises";
import { text as textOfStream } from "node:stream/consumers";
import { LANGUAGE_NAMES, languageOf, nearLanguage, type LanguageName } from "../../config/languages.ts";
import { onAbort, within } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Evaluation } from "../../live/evaluation.ts";
import type { Runtime } from "../../live/runtime.ts";
import { EvaluationReport } from "../show/evaluation-report.ts";
import { EXIT, NotFoundError, UsageError } from "../exit-codes.ts";
import { reporting } from "../show/failure.ts";
import { parseFlags } from "../target/flags.ts";
import { isTerminal } from "../terminal/harmless.ts";
import { Interruption } from "../terminal/interruption.ts";
import type { Command } from "../main.ts";
import { say } from "../terminal/output.ts";
import { printJson } from "../terminal/print.ts";

const USAGE = `Usage: catenary eval LANGUAGE CODE [OPTIONS]
       catenary eval LANGUAGE - [OPTIONS]
       catenary eval LANGUAGE --file PATH [OPTIONS]
`;

const HELP = `${USAGE}
Evaluates CODE in a live session of its own. LANGUAGE is js (JavaScript and TypeScript) or lisp
(Common Lisp, which wants SBCL). What the code prints goes to stdout and stderr as it is printed;
then the values of its last form go to stdout, one on a line, on a terminal behind =>; undefined is
left out. An error goes to stderr with its backtrace. The session ends with the evaluation: a
top-level await is waited for, timers and threads are not. With - for CODE it is read from stdin;
behind --, CODE may begin with a dash.

  --file PATH            the code stands in this file
  --timeout SECONDS      how long it may take; 30, and 0: as long as it takes
  --json                 one JSON document on stdout when it is over: {"status", "values", "stdout",
                         "stderr", "warnings", "condition", "timing", ...}

Exit codes: 0; 1 the command line is wrong; 2 there is no such file; 4 the session could not be
started, as where SBCL is missing; 5 the evaluation failed, or took too long; 130 interrupted.
`;

const FLAGS = { file: { type: "string" }, timeout: { type: "string" }, json: { type: "boolean" } } as const;
const NEEDS = { file: "the path of a file", timeout: "a number of seconds" };

/** Characters of output that are kept for the document; what is printed as it comes is not held up by it. */
const MOST_OUTPUT = 10_000_000;
/** So long nobody wonders. */
const CALM_MS = 1_000;
/** For what makes the next start quicker: it is done once, when the answer has been told. */
const SAVE_MS = 5_000;

interface Wanted {
  readonly language: LanguageName;
  readonly code: string;
  readonly file?: string;
  readonly timeoutMs?: number;
  readonly json: boolean;
}

async function read(args: readonly string[]): Promise<Wanted> {
  // No option begins like a number: it is code.
  const dash = args.findIndex((word) => /^-[\d.(]/.test(word));
  if (dash > 0 && !args.slice(0, dash).includes("--") && !/^--(?:file|timeout)$/.test(args[dash - 1] ?? "")) {
    throw new UsageError(`${args[dash]} looks like an option: put -- before it, as in catenary eval js -- '-1'`);
  }
  const { positionals, values } = parseFlags("eval", args, FLAGS, NEEDS);
  const [name, code, ...more] = positionals;
  if (name === undefined) throw new UsageError(`eval needs a LANGUAGE: ${LANGUAGE_NAMES.join(", ")}\n\n${USAGE}`);
  const language = languageNamed(name);
  if (more.length > 0)
    throw new UsageError(`eval takes one CODE: put it in quotes, as in catenary eval ${name} 'CODE'`);
  const { file, timeout } = values;
  if (file !== undefined && code !== undefined) throw new UsageError("CODE or --file PATH: one of them, not both");
  const seconds = timeout === undefined ? undefined : Number(timeout);
  if (seconds !== undefined && !(seconds >= 0 && seconds <= MOST_SECONDS)) {
    throw new UsageError(`--timeout ${timeout} is no number of seconds from 0 to ${MOST_SECONDS}`);
  }
  return {
    language,
    code: await codeOf(code, file),
    ...(file === undefined ? undefined : { file }),
    ...(seconds === undefined ? undefined : { timeoutMs: seconds * 1_000 }),
    json: values.json === true,
  };
}

/** A timer waits no longer. */
const MOST_SECONDS = 2_147_483;

function languageNamed(name: string): LanguageName {
  const language = languageOf(name);
  if (language !== undefined) return language;
  const near = nearLanguage(name);
  const hint = near === undefined ? `there are ${LANGUAGE_NAMES.join(", ")}` : `did you mean ${near}?`;
  throw new UsageError(`There is no language ${name}; ${hint}`);
}

async function codeOf(code: string | undefined, file: string | undefined): Promise<string> {
  if (code !== undefined && code !== "-") return code;
  const text = code === "-" ? await textOfStream(process.stdin) : await textOfFile(file);
  // What an editor or a system puts before a program is no part of it.
  return text.replace(/^\ufeff?(?:#!.*)?/, "");
}

async function textOfFile(file: string | undefined): Promise<string> {
  if (file === undefined) throw new UsageError(`eval needs CODE, - for stdin, or --file PATH\n\n${USAGE}`);
  return readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") throw new NotFoundError(`There is no file ${file}`, { cause: error });
    throw new UsageError(`${file} cannot be read: ${error.message}`, { cause: error });
  });
}

async function run(args: readonly string[]): Promise<number> {
  const { language, code, file, json, ...wanted } = await read(args);
  // Late: a mistake on the line needs none of it.
  const [{ evaluateOnce }, { DEFAULT_LIMITS }] = await Promise.all([
    import("../../live/evaluate-once.ts"),
    import("../../live/runtime.ts"),
  ]);
  const { timeoutMs = DEFAULT_LIMITS.timeoutMs } = wanted;
  const runtime = await runtimeOf(language);
  const report = new EvaluationReport();
  const interruption = new Interruption((text) => say(`catenary: ${text}`));
  // Nobody reads on: there is nothing to print for.
  const gone = new AbortController();
  const leave = (): void => gone.abort();
  process.stdout.on("error", leave);
  const signal = AbortSignal.any([interruption.signal, gone.signal]);
  const preparing = new Wait("Common Lisp is being prepared; the first time on a machine it takes some seconds");
  try {
    const evaluated = await evaluateOnce(runtime, code, {
      signal,
      limits: { outputChars: MOST_OUTPUT, timeoutMs },
      hear: (text, stream) => {
        preparing.end();
        if (!json) report.hear(text, stream);
      },
      onStart: ({ args: words }) => {
        if (language === "lisp" && !words.includes("--core")) preparing.begin();
      },
    });
    preparing.end();
    const evaluation = file === undefined ? evaluated : placedIn(file, evaluated);
    if (json) printJson(evaluation);
    else report.tell(evaluation, timeoutMs);
    const isRight = evaluation.status === "ok" || gone.signal.aborted;
    const exit = interruption.signal.aborted ? EXIT.interrupted : isRight ? EXIT.ok : EXIT.toolFailed;
    if (!signal.aborted) await saved(runtime, signal);
    return exit;
  } catch (error) {
    if (interruption.signal.aborted) throw new ConnectionError("cancelled", "Interrupted", { cause: error });
    throw error;
  } finally {
    preparing.end();
    await runtime.close?.();
    interruption.end();
    process.stdout.off("error", leave);
  }
}

/** On a terminal somebody waits for the prompt. */
async function saved(runtime: Saving, signal: AbortSignal): Promise<void> {
  const saving = new Wait("Common Lisp is being kept as it is now, so that it is there at once the next time");
  if (isTerminal(process.stderr)) saving.begin();
  await within(SAVE_MS, Promise.race([runtime.saved?.(), aborted(signal)]));
  saving.end();
}

/** A word for whoever waits, said once it takes long. */
class Wait {
  readonly #text: string;
  #timer: NodeJS.Timeout | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  begin(): void {
    this.#timer ??= setTimeout(() => say(`catenary: ${this.#text}`), CALM_MS);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

/** The only code that there is stands in this file. */
function placedIn(file: string, { condition, ...evaluation }: Evaluation): Evaluation {
  if (condition === undefined) return evaluation;
  const placed = (text: string): string => text.replaceAll("<eval 1>:", `${file}:`);
  const frames = condition.frames.map((one) => ({ ...one, text: placed(one.text) }));
  return { ...evaluation, condition: { ...condition, message: placed(condition.message), frames } };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => onAbort(signal, resolve));
}

/** Where something is saved for the next start, it can be waited for. */
type Saving = Runtime & { saved?(): Promise<unknown> };

async function runtimeOf(language: LanguageName): Promise<Saving> {
  if (language === "lisp") {
    const { lispRuntime } = await import("../../live/lisp/runtime.ts");
    return lispRuntime({}, (text) => say(`catenary: ${text}`));
  }
  return (await import("../../live/js/runtime.ts")).jsRuntime({});
}

export const evalCommand: Command = { help: HELP, run: (args) => reporting(args, () => run(args)) };
