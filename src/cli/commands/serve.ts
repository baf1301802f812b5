// `catenary serve [CONFIG|MODULE]`: serves the gateway of a config, or the server of a module, on stdio or over HTTP.
// `catenary up [CONFIG]`: serves the gateway of a config over HTTP and reports when its upstreams start, stop or crash.
// Messages go to stderr; only --json prints a line on stdout.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { ConsoleHost } from "../../console/host.ts";
import type { Gateway } from "../../chain/gateway.ts";
import type { UpstreamStatus } from "../../chain/upstream/options.ts";
import { packageVersion } from "../../core/files.ts";
import { defined } from "../../core/values.ts";
import type { Config } from "../../config/index.ts";
import { LISTEN_DEFAULTS } from "../../http/server/defaults.ts";
import type { HttpRequest } from "../../http/server/http-request.ts";
import type { ServeHttpOptions } from "../../http/server/mount.ts";
import type { Health } from "../../http/server/options.ts";
import type { Closeable, ServeOptions } from "../../serve.ts";
import { TOKEN_PRINCIPAL } from "../../core/authentication.ts";
import { boolean, string } from "../../core/fields.ts";
import { evaluatesCode, PAGES } from "../../core/handler-marks.ts";
import { LANGUAGES, orList } from "../../live/languages.ts";
import type { Compat } from "../../protocol/compat.ts";
import { NotFoundError, UsageError } from "../command.ts";
import { command, type Command } from "../define.ts";
import { firstGiven, flag, oneOf, section, type FlagValues, type ParsedLine } from "../flags.ts";
import type { OpenedGateway } from "../serve/gateway.ts";
import { EventLog, LOG_FORMATS } from "../serve/event-log.ts";
import { loadHandler, moduleName, reserveStdio, servesItself } from "../serve/module.ts";
import {
  announce,
  bannerLines,
  DRAIN_MS,
  GATEWAY_GRACE_MS,
  parseAddress,
  OPEN_ENDPOINT_FLAGS,
  parseEndpointFlags,
  parseServeFlags,
  SERVE_FLAGS,
  SIGNAL_NOTES,
  startServing,
  TOKEN_NOTES,
} from "../serve/start.ts";
import { setUpToken } from "../serve/token.ts";
import { loadAhead, loadForGateway } from "../serve/preload.ts";
import { UpstreamReport, upstreamTable } from "../serve/upstream-report.ts";
import type { MemoryConfig } from "../serve/without-config.ts";
import { ownCommand } from "../terminal/output.ts";
import { CONFIG, isConfig, requireConfig } from "../target/target.ts";

const GATEWAY_FLAGS = {
  live: flag(
    "LANGUAGE",
    string(
      `Serves [live sessions](live.md) of ${orList(LANGUAGES.map(({ name }) => `\`${name}\``))} instead of a config.`,
    ),
  ),
  sandbox: boolean(
    "With `--live`: in [a sandbox](live.md#sandbox), without network, your files and your environment. Needs bubblewrap.",
  ),
  code: boolean(
    "[Code mode](../how-to/code-mode.md): callers see three tools, and call the others from code. Uses `code` of the config, or its defaults.",
  ),
  start: boolean(
    "Starts all servers at once instead of with the first request. `start` in [an entry](config.md) does so for one. With a token, they are started for its callers.",
  ),
  reload: boolean("[Reads the config again](#reading-the-config-again) when it has changed; SIGHUP does so too."),
  "log-format": oneOf(
    "FORMAT",
    "`text` (the default), or `json`: each line on stderr is an object with `time`, `level`, `message`, and `upstream` and `stream` where they apply. The middleware `log` then writes JSON too, unless its `format` is set.",
    LOG_FORMATS,
  ),
  trace: flag(
    "FILE",
    "Adds every message between callers and the gateway, and between the gateway and its servers, to FILE, as lines of JSON without secrets ([tracing](#tracing)).",
  ),
  yes: boolean(
    `Starts what \`./${CONFIG}\` says without asking, and remembers it, with the local files that it runs, as approved.`,
  ),
};

