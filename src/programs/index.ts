// catenary/programs: command-line programs as tools. Each program is one tool, whose arguments are read from the
// program's own `--help`. Nothing is started before the first request. A program runs as the user of this process, with
// all rights of that user, so only what `allow` and `deny` let through should be given to callers.

import { basename } from "node:path";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { forwardAbort } from "../core/async.ts";
import { ConnectionError, UserError } from "../core/errors.ts";
import { EVALUATES_CODE, type Handler } from "../core/handler.ts";
import { checkOptions, type OptionNames, optionNames, OptionReader } from "../core/options.ts";
import { defined, errorMessage, isObject } from "../core/values.ts";
import type { InheritEnv } from "../process/environment.ts";
import { findSpawnProblem } from "../process/spawn-error.ts";
import type { ToolContext } from "../server/call-context.ts";
import { printProblem } from "../server/handler-errors.ts";
import { lazyServer } from "../server/lazy.ts";
import { createServer, type Server } from "../server/server.ts";
import type { ToolAnswer } from "../server/tools.ts";
import { inputSchema, type ProgramArguments, refusal, toProgramArguments } from "./arguments.ts";
import { parseHelp, type ProgramHelp } from "./help.ts";
import { runProgram, type RunResult } from "./run.ts";

/** Options of `programs()`. */
export interface ProgramsOptions {
  /** The programs, by name (looked up on the PATH) or path. Each is one tool, with the name of the program. */
  readonly programs: readonly string[];
  /** The name of the server. */
  readonly name?: string;
  /** Descriptions of tools, by program. Default: what the help of the program says. */
  readonly descriptions?: Readonly<Record<string, string>>;
  /** The folder that the programs run in. Default: that of this process. */
  readonly cwd?: string;
  /** Environment variables for the programs, added to those that they inherit. */
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Which variables of our environment the programs get. `false`, the default: those that most programs need, such as
   * PATH and HOME. `true`: all but our own secrets. An array: those of `false`, and those of these names, with `*`.
   */
  readonly inheritEnv?: boolean | readonly string[];
  /**
   * Patterns of the command lines that may be run; `*` matches any characters. Default: all.
   *
   * @example
   * allow: ["git status*", "git log*"]
   */
  readonly allow?: readonly string[];
  /** Patterns of command lines that may not be run, even if `allow` has them. */
  readonly deny?: readonly string[];
  /** Whether callers may give options that the help does not list. Default: false. */
  readonly extraOptions?: boolean;
  /**
   * Exit codes other than 0 that are no failure, by program. Default: none.
   *
   * @example
   * okExitCodes: { grep: [1], diff: [1] }
   */
  readonly okExitCodes?: Readonly<Record<string, readonly number[]>>;
  /** Milliseconds after which a program is ended; 0: never. Default: 30000. */
  readonly timeoutMs?: number;
  /** How many bytes of its output are kept, for each of stdout and stderr: its beginning and its end. Default: 100000. */
  readonly maxOutputBytes?: number;
}

/** A server with a tool for each program. Closing it ends the programs that run. */
export interface Programs extends Handler {
  readonly [EVALUATES_CODE]: true;
  /** Ends the programs that run. */
  close(): Promise<void>;
}

const OPTION_NAMES: OptionNames<ProgramsOptions> = optionNames(
  "programs name descriptions cwd env inheritEnv allow deny extraOptions okExitCodes timeoutMs maxOutputBytes",
);

const TIMEOUT_MS = 30_000;
const MAX_OUTPUT_BYTES = 100_000;
const HELP_TIMEOUT_MS = 5_000;
const MAX_HELP_BYTES = 500_000;

/**
 * A server with command-line programs as tools.
 *
 * @example
 * await serve(programs(["git"]));
 * @example
 * await serve(chain(log()).to({ dev: programs({ programs: ["git", "docker"], allow: ["git log*", "docker ps*"] }) }));
 */
