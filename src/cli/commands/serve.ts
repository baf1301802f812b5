// `catenary serve [CONFIG|MODULE]`: the gateway that a config describes, or a module's server, on this process's stdio or
// over HTTP. The command line is read here and nowhere else; what it says to the person goes to stderr, and only `--json`
// puts a line on stdout.

import { MESSAGE_BYTES } from "../../chain/upstream/upstream.ts";
import type { ServeHttpOptions } from "../../http/server/mount.ts";
import type { Closeable, ServeOptions } from "../../serve.ts";
import { admission } from "../serve/admission.ts";
import { CONFIG, configHere, isConfig } from "../target/config-path.ts";
import { UpstreamReport } from "../serve/end-report.ts";
import { UsageError } from "../exit-codes.ts";
import { reporting } from "../show/failure.ts";
import { parseFlags } from "../target/flags.ts";
import {
  checkTokenFlag,
  FRONT_FLAGS,
  FRONT_HELP,
  FRONT_NEEDS,
  frontOf,
  saidOf,
  SIGNAL_HELP,
  TOKEN_FLAGS,
  TOKEN_HELP,
} from "../serve/front-flags.ts";
import { announce, GATEWAY_GRACE_MS, listen } from "../serve/listening.ts";
import type { Command } from "../main.ts";
import { loadHandler, moduleName, ownServing } from "../serve/module.ts";
import { say } from "../terminal/output.ts";
import { keepStdio } from "../serve/stdio-guard.ts";

const HELP = `Usage: catenary serve [CONFIG|MODULE] [--stdio | --http HOST:PORT] [OPTIONS]

Serves the gateway that CONFIG describes, or what MODULE exports: a server made by createServer, a
chain, or any other handler (request, context) => Promise<Result>. It may be the default export, or
be called \`server\` or \`chain\`. The module must not call serve() itself.

A config is a JSON file (comments are allowed) with the servers that clients' files have, under
"mcpServers"; ./${CONFIG} where nothing is named. Where there is none, a live JavaScript
session is served. Over HTTP its "listen" says the path, the names and the token; the address is
that of --http.

  --stdio                on stdin and stdout; this is the default
  --http HOST:PORT       over HTTP; also :PORT, PORT, [::1]:PORT, or HOST alone (port 3000);
                         port 0 takes any that is free
  --sequential           take one request at a time and answer in order

With --http:
${FRONT_HELP}  --json                 one line of JSON on stdout when it is ready: {"url": ...}, and "token"
                         where one was made
${TOKEN_HELP}
${SIGNAL_HELP}
Exit codes: 0, 130 after SIGINT, 1 where the command line, the config or the module is wrong,
2 where there is no such file, 4 where the address cannot be listened on.
`;

const FLAGS = {
  ...FRONT_FLAGS,
  ...TOKEN_FLAGS,
  stdio: { type: "boolean" },
  sequential: { type: "boolean" },
} as const;

interface Wanted {
  /** The config or the module; absent where none is named. */
  readonly file?: string | undefined;
  readonly connection: Pick<ServeOptions, "ordering">;
  /** Absent for stdio. */
  readonly http?: ServeHttpOptions | undefined;
  /** Callers over HTTP need no token. */
  readonly isUnasked: boolean;
  readonly json: boolean;
}

/** What a file turned out to be. */
interface Found {
  readonly handler: Closeable;
  readonly limits: NonNullable<ServeOptions["limits"]>;
  /** What the file says of HTTP. */
  readonly http: ServeHttpOptions;
  readonly token?: string | undefined;
  /** Leaves stdin and stdout to whoever serves on them next. */
  readonly release: () => void;
  /** For a person, and for a client; otherwise the file says it. */
  readonly what?: string;
  readonly name?: string;
}

function read(args: readonly string[]): Wanted {
  const { positionals, values } = parseFlags("serve", args, FLAGS, FRONT_NEEDS);
  const [file, ...more] = positionals;
  if (more.length > 0) throw new UsageError(`serve takes one CONFIG or MODULE\n\n${HELP}`);
  const http = frontOf(values);
  if (values.stdio === true && http !== undefined) throw new UsageError("--stdio or --http: one of them, not both");
  checkTokenFlag(values, http === undefined);
  return {
    file,
    connection: values.sequential === true ? { ordering: "sequential" } : {},
    http,
    isUnasked: values["no-token"] === true,
    json: values.json === true,
  };
}

async function configured(path: string, isStdio: boolean): Promise<Found> {
  // Late: a module needs none of it.
  const { openGateway } = await import("../serve/gateway.ts");
  const { config, gateway, release } = await openGateway(path, new UpstreamReport(false), isStdio);
  const limits = { ...limitsOf(isStdio), ...config.limits };
  return { handler: gateway, limits, http: saidOf(config), token: config.listen.token, release };
}

async function exported(path: string): Promise<Found> {
  const release = keepStdio(ownServing(path));
  return { handler: await loadHandler(path), limits: {}, http: {}, release };
}

async function unconfigured(isStdio: boolean): Promise<Found> {
  const { NO_CONFIG, openSession } = await import("../serve/gateway.ts");
  if (isStdio) say(`catenary: there is no ${CONFIG} here, so ${NO_CONFIG.what} is served on stdio`);
  return { handler: await openSession(), limits: limitsOf(isStdio), http: {}, release: () => undefined, ...NO_CONFIG };
}

/** On stdio a client can say as much as its servers can. */
function limitsOf(isStdio: boolean): Found["limits"] {
  return isStdio ? { messageBytes: MESSAGE_BYTES } : {};
}

async function run(args: readonly string[]): Promise<undefined> {
  const { file, connection, http: flags, isUnasked, json } = read(args);
  const isStdio = flags === undefined;
  const isModule = file !== undefined && !(await isConfig(file));
  const path = isModule ? file : await configHere(file, "serve");
  const opening = path === undefined ? unconfigured(isStdio) : isModule ? exported(path) : configured(path, isStdio);
  const { handler, limits, token, release, ...found } = await opening;
  // Not a moment earlier, or a module takes it that calls serve() itself. Over HTTP it is never left to others: the end
  // of input would be the end of a process that does not read it.
  if (isStdio) release();
  if (flags === undefined) {
    await listen(handler, { ...connection, limits, ...(isModule ? undefined : { graceMs: GATEWAY_GRACE_MS }) });
    return;
  }
  const { http: auth, told } = await admission(handler, { token, path, isUnasked });
  const http = { ...found.http, ...auth, ...flags };
  const serving = await listen(handler, { ...connection, limits, http });
  const { url = "" } = serving;
  const { host = "127.0.0.1" } = http;
  const { what = path ?? "", name = moduleName(what) } = found;
  announce(serving, { url, what, name, host, ...told }, json ? { url } : undefined);
}

export const serveCommand: Command = { help: HELP, run: (args) => reporting(args, () => run(args)) };
