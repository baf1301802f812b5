// `catenary serve [CONFIG|MODULE]`: the gateway that a config describes, or a module's server, on this process's stdio or
// over HTTP. The command line is read here and nowhere else; what it says to the person goes to stderr, and only `--json`
// puts a line on stdout.

import { MESSAGE_BYTES } from "../../chain/end.ts";
import type { HttpOptions } from "../../http-options.ts";
import type { Closeable, ServeOptions } from "../../serve.ts";
import { CONFIG, configPath, isConfig } from "../config-path.ts";
import { EndReport } from "../end-report.ts";
import { UsageError } from "../exit-codes.ts";
import { reporting } from "../failure.ts";
import { parseFlags } from "../flags.ts";
import { FRONT_FLAGS, FRONT_HELP, FRONT_NEEDS, frontOf, saidOf, SIGNAL_HELP } from "../front-flags.ts";
import { announce, GATEWAY_GRACE_MS, listen, tokenBearer } from "../listening.ts";
import type { Command } from "../main.ts";
import { loadHandler, moduleName, ownServing } from "../module.ts";
import { keepStdio } from "../stdio-guard.ts";

const HELP = `Usage: catenary serve [CONFIG|MODULE] [--stdio | --http HOST:PORT] [OPTIONS]

Serves the gateway that CONFIG describes, or what MODULE exports: a server made by createServer, a
chain, or any other handler (request, context) => Promise<Result>. It may be the default export, or
be called \`server\` or \`chain\`. The module must not call serve() itself.

A config is a JSON file (comments are allowed) with the servers that clients' files have, under
"mcpServers"; ./${CONFIG} where nothing is named. Over HTTP its "listen" says the path, the
names and the token; the address is that of --http.

  --stdio                on stdin and stdout; this is the default
  --http HOST:PORT       over HTTP; also :PORT, PORT, [::1]:PORT, or HOST alone (port 3000);
                         port 0 takes any that is free
  --sequential           take one request at a time and answer in order

With --http:
${FRONT_HELP}  --json                 one line of JSON on stdout when it is ready: {"url": ...}

${SIGNAL_HELP}
Exit codes: 0, 130 after SIGINT, 1 where the command line, the config or the module is wrong,
2 where there is no such file, 4 where the address cannot be listened on.
`;

const FLAGS = { ...FRONT_FLAGS, stdio: { type: "boolean" }, sequential: { type: "boolean" } } as const;

interface Wanted {
  /** The config or the module; absent where none is named. */
  readonly file?: string | undefined;
  readonly connection: Pick<ServeOptions, "ordering">;
  /** Absent for stdio. */
  readonly http?: HttpOptions | undefined;
  readonly json: boolean;
}

/** What a file turned out to be. */
interface Found {
  readonly handler: Closeable;
  readonly limits: NonNullable<ServeOptions["limits"]>;
  /** What the file says of HTTP. */
  readonly http: HttpOptions;
  readonly hasToken: boolean;
  /** Leaves stdin and stdout to whoever serves on them next. */
  readonly release: () => void;
}

function read(args: readonly string[]): Wanted {
  const { positionals, values } = parseFlags("serve", args, FLAGS, FRONT_NEEDS);
  const [file, ...more] = positionals;
  if (more.length > 0) throw new UsageError(`serve takes one CONFIG or MODULE\n\n${HELP}`);
  const http = frontOf(values);
  if (values.stdio === true && http !== undefined) throw new UsageError("--stdio or --http: one of them, not both");
  return {
    file,
    connection: values.sequential === true ? { ordering: "sequential" } : {},
    http,
    json: values.json === true,
  };
}

async function configured(path: string, isStdio: boolean): Promise<Found> {
  // Late: a module needs none of it.
  const { openGateway } = await import("../gateway.ts");
  const { config, gateway, release } = await openGateway(path, new EndReport(false), isStdio);
  const { token } = config.listen;
  const auth = token === undefined ? undefined : { auth: await tokenBearer(token) };
  const http = { ...saidOf(config), ...auth };
  // On stdio a client can say as much as its servers can.
  const limits = { ...(isStdio ? { messageBytes: MESSAGE_BYTES } : undefined), ...config.limits };
  return { handler: gateway, limits, http, hasToken: auth !== undefined, release };
}

async function exported(path: string): Promise<Found> {
  const release = keepStdio(ownServing(path));
  return { handler: await loadHandler(path), limits: {}, http: {}, hasToken: false, release };
}

async function run(args: readonly string[]): Promise<undefined> {
  const { file, connection, http: flags, json } = read(args);
  const isStdio = flags === undefined;
  const isModule = file !== undefined && !(await isConfig(file));
  const path = isModule ? file : await configPath(file, "serve");
  const found = isModule ? await exported(path) : await configured(path, isStdio);
  const { handler, limits } = found;
  const http = isStdio ? undefined : { ...found.http, ...flags };
  // Not a moment earlier, or a module takes it that calls serve() itself. Over HTTP it is never left to others: the end
  // of input would be the end of a process that does not read it.
  if (isStdio) found.release();
  const wire = http === undefined ? (isModule ? undefined : { graceMs: GATEWAY_GRACE_MS }) : { http };
  const serving = await listen(handler, { ...connection, limits, ...wire });
  const { url } = serving;
  if (url === undefined || http === undefined) return;
  const tokenIn = found.hasToken ? path : undefined;
  const { host = "127.0.0.1" } = http;
  announce(serving, { url, what: path, name: moduleName(path), host, tokenIn }, json ? { url } : undefined);
}

export const serveCommand: Command = { help: HELP, run: (args) => reporting(args, () => run(args)) };