const UP_FLAGS = {
  ...SERVE_FLAGS,
  ...GATEWAY_FLAGS,
  "no-open": boolean(
    "Does not open [the console](../how-to/console.md) in a browser. It is never opened in CI, over ssh, or without a terminal.",
  ),
  ...section("Over HTTP", OPEN_ENDPOINT_FLAGS),
  json: {
    ...OPEN_ENDPOINT_FLAGS.json,
    description:
      'Prints one line on stdout when ready: `{"url", "upstreams", "console"}`, and `token` if one was generated.',
    section: "Over HTTP",
  },
};
const FLAGS = {
  stdio: boolean("Serves on stdin and stdout. The default."),
  ...SERVE_FLAGS,
  sequential: boolean("Handles one request at a time and answers in order. Over HTTP: within each session."),
  ...GATEWAY_FLAGS,
  ...OPEN_ENDPOINT_FLAGS,
};

export const serveCommand: Command = command({
  name: "serve",
  usage: "[CONFIG|MODULE] [--stdio | --http HOST:PORT] [OPTIONS]",
  about: `Serves the gateway of CONFIG, or what MODULE exports: a server made by createServer, a chain with upstreams, or any
other handler (request, context) => Promise<Result>. It is the default export, \`chain\` or \`server\`, or else the only export
that is a server or a chain. MODULE is JavaScript or TypeScript, and must not call serve() itself. What it prints with
console.log goes to stderr.

A config is a JSON file (comments allowed) with the same "mcpServers" as the files of MCP clients; the default is
./${CONFIG}. Over HTTP, "listen" in the config sets the path, the allowed hosts and the token; --http sets the address.`,
  flags: FLAGS,
  notes: `${TOKEN_NOTES}\n\n${SIGNAL_NOTES}`,
  exits: `0 ok; 1 wrong command line, config or module; 2 no such file; 4 cannot listen on the address; 130 after SIGINT.`,
  words: Infinity,
  run: serveSource,
});

export const upCommand: Command = command({
  name: "up",
  usage: "[CONFIG] [--http HOST:PORT] [OPTIONS]",
  about: `Serves the gateway of CONFIG over HTTP, and reports on stderr when its servers start, stop or crash. CONFIG defaults to
./${CONFIG}; without that file, serves a JavaScript session, in a sandbox if there is bubblewrap, and a guide whose tools help
to begin. The address is that of --http, or "listen" of the config, or 127.0.0.1:3000. If the config has "inputs", asks for
them at the terminal.`,
  flags: UP_FLAGS,
  notes: `${TOKEN_NOTES}\n\n${SIGNAL_NOTES}`,
  exits: "0 ok; 1 wrong command line or config; 2 no such file; 4 cannot listen on the address; 130 after SIGINT.",
  words: 1,
  run: up,
});

interface Source {
  readonly handler: Closeable;
  /** Undefined for a module. */
  readonly gateway?: Gateway;
  readonly limits: NonNullable<ServeOptions["limits"]>;
  /** The HTTP options of the config. */
  readonly http: ServeHttpOptions;
  readonly token?: string | undefined;
  /** The key `compat` of the config. */
  readonly compat?: Compat | undefined;
  readonly callers?: () => Config["callers"];
  /** Whether a caller sees a server of the config. */
  readonly sees?: (server: string, principal: string | undefined) => boolean;
  /** Ends the reservation of stdin and stdout, so that we can serve on them. */
  readonly release: () => void;
  /** The path, or what is served without one, and its name; for the banner. */
  readonly source: string;
  readonly name: string;
  readonly log: EventLog;
  /** The gateway of a config, and how to read the config again if it is a file. */
  readonly configured?: Pick<OpenedGateway, "running"> & Partial<Pick<OpenedGateway, "load">>;
  /** Set if there is no config, and nothing else is asked for. */
  readonly starter?: MemoryConfig["starter"];
}

/**
 * Starts servers as asked for, and applies changes of the config. `checks` throw if one must not be served. Returns how to
 * read the config again, if it is a file.
 */