export function programs(options: ProgramsOptions | readonly string[]): Programs {
  const given: ProgramsOptions = Array.isArray(options) ? { programs: options } : (options as ProgramsOptions);
  const tools = checkAll(given);
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

interface Setup extends ProgramsOptions {
  /** The programs by the names of their tools. */
  readonly tools: ReadonlyMap<string, string>;
  readonly closing: AbortSignal;
  /** The calls that run now, and how to end them. */
  readonly running: Map<Promise<unknown>, (reason: unknown) => void>;
}

/** Throws a TypeError for an invalid option. Returns the programs by the names of their tools. */
function checkAll(options: ProgramsOptions): ReadonlyMap<string, string> {
  const owner = "programs()";
  checkOptions(owner, options, OPTION_NAMES);
  const read = new OptionReader(owner, options, Object.keys(options));
  const list = read.strings("programs") ?? [];
  if (list.length === 0) throw read.error("programs", 'must name at least one program, such as ["git"]');
  for (const name of ["allow", "deny"]) read.strings(name);
  read.count("maxOutputBytes");
  if (options.timeoutMs !== 0) read.ms("timeoutMs");
  read.stringMap("descriptions");
  for (const name of ["name", "cwd"] as const)
    if (options[name] !== undefined && (typeof options[name] !== "string" || options[name].trim() === ""))
      throw read.error(name, "must be a non-empty string");
  if (options.extraOptions !== undefined && typeof options.extraOptions !== "boolean")
    throw read.error("extraOptions", "must be true or false");
  const { env } = options;
  // The error does not quote the values, since they may be secret.
  if (env !== undefined && !(isObject(env) && Object.values(env).every((value) => typeof value === "string")))
    throw read.error("env", "must be an object of strings");
  if (typeof options.inheritEnv !== "boolean") read.strings("inheritEnv");
  const tools = new Map<string, string>();
  for (const program of list) {
    const tool = toolName(program);
    const other = tools.get(tool);
    if (other !== undefined) throw read.error("programs", `has ${other} and ${program}, which both become ${tool}`);
    tools.set(tool, program);
  }
  const codes = read.object("okExitCodes") ?? {};
  for (const [name, given] of Object.entries(codes)) {
    if (Array.isArray(given) && given.every((code) => Number.isInteger(code))) continue;
    throw read.error(`okExitCodes.${name}`, "must be an array of exit codes, such as [1]");
  }
  for (const [option, map] of Object.entries({ descriptions: options.descriptions ?? {}, okExitCodes: codes })) {
    for (const name of Object.keys(map)) {
      if (list.includes(name) || tools.has(name)) continue;
      throw read.error(`${option}.${name}`, `is not one of the programs: ${list.join(", ")}`);
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
      if (problem !== undefined) return { tool, program, problem: problem.message.split("; ")[0] ?? "" };
      return { tool, program, help: await readHelp(program, setup) };
    }),
  );
  const missing = found.flatMap(({ problem }) => problem ?? []);
  if (missing.length === found.length) {
    throw new ConnectionError("spawn", `No program can be started: ${missing.join("; ")}`, { mayHaveRun: false });
  }
  for (const problem of missing) {
    printProblem(`programs(): ${problem}; install it, or write its full path; its tool is left out until then`);
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

function common(command: string, { cwd, env, inheritEnv = false }: Setup): CommonOptions {
  return { command, inheritEnv, ...defined({ cwd, env }) };
}

interface CommonOptions {
  readonly command: string;
  readonly inheritEnv: InheritEnv;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
}

function register(server: Server, tool: string, program: string, help: ProgramHelp, setup: Setup): void {
  const { extraOptions = false, descriptions = {} } = setup;
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
  const allowed = setup.allow?.filter((pattern) => pattern.startsWith(program) || pattern.startsWith("*")) ?? [];
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
  const { timeoutMs = TIMEOUT_MS, maxOutputBytes = MAX_OUTPUT_BYTES } = setup;
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
  const { timeoutMs = TIMEOUT_MS } = setup;
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
