// `catenary run -- COMMAND ARGS...` and `catenary run URL`: serves one server through a chain without middleware, for use
// in a client's config. If the command cannot be started, the error is reported at once: on stderr, and as the response
// to a waiting client.

import { basename, extname } from "node:path";
import { chain } from "../../chain/chain.ts";
import { SHARES, type UpstreamOptions, type UpstreamStatus } from "../../chain/upstream/options.ts";
import { upstream } from "../../chain/upstream/upstream.ts";
import type { Command as ProgramCommand } from "../../client/command.ts";
import { ConnectionError } from "../../core/errors.ts";
import { defined } from "../../core/values.ts";
import { LISTEN_DEFAULTS } from "../../http/server/defaults.ts";
import { orList } from "../../live/languages.ts";
import { findSpawnProblem } from "../../process/spawn-problem.ts";
import { runBy } from "../../process/runners.ts";
import { serve } from "../../serve.ts";
import { EXIT, UsageError } from "../command.ts";
import { command, type Command, unexpectedArguments } from "../define.ts";
import { oneOf, parseFlags, refuseFlags, seconds, section, splitAtCommand, type FlagValues } from "../flags.ts";
import {
  announce,
  GATEWAY_GRACE_MS,
  ENDPOINT_FLAGS,
  parseServeFlags,
  SERVE_FLAGS,
  SIGNAL_NOTES,
  startServing,
} from "../serve/start.ts";
import { setUpToken } from "../serve/token.ts";
import { EventLog } from "../serve/event-log.ts";
import { UpstreamReport } from "../serve/upstream-report.ts";
import { loadAhead, loadForGateway } from "../serve/preload.ts";
import { toFailure } from "../show/failures.ts";
import { bearerAuthorizer, readSettings, takeToken, withLocalToken } from "../target/sign-in.ts";
import {
  COMMAND_FLAGS,
  isUrl,
  parseEnvFlags,
  parseHeaders,
  parseUrl,
  SIGN_IN_FLAGS,
  TARGET_FLAGS,
  URL_FLAGS,
} from "../target/target.ts";
import { isTerminal, printNotice, printStatus, sanitizeFor, writeLines } from "../terminal/output.ts";

const SHARE = "per-session";

const FLAGS = {
  ...section("With COMMAND", COMMAND_FLAGS),
  ...section("With URL", { ...URL_FLAGS, ...SIGN_IN_FLAGS }),
  ...section("With both", {
    timeout: seconds("How long the server may be silent during a call. By default, as long as the client waits."),
    revision: TARGET_FLAGS.revision,
    share: oneOf(
      "HOW",
      `[Which callers share](chain.md#share) one process or session of the server: ${orList(SHARES.map((name) => `\`${name}\``))}. Default \`${SHARE}\`.`,
      SHARES,
    ),
    ...SERVE_FLAGS,
  }),
  ...ENDPOINT_FLAGS,
};

export const runCommand: Command = command({
  name: "run",
  usage: "[--http HOST:PORT] [OPTIONS] [--] COMMAND ARGS...\nURL [--http HOST:PORT] [OPTIONS]",
  about: `Runs COMMAND, an MCP server on stdio, and serves it on stdio to clients of any protocol revision. In a client's config,
replace \`"command": "npx", "args": [...]\` by \`"command": "catenary", "args": ["run", "--", "npx", ...]\`. Starts COMMAND on
the first request. Restarts COMMAND if it crashes; exits when stdin closes. The stderr of COMMAND is passed on. Options
after COMMAND are its own.

Or serves the server at URL, for clients that only know stdio or cannot sign in. If it asks for a sign-in, the browser
opens; the tokens are those of catenary login. A token that a gateway of yours on this machine has generated is found.`,
  flags: FLAGS,
  notes: SIGNAL_NOTES,
  exits: `0 ok; 1 wrong command line; 2 no such command; 4 COMMAND could not be started for a client, or cannot listen on the
address; 130 after SIGINT.`,
  ownWords: (args) => splitAtCommand(args, FLAGS).ownWords,
  runArguments: run,
});

/** A client sends its first request at once. If none arrives in this time, there is no client. */
const CLIENT_TIMEOUT_MS = 2_000;
/** Time for the client to read the response. */
const RESPONSE_MS = 200;

