// Parses the flags of the commands that serve: stdio or HTTP, and for HTTP the address, the path and the allowed hosts
// and origins. Flags override the config.

import { isIPv6 } from "node:net";
import type { Config } from "../../config/index.ts";
import type { ServeHttpOptions } from "../../http/server/mount.ts";
import { UsageError } from "../command.ts";
import type { FlagValues } from "../target/flags.ts";

export const SERVE_FLAGS = {
  http: { type: "string" },
  path: { type: "string" },
  "allow-host": { type: "string", multiple: true },
  "allow-origin": { type: "string", multiple: true },
  json: { type: "boolean" },
} as const;

/** Flags of the commands that may serve live sessions. */
export const TOKEN_FLAGS = { "no-token": { type: "boolean" } } as const;

const ADDRESS_FORMS = "write HOST:PORT, such as 127.0.0.1:3000, or :PORT, or HOST alone (port 3000)";

/** What parseFlags reports as expected if `--http` has no value. */
export const SERVE_EXPECTED: { readonly http: string } = { http: `an address: ${ADDRESS_FORMS}` };

export const SERVE_HELP = `  --path PATH            the path of the endpoint; default /mcp
  --allow-host NAME      accept this name in the Host header; repeatable
  --allow-origin ORIGIN  accept calls from web pages of this origin, such as https://app.example;
                         repeatable
`;

export const TOKEN_HELP = `  --no-token             do not require a token, even where callers can run code; prints a warning

A server with live sessions requires a token over HTTP, since callers can run code: the one in the
config ("listen.token"), or one that is generated at the start and printed once.
`;

export const SIGNAL_HELP = `Over HTTP, SIGTERM and SIGINT shut down the server: calls in flight get 30 s; a second
signal quits at once.
`;

export type ServeValues = FlagValues<typeof SERVE_FLAGS>;

/** The HTTP options of the command line; undefined for stdio. Throws a UsageError for an HTTP flag without --http. */
export function parseServeFlags(values: ServeValues): ServeHttpOptions | undefined {
  const { http } = values;
  if (http !== undefined) return { ...parseAddress(http), ...parseEndpointFlags(values) };
  const misplaced = (["path", "allow-host", "allow-origin", "json"] as const).find(
    (name) => values[name] !== undefined,
  );
  if (misplaced !== undefined) throw new UsageError(`--${misplaced} needs --http HOST:PORT`);
  return undefined;
}

export function parseEndpointFlags(values: ServeValues): ServeHttpOptions {
  const { path, "allow-host": allowedHosts, "allow-origin": allowedOrigins } = values;
  if (path !== undefined && !path.startsWith("/")) throw new UsageError(`--path ${path} must begin with a slash`);
  return {
    ...(path === undefined ? undefined : { path }),
    ...(allowedHosts === undefined ? undefined : { allowedHosts }),
    ...(allowedOrigins === undefined ? undefined : { allowedOrigins }),
  };
}

/** Throws a UsageError for --no-token on stdio. */
export function checkTokenFlag(values: FlagValues<typeof TOKEN_FLAGS>, isStdio: boolean): void {
  if (values["no-token"] === true && isStdio) throw new UsageError("--no-token needs --http HOST:PORT");
}

/** The HTTP options of a config, without its token. */
export function configHttpOptions({ listen, limits }: Config): ServeHttpOptions {
  const { token: _token, ...options } = listen;
  return { ...options, limits };
}

export interface Address {
  /** An IPv6 address is without brackets. */
  readonly host: string;
  readonly port: number;
}

const DEFAULT_HOST = "127.0.0.1";
const DEFAULT_PORT = 3_000;

/** Parses `127.0.0.1:3000`, `:3000`, `3000`, `localhost` or `[::1]:0`. */
export function parseAddress(text: string): Address {
  if (text === "") throw new UsageError(`--http needs an address: ${ADDRESS_FORMS}`);
  if (/^\w+:\/\//.test(text))
    throw new UsageError(`--http ${text} is a URL: ${ADDRESS_FORMS}; set the path with --path`);
  if (/^\d+$/.test(text)) return { host: DEFAULT_HOST, port: parsePort(text, text) };
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
  return { host: host === "" ? DEFAULT_HOST : host, port: parsePort(port, text) };
}

function parsePort(digits: string | undefined, text: string): number {
  const port = digits === undefined ? DEFAULT_PORT : Number(digits);
  if (port > 65_535) throw new UsageError(`--http ${text}: the port must be from 0 (any free port) to 65535`);
  return port;
}
