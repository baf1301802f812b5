// `catenary up [CONFIG]`: serves the gateway of a config over HTTP and reports when its upstreams start, stop or crash.

import { UsageError, type Command } from "../command.ts";
import { NO_CONFIG, openGateway, openSession } from "../serve/gateway.ts";
import { moduleName } from "../serve/module.ts";
import {
  configHttpOptions,
  parseAddress,
  parseEndpointFlags,
  SERVE_EXPECTED,
  SERVE_FLAGS,
  SERVE_HELP,
  SIGNAL_HELP,
  TOKEN_FLAGS,
  TOKEN_HELP,
} from "../serve/serve-flags.ts";
import { announce, startServing, setUpToken } from "../serve/start.ts";
import { UpstreamReport, upstreamTable } from "../serve/upstream-report.ts";
import { defineCommand } from "../show/problems.ts";
import { CONFIG, findConfig, isConfig } from "../target/target.ts";
import { parseFlags, unexpectedArguments } from "../target/flags.ts";

const USAGE = "Usage: catenary up [CONFIG] [--http HOST:PORT] [OPTIONS]";

const HELP = `${USAGE}

Serves the gateway of CONFIG over HTTP, and reports on stderr when its servers start, stop or crash.
CONFIG defaults to ./${CONFIG}. Without one, serves a live JavaScript session. The address
is that of --http, or "listen" of the config, or 127.0.0.1:3000. If the config has "inputs", asks
for them at the terminal.

  --http HOST:PORT       where to listen; also :PORT, PORT, [::1]:PORT, or HOST alone (port 3000);
                         port 0 picks a free one
${SERVE_HELP}  --json                 print one line of JSON on stdout when ready: {"url", "upstreams"}, and
                         "token" if one was generated
${TOKEN_HELP}
${SIGNAL_HELP}
Exit codes: 0 ok; 1 wrong command line or config; 2 no such file; 4 cannot listen on the address;
130 after SIGINT.
`;

const FLAGS = { ...SERVE_FLAGS, ...TOKEN_FLAGS } as const;

async function up(args: readonly string[]): Promise<undefined> {
  const { positionals, values } = parseFlags("up", args, FLAGS, SERVE_EXPECTED);
  const [given, ...more] = positionals;
  if (more.length > 0) throw unexpectedArguments("up", more, USAGE);
  const flags = {
    ...(values.http === undefined ? undefined : parseAddress(values.http)),
    ...parseEndpointFlags(values),
  };
  const path = await findConfig(given, "up");
  if (path !== undefined && !(await isConfig(path))) {
    throw new UsageError(
      `${path} is not a config; to serve a module, run catenary serve ${path} --http 127.0.0.1:3000`,
    );
  }
  const opened = path === undefined ? undefined : await openGateway(path, new UpstreamReport(true), false);
  const gateway = opened?.gateway ?? (await openSession());
  const token = opened?.config.listen.token;
  const { http: auth, banner } = await setUpToken(gateway, { token, path, noToken: values["no-token"] === true });
  const http = { ...(opened && configHttpOptions(opened.config)), ...auth, ...flags };
  const serving = await startServing(gateway, { http });
  const { url = "" } = serving;
  const upstreams = gateway.status();
  const { host = "127.0.0.1" } = http;
  const source = path === undefined ? NO_CONFIG : { source: path, name: moduleName(path) };
  const json = values.json === true ? { url, upstreams } : undefined;
  announce(serving, { url, ...source, host, ...banner }, json, upstreamTable(upstreams).trimEnd());
}

export const upCommand: Command = defineCommand(HELP, up);
