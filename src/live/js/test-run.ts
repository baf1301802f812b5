// run-tests: runs the tests of the session's folder with node:test or vitest, in a process group of their own, so that
// the session stays usable and a run can be stopped. Both report in a form for programs. The tests that the session has
// defined run in the main thread (session-tests.ts).

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { lastChars } from "../../core/text.ts";
import { errorMessage } from "../../core/values.ts";
import type { GuestTests } from "../runtime.ts";
import type { ConditionBuilder } from "./conditions.ts";
import type { SessionTestResults } from "./session-tests.ts";

type Tests = GuestTests["tests"];
type Failure = Tests["failures"][number];

/** The most failures that are reported, and characters of each reason and of the output. */
const MAX_FAILURES = 100;
const MAX_REASON = 2_000;
const MAX_OUTPUT = 20_000;

/** Writes one line of JSON for each event of node:test. It may not use names of this file: another process loads it. */
async function* report(events: AsyncIterable<{ type: string; data: TestEvent }>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (!/^test:(?:start|pass|fail|stdout|stderr)$/.test(type)) continue;
    const { name, nesting, file, skip, todo, message, details } = data;
    const { error } = details ?? {};
    const cause = error?.cause;
    const reason = error && (cause?.message ?? (typeof cause === "object" ? error.message : String(cause)));
    const stack = cause?.stack
      ?.split("\n")
      .find((line) => /^\s+at .*(?:file:\/\/|\()/.test(line) && !line.includes("node:"));
    const isSuite = details?.type === "suite" || error?.failureType === "subtestsFailed";
    const isSkipped = skip !== undefined || todo !== undefined;
    const end = error?.signal ?? error?.exitCode;
    yield `${JSON.stringify({ type, name, nesting, file, message, reason, stack, isSuite, isSkipped, end })}\n`;
  }
}

interface TestEvent {
  readonly name?: string;
  readonly nesting?: number;
  readonly file?: string;
  readonly skip?: unknown;
  readonly todo?: unknown;
  readonly message?: string;
  readonly details?: {
    readonly type?: string;
    readonly error?: {
      readonly message: string;
      readonly failureType?: string;
      /** How the process of a file has ended. */
      readonly exitCode?: number;
      readonly signal?: string | null;
      readonly cause?: { readonly message?: string; readonly stack?: string } | undefined;
    };
  };
}

interface ReportLine {
  readonly type: string;
  readonly name?: string;
  readonly nesting?: number;
  readonly file?: string;
  readonly message?: string;
  readonly reason?: string;
  readonly stack?: string;
  readonly isSuite?: boolean;
  readonly isSkipped?: boolean;
  readonly end?: string | number;
}

const EXIT_CALLED = "process.exit(0) was called before the tests had ended";

