// `catenary up [CONFIG]`: the gateway that a config describes, over HTTP on this machine, for a person who looks on: what
// it stands for, where it is, and what becomes of its ends while it runs.

import { admission } from "../serve/admission.ts";
import { CONFIG, configHere, isConfig } from "../target/config-path.ts";
import { UpstreamReport, endTable } from "../serve/end-report.ts";
import { UsageError } from "../exit-codes.ts";
import { reporting } from "../show/failure.ts";
import { parseFlags } from "../target/flags.ts";
import {
  endpointOf,
  FRONT_FLAGS,
  FRONT_HELP,
  FRONT_NEEDS,
  saidOf,
  SIGNAL_HELP,
  TOKEN_FLAGS,
  TOKEN_HELP,
} from "../serve/front-flags.ts";
import { NO_CONFIG, openGateway, openSession } from "../serve/gateway.ts";
import { announce, listen } from "../serve/listening.ts";
import type { Command } from "../main.ts";
import { moduleName } from "../serve/module.ts";
import { surplus } from "../target/names.ts";
import { parseAddress } from "../target/address.ts";

const USAGE = "Usage: catenary up [CONFIG] [--http HOST:PORT] [OPTIONS]";

const HELP = `${USAGE}

Serves the gateway that CONFIG describes over HTTP, on 127.0.0.1:3000 where neither --http nor the
config's "listen" says otherwise, and tells what becomes of its ends. CONFIG is ./${CONFIG}
where it is left out; where there is none, a live JavaScript session is served. Inputs that a config
asks for are asked at the terminal.

  --http HOST:PORT       where to listen; also :PORT, PORT, [::1]:PORT, or HOST alone (port 3000);
                         port 0 takes any that is free
${FRONT_HELP}  --json                 one line of JSON on stdout when it is ready: {"url", "ends"}, and "token"
                         where one was made
${TOKEN_HELP}
${SIGNAL_HELP}
Exit codes: 0, 130 after SIGINT, 1 where the command line or the config is wrong, 2 where there is
no such file, 4 where the address cannot be listened on.
`;

const FLAGS = { ...FRONT_FLAGS, ...TOKEN_FLAGS } as const;

async function run(args: readonly string[]): Promise<undefined> {
  const { positionals, values } = parseFlags("up", args, FLAGS, FRONT_NEEDS);
  const [named, ...more] = positionals;
  if (more.length > 0) throw surplus("up", more, USAGE);
  const flags = { ...(values.http === undefined ? undefined : parseAddress(values.http)), ...endpointOf(values) };
  const path = await configHere(named, "up");
  if (path !== undefined && !(await isConfig(path))) {
    throw new UsageError(`${path} is no config; a module is served by catenary serve ${path} --http 127.0.0.1:3000`);
  }
  const opened = path === undefined ? undefined : await openGateway(path, new UpstreamReport(true), false);
  const gateway = opened?.gateway ?? (await openSession());
  const token = opened?.config.listen.token;
  const { http: auth, told } = await admission(gateway, { token, path, isUnasked: values["no-token"] === true });
  const http = { ...(opened && saidOf(opened.config)), ...auth, ...flags };
  const serving = await listen(gateway, { http });
  const { url = "" } = serving;
  const ends = gateway.status();
  const { host = "127.0.0.1" } = http;
  const ready = { url, what: path ?? NO_CONFIG.what, name: path === undefined ? NO_CONFIG.name : moduleName(path) };
  const json = values.json === true ? { url, ends } : undefined;
  announce(serving, { ...ready, host, ...told }, json, endTable(ends).trimEnd());
}

export const upCommand: Command = { help: HELP, run: (args) => reporting(args, () => run(args)) };
