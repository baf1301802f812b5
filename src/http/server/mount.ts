// The public options of the HTTP server, their checks, and the HTTP front that is built from them. `serve` listens for
// that front; `catenary/http` returns it as a function.

import type { Authenticator } from "../../core/authentication.ts";
import { type Handler, evaluatesCode } from "../../core/handler.ts";
import { checkOptions } from "../../core/options.ts";
import { errorMessage } from "../../core/values.ts";
import { CONNECTION_OPTIONS } from "../../dialogue/connection.ts";
import { createGuard } from "./guard.ts";
import { HttpRouter } from "./router.ts";
import type { HttpRouterOptions } from "./options.ts";

export interface MountOptions extends Omit<HttpRouterOptions, "auth"> {
  /**
   * Authenticates callers; without it anyone may call. A handler that evaluates code is only served with it, or with
   * `false`: then anyone who reaches the port can run code on this machine.
   */
  readonly auth?: Authenticator | false;
  /**
   * Accepted Host headers, `name` or `name:port`; `localhost`, `127.0.0.1` and `[::1]` always are. Other names are
   * refused, since a web page can make a browser call any name that resolves to this machine (DNS rebinding).
   */
  readonly allowedHosts?: readonly string[];
  /** Accepted Origin headers, such as `https://app.example.com`; the origins of allowed hosts always are. */
  readonly allowedOrigins?: readonly string[];
}

export interface ServeHttpOptions extends MountOptions {
  /** The address to listen on. "127.0.0.1". */
  readonly host?: string;
  /** 3000; 0 picks a free port. */
  readonly port?: number;
}

// Typed against the options, so that a new option must be added here too.
const MOUNT_OPTIONS = {
  path: true,
  legacySse: true,
  allowedHosts: true,
  allowedOrigins: true,
  auth: true,
  limits: true,
  onError: true,
  ...CONNECTION_OPTIONS,
} as const satisfies Record<keyof MountOptions, true>;

const SERVE_HTTP_OPTIONS = { host: true, port: true, ...MOUNT_OPTIONS } as const satisfies Record<
  keyof ServeHttpOptions,
  true
>;

/** Throws a TypeError for an unknown option of `owner`, `nodeHandler()` or `fetchHandler()`. */
export function checkMountOptions(owner: string, options: unknown): void {
  checkOptions(owner, options, MOUNT_OPTIONS);
}

/** Throws a TypeError if the option `http` of `serve` is not valid. */
export function checkServeHttpOptions(http: unknown): void {
  if (typeof http !== "object" || http === null || Array.isArray(http)) {
    throw new TypeError(`serve(): \`http\` must be an object, such as { port: 3000 }; got ${shown(http)}`);
  }
  checkOptions("serve()", http, SERVE_HTTP_OPTIONS, "http.");
  const { host, port } = http as { host?: unknown; port?: unknown };
  if (host !== undefined) checkHost(host);
  if (port !== undefined) checkPort(port);
}

function checkHost(host: unknown): void {
  if (typeof host !== "string") throw new TypeError(`serve(): http.host must be a string; got ${shown(host)}`);
  if (host.trim() !== "") return;
  // Node would listen on every address, and an unset environment variable easily ends up here as "".
  throw new TypeError(
    "serve(): http.host is empty: leave it out for 127.0.0.1, or write 0.0.0.0 to listen on all addresses",
  );
}

function checkPort(port: unknown): void {
  if (Number.isInteger(port) && Number(port) >= 0 && Number(port) <= 65_535) return;
  const hint = typeof port === "string" ? " (use Number(process.env.PORT) for an environment variable)" : "";
  throw new TypeError(
    `serve(): http.port must be an integer from 0 (picks a free port) to 65535; got ${shown(port)}${hint}`,
  );
}

function shown(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : Array.isArray(value) ? "an array" : errorMessage(value);
}

/** `host` is the address that is listened on, if this package listens itself. */
export function createFront(handler: Handler, options: MountOptions, host?: string): HttpRouter {
  if (typeof handler !== "function") {
    throw new TypeError("Expected a server or a handler, a function (request, context) => Promise<Result>");
  }
  const { allowedHosts, allowedOrigins, auth, ...front } = options;
  if (auth === undefined && evaluatesCode(handler)) {
    throw new TypeError(
      "This server evaluates code, so HTTP callers must authenticate: set `auth`, for example bearer({ verify }) from " +
        "catenary/server, or `auth: false` to let anyone who reaches the port run code on this machine",
    );
  }
  const authenticator = auth === undefined || auth === false ? undefined : { auth };
  return new HttpRouter(handler, createGuard({ host, allowedHosts, allowedOrigins }), { ...front, ...authenticator });
}
