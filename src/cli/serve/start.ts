// Starts a server for the commands that serve: parses their flags, prints the URL and the entry for a
// client's config, and closes the server on a signal.

import { isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import type { Address } from "../../config/self-calls.ts";
import { ConnectionError } from "../../core/errors.ts";
import { boolean, strings } from "../../core/fields.ts";
import { defined } from "../../core/values.ts";
import { LISTEN_DEFAULTS } from "../../http/server/defaults.ts";
import { isLoopback, urlHost } from "../../core/hosts.ts";
import type { ServeHttpOptions } from "../../http/server/mount.ts";
import { orList } from "../../live/languages.ts";
import { COMPATS } from "../../protocol/compat.ts";
import { serve, type Closeable, type ServeOptions, type Serving } from "../../serve.ts";
import { EXIT, UnreachableError, UsageError } from "../command.ts";
import { flag, oneOf, refuseFlags, section, type FlagValues } from "../flags.ts";
import { coverSecrets } from "../show/problems.ts";
import { paint, printStatus, ownCommand, sanitizeFor } from "../terminal/output.ts";
import { oneLine } from "../terminal/text.ts";
import { loadAhead, loadForServer } from "./preload.ts";
import { storedSecret, type TokenBanner } from "./token.ts";

const ADDRESS_FORMS = "write HOST:PORT, such as 127.0.0.1:3000, or :PORT, or HOST alone (port 3000)";

const COMPAT_NAMES = COMPATS.slice(1).map((name) => `\`${name}\``);

/** Where to serve over HTTP, and as which document. */
export const SERVE_FLAGS = {
  http: flag(
    "HOST:PORT",
    "Serves over HTTP at this address. Also `:PORT`, `PORT`, `[::1]:PORT`, or `HOST` alone (port 3000). Port 0 picks a free one.",
    { expected: `an address: ${ADDRESS_FORMS}` },
  ),
  compat: oneOf(
    "NAME",
    `As which [document](compat.md) session-style callers are answered: \`${COMPATS[0]}\` (the default, the specification), ${orList(COMPAT_NAMES)}.`,
    COMPATS,
  ),
};

const HTTP_FLAGS = {
  path: flag("PATH", `The path of the endpoint. Default \`${LISTEN_DEFAULTS.path}\`.`),
  "allow-host": flag("NAME", strings("Accepts this name in the `Host` header.")),
  "allow-origin": flag(
    "ORIGIN",
    strings("Accepts calls from web pages of this origin, such as `https://app.example`."),
  ),
  json: boolean('Prints one line on stdout when ready: `{"url"}`, and `token` if one was generated.'),
  "require-token": boolean(
    "Requires a token although callers cannot run code. It is generated once, printed, and kept for the next start, in the same file as that of the [starter](#without-a-config).",
  ),
};

/** Flags for HTTP alone. */
export const ENDPOINT_FLAGS = section("With --http", HTTP_FLAGS);

/** Also says that no token is required. */
export const OPEN_ENDPOINT_FLAGS = section("With --http", {
  ...HTTP_FLAGS,
  "no-token": boolean("Does not require a token, even if callers can run code. Prints a warning."),
});

export const TOKEN_NOTES =
  'A server with live sessions requires a token over HTTP, since callers can run code: the one in the config ("listen.token"), or one that is generated at the start and printed once.';

export const SIGNAL_NOTES =
  "Over HTTP, SIGTERM and SIGINT shut down the server: calls in flight get 30 s; a second signal quits at once.";

export type ServeValues = FlagValues<typeof SERVE_FLAGS & typeof OPEN_ENDPOINT_FLAGS>;

/** The HTTP options of the command line; undefined for stdio. Throws a UsageError for an HTTP flag without --http. */
export function parseServeFlags(values: ServeValues): ServeHttpOptions | undefined {
  const { http } = values;
  if (http !== undefined) return { ...parseAddress(http), ...parseEndpointFlags(values) };
  refuseFlags(values, Object.keys(OPEN_ENDPOINT_FLAGS), "--http HOST:PORT");
  return undefined;
}

export function parseEndpointFlags(values: ServeValues): ServeHttpOptions {
  const { path, "allow-host": allowedHosts, "allow-origin": allowedOrigins } = values;
  if (path !== undefined && !path.startsWith("/")) throw new UsageError(`--path ${path} must begin with a slash`);
  return defined({ path, allowedHosts, allowedOrigins });
}

/** Parses `127.0.0.1:3000`, `:3000`, `3000`, `localhost` or `[::1]:0`. An IPv6 host is without brackets. */
export function parseAddress(text: string): Address {
  if (text === "") throw new UsageError(`--http needs an address: ${ADDRESS_FORMS}`);
  if (/^\w+:\/\//.test(text))
    throw new UsageError(`--http ${text} is a URL: ${ADDRESS_FORMS}; set the path with --path`);
  if (/^\d+$/.test(text)) return { port: parsePort(text, text) };
  if (text.startsWith("[")) {
    const [, host = "", port] = /^\[([^\]]+)\](?::(\d+))?$/.exec(text) ?? [];
    if (!isIPv6(host)) throw new UsageError(`--http ${text} is not a valid address: write [::1]:3000 for IPv6`);
    return { host, port: parsePort(port, text) };
  }
  if (text.split(":").length > 2) {
    throw new UsageError(`--http ${text} is ambiguous: write an IPv6 address as [${text}] or [${text}]:3000`);
  }
  const [, host = "", port] = /^([A-Za-z0-9._-]*)(?::(\d+))?$/.exec(text) ?? [];
  if (host === "" && port === undefined)
    throw new UsageError(`--http ${text} is not a valid address: ${ADDRESS_FORMS}`);
  return { ...(host !== "" && { host }), port: parsePort(port, text) };
}

function parsePort(digits: string | undefined, text: string): number {
  const port = digits === undefined ? LISTEN_DEFAULTS.port : Number(digits);
  if (port > 65_535) throw new UsageError(`--http ${text}: the port must be from 0 (any free port) to 65535`);
  return port;
}

/**
 * How long calls may take after stdin has closed. The last calls may have to wait until an upstream has started. Clients
 * that do not want to wait send SIGTERM.
 */
export const GATEWAY_GRACE_MS = 10_000;

/** How long calls in flight may take after the first signal. */
export const DRAIN_MS = 30_000;

export async function startServing(handler: Closeable, options: ServeOptions): Promise<Serving> {
  const { http } = options;
  await loadAhead(http === undefined, loadForServer);
  if (http === undefined) return serve(handler, options);
  try {
    const sealKey = await sessionKey();
    return await serve(handler, { graceMs: DRAIN_MS, ...options, http: { ...(sealKey && { sealKey }), ...http } });
  } catch (error) {
    if (!(error instanceof ConnectionError) || error.kind !== "refused") throw error;
    const { code } = (error.cause ?? {}) as NodeJS.ErrnoException;
    const message = code === "EADDRINUSE" ? await portInUse(http) : error.message;
    throw new UnreachableError(message, { cause: error });
  }
}

/** Says what runs on the port, how to reach it if it is a gateway of ours, and how to choose another port. */
async function portInUse({
  host = LISTEN_DEFAULTS.host,
  port = LISTEN_DEFAULTS.port,
}: ServeHttpOptions): Promise<string> {
  const { findGateways } = await import("./control.ts");
  const gateways = await findGateways().catch(() => []);
  const running = gateways.find(({ url }) => new URL(url).port === String(port));
  const program = ownCommand();
  const other = `--http :${port === 65_535 ? 3_001 : port + 1}`;
  if (running !== undefined) {
    const { url, source, pid } = running;
    const { likelyClient } = await import("../setup/client-servers.ts");
    const client = await likelyClient();
    return `A gateway runs at ${url} already: ${oneLine(source)} (pid ${pid})
  Connect a client  ${program} install ${client} --url ${url}
  List its tools    ${program} tools ${url}
  Stop it           kill ${pid}
  Or run another    ${program} up ${other}`;
  }
  const { portOwner } = await import("./port-owner.ts");
  const owner = await portOwner(port);
  const who = owner === undefined ? "" : ` by ${oneLine(coverSecrets(owner.command))} (pid ${owner.pid})`;
  const how = process.env["npm_lifecycle_event"] === "start" ? `npm start -- ${other}` : other;
  return `Port ${port} on ${host} is in use${who}: stop that program, or choose another port, such as ${how}`;
}

/**
 * The key that seals session ids, so that clients go on when the server is restarted. Returns undefined if it cannot be
 * kept: sessions then end with the server.
 */
export async function sessionKey(): Promise<string | undefined> {
  return storedSecret("session.key", "sessions will not survive a restart");
}

/** Prints the banner of an HTTP server on stderr, or `json` on stdout. From now on, a signal closes the server. */
export function announce(
  close: () => Promise<void>,
  banner: Banner,
  json: object | undefined,
  lines: readonly string[] = bannerLines(banner),
): void {
  closeAtSignal(close);
  for (const line of [...(json === undefined ? lines : []), ...warningLines(banner)]) printStatus(line);
  if (json === undefined) return;
  const { token } = banner;
  process.stdout.write(`${JSON.stringify({ ...json, token })}\n`);
}

export interface Banner extends TokenBanner {
  readonly url: string;
  /** What is served, such as the path of the config. */
  readonly source: string;
  /** The name for the client's config. */
  readonly name: string;
  /** A link to the console. */
  readonly console?: string | undefined;
  /** The host that the server listens on. */
  readonly host: string;
  /** The only other hosts that the server accepts, if it listens on all addresses. */
  readonly allowedHosts?: readonly string[] | undefined;
}

type Interfaces = ReturnType<typeof networkInterfaces>;

export function bannerLines(banner: Banner, interfaces: Interfaces = networkInterfaces()): string[] {
  const { url, source, tokenIn, tokenKey = "the value of listen.token", token } = banner;
  return [
    `Serving ${sanitizeFor(process.stderr, source)} at ${paint("cyan", url)}${otherAddresses(banner, interfaces)}`,
    ...(banner.console === undefined ? [] : [consoleLine(banner.console)]),
    `For a client's config: ${clientEntry(banner)}`,
    ...(token === undefined
      ? []
      : [
          `${banner.isTokenKept === true ? "The token stays the same" : "This token is valid until you stop the server"}. Anyone who has it can ${banner.evaluatesCode === true ? "run code on this machine" : "call these tools"}.`,
        ]),
    ...(tokenIn === undefined ? [] : [`Replace TOKEN by ${tokenKey} in ${tokenIn}.`]),
  ];
}

export function consoleLine(link: string): string {
  return `Console: ${paint("cyan", link)}`;
}

/** The entry for a client's config, as JSON. */
export function clientEntry({ url, name, token, tokenIn }: Pick<Banner, "url" | "name" | "token" | "tokenIn">): string {
  const shownToken = token ?? (tokenIn === undefined ? undefined : "TOKEN");
  const headers = shownToken === undefined ? undefined : { headers: { Authorization: `Bearer ${shownToken}` } };
  return JSON.stringify({ mcpServers: { [name]: { type: "http", url, ...headers } } });
}

/** The other URLs of a server that listens on all addresses. */
function otherAddresses({ host, url, allowedHosts }: Banner, interfaces: Interfaces): string {
  const bound = urlHost(host);
  if (bound !== "0.0.0.0" && bound !== "[::]") return "";
  if (allowedHosts !== undefined) {
    const names = allowedHosts.map(oneLine).join(", ");
    return names === "" ? "" : `, and from the network only as ${names} (allowedHosts)`;
  }
  const { port, pathname } = new URL(url);
  const others = Object.values(interfaces)
    .flatMap((addresses) => addresses ?? [])
    // Link-local IPv6 addresses do not work without a zone.
    .filter(
      (address) => !address.internal && (address.family === "IPv4" || (bound === "[::]" && address.scopeid === 0)),
    )
    .map(({ address }) => `http://${urlHost(address)}${port === "" ? "" : `:${port}`}${pathname}`);
  return `, and on all other addresses of this machine${others.length === 0 ? "" : `: ${others.join(", ")}`}`;
}

/**
 * Warns if callers can run code without a token (`isOpen`). If the network can reach the host, also warns if callers
 * can run code with a token, or can call tools without one.
 */
export function warningLines({
  host,
  tokenIn,
  token,
  evaluatesCode,
  isOpen,
  howToRequire,
}: Omit<Banner, "url" | "source" | "name">): string[] {
  const isLocal = isLoopback(urlHost(host));
  const warning = paint("yellow", "Warning:");
  if (isOpen === true) {
    return [
      `${warning} no token is required, so ${isLocal ? "every program on this machine" : `everyone who can reach ${host}`}`,
      "can run code as you. Remove --no-token to require one.",
    ];
  }
  if (isLocal && howToRequire !== undefined) {
    return [
      `No token is required: every program on this machine can call these tools. To require one: ${howToRequire}`,
    ];
  }
  if (isLocal) return [];
  if (evaluatesCode === true) {
    return [
      `${warning} ${host} can be reached from the network, and anyone who has the token can run code as you.`,
      "The token is sent unencrypted: listen on 127.0.0.1, or put a TLS proxy in front.",
    ];
  }
  if (tokenIn !== undefined || token !== undefined) return [];
  return [
    `${warning} ${host} can be reached from the network, and callers are not authenticated: anyone can call`,
    'every tool. Listen on 127.0.0.1; or require a token: --require-token, or {"listen": {"token": "${MY_TOKEN}"}};',
    "or put an authenticating proxy in front; or write a program that serves with `auth: bearer(...)` of",
    "catenary/server.",
  ];
}

const SIGNAL_EXIT = { SIGTERM: EXIT.ok, SIGINT: EXIT.interrupted } as const;

/** Closes on the first signal. Exits when closed, after DRAIN_MS, or on the second signal. */
function closeAtSignal(close: () => Promise<void>): void {
  let isClosing = false;
  const stop = (signal: keyof typeof SIGNAL_EXIT): void => {
    const end = (): void => process.exit(SIGNAL_EXIT[signal]);
    if (isClosing) end();
    isClosing = true;
    printStatus(`catenary: shutting down; calls in flight get ${DRAIN_MS / 1_000} s, a second signal quits at once`);
    setTimeout(end, DRAIN_MS);
    void close().finally(end);
  };
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, stop);
}
