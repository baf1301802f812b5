// The flags of every command that serves: on which wire, at which address, for whom. What a config says of it gives way
// to what stands on the line. Nothing is listened on here.

import type { Config } from "../../config/index.ts";
import type { ServeHttpOptions } from "../../http/server/mount.ts";
import { FORMS, parseAddress } from "../target/address.ts";
import { UsageError } from "../exit-codes.ts";
import type { Values } from "../target/flags.ts";

export const FRONT_FLAGS = {
  http: { type: "string" },
  path: { type: "string" },
  "allow-host": { type: "string", multiple: true },
  "allow-origin": { type: "string", multiple: true },
  json: { type: "boolean" },
} as const;

/** Of the commands that may serve what evaluates code. */
export const TOKEN_FLAGS = { "no-token": { type: "boolean" } } as const;

/** For parseFlags. */
export const FRONT_NEEDS: { readonly http: string } = { http: `an address: ${FORMS}` };

export const FRONT_HELP = `  --path PATH            the path of the endpoint; /mcp
  --allow-host NAME      a name in the Host header that is answered to; may be given several times
  --allow-origin ORIGIN  a web page's origin, such as https://app.example, that may call; likewise
`;

export const TOKEN_HELP = `  --no-token             let callers evaluate code without a token; it is warned of

Where code can be evaluated, in live sessions, callers over HTTP must bring a token. It is that of
the config, under "listen", or one that is made at the start, and told once with a client's entry.
`;

export const SIGNAL_HELP = `  SIGTERM and SIGINT close it: calls that are under way have 30 s; a second signal ends it at once.
`;

export type FrontValues = Values<typeof FRONT_FLAGS>;

/** The front over HTTP that the line asks for; undefined for stdio, where the other flags have no place. */
export function frontOf(values: FrontValues): ServeHttpOptions | undefined {
  const { http } = values;
  if (http !== undefined) return { ...parseAddress(http), ...endpointOf(values) };
  const stray = (["path", "allow-host", "allow-origin", "json"] as const).find((name) => values[name] !== undefined);
  if (stray !== undefined) throw new UsageError(`--${stray} goes with --http HOST:PORT`);
  return undefined;
}

/** What is said of the endpoint, wherever it is listened on. */
export function endpointOf(values: FrontValues): ServeHttpOptions {
  const { path, "allow-host": allowedHosts, "allow-origin": allowedOrigins } = values;
  if (path !== undefined && !path.startsWith("/")) throw new UsageError(`--path ${path} must begin with a slash`);
  return {
    ...(path === undefined ? undefined : { path }),
    ...(allowedHosts === undefined ? undefined : { allowedHosts }),
    ...(allowedOrigins === undefined ? undefined : { allowedOrigins }),
  };
}

/** Throws a UsageError where a token is spoken of and nobody could be asked for one. */
export function checkTokenFlag(values: Values<typeof TOKEN_FLAGS>, isStdio: boolean): void {
  if (values["no-token"] === true && isStdio) throw new UsageError("--no-token goes with --http HOST:PORT");
}

/** What a config says of a front, but for its token: that is for whoever asks callers for it. */
export function saidOf({ listen, limits }: Config): ServeHttpOptions {
  const { token: _token, ...said } = listen;
  return { ...said, limits };
}
