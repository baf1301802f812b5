// `catenary status`, `logs` and `restart`: show and change a gateway that runs, over its control socket.

import { resolve } from "node:path";
import { EXIT, NotFoundError, UnreachableError, UsageError, type Command } from "../command.ts";
import { askGateway, findGateways, GatewayRefusal, readLog, type RunningGateway } from "../serve/control.ts";
import { formatEntry } from "../serve/event-log.ts";
import { upstreamTable } from "../serve/upstream-report.ts";
import { defineCommand } from "../show/problems.ts";
import { CONFIG, parseFlags, unexpectedArguments } from "../target/target.ts";
import { oneLine, paint, printJson, printTrusted } from "../terminal/output.ts";

const WHICH = `  --gateway WHICH   the gateway, if several run: its config, its URL or its process id`;

const CHOICE = `By default, the only gateway that runs, or the one of ./${CONFIG}.`;

const STATUS_USAGE = "Usage: catenary status [--gateway WHICH] [--json]";

const STATUS_HELP = `${STATUS_USAGE}

Shows the gateways of this user that run (\`catenary up\`, and \`catenary serve --http\` without a
module), and the state of their servers.

${WHICH}; default: all
  --json            print one JSON document: {"gateways": [{"pid", "config", "source", "url",
                    "startedAt", "upstreams"}]}

Exit codes: 0 ok; 1 wrong command line; 4 no gateway runs, or WHICH does not.
`;

const LOGS_USAGE = "Usage: catenary logs [NAME] [-f] [--gateway WHICH] [--json]";

const LOGS_HELP = `${LOGS_USAGE}

Prints the last lines of a running gateway's log, or only those of the server NAME: its starts,
crashes and stderr.

  -f, --follow      go on until the gateway ends, or until Ctrl-C
${WHICH}
  --json            print each entry as a line of JSON: {"time", "level", "upstream", "message"}

${CHOICE}

Exit codes: 0 ok; 1 wrong command line; 2 no such server; 4 no gateway runs; 130 after Ctrl-C.
`;

const RESTART_USAGE = "Usage: catenary restart NAME [--gateway WHICH] [--json]";

const RESTART_HELP = `${RESTART_USAGE}

Starts the server NAME of a running gateway anew, also one that has crashed too often. Calls in
flight get 30 s to finish at the old process; clients stay connected.

${WHICH}
  --json            print one JSON document: the state of the server

${CHOICE}

Exit codes: 0 ok; 1 wrong command line; 2 no such server; 4 no gateway runs, or the server could not
be started.
`;

const FLAGS = { gateway: { type: "string" }, json: { type: "boolean" } } as const;
const LOGS_FLAGS = { ...FLAGS, follow: { type: "boolean" } } as const;
const EXPECTED = { gateway: "a config, a URL or a process id" } as const;

/** Throws an UnreachableError if none runs, or not the one that is meant. */
async function runningGateways(which: string | undefined): Promise<readonly RunningGateway[]> {
  const all = await findGateways();
  if (all.length === 0) throw new UnreachableError("No gateway runs; start one with catenary up");
  if (which === undefined) return all;
  const found = all.filter(
    ({ pid, url, config }) => which === String(pid) || which === url || resolve(which) === config,
  );
  if (found.length > 0) return found;
  throw new UnreachableError(`No gateway runs for ${which}; ${running(all)}`);
}

async function theGateway(which: string | undefined): Promise<RunningGateway> {
  const all = await runningGateways(which);
  const here = all.filter(({ config }) => config === resolve(CONFIG));
  const [first, ...others] = all.length > 1 && here.length > 0 ? here : all;
  if (first !== undefined && others.length === 0) return first;
  throw new UsageError(`Several gateways run: choose one with --gateway URL; ${running(all)}`);
}

function running(all: readonly RunningGateway[]): string {
  return `there are ${all.map(({ url, source }) => `${oneLine(url)} (${oneLine(source)})`).join(", ")}`;
}

async function status(args: readonly string[]): Promise<number> {
  const { positionals, values } = parseFlags("status", args, FLAGS, EXPECTED);
  if (positionals.length > 0) throw unexpectedArguments("status", positionals, STATUS_USAGE);
  const gateways = await runningGateways(values.gateway);
  if (values.json === true) {
    printJson({ gateways: gateways.map(({ socket: _socket, ...shown }) => shown) });
    return EXIT.ok;
  }
  for (const { source, url, pid, startedAt, upstreams } of gateways) {
    const since = `pid ${pid}, since ${oneLine(startedAt)}`;
    printTrusted(`${oneLine(source)} at ${paint("cyan", oneLine(url), process.stdout)} (${since})\n`);
    printTrusted(upstreamTable(upstreams, process.stdout));
  }
  return EXIT.ok;
}

async function logs(args: readonly string[]): Promise<number> {
  const long = args.map((arg) => (arg === "-f" ? "--follow" : arg));
  const { positionals, values } = parseFlags("logs", long, LOGS_FLAGS, EXPECTED);
  const [name, ...more] = positionals;
  if (more.length > 0) throw unexpectedArguments("logs", more, LOGS_USAGE);
  const { socket } = await theGateway(values.gateway);
  const write = values.json === true ? JSON.stringify : formatEntry;
  await refusable(readLog(socket, name, values.follow === true, (entry) => printTrusted(`${write(entry)}\n`)));
  return EXIT.ok;
}

async function restart(args: readonly string[]): Promise<number> {
  const { positionals, values } = parseFlags("restart", args, FLAGS, EXPECTED);
  const [name, ...more] = positionals;
  if (name === undefined) throw new UsageError(`restart needs the name of a server\n${RESTART_USAGE}`);
  if (more.length > 0) throw unexpectedArguments("restart", more, RESTART_USAGE);
  const { socket } = await theGateway(values.gateway);
  const path = `/restart?${new URLSearchParams({ upstream: name }).toString()}`;
  const { upstreams } = (await refusable(askGateway(socket, "POST", path))) as RunningGateway;
  if (values.json === true) printJson(upstreams[name]);
  else printTrusted(upstreamTable({ [name]: upstreams[name] as RunningGateway["upstreams"][string] }, process.stdout));
  return EXIT.ok;
}

/** Turns the refusal of a gateway into an error with an exit code. */
async function refusable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof GatewayRefusal)) throw error;
    throw error.isNotFound ? new NotFoundError(error.message) : new UnreachableError(error.message);
  }
}

export const statusCommand: Command = defineCommand(STATUS_HELP, status);
export const logsCommand: Command = defineCommand(LOGS_HELP, logs);
export const restartCommand: Command = defineCommand(RESTART_HELP, restart);