async function operate(
  { configured, source, log }: Source,
  values: FlagValues<typeof GATEWAY_FLAGS>,
  principal?: string,
  checks: { readonly config?: (next: Config) => Promise<void>; readonly gateway?: (next: Gateway) => void } = {},
): Promise<(() => Promise<boolean>) | undefined> {
  if (configured === undefined) return undefined;
  const { running, load } = configured;
  running.start({ isAll: values.start === true, principal });
  if (load === undefined) return undefined;
  const { Reloader } = await import("../serve/reload.ts");
  const loadChecked = async (): Promise<Config> => {
    const next = await load();
    await checks.config?.(next);
    return next;
  };
  const reloader = new Reloader({ path: source, running, log, load: loadChecked, check: checks.gateway });
  if (values.reload === true) reloader.watch();
  // A gateway whose terminal is closed would go on unseen, so it ends with the terminal.
  reloader.reloadAtSignal(() => process.kill(process.pid, "SIGTERM"));
  return () => reloader.reload();
}

/** What the console and the control socket need of this gateway. */
function hostOf(
  { configured, source, name, log }: Source & Required<Pick<Source, "configured">>,
  url: string,
  reload: (() => Promise<boolean>) | undefined,
): ConsoleHost {
  const { running, load } = configured;
  const startedAt = new Date().toISOString();
  const config = load === undefined ? undefined : resolve(source);
  const facts = { name, version: packageVersion(), pid: process.pid, source: config ?? source, url, startedAt };
  const command = ownCommand();
  return {
    running,
    log,
    reload,
    info: () => ({ ...facts, ...defined({ config, command: command === "catenary" ? undefined : command }) }),
    restart: (upstream) => running.restart(upstream, DRAIN_MS),
  };
}

/** Ready unless all servers have failed, since one broken server must not take the others away. */
function healthOf(gateway: Gateway, isShown: (server: string) => boolean): Health {
  const all = Object.entries(gateway.status());
  const failing = all.filter(([, status]) => status.failing === true).map(([name]) => name);
  return { isReady: failing.length < all.length, details: { failing: failing.filter(isShown) } };
}

interface GatewayLine {
  /** The path of the config, if it is given. */
  readonly file: string | undefined;
  readonly command: "serve" | "up";
  readonly isStdio: boolean;
  readonly values: FlagValues<typeof GATEWAY_FLAGS>;
}

/** Opens the config, or what is served without one. */
async function openConfig(line: GatewayLine): Promise<Source> {
  const { command, isStdio, values } = line;
  const log = new EventLog({ format: values["log-format"] });
  const { trace: file } = values;
  const onError = (message: string): void => log.write({ level: "error", message });
  const trace = file === undefined ? undefined : new (await import("../serve/trace.ts")).Trace(file, onError);
  // Imported only here, because serving a module does not need the gateway.
  const { codeLanguage, hasPath, openGateway, seesAll, seesServer } = await import("../serve/gateway.ts");
  const chosen = await chooseConfig(line);
  const { onNoise, onState, onStderr, onWarning } = new UpstreamReport(log, command === "up");
  const { middleware } = log;
  const source = "path" in chosen ? chosen.path : chosen.config;
  const opened = await openGateway(source, { onNoise, onState, onStderr, onWarning, middleware }, isStdio, {
    trace,
    code: values.code,
    text: "path" in chosen ? chosen.text : undefined,
    onStray: onError,
  });
  const { config, gateway, running, release, load } = opened;
  await loadAhead(isStdio, () => loadForGateway(config.code && codeLanguage(config.code).name));
  const { token, ...http } = config.listen;
  return {
    handler: trace?.callers(gateway) ?? gateway,
    gateway,
    limits: config.limits,
    http: {
      ...http,
      limits: config.limits,
      paths: (at, principal) => hasPath(running.config, at, principal),
      metrics: (principal) => (seesAll(running.config, principal) ? gateway.metrics() : undefined),
    },
    token,
    compat: config.compat,
    callers: () => running.config.callers,
    sees: (server, principal) => seesServer(running.config, server, principal),
    release,
    log,
    ...("path" in chosen
      ? { source: chosen.path, name: moduleName(chosen.path), configured: { running, load } }
      : { source: chosen.source, name: chosen.name, starter: chosen.starter, configured: { running } }),
  };
}

/** A config, and its text if the user has approved it. */
interface ConfigFile {
  readonly path: string;
  readonly text?: string | undefined;
}

