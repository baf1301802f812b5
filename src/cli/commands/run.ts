// `catenary run -- COMMAND ARGS...` and `catenary run URL`: serves one server through a chain without middleware, for use
// in a client's config. If the command cannot be started, the error is reported at once: on stderr, and as the response
// to a waiting client.

import { basename, extname } from "node:path";
import { chain } from "../../chain/chain.ts";
import { SHARES, type Share, type UpstreamOptions, type UpstreamStatus } from "../../chain/upstream/options.ts";
import { FLAGS_WITHOUT_VALUE, upstream } from "../../chain/upstream/upstream.ts";
import type { Command as ProgramCommand } from "../../client/command.ts";
import { ConnectionError } from "../../core/errors.ts";
import { defined } from "../../core/values.ts";
import type { ServeHttpOptions } from "../../http/server/mount.ts";
import { findSpawnProblem } from "../../process/program.ts";
import { serve } from "../../serve.ts";
import { EXIT, UsageError, type Command } from "../command.ts";
import {
  announce,
  GATEWAY_GRACE_MS,
  parseCompat,
  parseServeFlags,
  COMPAT_HELP,
  REQUIRE_TOKEN_HELP,
  SERVE_EXPECTED,
  SERVE_FLAGS,
  SERVE_HELP,
  setUpTokenByFlags,
  SIGNAL_HELP,
  startServing,
  TOKEN_FLAGS,
} from "../serve/start.ts";
import { EventLog } from "../serve/event-log.ts";
import { UpstreamReport } from "../serve/upstream-report.ts";
import { loadAhead, loadForGateway } from "../serve/preload.ts";
import { defineCommand, toFailure } from "../show/problems.ts";
import { bearerAuthorizer, readSettings, takeToken, withLocalToken } from "../target/sign-in.ts";
import {
  checkRevision,
  checkTimeout,
  type FlagValues,
  isUrl,
  parseEnvFlags,
  parseFlags,
  parseHeaders,
  parseUrl,
  SIGN_IN_FLAGS,
  SIGN_IN_HELP,
  type SignInFlag,
  splitAtCommand,
  unexpectedArguments,
} from "../target/target.ts";
import { isTerminal, printStatus, sanitizeFor, writeLines } from "../terminal/output.ts";

const HELP = `Usage: catenary run [--http HOST:PORT] [OPTIONS] [--] COMMAND ARGS...
       catenary run URL [--http HOST:PORT] [OPTIONS]

Runs COMMAND, an MCP server on stdio, and serves it on stdio to clients of any protocol revision. In
a client's config, replace \`"command": "npx", "args": [...]\` by \`"command": "catenary",
"args": ["run", "--", "npx", ...]\`. Starts COMMAND on the first request. Restarts COMMAND if it
crashes; exits when stdin closes. The stderr of COMMAND is passed on. Options after COMMAND are its
own.

Or serves the server at URL, for clients that only know stdio or cannot sign in. If it asks for a
sign-in, the browser opens; the tokens are those of catenary login. A token that a gateway of yours
on this machine has generated is found.

With COMMAND:
  --env KEY=VALUE        an environment variable for COMMAND; repeatable
  --cwd DIR              the folder to start COMMAND in

With URL:
  --header 'NAME: VALUE' a header to send with every request; repeatable
  --token TOKEN          a bearer token. Prefer CATENARY_TOKEN in the environment, which other users
                         of this machine cannot see
${SIGN_IN_HELP}
With both:
  --timeout SECONDS      how long the server may be silent during a call; by default, as long as the
                         client waits
  --revision DATE        use only this protocol revision with the server
  --share HOW            which callers share one process or session of the server, one of
                         ${SHARES.join(", ")};
                         by default per-session
${COMPAT_HELP}  --http HOST:PORT       serve over HTTP instead of stdio; port 0 picks a free one

With --http:
${SERVE_HELP}  --json                 print one line of JSON on stdout when ready: {"url": ...}, and "token" if
                         one was generated
${REQUIRE_TOKEN_HELP}
${SIGNAL_HELP}
Exit codes: 0 ok; 1 wrong command line; 2 no such command; 4 COMMAND could not be started for a
client, or cannot listen on the address; 130 after SIGINT.
`;

const FLAGS = {
  ...SERVE_FLAGS,
  "require-token": TOKEN_FLAGS["require-token"],
  env: { type: "string", multiple: true },
  cwd: { type: "string" },
  header: { type: "string", multiple: true },
  token: { type: "string" },
  ...SIGN_IN_FLAGS,
  revision: { type: "string" },
  share: { type: "string" },
  timeout: { type: "string" },
} as const;

/** A client sends its first request at once. If none arrives in this time, there is no client. */
const CLIENT_TIMEOUT_MS = 2_000;
/** Time for the client to read the response. */
const RESPONSE_MS = 200;

interface RunLine {
  readonly target: ProgramCommand | URL;
  readonly values: FlagValues<typeof FLAGS>;
  readonly options: UpstreamOptions;
  /** Undefined for stdio. */
  readonly http?: ServeHttpOptions | undefined;
}

