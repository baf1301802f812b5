// `catenary run -- COMMAND ARGS...`: serves one stdio server through a chain without middleware, for use in a client's
// config. If the command cannot be started, the error is reported at once: on stderr, and as the response to a waiting
// client.

import { basename, extname } from "node:path";
import { chain } from "../../chain/chain.ts";
import {
  MESSAGE_BYTES,
  SHARES,
  type Share,
  type UpstreamOptions,
  type UpstreamStatus,
} from "../../chain/upstream/options.ts";
import { FLAGS_WITHOUT_VALUE, upstream } from "../../chain/upstream/upstream.ts";
import type { Command as ProgramCommand } from "../../client/command.ts";
import { ConnectionError } from "../../core/errors.ts";
import { defined } from "../../core/values.ts";
import type { ServeHttpOptions } from "../../http/server/mount.ts";
import { findSpawnProblem } from "../../process/spawn-error.ts";
import { serve } from "../../serve.ts";
import { EXIT, UsageError, type Command } from "../command.ts";
import {
  announce,
  GATEWAY_GRACE_MS,
  parseServeFlags,
  SERVE_EXPECTED,
  SERVE_FLAGS,
  SERVE_HELP,
  SIGNAL_HELP,
  startServing,
} from "../serve/start.ts";
import { UpstreamReport } from "../serve/upstream-report.ts";
import { defineCommand, toFailure } from "../show/problems.ts";
import { checkRevision, checkTimeout, parseEnvFlags, parseFlags, splitAtCommand } from "../target/target.ts";
import { printStatus } from "../terminal/output.ts";
import { isTerminal, sanitizeFor } from "../terminal/text.ts";

const HELP = `Usage: catenary run [--http HOST:PORT] [OPTIONS] [--] COMMAND ARGS...

Runs COMMAND, an MCP server on stdio, and serves it on stdio to clients of any protocol revision. In
a client's config, replace \`"command": "npx", "args": [...]\` by \`"command": "catenary",
"args": ["run", "--", "npx", ...]\`. Starts COMMAND on the first request. Restarts COMMAND if it
crashes; exits when stdin closes. The stderr of COMMAND is passed on. Options after COMMAND are its
own.

  --env KEY=VALUE        an environment variable for COMMAND; repeatable
  --cwd DIR              the folder to start COMMAND in
  --timeout SECONDS      how long COMMAND may be silent during a call; by default, as long as the
                         client waits
  --revision DATE        use this protocol revision with COMMAND only
  --share HOW            which callers share one process of COMMAND, one of
                         ${SHARES.join(", ")};
                         by default per-session
  --http HOST:PORT       serve over HTTP instead of stdio; port 0 picks a free one

With --http:
${SERVE_HELP}  --json                 print one line of JSON on stdout when ready: {"url": ...}

${SIGNAL_HELP}
Exit codes: 0 ok; 1 wrong command line; 2 no such command; 4 COMMAND could not be started for a
client, or cannot listen on the address; 130 after SIGINT.
`;

const FLAGS = {
  ...SERVE_FLAGS,
  env: { type: "string", multiple: true },
  cwd: { type: "string" },
  revision: { type: "string" },
  share: { type: "string" },
  timeout: { type: "string" },
} as const;

/** A client sends its first request at once. If none arrives in this time, there is no client. */
const CLIENT_TIMEOUT_MS = 2_000;
/** Time for the client to read the response. */
const RESPONSE_MS = 200;

interface RunLine {
  readonly program: ProgramCommand;
  readonly options: UpstreamOptions;
  /** Undefined for stdio. */
  readonly http?: ServeHttpOptions | undefined;
  readonly json: boolean;
}

