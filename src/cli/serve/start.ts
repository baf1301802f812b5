// Starts a server for the commands that serve: parses their flags, sets up the token, prints the URL and the entry for a
// client's config, and closes the server on a signal.

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { link, rm } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { AuthError, TOKEN_PRINCIPAL, type Authenticator } from "../../core/authentication.ts";
import { ConnectionError } from "../../core/errors.ts";
import { boolean, strings } from "../../core/fields.ts";
import { evaluatesCode, type Handler } from "../../core/handler.ts";
import { defined, errorMessage } from "../../core/values.ts";
import { isLoopback, urlHost } from "../../http/server/guard.ts";
import type { ServeHttpOptions } from "../../http/server/mount.ts";
import { orList } from "../../live/languages.ts";
import { COMPATS } from "../../protocol/compat.ts";
import { serve, type Closeable, type ServeOptions, type Serving } from "../../serve.ts";
import { EXIT, UnreachableError, UsageError } from "../command.ts";
import { firstGiven, flag, oneOf, section, type FlagValues } from "../flags.ts";
import { coverSecrets } from "../show/problems.ts";
import { paint, printStatus, ownCommand, sanitizeFor } from "../terminal/output.ts";
import { oneLine } from "../terminal/text.ts";
import { loadAhead, loadForServer } from "./preload.ts";

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
  path: flag("PATH", "The path of the endpoint. Default `/mcp`."),
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
  const misplaced = firstGiven(values, Object.keys(OPEN_ENDPOINT_FLAGS));
  if (misplaced !== undefined) throw new UsageError(`--${misplaced} needs --http HOST:PORT`);
  return undefined;
}

export function parseEndpointFlags(values: ServeValues): ServeHttpOptions {
  const { path, "allow-host": allowedHosts, "allow-origin": allowedOrigins } = values;
  if (path !== undefined && !path.startsWith("/")) throw new UsageError(`--path ${path} must begin with a slash`);
  return defined({ path, allowedHosts, allowedOrigins });
}

export interface Address {
  /** An IPv6 address is without brackets. Undefined: that of the config, or 127.0.0.1. */
  readonly host?: string;
  readonly port: number;
}

const DEFAULT_HOST = "127.0.0.1";
const DEFAULT_PORT = 3_000;

/** Parses `127.0.0.1:3000`, `:3000`, `3000`, `localhost` or `[::1]:0`. */
export function parseAddress(text: string): Address {
  if (text === "") throw new UsageError(`--http needs an address: ${ADDRESS_FORMS}`);
  if (/^\w+:\/\//.test(text))
    throw new UsageError(`--http ${text} is a URL: ${ADDRESS_FORMS}; set the path with --path`);
  if (/^\d+$/.test(text)) return { port: parsePort(text, text) };
  if (text.startsWith("[")) {
    const [, host = "", , port] = /^\[([^\]]+)\](:(\d+))?$/.exec(text) ?? [];
    if (!isIPv6(host)) throw new UsageError(`--http ${text} is not a valid address: write [::1]:3000 for IPv6`);
    return { host, port: parsePort(port, text) };
  }
  if (text.split(":").length > 2) {
    throw new UsageError(`--http ${text} is ambiguous: write an IPv6 address as [${text}] or [${text}]:3000`);
  }
  const [, host = "", , port] = /^([A-Za-z0-9._-]*)(:(\d+))?$/.exec(text) ?? [];
  if (host === "" && port === undefined)
    throw new UsageError(`--http ${text} is not a valid address: ${ADDRESS_FORMS}`);
  return { ...(host !== "" && { host }), port: parsePort(port, text) };
}

function parsePort(digits: string | undefined, text: string): number {
  const port = digits === undefined ? DEFAULT_PORT : Number(digits);
  if (port > 65_535) throw new UsageError(`--http ${text}: the port must be from 0 (any free port) to 65535`);
  return port;
}

/**
 * How long calls may take after stdin has closed. The last calls may have to wait until an upstream has started. Clients
 * that do not want to wait send SIGTERM.
 */
export const GATEWAY_GRACE_MS = 10_000;

