// catenary/programs: command-line programs as tools. Each program is one tool, whose arguments are read from the
// program's own `--help`. Nothing is started before the first request. A program runs as the user of this process, with
// all rights of that user, so only what `include` and `exclude` let through should be given to callers.

import { basename } from "node:path";
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { forwardAbort } from "../core/async.ts";
import { ConnectionError, UserError } from "../core/errors.ts";
import type { Handler } from "../core/handler.ts";
import { EVALUATES_CODE } from "../core/handler-marks.ts";
import { checkFields, OptionPlace, type ValuesOf } from "../core/options.ts";
import { defined, errorMessage } from "../core/values.ts";
import type { InheritEnv } from "../process/program.ts";
import { findSpawnProblem } from "../process/spawn-problem.ts";
import type { ToolContext } from "../server/call-context.ts";
import { printProblem } from "../core/listeners.ts";
import { lazyServer } from "../server/lazy.ts";
import { createServer, type Server } from "../server/server.ts";
import type { ToolAnswer } from "../server/returned-types.ts";
import { inputSchema, refusal, toProgramArguments, type ProgramArguments } from "./arguments.ts";
import { parseHelp, type ProgramHelp } from "./help.ts";
import { PROGRAMS, type ProgramsOptions } from "./options.ts";
import { type RunResult, runProgram } from "./run.ts";

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
  const settings = checkFields(Array.isArray(options) ? { programs: options } : options, PROGRAMS, place);
  const tools = checkAll(settings, place);
  const running: Setup["running"] = new Map();
  const server = createServer({
    name: settings.name ?? "catenary-programs",
    version: "1",
    listChanged: false,
    // Our own errors are written for callers.
    maskErrors: false,
    onError: () => undefined,
  });
  const handler = lazyServer({
    server,
    name: "the programs",
    fill: (closing) => registerAll(server, { ...settings, tools, running, closing }),
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
  const results = await Promise.all(
    [...setup.tools].map(async ([tool, program]) => {
      const problem = await findSpawnProblem({ command: program, ...defined({ cwd: setup.cwd, env: setup.env }) });
      // The general advice is about a "command".
      if (problem !== undefined) return { tool, program, problem };
      return { tool, program, help: await readHelp(program, setup) };
    }),
  );
  const missing = results.flatMap(({ problem }) => problem ?? []);
  if (missing.length === results.length) {
    const problems = missing.map(({ problem }) => problem).join("; ");
    throw new ConnectionError("spawn", `No program can be started: ${problems}`, { mayHaveRun: false });
  }
  for (const { problem, fix = "install it, or write its full path" } of missing) {
    printProblem(`programs(): ${problem}; ${fix}; its tool is left out until then`);
  }
  for (const { tool, program, help } of results) if (help !== undefined) register(server, tool, program, help, setup);
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
  const forwarded = forwardAbort(signal);
  const run = runProgram({
    ...common(program, setup),
    args: [...options, ...positional],
    timeoutMs,
    maxOutputBytes,
    signal: forwarded.signal,
    onProgress: (text, total) => progress(total, undefined, text),
  });
  setup.running.set(run, (reason) => forwarded.abort(reason));
  try {
    return await run;
  } catch (error) {
    throw forwarded.signal.aborted ? error : new UserError(errorMessage(error), { cause: error });
  } finally {
    setup.running.delete(run);
    forwarded.forget();
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
