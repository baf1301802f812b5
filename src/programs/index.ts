// catenary/programs: command-line programs as tools. Each program is one tool, whose arguments are read from the
// program's own `--help`. Nothing is started before the first request. A program runs as the user of this process, with
// all rights of that user, so only what `include` and `exclude` let through should be given to callers.

import { basename } from "node:path";
import { StringDecoder } from "node:string_decoder";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { forwardAbort, MAX_DELAY_MS } from "../core/async.ts";
import { ConnectionError, UserError } from "../core/errors.ts";
import type { Handler } from "../core/handler.ts";
import { EVALUATES_CODE } from "../core/handler-marks.ts";
import { checkFields, OptionPlace, type ValuesOf } from "../core/options.ts";
import { OutputReports, type ProgressListener } from "../core/text.ts";
import { readPieces } from "../core/turn-budget.ts";
import { defined, errorMessage } from "../core/values.ts";
import { startChild, type ChildOptions, type Exit } from "../process/child.ts";
import { findSpawnProblem, type InheritEnv } from "../process/program.ts";
import type { ToolContext } from "../server/call-context.ts";
import { printProblem } from "../core/listeners.ts";
import { lazyServer } from "../server/lazy.ts";
import { createServer, type Server } from "../server/server.ts";
import type { ToolAnswer } from "../server/returned-types.ts";
import { inputSchema, refusal, toProgramArguments, type ProgramArguments } from "./arguments.ts";
import { parseHelp, type ProgramHelp } from "./help.ts";
import { PROGRAMS, type ProgramsOptions } from "./options.ts";

export type { ProgramsOptions } from "./options.ts";

