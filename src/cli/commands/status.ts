// `catenary status`, `logs` and `restart`: show and change a gateway that runs, over its control socket.

import { resolve } from "node:path";
import { boolean } from "../../core/fields.ts";
import { EXIT, UnreachableError, UsageError } from "../command.ts";
import { command, type Command } from "../define.ts";
import { flag } from "../flags.ts";
import { askGateway, findGateways, readLog, type RunningGateway } from "../serve/control.ts";
import { formatEntry } from "../serve/event-log.ts";
import { upstreamTable } from "../serve/upstream-report.ts";
import { CONFIG } from "../target/target.ts";
import { paint, printJson, printTrusted } from "../terminal/output.ts";
import { oneLine } from "../terminal/text.ts";

const GATEWAY_FLAG = {
  gateway: flag("WHICH", "The gateway, if several run: its config, its URL or its process id.", {
    expected: "a config, a URL or a process id",
  }),
};

const CHOICE = `By default, the only gateway that runs, or the one of ./${CONFIG}.`;

/** Throws an UnreachableError if none runs, or not the one that is meant. */
async function runningGateways(which: string | undefined): Promise<readonly RunningGateway[]> {
  const all = await findGateways();
  if (all.length === 0) throw new UnreachableError("No gateway runs; start one with catenary up");
  if (which === undefined) return all;
  const matching = all.filter(
    ({ pid, url, config }) => which === String(pid) || which === url || resolve(which) === config,
  );
  if (matching.length > 0) return matching;
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

export const statusCommand: Command = command({
  name: "status",
  usage: "[--gateway WHICH] [--json]",
  about: `Shows the gateways of this user that run (\`catenary up\`, and \`catenary serve --http\` without a module), and the
state of their servers. Without --gateway, shows all.`,
  flags: {
    ...GATEWAY_FLAG,
    json: boolean(
      'Prints `{"gateways": [{"pid", "config", "source", "url", "startedAt", "upstreams"}]}`; `upstreams` has the [status](chain.md#status) of each server.',
    ),
  },
  exits: "0 ok; 1 wrong command line; 4 no gateway runs, or not the one that `--gateway` names.",
  async run({ values }) {
    const gateways = await runningGateways(values.gateway);
    if (values.json === true) {
      printJson({ gateways: gateways.map(({ socket: _socket, ...gateway }) => gateway) });
      return EXIT.ok;
    }
    for (const { source, url, pid, startedAt, upstreams } of gateways) {
      const since = `pid ${pid}, since ${oneLine(startedAt)}`;
      printTrusted(`${oneLine(source)} at ${paint("cyan", oneLine(url), process.stdout)} (${since})\n`);
      printTrusted(upstreamTable(upstreams, process.stdout));
    }
    return EXIT.ok;
  },
});

export const logsCommand: Command = command({
  name: "logs",
  usage: "[NAME] [-f] [--gateway WHICH] [--json]",
  about: `Prints the last lines of a running gateway's log, or only those of the server NAME: its starts, crashes and
stderr.`,
  flags: {
    follow: { ...boolean("Goes on until the gateway ends, or until Ctrl-C."), short: "f" },
    ...GATEWAY_FLAG,
    json: boolean('Prints each entry as a line of JSON: `{"time", "level", "upstream", "message"}`.'),
  },
  notes: CHOICE,
  exits: "0 ok; 1 wrong command line; 2 no such server; 4 no gateway runs; 130 after Ctrl-C.",
  words: 1,
  async run({ words: [name], values }) {
    const { socket } = await theGateway(values.gateway);
    const write = values.json === true ? JSON.stringify : formatEntry;
    await readLog(socket, name, values.follow === true, (entry) => printTrusted(`${write(entry)}\n`));
    return EXIT.ok;
  },
});

export const restartCommand: Command = command({
  name: "restart",
  usage: "NAME [--gateway WHICH] [--json]",
  about: `Starts the server NAME of a running gateway anew, also one that has crashed too often. Calls in flight get 30 s to
finish at the old process; clients stay connected.`,
  flags: { ...GATEWAY_FLAG, json: boolean("Prints one JSON document: the [status](chain.md#status) of the server.") },
  notes: CHOICE,
  exits: "0 ok; 1 wrong command line; 2 no such server; 4 no gateway runs, or the server could not be started.",
  words: 1,
  needs: "the name of a server",
  async run({ words: [name = ""], values }) {
    const { socket } = await theGateway(values.gateway);
    const path = `/restart?${new URLSearchParams({ upstream: name }).toString()}`;
    const { upstreams } = (await askGateway(socket, "POST", path)) as RunningGateway;
    const status = upstreams[name] as RunningGateway["upstreams"][string];
    if (values.json === true) printJson(status);
    else printTrusted(upstreamTable({ [name]: status }, process.stdout));
    return EXIT.ok;
  },
});
