// `catenary up [CONFIG]`: the gateway that a config describes, over HTTP on this machine, for a person who looks on: what
// it stands for, where it is, and what becomes of its ends while it runs.

import { CONFIG, configPath, isConfig } from "../config-path.ts";
import { EndReport, endTable } from "../end-report.ts";
import { UsageError } from "../exit-codes.ts";
import { reporting } from "../failure.ts";
import { parseFlags } from "../flags.ts";
import { endpointOf, FRONT_FLAGS, FRONT_HELP, FRONT_NEEDS, saidOf, SIGNAL_HELP } from "../front-flags.ts";
import { openGateway } from "../gateway.ts";
import { announce, listen, tokenBearer } from "../listening.ts";
import type { Command } from "../main.ts";
import { moduleName } from "../module.ts";
import { surplus } from "../names.ts";
import { parseAddress } from "../address.ts";

const USAGE = "Usage: catenary up [CONFIG] [--http HOST:PORT] [OPTIONS]";

const HELP = `${USAGE}

Serves the gateway that CONFIG describes over HTTP, on 127.0.0.1:3000 where neither --http nor the
config's "listen" says otherwise, and tells what becomes of its ends. CONFIG is ./${CONFIG}
where it is left out. Inputs that it asks for are asked at the terminal.

  --http HOST:PORT       where to listen; also :PORT, PORT, [::1]:PORT, or HOST alone (port 3000);
                         port 0 takes any that is free
${FRONT_HELP}  --json                 one line of JSON on stdout when it is ready: {"url", "ends"}

${SIGNAL_HELP}
Exit codes: 0, 130 after SIGINT, 1 where the command line or the config is wrong, 2 where there is
no such file, 4 where the address cannot be listened on.
`;

async function run(args: readonly string[]): Promise<undefined> {
  const { positionals, values } = parseFlags("up", args, FRONT_FLAGS, FRONT_NEEDS);
  const [named, ...more] = positionals;
  if (more.length > 0) throw surplus("up", more, USAGE);
  const flags = { ...(values.http === undefined ? undefined : parseAddress(values.http)), ...endpointOf(values) };
  const path = await configPath(named, "up");
  if (!(await isConfig(path))) {
    throw new UsageError(`${path} is no config; a module is served by catenary serve ${path} --http 127.0.0.1:3000`);
  }
  const { config, gateway } = await openGateway(path, new EndReport(true), false);
  const { token } = config.listen;
  const auth = token === undefined ? undefined : { auth: await tokenBearer(token) };
  const http = { ...saidOf(config), ...auth, ...flags };
  const serving = await listen(gateway, { http });
  const { url = "" } = serving;
  const ends = gateway.status();
  const { host = "127.0.0.1" } = http;
  const ready = { url, what: path, name: moduleName(path), host, tokenIn: token === undefined ? undefined : path };
  announce(serving, ready, values.json === true ? { url, ends } : undefined, endTable(ends).trimEnd());
}

export const upCommand: Command = { help: HELP, run: (args) => reporting(args, () => run(args)) };