type RunValues = FlagValues<typeof FLAGS>;

function parseLine(args: readonly string[]) {
  const { ownWords, command } = splitAtCommand(args, FLAGS);
  const [first = "", ...rest] = command;
  const isAddress = isUrl(first);
  // The words after a command are its own; those after a URL are ours.
  const { words, values } = parseFlags("run", isAddress ? [...ownWords, ...rest] : ownWords, FLAGS);
  const { revision, share, timeout: timeoutMs } = values;
  return {
    target: isAddress ? parseAddress(first, words, values) : parseCommand(command, values),
    values,
    options: defined({ revision, share, timeoutMs }),
    /** Undefined for stdio. */
    http: parseServeFlags(values),
  };
}

function parseAddress(target: string, words: readonly string[], values: RunValues): URL {
  if (words.length > 0) throw unexpectedArguments("run", words, "A URL stands for the whole server: catenary run URL");
  refuseFlags(values, Object.keys(COMMAND_FLAGS), "a command, not a URL");
  return parseUrl(target);
}

function parseCommand([file, ...args]: readonly string[], values: RunValues): ProgramCommand {
  if (file === undefined) throw new UsageError("run needs a command or a URL: catenary run -- COMMAND ARGS...");
  refuseFlags(values, Object.keys({ ...URL_FLAGS, ...SIGN_IN_FLAGS }), "a URL, not a command");
  return { command: file, args, env: parseEnvFlags(values), ...defined({ cwd: values.cwd }) };
}

/** Answers the requests of a waiting client with the error, then exits with the exit code of the error. */
async function refuse(problem: Error): Promise<undefined> {
  const { exit, message } = toFailure(problem);
  printNotice(`catenary: ${message}`);
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
  const { compat } = line.values;
  const isAddress = target instanceof URL;
  const problem = isAddress ? undefined : await findSpawnProblem(target);
  if (problem !== undefined) {
    const isForClient = http === undefined && !isTerminal(process.stdin);
    if (!isForClient) throw problem;
    return refuse(problem);
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
  // The command stands where a client would start the program, so the program gets all that the client set.
  const settings = {
    ...({ name, remember: false, share: SHARE, inheritEnv: true } as const),
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
  const { http: auth, banner } = await setUpToken(handler, {
    noToken: false,
    isRequired: line.values["require-token"] === true,
  });
  const serving = await startServing(handler, { http: { ...http, ...auth }, ...defined({ compat }) });
  // The banner does not show the arguments, since one of them may be a secret.
  const { url = "" } = serving;
  const { host = LISTEN_DEFAULTS.host, allowedHosts } = http;
  const announced = { url, source: name, name, host, allowedHosts, ...banner };
  announce(() => serving.close(), announced, line.values.json === true ? { url } : undefined);
}

/** The headers and credentials for a URL: a token, or a sign-in. */
async function addressOptions(
  url: URL,
  { values, http }: ReturnType<typeof parseLine>,
  newToken?: string,
): Promise<UpstreamOptions> {
  const headers = parseHeaders(values);
  const token = values.token ?? newToken;
  const hasHeader = Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
  const settings = readSettings(values);
  if (token !== undefined) return { headers, auth: await bearerAuthorizer(url, token, values, printStatus) };
  if (hasHeader) return { headers };
  const [{ createAuthorizer }, { createSignIn }] = await Promise.all([
    import("../../config/sign-in.ts"),
    import("../serve/upstream-sign-in.ts"),
  ]);
  const signIn = createSignIn(http === undefined);
  const onNotice = (text: string): void => printNotice(`catenary: ${text}`);
  const auth = await createAuthorizer({ url, settings }, { signIn, onNotice });
  return { headers, auth: withLocalToken(url, auth) };
}

/** A short name: "notes-mcp" for `npx -y @me/notes-mcp@1`, "server" for `node server.js`. */
export function programName({ command, args = [] }: ProgramCommand): string {
  const program = basename(command);
  const name = basename(runBy(program, args) ?? program).replace(/(?<=.)@.*$/, "");
  return /^[\w.-]+$/.test(name) ? basename(name, extname(name)) : program;
}
