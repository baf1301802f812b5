// `connect` opens a client for a URL, a command, a handler or a transport. It chooses the transport and declares our
// capabilities. The revision is negotiated in dialogue/.

import { onAbort } from "../core/async.ts";
import type { Authorizer } from "../core/authentication.ts";
import { ConnectionError, refused } from "../core/errors.ts";
import { packageVersion } from "../core/files.ts";
import { type EnvOf, type Handler, type LogLevel, type Notification } from "../core/handler.ts";
import { isUnfinishedChain, NO_UPSTREAM } from "../core/handler-marks.ts";
import type { ListenerErrors } from "../core/listeners.ts";
import { checkOptions, optionNames, type OptionNames } from "../core/options.ts";
import { withoutPath } from "../core/secrets.ts";
import { defined, errorMessage } from "../core/values.ts";
import { openConnection, type ServerConnection, type ServerConnectionOptions } from "../dialogue/connect.ts";
import type { ClientCapabilities, Implementation } from "../protocol/model/index.ts";
import { Cache } from "../protocol/result-cache.ts";
import { knownRevision, NEWEST } from "../protocol/revisions/index.ts";
import { cancelled } from "./calls.ts";
import { Client } from "./client.ts";
import type { ToolsOf } from "./tool-types.ts";
import {
  checkTransport,
  isTransportSource,
  type LateParts,
  type NamedTransportSource,
  type Transport,
  type TransportSource,
} from "../transport/transport.ts";
import { ClientRequests, type ClientRequestHandlers } from "./client-requests.ts";
import { Contexts, type NotificationListeners } from "./contexts.ts";
import { openHandler } from "./local-connection.ts";
import { openCommand, type Command, type CommandOptions, type Program } from "./command.ts";

/** A URL, a command to start, a handler in this process, a transport that is not started yet, or a source of transports. */
export type Target = string | URL | Command | Handler | Transport | TransportSource;

/** Options of `connect()` for servers over HTTP. */
export interface HttpClientOptions {
  /** Authenticates us: `oauth(...)`, `bearerToken(...)`, or your own. */
  readonly auth?: Authorizer | undefined;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Sends the requests instead of node:http, for a proxy or another runtime. */
  readonly fetch?: typeof fetch | undefined;
}

/** Options of `connect()`. */
export interface ConnectOptions
  extends ClientRequestHandlers, NotificationListeners, CommandOptions, HttpClientOptions {
  /** The name and version that we send to the server. */
  readonly info?: Implementation | undefined;
  /** Uses this revision and skips the negotiation. */
  readonly revision?: string | undefined;
  /** Longest silence in a call, in milliseconds; 0 means no limit. */
  readonly timeoutMs?: number | undefined;
  /** Longest total duration of a call, in milliseconds; 0 means no limit. */
  readonly maxTimeoutMs?: number | undefined;
  /** How long the server may take to start and to answer for the first time. Default: 60 s. */
  readonly startTimeoutMs?: number | undefined;
  /** The least urgent log level to receive. A call can override it. */
  readonly logLevel?: LogLevel | undefined;
  /** Gets every notification, in the shape of the newest revision. */
  readonly onNotification?: ((notification: Notification) => void) | undefined;
  /** Whether results are cached for as long as the server allows. Default: true. */
  readonly cache?: boolean | undefined;
  /** Aborts connecting. Once connected, closes the client. */
  readonly signal?: AbortSignal | undefined;
  /** What the handlers of a server in this process get as `context.env`. */
  readonly env?: unknown;
}

const OPTION_NAMES: OptionNames<ConnectOptions> = optionNames(
  "info revision timeoutMs maxTimeoutMs startTimeoutMs logLevel onLog onProgress onNotification cache signal env",
  "sample elicit roots onRequest onError capabilities auth headers fetch onStderr onNoise limits",
);
const COMMAND_NAMES: OptionNames<Command> = optionNames("command args env inheritEnv cwd");

/**
 * Connects to a URL, a command, a handler or a transport, in the newest MCP revision that both sides support. `Of` types
 * the tools: `typeof server`, or declarations that `catenary types` wrote.
 *
 * @example
 * const client = await connect<typeof server>("http://127.0.0.1:3000/mcp");
 */