/** Runs before each file: one that ends itself in the middle would pass, without the results of its tests. */
const PRELOAD = `data:text/javascript,${encodeURIComponent(`
import { writeSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
if (process.env.NODE_TEST_CONTEXT !== undefined && process.channel == null && isMainThread) {
  let hasEnded = false;
  process.once("beforeExit", () => { hasEnded = true });
  process.on("exit", (code) => {
    if (hasEnded || code !== 0) return;
    process.exitCode = 1;
    writeSync(2, "${EXIT_CALLED}\\n");
  });
}`)}`;

const REPORTER = `data:text/javascript,${encodeURIComponent(`export default ${report.toString()}`)}`;

export interface TestRun {
  /** Rejects if the tests could not be run. */
  readonly reply: Promise<GuestTests>;
  readonly stop: () => void;
}

interface Finished {
  readonly stdout: string;
  readonly stderr: string;
}

export function startTests(params: Readonly<Record<string, unknown>>, folder: string = process.cwd()): TestRun {
  const files = Array.isArray(params["files"]) ? params["files"].map(String) : [];
  const pattern = typeof params["pattern"] === "string" ? params["pattern"] : undefined;
  const vitest = params["framework"] === "node" ? undefined : findVitest(folder, params["framework"] === "vitest");
  if (params["framework"] === "vitest" && vitest === undefined) {
    const missing = `vitest is not installed in ${folder}: install it there (npm install -D vitest)`;
    return { reply: Promise.reject(new Error(missing)), stop: () => undefined };
  }
  return vitest === undefined ? runNode(files, pattern, folder) : runVitest(vitest, files, pattern, folder);
}

/** Whether a request is for tests in files, and not for those that the session has defined. */
export function namesTests({ files, framework }: Readonly<Record<string, unknown>>): boolean {
  return (Array.isArray(files) && files.length > 0) || framework !== undefined;
}

/** The reply with the results of the session's own tests. */
export function fromSession(
  { failures, output, ...counts }: SessionTestResults,
  conditions: ConditionBuilder,
): GuestTests {
  const reported = failures.map(({ name, thrown }) => {
    const { type, message, frames } = conditions.fromThrown(thrown);
    const place = frames[0] === undefined ? "" : `\n  at ${frames[0].text}`;
    return { name, reason: lastChars(`${message === "" ? type : message.trim()}${place}`, MAX_REASON) };
  });
  return toReply(counts, reported, conditions.trimFrames(output));
}

/** The program of vitest, if the folder's package uses it, or if it was asked for. */
function findVitest(folder: string, isWanted: boolean): string | undefined {
  try {
    if (!isWanted && !readFileSync(join(folder, "package.json"), "utf8").includes('"vitest"')) return undefined;
    const manifest = createRequire(join(folder, "session.js")).resolve("vitest/package.json");
    const file = join(dirname(manifest), "vitest.mjs");
    return existsSync(file) ? file : undefined;
  } catch {
    return undefined;
  }
}

function runNode(files: readonly string[], pattern: string | undefined, folder: string): TestRun {
  const named = pattern === undefined ? [] : [`--test-name-pattern=${pattern}`];
  const { finished, stop } = run(
    ["--test", `--import=${PRELOAD}`, `--test-reporter=${REPORTER}`, ...named, ...files],
    folder,
  );
  return { reply: finished.then(({ stdout, stderr }) => fromLines(stdout, stderr, folder)), stop };
}

function runVitest(program: string, files: readonly string[], pattern: string | undefined, folder: string): TestRun {
  const temporary = mkdtempSync(join(tmpdir(), "catenary-tests-"));
  const file = join(temporary, "report.json");
  const named = pattern === undefined ? [] : ["-t", pattern];
  const { finished, stop } = run(
    [program, "run", "--reporter=json", `--outputFile=${file}`, ...named, ...files],
    folder,
  );
  const reply = finished
    .then(({ stdout, stderr }) => {
      if (!existsSync(file))
        throw new Error(`vitest has reported nothing: ${lastChars(stdout + stderr, MAX_REASON).trim()}`);
      return fromVitest(JSON.parse(readFileSync(file, "utf8")) as VitestReport, stdout + stderr, folder);
    })
    .finally(() => rmSync(temporary, { recursive: true, force: true }));
  return { reply, stop };
}

function run(
  args: readonly string[],
  folder: string,
): { readonly finished: Promise<Finished>; readonly stop: () => void } {
  // The guest itself may have been started by a test.
  const { NODE_TEST_CONTEXT: _context, VITEST: _vitest, ...env } = process.env;
  // Loaded on first use, since it would delay the start of every session.
  const { spawn } = createRequire(import.meta.url)("node:child_process") as typeof import("node:child_process");
  const child = spawn(process.execPath, args, { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => void (output.stdout += text));
  child.stderr
    .setEncoding("utf8")
    .on("data", (text: string) => void (output.stderr = lastChars(output.stderr + text, MAX_OUTPUT)));
  const finished = new Promise<Finished>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => resolve(output));
  });
  const stop = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  };
  return { finished, stop };
}

/** Counts the tests that node:test has reported. A file is an event too; it counts only if it failed as a whole. */
function fromLines(stdout: string, stderr: string, folder: string): GuestTests {
  const names = new Map<string, string[]>();
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const failures: Failure[] = [];
  let output = "";
  const printed = new Map<string, string>();
  for (const line of stdout.split("\n")) {
    const event = parseLine(line);
    if (event === undefined) {
      if (line !== "") output += `${line}\n`;
      continue;
    }
    const { type, name = "", nesting = 0, file = "", message = "", reason = "" } = event;
    const path = names.get(file) ?? [];
    names.set(file, path);
    if (type === "test:start") {
      path.splice(nesting, path.length, name);
    } else if (type === "test:stdout" || type === "test:stderr") {
      output += message;
      printed.set(file, (printed.get(file) ?? "") + message);
    } else if (event.isSuite === true) {
      continue;
    } else if (event.isSkipped === true) {
      counts.skipped += 1;
    } else if (type === "test:fail") {
      const isFile = isFileName(name, file, folder);
      counts.failed += 1;
      const whole = isFile ? relative(folder, file) : [...path.slice(0, nesting), name].join(" > ");
      const where = isFile ? fileReason(event, printed.get(file) ?? "") : `${reason}${placeOf(event, folder)}`;
      failures.push({ name: whole, reason: lastChars(where, MAX_REASON) });
    } else if (!isFileName(name, file, folder)) {
      counts.passed += 1;
    }
  }
  return toReply(counts, failures, output + stderr);
}