function parseLine(args: readonly string[]): RunLine {
  const { own, command } = splitAtCommand(args, FLAGS);
  const [first = "", ...rest] = command;
  const isAddress = isUrl(first);
  // The words after a command are its own; those after a URL are ours.
  const { positionals, values } = parseFlags("run", isAddress ? [...own, ...rest] : own, FLAGS, {
    ...SERVE_EXPECTED,
    env: "a variable: KEY=VALUE",
    header: "a header: 'Name: value'",
    timeout: "a number of seconds",
  });
  const { revision, share, timeout } = values;
  checkRevision(revision);
  checkTimeout(timeout);
  const timeoutMs = timeout === undefined ? undefined : Number(timeout) * 1_000;
  return {
    target: isAddress ? parseAddress(first, positionals, values) : parseCommand(command, values),
    values,
    options: defined({ revision, share: parseShare(share), timeoutMs }),
    http: parseServeFlags(values),
  };
}

function parseAddress(target: string, words: readonly string[], values: RunLine["values"]): URL {
  if (words.length > 0) throw unexpectedArguments("run", words, "A URL stands for the whole server: catenary run URL");
  const misplaced = (["env", "cwd"] as const).find((name) => values[name] !== undefined);
  if (misplaced !== undefined) throw new UsageError(`--${misplaced} needs a command, not a URL`);
  return parseUrl(target);
}

function parseCommand([file, ...args]: readonly string[], values: RunLine["values"]): ProgramCommand {
  if (file === undefined) throw new UsageError("run needs a command or a URL: catenary run -- COMMAND ARGS...");
  const misplaced = (["header", "token", ...SIGN_IN_NAMES] as const).find((name) => values[name] !== undefined);
  if (misplaced !== undefined) throw new UsageError(`--${misplaced} needs a URL, not a command`);
  return { command: file, args, env: parseEnvFlags(values), ...defined({ cwd: values.cwd }) };
}

const SIGN_IN_NAMES = Object.keys(SIGN_IN_FLAGS) as readonly SignInFlag[];

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
  // The token is for the server at the URL. No program that we start may inherit it.
  const token = takeToken();
  const line = parseLine(args);
  const { target, options, http } = line;
  const compat = parseCompat(line.values.compat);
  const isAddress = target instanceof URL;
  const problem = isAddress ? undefined : await findSpawnProblem(target);
  if (problem !== undefined) {
    const isForClient = http === undefined && !isTerminal(process.stdin);
    const error = new ConnectionError("spawn", problem.message, { cause: problem, mayHaveRun: false });
    if (!isForClient) throw error;
    return refuse(error);
  }
  const name = isAddress ? target.host : programName(target);
  const report = new UpstreamReport(new EventLog({ hasTimes: false }), false);
  let hasRun = false;
  const onState = (status: UpstreamStatus): void => {
    hasRun ||= status.state === "running";
    // Our process exits when stdin closes. Its exit code reports a failure if the program was needed but never ran.
    if (http === undefined) process.exitCode = hasRun ? undefined : EXIT.unreachable;
    report.onState(name, status);
  };
  const onStderr = (text: string): void => writeLines(sanitizeFor(process.stderr, text));
  const onNoise = (text: string): void => report.onNoise(name, text);
  // The lists are not cached: a program that no longer starts must not look as if it did.
  // Each client has its own process, which gets the name and capabilities of the client.
  const share = "per-session";
  // The command stands where a client would start the program, so the program gets all that the client set.
  const settings = {
    ...({ name, remember: false, share, inheritEnv: true } as const),
    ...options,
    ...{ onState, onStderr, onNoise },
  };
  const more = isAddress ? await addressOptions(target, line, token) : {};
  const onWarning = (_upstream: string, message: string): void => report.onWarning(name, message);
  const handler = chain().to(upstream(target, { ...settings, ...more }), { onWarning });
  await loadAhead(http === undefined, loadForGateway);
  if (http === undefined) {
    await startServing(handler, { graceMs: GATEWAY_GRACE_MS, ...defined({ compat }) });
    return;
  }
  const { http: auth, banner } = await setUpTokenByFlags(handler, line.values, {});
  const serving = await startServing(handler, { http: { ...http, ...auth }, ...defined({ compat }) });
  // The banner does not show the arguments, since one of them may be a secret.
  const { url = "" } = serving;
  const { host = "127.0.0.1", allowedHosts } = http;
  const about = { url, source: name, name, host, allowedHosts, ...banner };
  announce(serving, about, line.values.json === true ? { url } : undefined);
}

/** The headers and credentials for a URL: a token, or a sign-in. */
async function addressOptions(url: URL, { values, http }: RunLine, given?: string): Promise<UpstreamOptions> {
  const headers = parseHeaders(values);
  const token = values.token ?? given;
  const hasHeader = Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
  const settings = readSettings(values);
  if (token !== undefined) return { headers, auth: await bearerAuthorizer(url, token, values, printStatus) };
  if (hasHeader) return { headers };
  const [{ createAuthorizer }, { createSignIn }] = await Promise.all([
    import("../../config/sign-in.ts"),
    import("../serve/gateway.ts"),
  ]);
  const signIn = createSignIn(http === undefined);
  const onNotice = (text: string): void => printStatus(`catenary: ${sanitizeFor(process.stderr, text)}`);
  const auth = await createAuthorizer({ url, settings }, { signIn, onNotice });
  return { headers, auth: withLocalToken(url, auth) };
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