/** Of a generated token, and of the key of session ids. */
const KEY_BYTES = 32;

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
async function portInUse({ host = DEFAULT_HOST, port = DEFAULT_PORT }: ServeHttpOptions): Promise<string> {
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
 * The key that seals session ids, so that clients go on when the server is restarted. It is kept in a file of the user.
 * Returns undefined if the file cannot be used: sessions then end with the server.
 */
export async function sessionKey(): Promise<string | undefined> {
  return storedSecret("session.key", "sessions will not survive a restart");
}

/**
 * A secret of the user that is the same at each start, kept in a file. Returns undefined, and prints what follows from
 * that, if the file cannot be used.
 */
async function storedSecret(name: string, otherwise: string): Promise<string | undefined> {
  const { makePrivateDirectory, readPrivate, stateDirectory, writePrivate } =
    await import("../../core/private-files.ts");
  const file = join(stateDirectory(), name);
  try {
    const known = await readPrivate(file);
    if (known !== undefined && known !== "") return known;
    await makePrivateDirectory(stateDirectory());
    const draft = `${file}.${randomBytes(6).toString("hex")}`;
    await writePrivate(draft, randomBytes(KEY_BYTES).toString("base64url"));
    // Fails if another process has written the key meanwhile; that one is used then.
    const linked = await Promise.allSettled([link(draft, file)]);
    await rm(draft);
    const key = await readPrivate(file);
    if (key === undefined) throw (linked[0] as PromiseRejectedResult).reason;
    return key;
  } catch (error) {
    printStatus(`catenary: ${otherwise}: ${errorMessage(error)}`);
    return undefined;
  }
}

/** Prints the banner of an HTTP server on stderr, or `json` on stdout. From now on, a signal closes the server. */
export function announce(
  serving: Serving,
  banner: Banner,
  json: object | undefined,
  lines: readonly string[] = bannerLines(banner),
): void {
  closeAtSignal(() => serving.close());
  for (const line of [...(json === undefined ? lines : []), ...warningLines(banner)]) printStatus(line);
  if (json === undefined) return;
  const { token } = banner;
  process.stdout.write(`${JSON.stringify({ ...json, token })}\n`);
}

export interface Banner {
  readonly url: string;
  /** What is served, such as the path of the config. */
  readonly source: string;
  /** The name for the client's config. */
  readonly name: string;
  /** The host that the server listens on. */
  readonly host: string;
  /** The only other hosts that the server accepts, if it listens on all addresses. */
  readonly allowedHosts?: readonly string[] | undefined;
  /** The path of the config whose token callers must send; the token itself is not printed. */
  readonly tokenIn?: string | undefined;
  /** What the token is there. Default: the value of listen.token. */
  readonly tokenKey?: string | undefined;
  /** The generated token that callers must send; printed here and nowhere else. */
  readonly token?: string | undefined;
  /** The generated token is the same at the next start. */
  readonly isTokenKept?: boolean | undefined;
  /** Callers can run code. */
  readonly evaluatesCode?: boolean | undefined;
  /** How to require a token, where none is required and that was not asked for. */
  readonly howToRequire?: string | undefined;
  /** No token is required although callers can run code. */
  readonly isOpen?: boolean | undefined;
}

type Interfaces = ReturnType<typeof networkInterfaces>;

export function bannerLines(banner: Banner, interfaces: Interfaces = networkInterfaces()): string[] {
  const { url, source, tokenIn, tokenKey = "the value of listen.token", token } = banner;
  return [
    `Serving ${sanitizeFor(process.stderr, source)} at ${paint("cyan", url)}${otherAddresses(banner, interfaces)}`,
    `For a client's config: ${clientEntry(banner)}`,
    ...(token === undefined
      ? []
      : [
          `${banner.isTokenKept === true ? "The token stays the same" : "This token is valid until you stop the server"}. Anyone who has it can ${banner.evaluatesCode === true ? "run code on this machine" : "call these tools"}.`,
        ]),
    ...(tokenIn === undefined ? [] : [`Replace TOKEN by ${tokenKey} in ${tokenIn}.`]),
  ];
}

/** The entry for a client's config, as JSON. */
export function clientEntry({ url, name, token, tokenIn }: Pick<Banner, "url" | "name" | "token" | "tokenIn">): string {
  const shown = token ?? (tokenIn === undefined ? undefined : "TOKEN");
  const headers = shown === undefined ? undefined : { headers: { Authorization: `Bearer ${shown}` } };
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
    .flatMap((found) => found ?? [])
    // Link-local IPv6 addresses do not work without a zone.
    .filter((one) => !one.internal && (one.family === "IPv4" || (bound === "[::]" && one.scopeid === 0)))
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

// Decides who may call over HTTP. If the config has a token or callers, callers must send a token of these. If it has
// none, a server that runs code requires a generated token, unless --no-token is given. Any other server requires no
// token, unless --require-token is given.

export interface TokenSetup {
  readonly http: Pick<ServeHttpOptions, "auth">;
  readonly banner: Pick<
    Banner,
    "tokenIn" | "tokenKey" | "token" | "isTokenKept" | "evaluatesCode" | "isOpen" | "howToRequire"
  >;
}

/** As `setUpToken`, by the flags of a command. The token of the starter, and that of --require-token, are kept in a file. */
export async function setUpTokenByFlags(
  handler: Handler,
  values: Pick<ServeValues, "require-token" | "no-token">,
  {
    isStarter = false,
    ...options
  }: Pick<TokenOptions, "token" | "callers" | "path"> & { readonly isStarter?: boolean },
): Promise<TokenSetup> {
  const { "require-token": isRequired = false, "no-token": noToken = false } = values;
  if (isRequired && noToken) throw new UsageError("Give --require-token or --no-token, not both");
  const isKept = isStarter || (isRequired && !evaluatesCode(handler));
  const generated = isKept ? await storedSecret("starter.token", "the token is only for this run") : undefined;
  const { http, banner } = await setUpToken(handler, { ...options, generated, isRequired, noToken });
  return { http, banner: { ...banner, isTokenKept: generated !== undefined } };
}

export interface TokenOptions {
  /** The token of the config. */
  readonly token?: string | undefined;
  /** The current callers of the config, by name. */
  readonly callers?: (() => ReadonlyMap<string, { readonly token: string }>) | undefined;
  /** The token for a server that runs code and has no other. Default: a new one. */
  readonly generated?: string | undefined;
  /** The path of the config. */
  readonly path?: string | undefined;
  /** --require-token is given. */
  readonly isRequired?: boolean;
  /** --no-token is given. */
  readonly noToken: boolean;
}

export async function setUpToken(
  handler: Handler,
  { token, callers = () => new Map(), generated: known, path, isRequired = false, noToken }: TokenOptions,
): Promise<TokenSetup> {
  const isLive = evaluatesCode(handler);
  if (token !== undefined || callers().size > 0) {
    const key = token === undefined ? "callers" : "listen.token";
    if (noToken) throw new UsageError(`--no-token contradicts ${key} in ${path}; remove one of them`);
    const auth = await acceptTokens(() => [
      ...(token === undefined ? [] : [[TOKEN_PRINCIPAL, token] as const]),
      ...[...callers()].map(([name, caller]) => [name, caller.token] as const),
    ]);
    const tokenKey = token === undefined ? "the token of a caller" : undefined;
    return {
      http: { auth: withHint(auth, CONFIG_HINT) },
      banner: { tokenIn: path, ...defined({ tokenKey }), evaluatesCode: isLive },
    };
  }
  if (!isLive && !isRequired) {
    return { http: {}, banner: noToken ? {} : { howToRequire: "--require-token" } };
  }
  if (noToken) return { http: { auth: false }, banner: { evaluatesCode: true, isOpen: true } };
  const generated = known ?? randomBytes(KEY_BYTES).toString("base64url");
  return {
    http: {
      auth: withHint(
        await acceptTokens(() => [[TOKEN_PRINCIPAL, generated]]),
        "it was printed when the server was started",
      ),
    },
    banner: { token: generated, evaluatesCode: isLive },
  };
}

const CONFIG_HINT =
  "send the header Authorization: Bearer TOKEN, with a token of the gateway's config (listen.token, callers)";

/** Adds to the error message where to find the token, because many clients show only the message. */
function withHint(auth: Authenticator, hint: string): Authenticator {
  return {
    authenticate: (credentials) =>
      auth.authenticate(credentials).catch((error: unknown) => {
        if (!(error instanceof AuthError) || error.status !== 401) throw error;
        throw new AuthError(401, `${error.message}; ${hint}`, error.challenge);
      }),
  };
}

/** `known` returns the tokens with the principals that have them. */
async function acceptTokens(
  known: () => readonly (readonly [principal: string, token: string])[],
): Promise<Authenticator> {
  const { bearer } = await import("../../auth/bearer/bearer.ts");
  return bearer({
    verify: (given) => {
      const sum = digest(given);
      let found: string | undefined;
      // Digests have equal lengths, and all are compared, so the time tells neither a length nor which one fits.
      for (const [principal, token] of known()) if (timingSafeEqual(sum, digest(token))) found = principal;
      return found === undefined ? undefined : { principal: found };
    },
  });
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