function parseLine(args: readonly string[]): RunLine {
  const {
    own,
    command: [command, ...rest],
  } = splitAtCommand(args, FLAGS);
  const { values } = parseFlags("run", own, FLAGS, {
    ...SERVE_EXPECTED,
    env: "a variable: KEY=VALUE",
    timeout: "a number of seconds",
  });
  if (command === undefined) throw new UsageError(`run needs a command: catenary run -- COMMAND ARGS...`);
  if (/^https?:\/\//i.test(command)) {
    throw new UsageError(
      `${command} is a URL, but run needs a command; for a URL, write a config and use catenary serve`,
    );
  }
  const { cwd, revision, share, timeout } = values;
  checkRevision(revision);
  checkTimeout(timeout);
  const timeoutMs = timeout === undefined ? undefined : Number(timeout) * 1_000;
  return {
    program: { command, args: rest, env: parseEnvFlags(values), ...defined({ cwd }) },
    options: defined({ revision, share: parseShare(share), timeoutMs }),
    http: parseServeFlags(values),
    json: values.json === true,
  };
}

function parseShare(text: string | undefined): Share | undefined {
  const share = SHARES.find((name) => name === text);
  if (share === undefined && text !== undefined)
    throw new UsageError(`--share ${text} is not valid; write one of ${SHARES.join(", ")}`);
  return share;
}

/** Answers the requests of a waiting client with the error, then exits with the exit code of the error. */
async function refuse(problem: Error): Promise<undefined> {
  const { exit, message } = toFailure(problem);
  printStatus(`catenary: ${sanitizeFor(process.stderr, message)}`);
  process.exitCode = exit;
  const refusing = serve(() => {
    setTimeout(close, RESPONSE_MS);
    return Promise.reject(new ConnectionError("spawn", message, { mayHaveRun: false }));
  });
  const close = (): void => void refusing.then((serving) => serving.close());
  setTimeout(close, CLIENT_TIMEOUT_MS);
  await refusing;
}

async function run(args: readonly string[]): Promise<undefined> {
  const line = parseLine(args);
  const { program, options, http } = line;
  const problem = await findSpawnProblem(program);
  if (problem !== undefined) {
    const isForClient = http === undefined && !isTerminal(process.stdin);
    const error = new ConnectionError("spawn", problem.message, { cause: problem, mayHaveRun: false });
    if (!isForClient) throw error;
    return refuse(error);
  }
  const name = programName(program);
  const report = new UpstreamReport(false);
  let hasRun = false;
  const onState = (status: UpstreamStatus): void => {
    hasRun ||= status.state === "running";
    // Our process exits when stdin closes. Its exit code reports a failure if the program was needed but never ran.
    if (http === undefined) process.exitCode = hasRun ? undefined : EXIT.unreachable;
    report.onState(name, status);
  };
  const onStderr = (text: string): void => void process.stderr.write(sanitizeFor(process.stderr, text));
  const onNoise = (text: string): void => report.onNoise(name, text);
  // The lists are not cached: a program that no longer starts must not look as if it did.
  // Each client has its own process, which gets the name and capabilities of the client.
  const share = "per-session";
  const settings = { name, remember: false, share, ...options, onState, onStderr, onNoise } as const;
  const handler = chain().to(upstream(program, settings));
  // On stdio, messages from the client may be as long as messages from the program.
  const onStdio = { limits: { messageBytes: MESSAGE_BYTES }, graceMs: GATEWAY_GRACE_MS };
  const serving = await startServing(handler, http === undefined ? onStdio : { http });
  if (http === undefined) return;
  // The banner does not show the arguments, since one of them may be a secret.
  const { url = "" } = serving;
  const { host = "127.0.0.1" } = http;
  announce(serving, { url, source: name, name, host }, line.json ? { url } : undefined);
}

/** Programs that run another one. The first argument after flags without a value names the other program. */
const RUNNERS = new Set(["npx", "bunx", "uvx", "node", "bun", "deno", "tsx", "python", "python3", "sh", "bash"]);

/** A short name: "notes-mcp" for `npx -y @me/notes-mcp@1`, "server" for `node server.js`. */
export function programName({ command, args = [] }: ProgramCommand): string {
  const own = basename(command);
  const first = RUNNERS.has(own) ? args.find((word) => !FLAGS_WITHOUT_VALUE.has(word)) : undefined;
  const name = basename(first?.startsWith("-") === false ? first : own).replace(/(?<=.)@.*$/, "");
  return /^[\w.-]+$/.test(name) ? basename(name, extname(name)) : own;
}

export const runCommand: Command = defineCommand(HELP, run, (args) => splitAtCommand(args, FLAGS).own);