/** The config; or the sessions of --live; or, for `up` in a folder without a config, the starter. */
async function chooseConfig({ file, command, values }: GatewayLine): Promise<ConfigFile | MemoryConfig> {
  const { live, sandbox = false, reload = false, code = false } = values;
  if (live !== undefined) {
    if (file !== undefined) throw new UsageError("Give --live or a config, not both");
    if (reload) throw new UsageError("--reload needs a config");
    if (code) throw new UsageError("--code needs a config, whose tools the code can call");
    const { liveConfig } = await import("../serve/without-config.ts");
    return liveConfig(live, sandbox);
  }
  if (sandbox) throw new UsageError('--sandbox needs --live; in a config, write "sandbox": true');
  if (file === undefined && command === "up" && !reload && !existsSync(CONFIG)) {
    if (code) throw new UsageError("--code needs a config, whose tools the code can call");
    const { starterConfig } = await import("../serve/without-config.ts");
    return starterConfig();
  }
  const path = await requireConfig(file, command).catch((error: unknown) => {
    if (file !== undefined || !(error instanceof NotFoundError)) throw error;
    throw new NotFoundError(`${error.message}; for live sessions without a config, catenary ${command} --live js`);
  });
  if (file !== undefined) return { path };
  const { confirmConfig } = await import("../serve/trust.ts");
  return { path, text: await confirmConfig(path, values.yes === true) };
}

async function openModule(path: string): Promise<Source> {
  const release = reserveStdio(servesItself(path));
  const handler = await loadHandler(path);
  const log = new EventLog({ hasTimes: false });
  return { handler, limits: {}, http: {}, release, log, source: path, name: moduleName(path) };
}

async function serveHttp(
  opened: Source,
  flags: ServeHttpOptions,
  values: Omit<FlagValues<typeof UP_FLAGS>, "no-open"> & { readonly "no-open"?: boolean | undefined },
  { isUp = false, ...options }: ServeOptions & { readonly isUp?: boolean },
): Promise<undefined> {
  const { handler, gateway, token, callers, sees, source, name, starter } = opened;
  const noToken = values["no-token"] === true;
  const required = { noToken, isRequired: values["require-token"] === true, isStarter: starter !== undefined };
  const { http: auth, banner } = await setUpToken(handler, { token, callers, path: source, ...required });
  const health =
    gateway &&
    ((principal: string | undefined): Health => healthOf(gateway, (server) => sees?.(server, principal) ?? true));
  const { configured } = opened;
  const hasConsole = configured !== undefined && (configured.running.config.console ?? isUp);
  let answerPage = (_request: HttpRequest): boolean => false;
  const http = { ...opened.http, ...defined({ health }), ...auth, ...flags };
  await refuseSelfCalls(opened.configured?.running.config, http);
  const served: typeof handler & { [PAGES]?: (request: HttpRequest) => boolean } = handler;
  if (hasConsole) served[PAGES] = (request) => answerPage(request);
  const serving = await startServing(handler, { ...options, http });
  const principal = auth.auth === undefined || auth.auth === false ? undefined : TOKEN_PRINCIPAL;
  const isOpen = token === undefined && callers?.().size === 0;
  const reload = await operate(opened, values, principal, {
    config: async (next) => {
      if (isOpen && next.callers.size > 0)
        throw new UsageError("callers were added, and no token was required before: restart the gateway");
      await refuseSelfCalls(next, http);
    },
    gateway: (next) => {
      if (http.auth !== undefined || noToken || !evaluatesCode(next)) return;
      throw new UsageError("A live server was added, and callers need a token for it: restart the gateway");
    },
  });
  const { url = "" } = serving;
  let link: string | undefined;
  let closeConsole = (): void => undefined;
  if (configured !== undefined) {
    const { openConsoleOf } = await import("../serve/console.ts");
    const console = await openConsoleOf(hostOf({ ...opened, configured }, url, reload), {
      token: banner.token,
      hasToken: principal !== undefined,
      isServed: hasConsole,
    });
    answerPage = console.answerPage;
    closeConsole = console.close;
    link = console.link?.();
  }
  const upstreams = isUp && gateway !== undefined ? statusAtStart(gateway, opened, values.start === true) : undefined;
  const json =
    values.json === true ? { url, ...(upstreams && { upstreams }), ...defined({ console: link }) } : undefined;
  const { host = LISTEN_DEFAULTS.host, allowedHosts } = http;
  const announced = { url, source, name, host, allowedHosts, ...banner, ...defined({ console: link }) };
  const close = (): Promise<void> => {
    closeConsole();
    return serving.close();
  };
  if (starter !== undefined) {
    const { starterLines } = await import("../serve/without-config.ts");
    announce(close, announced, json, await starterLines(announced, starter));
  } else {
    const [address = "", ...entry] = bannerLines(announced);
    announce(close, announced, json, [address, ...(upstreams ? [upstreamTable(upstreams).trimEnd()] : []), ...entry]);
  }
  if (!isUp || link === undefined || json !== undefined || values["no-open"] === true) return;
  const { mayOpenBrowser, openConsole } = await import("../serve/open-console.ts");
  if (mayOpenBrowser()) await openConsole(link);
}

