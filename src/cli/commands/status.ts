// `catenary status`, `logs` and `restart`: show and change a gateway that runs, over its control socket.

import type { UpstreamStatus } from "../../chain/upstream/options.ts";
import type { Filter } from "../../console/filter.ts";
import type { CallPage, CallRow, GatewayDocument, Overview, ServerCard } from "../../console/types.ts";
import { boolean } from "../../core/fields.ts";
import { EXIT, UsageError } from "../command.ts";
import { command, type Command } from "../define.ts";
import { callLine, duration } from "../show/call-rows.ts";
import { askGateway, readLog, type RunningGateway } from "../serve/control.ts";
import { formatEntry } from "../serve/event-log.ts";
import { upstreamTable } from "../serve/upstream-report.ts";
import { CHOICE, GATEWAY_FLAG, runningGateways, theGateway } from "../target/running-gateway.ts";
import { paint, printJson, printStatus, printTrusted, terminalWidth } from "../terminal/output.ts";
import { oneLine, pad, widthOf } from "../terminal/text.ts";
import { FILTER_ABOUT, parseFilterLine, readFilter } from "./watch.ts";

const STATUS_FLAGS = {
  calls: boolean("Shows the last 1,000 calls, the newest last; only those that FILTER matches."),
  ...GATEWAY_FLAG,
  json: boolean(
    'Prints `{"gateways": [{"pid", "config", "source", "url", "startedAt", "upstreams", "servers"}]}`; `upstreams` has the [status](chain.md#status) of each server, `servers` its figures ([`ServerCard`](console-api.md#documents)). With `--calls`: `{"calls": [...]}`, the newest first ([`CallRow`](console-api.md#documents)).',
  ),
};

export const statusCommand: Command = command({
  name: "status",
  usage: "[--gateway WHICH] [--json]\n--calls [FILTER...] [--gateway WHICH] [--json]",
  about: `Shows the gateways of this user that run (\`catenary up\`, and \`catenary serve --http\` without a module), and the
state of their servers, with calls, errors, the time that 95 of 100 calls stay below, tools and the tokens of their
definitions, as far as they are known. Without --gateway, shows all. With --calls, shows the last 1,000 calls of one.

${FILTER_ABOUT}`,
  flags: STATUS_FLAGS,
  exits: "0 ok; 1 wrong command line; 4 no gateway runs, or not the one that `--gateway` names.",
  words: Infinity,
  parse: (args) => parseFilterLine("status", args, STATUS_FLAGS),
  async run({ words, values }) {
    if (values.calls === true) return showCalls(readFilter(words), values.gateway, values.json === true);
    if (words.length > 0) throw new UsageError(`status takes a filter only with --calls: ${words.join(" ")}`);
    const gateways = await Promise.all((await runningGateways(values.gateway)).map(withServers));
    if (values.json === true) {
      printJson({ gateways: gateways.map(({ socket: _socket, ...gateway }) => gateway) });
      return EXIT.ok;
    }
    for (const { source, url, pid, startedAt, upstreams, servers } of gateways) {
      const since = `pid ${pid}, since ${oneLine(startedAt)}`;
      printTrusted(`${oneLine(source)} at ${paint("cyan", oneLine(url), process.stdout)} (${since})\n`);
      printTrusted(upstreamTable(upstreams, process.stdout));
      printTrusted(trafficTable(servers));
    }
    return EXIT.ok;
  },
});

/** A gateway of an earlier version has no figures. */
async function withServers(
  gateway: RunningGateway,
): Promise<RunningGateway & { readonly servers: readonly ServerCard[] }> {
  const overview = await askGateway(gateway.socket, "GET", "/overview").catch(() => ({ servers: [] }));
  return { ...gateway, servers: (overview as Pick<Overview, "servers">).servers };
}

/** Figures of the servers that have any. */
function trafficTable(servers: readonly ServerCard[]): string {
  const known = servers.filter(({ calls, tools }) => calls > 0 || tools !== undefined);
  if (known.length === 0) return "";
  const count = (value: number | undefined): string => (value === undefined ? "-" : value.toLocaleString("en"));
  const rows = known.map(({ name, calls, errors, p95, tools, tokens, isEstimated }) => [
    oneLine(name),
    ...[
      count(calls),
      count(errors),
      p95 === undefined ? "-" : duration(p95),
      count(tools),
      `${isEstimated === true ? "~" : ""}${count(tokens)}`,
    ],
  ]);
  const table = [["", "calls", "errors", "p95", "tools", "tokens"], ...rows];
  const widths = table[0]?.map((_, column) => Math.max(...table.map((row) => widthOf(row[column] ?? "")))) ?? [];
  const lines = table.map((row) =>
    row
      .map((cell, column) => (column === 0 ? pad(widths[0] ?? 0, cell) : cell.padStart(widths[column] ?? 0)))
      .join("  "),
  );
  return lines.map((line) => `  ${line}\n`).join("");
}

const LAST_CALLS = 1_000;

async function showCalls(filter: Filter, which: string | undefined, isJson: boolean): Promise<number> {
  const { socket } = await theGateway(which);
  const query = new URLSearchParams({ filter: filter.text, limit: String(LAST_CALLS) });
  const { calls } = (await askGateway(socket, "GET", `/calls?${query.toString()}`)) as CallPage;
  if (isJson) {
    printJson({ calls });
    return EXIT.ok;
  }
  if (calls.length === 0) printStatus(filter.isEmpty ? "There was no call so far" : "No call matches the filter");
  const width = terminalWidth(process.stdout);
  for (const row of calls.toSorted(byCall)) printTrusted(`${callLine(row, width)}\n`);
  return EXIT.ok;
}

/** In the order in which calls began, with what is nested under each behind it. */
function byCall(one: CallRow, other: CallRow): number {
  return (one.parent ?? one.id) - (other.parent ?? other.id) || one.id - other.id;
}

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
    const { upstreams } = (await askGateway(socket, "POST", "/restart", { server: name })) as GatewayDocument;
    const status = upstreams[name] as UpstreamStatus;
    if (values.json === true) printJson(status);
    else printTrusted(upstreamTable({ [name]: status }, process.stdout));
    return EXIT.ok;
  },
});