/** A server with a tool for each program. Closing it ends the programs that run. */
export interface Programs extends Handler {
  readonly [EVALUATES_CODE]: true;
  /** Ends the programs that run. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const HELP_TIMEOUT_MS = 5_000;
const MAX_HELP_BYTES = 500_000;

/**
 * A server with command-line programs as tools.
 *
 * @example
 * await serve(programs(["git"]));
 * @example
 * await serve(chain(log()).to({ dev: programs({ programs: ["git", "docker"], include: ["git log --oneline", "docker ps"] }) }));
 */
export function programs(options: ProgramsOptions | readonly string[]): Programs {
  const place = new OptionPlace("programs()");
  const given = checkFields(Array.isArray(options) ? { programs: options } : options, PROGRAMS, place);
  const tools = checkAll(given, place);
  const running: Setup["running"] = new Map();
  const server = createServer({
    name: given.name ?? "catenary-programs",
    version: "1",
    listChanged: false,
    // Our own errors are written for callers.
    maskErrors: false,
    onError: () => undefined,
  });
  const handler = lazyServer({
    server,
    name: "the programs",
    fill: (closing) => registerAll(server, { ...given, tools, running, closing }),
    end: (reason) => {
      for (const end of running.values()) end(reason);
      return Promise.allSettled(running.keys());
    },
  });
  return Object.defineProperty(handler, EVALUATES_CODE, { value: true }) as Programs;
}

type Values = ValuesOf<typeof PROGRAMS>;

interface Setup extends Values {
  /** The programs by the names of their tools. */
  readonly tools: ReadonlyMap<string, string>;
  readonly closing: AbortSignal;
  /** The calls that run now, and how to end them. */
  readonly running: Map<Promise<unknown>, (reason: unknown) => void>;
}

/** Throws a TypeError for an invalid option. Returns the programs by the names of their tools. */
function checkAll(options: Values, place: OptionPlace): ReadonlyMap<string, string> {
  const { programs: list, descriptions = {}, okExitCodes = {} } = options;
  const tools = new Map<string, string>();
  for (const program of list) {
    const tool = toolName(program);
    const other = tools.get(tool);
    if (other !== undefined) throw place.at("programs").error(`has ${other} and ${program}, which both become ${tool}`);
    tools.set(tool, program);
  }
  for (const [option, map] of Object.entries({ descriptions, okExitCodes })) {
    for (const name of Object.keys(map)) {
      if (list.includes(name) || tools.has(name)) continue;
      throw place.at(`${option}.${name}`).error(`is not one of the programs: ${list.join(", ")}`);
    }
  }
  return tools;
}

function toolName(program: string): string {
  return basename(program)
    .replace(/\.(?:exe|cmd|bat|sh|[cm]?js|py|rb|pl)$/i, "")
    .replace(/[^A-Za-z0-9_-]/g, "_")
    .slice(0, 64);
}

/** Reads the help of each program and registers its tool. A program that cannot be started is left out. */
async function registerAll(server: Server, setup: Setup): Promise<void> {
  const found = await Promise.all(
    [...setup.tools].map(async ([tool, program]) => {
      const problem = await findSpawnProblem({ command: program, ...defined({ cwd: setup.cwd, env: setup.env }) });
      // The general advice is about a "command".
      if (problem !== undefined) return { tool, program, problem };
      return { tool, program, help: await readHelp(program, setup) };
    }),
  );
  const missing = found.flatMap(({ problem }) => problem ?? []);
  if (missing.length === found.length) {
    const problems = missing.map(({ problem }) => problem).join("; ");
    throw new ConnectionError("spawn", `No program can be started: ${problems}`, { mayHaveRun: false });
  }
  for (const { problem, fix = "install it, or write its full path" } of missing) {
    printProblem(`programs(): ${problem}; ${fix}; its tool is left out until then`);
  }
  for (const { tool, program, help } of found) if (help !== undefined) register(server, tool, program, help, setup);
}

/** Empty if the program tells nothing. Only ever asks with `--help`, since another option could do something. */
async function readHelp(program: string, setup: Setup): Promise<ProgramHelp> {
  const ask = async (...args: readonly string[]): Promise<string> => {
    const limits = { timeoutMs: HELP_TIMEOUT_MS, maxOutputBytes: MAX_HELP_BYTES, signal: setup.closing };
    // Wide lines, and no pager.
    const env = { COLUMNS: "200", PAGER: "cat", ...setup.env };
    const { stdout, stderr } = await runProgram({ ...common(program, setup), ...limits, env, args }).catch(() => ({
      stdout: "",
      stderr: "",
    }));
    return stdout.trim() === "" ? stderr : stdout;
  };
  const text = await ask("--help");
  // curl shows only a part of its help, and says how to get the rest.
  if (/--help all\b/.test(text)) return parseHelp(await ask("--help", "all"));
  const help = parseHelp(text);
  const isEmpty = help.options.length === 0 && help.usage === undefined && !help.hasSubcommands;
  const name = basename(program).replace(/[^\w-]/g, "\\$&");
  // Asked only if the program itself says so.
  return isEmpty && new RegExp(`\\b${name} help\\b`).test(text) ? parseHelp(await ask("help")) : help;
}

function common(command: string, { cwd, env, inheritEnv }: Setup): CommonOptions {
  return { command, inheritEnv, ...defined({ cwd, env }) };
}

interface CommonOptions {
  readonly command: string;
  readonly inheritEnv: InheritEnv;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

function register(server: Server, tool: string, program: string, help: ProgramHelp, setup: Setup): void {
  const { extraOptions, descriptions = {} } = setup;
  const validate = (value: unknown): StandardSchemaV1.Result<ProgramArguments> =>
    toProgramArguments(help, extraOptions, value);
  const input: StandardSchemaV1<unknown, ProgramArguments> = {
    "~standard": { version: 1, vendor: "catenary", validate },
  };
  server.tool(
    tool,
    {
      description: descriptions[program] ?? descriptions[tool] ?? describe(basename(program), help, setup),
      input,
      inputSchema: inputSchema(help, extraOptions),
      annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
    },
    async (args: ProgramArguments, context: ToolContext): Promise<ToolAnswer> => {
      const problem = refusal(basename(program), args, setup);
      if (problem !== undefined) throw new UserError(problem);
      const okCodes = setup.okExitCodes?.[program] ?? setup.okExitCodes?.[tool] ?? [];
      return toAnswer(await runTool(program, args, setup, context), setup, okCodes);
    },
  );
}

function describe(program: string, { summary, usage, hasSubcommands, subcommands }: ProgramHelp, setup: Setup): string {
  const allowed = setup.include?.filter((pattern) => pattern.startsWith(program) || pattern.startsWith("*")) ?? [];
  return [
    summary ?? `Runs the program ${program}.`,
    ...(usage === undefined ? [] : [`Usage: ${usage}`]),
    ...(hasSubcommands ? ["_args begins with the subcommand."] : []),
    ...(subcommands.length > 0 ? [`Subcommands: ${subcommands.join(", ")}`] : []),
    ...(allowed.length > 0 ? [`Allowed: ${allowed.join(", ")}`] : []),
  ].join("\n");
}

async function runTool(
  program: string,
  { options, positional }: ProgramArguments,
  setup: Setup,
  { signal, progress }: ToolContext,
): Promise<RunResult> {
  const { timeoutMs, maxOutputBytes } = setup;
  const own = forwardAbort(signal);
  const run = runProgram({
    ...common(program, setup),
    args: [...options, ...positional],
    timeoutMs,
    maxOutputBytes,
    signal: own.signal,
    onProgress: (text, total) => progress(total, undefined, text),
  });
  setup.running.set(run, (reason) => own.abort(reason));
  try {
    return await run;
  } catch (error) {
    throw own.signal.aborted ? error : new UserError(errorMessage(error), { cause: error });
  } finally {
    setup.running.delete(run);
    own.forget();
  }
}

function toAnswer(
  { stdout, stderr, code, signal, hasTimedOut }: RunResult,
  setup: Setup,
  okCodes: readonly number[],
): ToolAnswer {
  const { timeoutMs } = setup;
  const ending = hasTimedOut
    ? `Ended after ${timeoutMs / 1_000} seconds, the time limit`
    : signal !== null
      ? `Ended by the signal ${signal}`
      : code === 0
        ? ""
        : `Exit code: ${code}`;
  const section = (title: string, text: string): string => text && `${title}:\n${text.replace(/\r?\n$/, "")}`;
  const parts = [section("STDOUT", stdout), section("STDERR", stderr), ending].filter((part) => part !== "");
  const text = parts.length === 0 ? "Command completed with no output" : parts.join("\n\n");
  const isOk = ending === "" || (!hasTimedOut && code !== null && okCodes.includes(code));
  return { content: [{ type: "text", text }], isError: !isOk };
}

// Runs a program to its end: without a shell and without input, with a time limit, and with its output kept at its
// beginning and its end. Ending the run ends all processes that it has started.

interface RunOptions extends Pick<ChildOptions, "command" | "args" | "cwd" | "env" | "inheritEnv"> {
  /** 0: no limit. */
  readonly timeoutMs: number;
  /** How many bytes of stdout are kept, and how many of stderr. */
  readonly maxOutputBytes: number;
  readonly signal: AbortSignal;
  readonly onProgress?: ProgressListener;
}

interface RunResult extends Exit {
  readonly stdout: string;
  readonly stderr: string;
  readonly hasTimedOut: boolean;
}

/** How long the processes may take to end after SIGTERM, before SIGKILL. */
const TERM_GRACE_MS = 2_000;

/** Rejects if the program cannot be started, or with the signal's reason when all its processes are gone. */
async function runProgram(options: RunOptions): Promise<RunResult> {
  const { timeoutMs, maxOutputBytes, signal, onProgress, ...program } = options;
  signal.throwIfAborted();
  const reports = onProgress && new OutputReports(onProgress, false);
  const stderr = new OutputEnds(maxOutputBytes, reports);
  const stdout = new OutputEnds(maxOutputBytes, reports);
  const onStderr = (chunk: Buffer): void => stderr.write(chunk);
  // Its input has ended already, so that closing it begins with SIGTERM.
  const child = await startChild({ ...program, onStderr, stdinGraceMs: 0, termGraceMs: TERM_GRACE_MS });
  child.stdin.end();
  const output = readPieces(child.stdout, (piece) => stdout.write(piece));
  let hasTimedOut = false;
  const end = (): void => void child.close().catch(() => undefined);
  const expire = (): void => {
    hasTimedOut = true;
    end();
  };
  const timer = timeoutMs > 0 ? setTimeout(expire, Math.min(timeoutMs, MAX_DELAY_MS)) : undefined;
  signal.addEventListener("abort", end, { once: true });
  if (signal.aborted) end();
  try {
    const exit = await child.finished;
    await output.finish();
    signal.throwIfAborted();
    return { ...exit, stdout: stdout.text(), stderr: stderr.text(), hasTimedOut };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", end);
    reports?.close();
  }
}

/** The beginning and the end of an output, each at most half of the budget. */
class OutputEnds {
  readonly #half: number;
  readonly #reports: OutputReports | undefined;
  readonly #decoder = new StringDecoder("utf8");
  readonly #head: Buffer[] = [];
  #headBytes = 0;
  #tail: Buffer[] = [];
  #tailBytes = 0;
  #dropped = 0;