/** Why a file failed as a whole, such as by a syntax error or process.exit(). */
function fileReason({ end }: ReportLine, printed: string): string {
  const how = typeof end === "string" ? `was ended by ${end}` : `ended with exit code ${end ?? 1}`;
  const problem = printed.split("\n").find((line) => line === EXIT_CALLED || /^(?:Uncaught )?\w*Error\b.*:/.test(line));
  return `the file ${how}${problem === undefined ? "; see the output" : `: ${problem}`}`;
}

function isFileName(name: string, file: string, folder: string): boolean {
  return name !== "" && (name === file || name === relative(folder, file));
}

/** A stack may end with any text. The pattern would take long for a long one. */
const MAX_PLACE = 2_000;

function placeOf({ stack }: ReportLine, folder: string): string {
  const [, place] = /((?:file:\/\/)?\/[^()]+:\d+:\d+)\)?$/.exec(stack?.slice(-MAX_PLACE) ?? "") ?? [];
  return place === undefined ? "" : `\n  at ${relative(folder, place.replace(/^file:\/\//, ""))}`;
}

function parseLine(line: string): ReportLine | undefined {
  try {
    const parsed = line.startsWith('{"type":"test:') ? (JSON.parse(line) as ReportLine) : undefined;
    return parsed;
  } catch {
    return undefined;
  }
}

interface VitestReport {
  readonly testResults?: readonly {
    readonly name: string;
    readonly status: string;
    readonly message?: string;
    readonly assertionResults: readonly {
      readonly ancestorTitles?: readonly string[];
      readonly title: string;
      readonly status: string;
      readonly failureMessages?: readonly string[] | null;
    }[];
  }[];
}

function fromVitest({ testResults = [] }: VitestReport, output: string, folder: string): GuestTests {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  const failures: Failure[] = [];
  for (const { name: file, status, message = "", assertionResults } of testResults) {
    if (assertionResults.length === 0 && status === "failed") {
      counts.failed += 1;
      failures.push({ name: relative(folder, file), reason: message.slice(0, MAX_REASON) });
    }
    for (const { ancestorTitles = [], title, status: how, failureMessages } of assertionResults) {
      if (how === "passed") counts.passed += 1;
      else if (how !== "failed") counts.skipped += 1;
      else {
        counts.failed += 1;
        const reason = (failureMessages ?? []).map((text) => ownLines(text, folder)).join("\n");
        failures.push({ name: [...ancestorTitles, title].join(" > "), reason: reason.slice(0, MAX_REASON) });
      }
    }
  }
  return toReply(counts, failures, output.replaceAll(/^.*JSON report written to.*$\n?/gm, ""));
}

/** The message of a failure, with the first frame that is not in a package. */
function ownLines(text: string, folder: string): string {
  const lines = text.split("\n");
  const message = lines.filter((line) => !/^\s+at /.test(line));
  const frame = lines.find((line) => /^\s+at /.test(line) && !/node_modules|node:/.test(line));
  return [...message, ...(frame === undefined ? [] : [`  ${frame.trim().replace(`${folder}/`, "")}`])]
    .join("\n")
    .trim();
}

function toReply(counts: Omit<Tests, "failures">, failures: readonly Failure[], output: string): GuestTests {
  const lastOutput = lastChars(output, MAX_OUTPUT).trim();
  return {
    tests: { ...counts, failures: failures.slice(0, MAX_FAILURES) },
    ...(lastOutput === "" ? undefined : { output: lastOutput }),
  };
}

/** The text of a run that was not possible. */
export function testsProblem(error: unknown): string {
  return `The tests could not be run: ${errorMessage(error)}`;
}
