// `catenary serve [CONFIG|MODULE]`: serves the gateway of a config, or the server of a module, on stdio or over HTTP.
// Messages go to stderr; only --json prints a line on stdout.

import { MESSAGE_BYTES } from "../../chain/upstream/options.ts";
import type { ServeHttpOptions } from "../../http/server/mount.ts";
import type { Closeable, ServeOptions } from "../../serve.ts";
import { UsageError, type Command } from "../command.ts";
import { loadHandler, moduleName, reserveStdio, servesItself } from "../serve/module.ts";
import {
  checkTokenFlag,
  configHttpOptions,
  parseServeFlags,
  SERVE_EXPECTED,
  SERVE_FLAGS,
  SERVE_HELP,
  SIGNAL_HELP,
  TOKEN_FLAGS,
  TOKEN_HELP,
} from "../serve/serve-flags.ts";
import { announce, GATEWAY_GRACE_MS, startServing, setUpToken } from "../serve/start.ts";
import { UpstreamReport } from "../serve/upstream-report.ts";
import { defineCommand } from "../show/problems.ts";
import { CONFIG, findConfig, isConfig } from "../target/target.ts";
import { parseFlags } from "../target/flags.ts";
import { printStatus } from "../terminal/output.ts";

const HELP = `Usage: catenary serve [CONFIG|MODULE] [--stdio | --http HOST:PORT] [OPTIONS]

Serves the gateway of CONFIG, or what MODULE exports: a server made by createServer, a chain, or any
other handler (request, context) => Promise<Result>, as the default export or as \`server\` or
\`chain\`. The module must not call serve() itself.

A config is a JSON file (comments allowed) with the same "mcpServers" as the files of MCP clients;
the default is ./${CONFIG}. If there is none, a live JavaScript session is served. Over HTTP,
"listen" in the config sets the path, the allowed hosts and the token; --http sets the address.

  --stdio                serve on stdin and stdout (the default)
  --http HOST:PORT       serve over HTTP; also :PORT, PORT, [::1]:PORT, or HOST alone (port 3000);
                         port 0 picks a free one
  --sequential           handle one request at a time and answer in order

With --http:
${SERVE_HELP}  --json                 print one line of JSON on stdout when ready: {"url": ...}, and "token" if
                         one was generated
${TOKEN_HELP}
${SIGNAL_HELP}
Exit codes: 0 ok; 1 wrong command line, config or module; 2 no such file; 4 cannot listen on the
address; 130 after SIGINT.
`;

const FLAGS = {
  ...SERVE_FLAGS,
  ...TOKEN_FLAGS,
  stdio: { type: "boolean" },
  sequential: { type: "boolean" },
} as const;

interface ServeLine {
  /** The config or the module. */
  readonly file?: string | undefined;
  readonly connection: Pick<ServeOptions, "ordering">;
  /** Undefined for stdio. */
  readonly http?: ServeHttpOptions | undefined;
  readonly noToken: boolean;
  readonly json: boolean;
}

interface ServeSource {
  readonly handler: Closeable;
  readonly limits: NonNullable<ServeOptions["limits"]>;
  /** The HTTP options of the config. */
  readonly http: ServeHttpOptions;
  readonly token?: string | undefined;
  /** Ends the reservation of stdin and stdout, so that we can serve on them. */
  readonly release: () => void;
  /** For the banner; by default, the path of the file. */
  readonly source?: string;
  readonly name?: string;
}

function parseLine(args: readonly string[]): ServeLine {
  const { positionals, values } = parseFlags("serve", args, FLAGS, SERVE_EXPECTED);
  const [file, ...more] = positionals;
  if (more.length > 0) throw new UsageError(`serve takes one CONFIG or MODULE\n\n${HELP}`);
  const http = parseServeFlags(values);
  if (values.stdio === true && http !== undefined) throw new UsageError("Give --stdio or --http, not both");
  checkTokenFlag(values, http === undefined);
  return {
    file,
    connection: values.sequential === true ? { ordering: "sequential" } : {},
    http,
    noToken: values["no-token"] === true,
    json: values.json === true,
  };
}

async function openConfigured(path: string, isStdio: boolean): Promise<ServeSource> {
  // Imported only here, because serving a module does not need the gateway.
  const { openGateway } = await import("../serve/gateway.ts");
  const { config, gateway, release } = await openGateway(path, new UpstreamReport(false), isStdio);
  const limits = { ...defaultLimits(isStdio), ...config.limits };
  return { handler: gateway, limits, http: configHttpOptions(config), token: config.listen.token, release };
}

async function openModule(path: string): Promise<ServeSource> {
  const release = reserveStdio(servesItself(path));
  return { handler: await loadHandler(path), limits: {}, http: {}, release };
}

async function openDefault(isStdio: boolean): Promise<ServeSource> {
  const { NO_CONFIG, openSession } = await import("../serve/gateway.ts");
  if (isStdio) printStatus(`catenary: there is no ${CONFIG} here; serving ${NO_CONFIG.source} on stdio`);
  const limits = defaultLimits(isStdio);
  return { handler: await openSession(), limits, http: {}, release: () => undefined, ...NO_CONFIG };
}

/** On stdio, messages from the client may be as long as messages from upstreams. */
function defaultLimits(isStdio: boolean): ServeSource["limits"] {
  return isStdio ? { messageBytes: MESSAGE_BYTES } : {};
}

async function serveSource(args: readonly string[]): Promise<undefined> {
  const { file, connection, http: flags, noToken, json } = parseLine(args);
  const isStdio = flags === undefined;
  const isModule = file !== undefined && !(await isConfig(file));
  const path = isModule ? file : await findConfig(file, "serve");
  const opening =
    path === undefined ? openDefault(isStdio) : isModule ? openModule(path) : openConfigured(path, isStdio);
  const { handler, limits, token, release, ...opened } = await opening;
  // Stdio is reserved while a module is loaded, so that a module that calls serve() itself does not get it. Over HTTP
  // it stays reserved, since a module that serves stdio would end the process when stdin closes.
  if (isStdio) release();
  if (flags === undefined) {
    await startServing(handler, { ...connection, limits, ...(isModule ? undefined : { graceMs: GATEWAY_GRACE_MS }) });
    return;
  }
  const { http: auth, banner } = await setUpToken(handler, { token, path, noToken });
  const http = { ...opened.http, ...auth, ...flags };
  const serving = await startServing(handler, { ...connection, limits, http });
  const { url = "" } = serving;
  const { host = "127.0.0.1" } = http;
  const { source = path ?? "", name = moduleName(source) } = opened;
  announce(serving, { url, source, name, host, ...banner }, json ? { url } : undefined);
}

export const serveCommand: Command = defineCommand(HELP, serveSource);