export async function connect<Of = unknown>(
  target: Target,
  options: ConnectOptions & { readonly env?: EnvOf<Of> | undefined } = {},
): Promise<Client<ToolsOf<Of> & object>> {
  checkOptions("connect()", options, OPTION_NAMES);
  if (isCommand(target)) checkOptions("connect(): a command", target, COMMAND_NAMES);
  if (options.env !== undefined && typeof target !== "function") {
    const advice = "the environment of a program belongs to it: connect({ command, env })";
    throw new TypeError(`connect(): \`env\` is what handlers of a server in this process get; ${advice}`);
  }
  const { signal, revision, startTimeoutMs, timeoutMs, maxTimeoutMs } = options;
  if (isAborted(signal)) throw cancelled("connect()", signal?.reason);
  const info = options.info ?? ownInfo();
  const requests = new ClientRequests({ ...options, capabilities: withAuthExtensions(options) });
  const contexts = new Contexts({
    ...options,
    info,
    requests,
    cache: options.cache === false ? undefined : new Cache(),
    identity: identityOf(target, options.auth),
    isLocal: typeof target === "function",
  });
  const timeouts = defined({ idleMs: timeoutMs, totalMs: maxTimeoutMs });
  const forget = onAbort(signal, () => contexts.end(signal?.reason));
  let server: OpenedTarget;
  try {
    server = await openTarget(target, options, {
      info,
      capabilities: requests.capabilities,
      defaultContext: contexts.defaultContext,
      timeouts,
      ...defined({ startTimeoutMs, revision }),
    });
  } catch (error) {
    throw isAborted(signal) ? cancelled("connect()", signal?.reason) : error;
  } finally {
    forget();
  }
  const who = contexts.cache === undefined ? undefined : await contexts.identity?.();
  contexts.cache?.slot({ method: "server/discover", params: {} }, who)?.store(server.opened.discovered);
  const client = new Client<ToolsOf<Of> & object>({ ...server, contexts, timeouts });
  closeOnAbort(client, signal);
  return client;
}

export interface TargetOptions extends CommandOptions, HttpClientOptions {
  readonly onError?: ListenerErrors | undefined;
  /** Whether errors leave out the path of the URL, since they go to others than who gave it. */
  readonly hidesPath?: boolean | undefined;
}

export interface OpenedTarget {
  readonly opened: ServerConnection;
  readonly program?: Program | undefined;
}

/** Opens a connection without a Client. The server's requests and notifications go to the context of each call. */
export async function openTarget(
  target: Target,
  options: TargetOptions,
  connecting: ServerConnectionOptions,
): Promise<OpenedTarget> {
  if (typeof target === "string" || target instanceof URL) {
    return { opened: await openUrl(target, options, connecting) };
  }
  if (typeof target === "function") {
    if (connecting.revision !== undefined && connecting.revision !== NEWEST.name) {
      knownRevision(connecting.revision);
      throw new TypeError(
        `A handler supports only revision ${NEWEST.name}; for older revisions, use connectInMemory() of catenary/testing`,
      );
    }
    return { opened: await openHandler(target, connecting) };
  }
  if (typeof target !== "object" || target === null) throw new TypeError(TARGETS);
  if (isUnfinishedChain(target)) throw new TypeError(`connect(): ${NO_UPSTREAM}`);
  if (isCommand(target)) return openCommand(target, options, connecting);
  const opening = { ...connecting, closeTimeoutMs: CLOSE_TIMEOUT_MS };
  if (isTransportSource(target)) {
    const { style = connecting.style, lateParts = LATE_PARTS }: NamedTransportSource = target;
    return {
      opened: await openConnection(() => transportFrom(target), { ...opening, lateParts, ...defined({ style }) }),
    };
  }
  if (!("start" in target || "send" in target)) throw new TypeError(TARGETS);
  checkTransport(target, "connect(): the target");
  let isUsed = false;
  const useOnce = (failure?: ConnectionError): Transport => {
    if (!isUsed) {
      isUsed = true;
      return target;
    }
    const advice = "a transport cannot be restarted: set `revision`, or connect to a command";
    throw new ConnectionError("refused", `The server disconnected when asked for its revision, and ${advice}`, {
      cause: failure,
    });
  };
  return { opened: await openConnection(useOnce, { ...opening, lateParts: LATE_PARTS }) };
}

