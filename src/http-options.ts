// What people say of a front over HTTP, and what is wrong with it, told when it is said: an option that is misspelt or
// empty would otherwise be passed over, and a server would listen where nobody meant it to. Limits, names and
// authenticators are looked at where they are used.

import type { Authenticator } from "./core/authenticator.ts";
import { checkOptions } from "./core/options.ts";
import { textOf } from "./core/text.ts";
import type { HttpFrontOptions } from "./http/server/options.ts";
import type { ConnectionOptions } from "./dialogue/connection.ts";

/** A front that somebody else's server calls. */
export interface MountOptions extends Omit<HttpFrontOptions, "auth"> {
  /**
   * Asks callers who they are; without it anybody may call. A handler that evaluates code is not served without it,
   * unless it is `false`: then whoever reaches the port may run what they like on this machine.
   */
  readonly auth?: Authenticator | false;
  /**
   * Names that we may be called by, `name` or `name:port`; `localhost`, `127.0.0.1` and `[::1]` always are. A page in
   * a browser can be made to call any name that leads here, so a name that is not listed is refused.
   */
  readonly allowedHosts?: readonly string[];
  /** Origins of pages in browsers that may call, such as `https://app.example.com`; those of allowed hosts always may. */
  readonly allowedOrigins?: readonly string[];
}

export interface HttpOptions extends MountOptions {
  /** The address to listen on. "127.0.0.1". */
  readonly host?: string;
  /** 3000; with 0 the system picks one that is free. */
  readonly port?: number;
}

// By the types, so that an option which is added there must be added here.
/** Those of every wire. */
export const CONNECTION_NAMES: Readonly<Record<keyof Omit<ConnectionOptions, "mayShutDown">, true>> = {
  ordering: true,
  profile: true,
  revisions: true,
  rounds: true,
  maxInFlight: true,
  graceMs: true,
};

const MOUNT = {
  path: true,
  oldSse: true,
  allowedHosts: true,
  allowedOrigins: true,
  auth: true,
  limits: true,
  onError: true,
  ...CONNECTION_NAMES,
} as const satisfies Record<keyof MountOptions, true>;

const HTTP = { host: true, port: true, ...MOUNT } as const satisfies Record<keyof HttpOptions, true>;

/** Throws a TypeError where an option of `nodeHandler` or `fetchHandler` (`owner`) is none. */
export function checkMountOptions(owner: string, options: unknown): void {
  checkOptions(owner, options, MOUNT);
}

/** Throws a TypeError that says what is wrong with `serve`'s option `http`. */
export function checkHttpOptions(http: unknown): asserts http is HttpOptions {
  if (typeof http !== "object" || http === null || Array.isArray(http)) {
    throw new TypeError(`serve(): \`http\` must be an object, such as { port: 3000 }; got ${shown(http)}`);
  }
  checkOptions("serve()", http, HTTP, "http.");
  const { host, port } = http as { host?: unknown; port?: unknown };
  if (host !== undefined) checkHost(host);
  if (port !== undefined) checkPort(port);
}

function checkHost(host: unknown): void {
  if (typeof host !== "string") throw new TypeError(`serve(): http.host must be a text; got ${shown(host)}`);
  if (host.trim() !== "") return;
  // The system takes it for all addresses, and an empty variable of the environment is easily had.
  const ways = "leave it out for 127.0.0.1, or write 0.0.0.0 to listen on all addresses";
  throw new TypeError(`serve(): http.host is empty, which would mean every address of this machine: ${ways}`);
}

function checkPort(port: unknown): void {
  if (typeof port === "string") {
    const how = "make it a number, as in Number(process.env.PORT)";
    throw new TypeError(`serve(): http.port is the text ${shown(port)} and must be a number: ${how}`);
  }
  if (Number.isInteger(port) && Number(port) >= 0 && Number(port) <= 65_535) return;
  throw new TypeError(
    `serve(): http.port must be a whole number from 0 (any that is free) to 65535; got ${shown(port)}`,
  );
}

function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : Array.isArray(value) ? "a list" : textOf(value);
}