/** The status of the upstreams, those that are being started as such, even if their process does not run yet. */
function statusAtStart(
  gateway: Gateway,
  { configured }: Source,
  isAll: boolean,
): Readonly<Record<string, UpstreamStatus>> {
  const isStarted = (name: string): boolean =>
    isAll || configured?.running.config.upstreams.get(name)?.policy.start === true;
  const all = Object.entries(gateway.status()).map(([name, status]) => {
    const isStarting = status.state === "idle" && status.failing !== true && isStarted(name);
    return [name, isStarting ? { ...status, state: "starting" as const } : status] as const;
  });
  return Object.fromEntries(all);
}

/** Throws a UsageError if an upstream has the address where we serve. */
async function refuseSelfCalls(config: Config | undefined, { host, port }: ServeHttpOptions): Promise<void> {
  if (config === undefined) return;
  const { findOwnUrl } = await import("../../config/self-calls.ts");
  const name = findOwnUrl(config.upstreams, { host, port });
  if (name === undefined) return;
  throw new UsageError(
    `The URL of the server ${name} is the address of this gateway, which would call itself; remove the entry, or choose another port: --http :3001`,
  );
}

async function serveSource({ words: [file, ...more], values }: ParsedLine<typeof FLAGS>): Promise<undefined> {
  if (more.length > 0) throw new UsageError(`serve takes one CONFIG or MODULE\n\n${serveCommand.help()}`);
  const flags = parseServeFlags(values);
  const { compat } = values;
  const isStdio = flags === undefined;
  if (values.stdio === true && !isStdio) throw new UsageError("Give --stdio or --http, not both");
  const isModule = file !== undefined && !(await isConfig(file));
  const unused = firstGiven(values, Object.keys(GATEWAY_FLAGS));
  if (isModule && unused !== undefined) throw new UsageError(`--${unused} does not apply to the module ${file}`);
  const opened = await (isModule ? openModule(file) : openConfig({ file, command: "serve", isStdio, values }));
  const { handler, limits, release } = opened;
  const ordering = values.sequential === true ? ("sequential" as const) : undefined;
  const options = { limits, ...defined({ ordering, compat: compat ?? opened.compat }) };
  if (!isStdio) return serveHttp(opened, flags, values, options);
  // Stdio is reserved while a module is loaded, so that a module that calls serve() itself does not get it. Over HTTP
  // it stays reserved, since a module that serves stdio would end the process when stdin closes.
  release();
  await operate(opened, values);
  await startServing(handler, { ...options, ...(!isModule && { graceMs: GATEWAY_GRACE_MS }) });
}

async function up({ words: [file], values }: ParsedLine<typeof UP_FLAGS>): Promise<undefined> {
  const flags = { ...(values.http !== undefined && parseAddress(values.http)), ...parseEndpointFlags(values) };
  if (file !== undefined && !(await isConfig(await requireConfig(file, "up")))) {
    throw new UsageError(
      `${file} is not a config; to serve a module, run catenary serve ${file} --http 127.0.0.1:3000`,
    );
  }
  const { compat } = values;
  const opened = await openConfig({ file, command: "up", isStdio: false, values });
  return serveHttp(opened, flags, values, { isUp: true, ...defined({ compat: compat ?? opened.compat }) });
}