/** How long to wait until a transport of the user is closed. The gateway waits as long for all its upstreams. */
const CLOSE_TIMEOUT_MS = 10_000;

const LATE_PARTS: LateParts = {
  opening: "The function `transport` did not resolve",
  starting: "`start` of the transport did not resolve",
};

const TARGETS = "connect() takes a URL, a command ({ command, args }), a handler or a transport";

function isCommand(target: Target): target is Command {
  return typeof target === "object" && target !== null && "command" in target;
}

async function transportFrom(source: TransportSource): Promise<Transport> {
  let transport: Transport;
  try {
    transport = await source.transport();
  } catch (cause) {
    if (cause instanceof ConnectionError) throw cause;
    throw new ConnectionError("refused", "The transport could not be opened", {
      cause,
      mayHaveRun: false,
      diagnostics: `: ${errorMessage(cause)}`,
    });
  }
  checkTransport(transport, "What the function `transport` returns");
  return transport;
}

async function openUrl(
  target: string | URL,
  { auth, headers, fetch, limits, hidesPath }: TargetOptions,
  connecting: ServerConnectionOptions,
): Promise<ServerConnection> {
  const url = parseUrl(target);
  // Loaded on first use, since many clients need no HTTP.
  const { openHttp } = await import("../http/client/connect.ts");
  const send = fetch ?? (hasNodeHttp() ? undefined : globalThis.fetch.bind(globalThis));
  const requester =
    send === undefined
      ? (await import("../http/client/node-requester.ts")).nodeRequester()
      : (await import("../http/client/fetch-requester.ts")).fetchRequester(send);
  return openHttp({ url, requester, auth, headers, limits, hidesPath }, connecting);
}

interface HostGlobals {
  readonly process?: { readonly versions?: { readonly node?: string } };
  readonly navigator?: { readonly userAgent?: string };
}

/** False in browsers, and in Workers, which only imitate node:http. */
function hasNodeHttp(): boolean {
  const { process, navigator }: HostGlobals = globalThis;
  return process?.versions?.node !== undefined && navigator?.userAgent !== "Cloudflare-Workers";
}

function parseUrl(target: string | URL): URL {
  const text = String(target);
  const advice = "connect to http://..., https://..., or a command: { command, args }";
  const problem = `Cannot connect to ${withoutPath(text)}`;
  if (!URL.canParse(text)) throw refused(`${problem}: not a valid URL; ${advice}`);
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw refused(`${problem}: neither http nor https; ${advice}`);
  }
  if (url.username !== "" || url.password !== "") {
    const advice = "the URL must not contain a user name or password; use `headers` or `auth`";
    throw refused(`Cannot connect to ${url.host}: ${advice}`);
  }
  url.hash = "";
  return url;
}

function withAuthExtensions({ capabilities = {}, auth }: ConnectOptions): ClientCapabilities {
  const { extensions = [] } = auth ?? {};
  if (extensions.length === 0) return capabilities;
  const declared = Object.fromEntries(extensions.map((name) => [name, {}]));
  return { ...capabilities, extensions: { ...declared, ...capabilities.extensions } };
}

/** Returns a function that gets the credentials we send. The cache uses them to keep identities apart. */
function identityOf(target: Target, auth: Authorizer | undefined): (() => Promise<string | undefined>) | undefined {
  if (auth === undefined || (typeof target !== "string" && !(target instanceof URL))) return undefined;
  const { signal } = new AbortController();
  return async () => (await auth.authorize({ method: "POST", url: new URL(target), signal }))["authorization"];
}

function closeOnAbort(client: Pick<Client, "close" | "closed">, signal: AbortSignal | undefined): void {
  if (signal === undefined) return;
  const close = (): void => void client.close().catch(() => undefined);
  if (signal.aborted) close();
  const forget = onAbort(signal, close);
  void client.closed.then(forget);
}

function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}

export function ownInfo(): Implementation {
  return { name: "catenary", version: packageVersion() };
}