  constructor(maxBytes: number, reports?: OutputReports) {
    this.#half = Math.ceil(maxBytes / 2);
    this.#reports = reports;
  }

  write(chunk: Buffer): void {
    this.#reports?.write(this.#decoder.write(chunk), chunk.length);
    const forHead = chunk.subarray(0, this.#half - this.#headBytes);
    const rest = chunk.subarray(forHead.length);
    if (forHead.length > 0) this.#head.push(forHead);
    this.#headBytes += forHead.length;
    if (rest.length === 0) return;
    this.#tail.push(rest);
    this.#tailBytes += rest.length;
    // Joined now and then, so that many small chunks do not add up to a long list.
    if (this.#tailBytes > 2 * this.#half || this.#tail.length > 1_000) this.#cutTail();
  }

  /** Bytes that are not valid UTF-8 become U+FFFD. */
  text(): string {
    this.#cutTail();
    const head = Buffer.concat(this.#head);
    const tail = Buffer.concat(this.#tail);
    if (this.#dropped === 0) return Buffer.concat([head, tail]).toString();
    const first = withoutCutEnd(head);
    const last = withoutCutStart(tail);
    const omitted = this.#dropped + head.length - first.length + tail.length - last.length;
    return `${first.toString()}\n[${omitted} bytes left out]\n${last.toString()}`;
  }

  #cutTail(): void {
    const all = Buffer.concat(this.#tail);
    const kept = all.subarray(Math.max(0, all.length - this.#half));
    this.#dropped += all.length - kept.length;
    // A copy, so that the rest of the memory is freed.
    this.#tail = [Buffer.from(kept)];
    this.#tailBytes = kept.length;
  }
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

/** Without the first bytes of a character whose other bytes are missing. */
function withoutCutEnd(bytes: Buffer): Buffer {
  let back = 1;
  while (back < 4 && isContinuation(bytes.at(-back))) back += 1;
  const first = bytes.at(-back) ?? 0;
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  return length > back ? bytes.subarray(0, bytes.length - back) : bytes;
}

/** Without the last bytes of a character whose first byte is missing. */
function withoutCutStart(bytes: Buffer): Buffer {
  let at = 0;
  while (at < 3 && isContinuation(bytes[at])) at += 1;
  return bytes.subarray(at);
}
