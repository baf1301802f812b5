// `catenary run -- COMMAND ARGS...`: one stdio server behind an empty chain, which is what a person puts into a client's
// config. The command is looked for at once, so that a mistake shows at once: to the person in one sentence, and to a
// client that waits for an answer as the answer.

import { chain } from "../../chain/chain.ts";
import { upstream, MESSAGE_BYTES, SHARES, type UpstreamOptions, type Share } from "../../chain/upstream/upstream.ts";
import type { UpstreamStatus } from "../../chain/upstream/status.ts";
import type { Command as Program } from "../../client/command.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { ServeHttpOptions } from "../../http/server/mount.ts";
import { startProblem } from "../../process/start-problem.ts";
import { serve } from "../../serve.ts";
import { UpstreamReport } from "../serve/end-report.ts";
import { EXIT, UsageError } from "../exit-codes.ts";
import { failureOf, reporting } from "../show/failure.ts";
import { parseFlags } from "../target/flags.ts";
import { FRONT_FLAGS, FRONT_HELP, FRONT_NEEDS, frontOf, SIGNAL_HELP } from "../serve/front-flags.ts";
import { fitFor, isTerminal } from "../terminal/harmless.ts";
import { announce, GATEWAY_GRACE_MS, listen } from "../serve/listening.ts";
import type { Command } from "../main.ts";
import { say } from "../terminal/output.ts";
import { programName } from "../target/program.ts";
import { checkRevision, variablesOf } from "../target/target.ts";

const HELP = `Usage: catenary run [--http HOST:PORT] [OPTIONS] -- COMMAND ARGS...

Starts COMMAND, a server on stdio of any revision, and serves it on our own stdio to a client of any
revision. In a client's config, \`"command": "catenary", "args": ["run", "--", "npx", ...]\` stands
for \`"command": "npx", "args": [...]\`. What COMMAND writes to its stderr comes out on ours. Where
it fails it is started again, and the end of our stdin is the end of both. It is started when a
client asks for something, not before.

  --env KEY=VALUE        added to COMMAND's environment; may be given several times
  --cwd DIR              the folder in which COMMAND is started
  --revision DATE        speak this revision of the protocol with COMMAND, and no other
  --share HOW            who shares one COMMAND: ${SHARES.join(", ")};
                         by default, callers who are the same one and can be asked the same
  --http HOST:PORT       over HTTP instead of stdio; port 0 takes any that is free

With --http:
${FRONT_HELP}  --json                 one line of JSON on stdout when it is ready: {"url": ...}

${SIGNAL_HELP}
Exit codes: 0; 1 the command line is wrong; 2 there is no such command; 4 COMMAND was started for a
client and never came to run, or the address cannot be listened on; 130 after SIGINT.
`;

const FLAGS = {
  ...FRONT_FLAGS,
  env: { type: "string", multiple: true },
  cwd: { type: "string" },
  revision: { type: "string" },
  share: { type: "string" },
} as const;

/** A client speaks as soon as it has started us; whoever is silent so long is none. */
const CLIENT_MS = 2_000;
/** For the answer to be read. */
const ANSWER_MS = 200;

interface Wanted {
  readonly program: Program;
  readonly options: UpstreamOptions;
  /** Absent for stdio. */
  readonly http?: ServeHttpOptions | undefined;
  readonly json: boolean;
}

function read(args: readonly string[]): Wanted {
  const at = args.indexOf("--");
  const own = at < 0 ? args : args.slice(0, at);
  const [command, ...rest] = at < 0 ? [] : args.slice(at + 1);
  const { positionals, values } = parseFlags("run", own, FLAGS, { ...FRONT_NEEDS, env: "a variable: KEY=VALUE" });
  if (positionals.length > 0) {
    const line = `catenary run -- ${positionals.join(" ")}`;
    throw new UsageError(`run takes its command behind --, so that its flags are its own: ${line}`);
  }
  if (command === undefined) throw new UsageError(`run needs a command: catenary run -- COMMAND ARGS...`);
  if (/^https?:\/\//i.test(command)) {
    throw new UsageError(`${command} is a URL, and run starts a command: write it into a config, for catenary serve`);
  }
  const { cwd, revision, share } = values;
  checkRevision(revision);
  return {
    program: { command, args: rest, env: variablesOf(values), ...(cwd === undefined ? undefined : { cwd }) },
    options: {
      ...(revision === undefined ? undefined : { revision }),
      ...(share === undefined ? undefined : { share: shareOf(share) }),
    },
    http: frontOf(values),
    json: values.json === true,
  };
}

function shareOf(text: string): Share {
  const share = SHARES.find((name) => name === text);
  if (share === undefined) throw new UsageError(`--share ${text} is not known; there are ${SHARES.join(", ")}`);
  return share;
}

/** A client that is there hears why, instead of an end without a word; then the process ends with the code for it. */
async function refuse(problem: Error): Promise<undefined> {
  const { exit, message } = failureOf(problem);
  say(`catenary: ${fitFor(process.stderr, message)}`);
  process.exitCode = exit;
  const refusing = serve(() => {
    setTimeout(end, ANSWER_MS);
    return Promise.reject(new ConnectionError("spawn", message, { mayHaveRun: false }));
  });
  const end = (): void => void refusing.then((serving) => serving.close());
  setTimeout(end, CLIENT_MS);
  await refusing;
}

async function run(args: readonly string[]): Promise<number | undefined> {
  const wanted = read(args);
  const { program, options, http } = wanted;
  const problem = await startProblem(program);
  if (problem !== undefined) {
    const isClient = http === undefined && !isTerminal(process.stdin);
    const error = new ConnectionError("spawn", problem.message, { cause: problem, mayHaveRun: false });
    if (!isClient) throw error;
    return refuse(error);
  }
  const name = programName(program);
  const report = new UpstreamReport(false);
  let hasRun = false;
  const onState = (status: UpstreamStatus): void => {
    hasRun ||= status.state === "running";
    // At the end of a client's input the process ends by itself; a program that was wanted and has never run is a failure.
    if (http === undefined) process.exitCode = hasRun ? undefined : EXIT.unreachable;
    report.onState(name, status);
  };
  const onStderr = (text: string): void => void process.stderr.write(fitFor(process.stderr, text));
  // What it offered last time is not remembered: a program that has ceased to start must not look as if it did.
  const onNoise = (line: string): void => report.onNoise(name, line);
  const handler = chain().to(upstream(program, { name, remember: false, ...options, onState, onStderr, onNoise }));
  // On a wire of its own nothing may be lost that the program and its client could say to each other without us.
  const onStdio = { limits: { messageBytes: MESSAGE_BYTES }, graceMs: GATEWAY_GRACE_MS };
  const serving = await listen(handler, http === undefined ? onStdio : { http });
  const { url } = serving;
  if (url === undefined || http === undefined) return undefined;
  // Without its arguments: one of them may be a secret.
  const { host = "127.0.0.1" } = http;
  announce(serving, { url, what: name, name, host }, wanted.json ? { url } : undefined);
  return undefined;
}

export const runCommand: Command = { help: HELP, run: (args) => reporting(args, () => run(args)) };
