// The public options of the HTTP server, their checks, and the router that is created from them. `serve` passes the
// requests of a port to the router; `catenary/http` wraps the router in a function.

import type { Authenticator } from "../../core/authentication.ts";
import type { Handler } from "../../core/handler.ts";
import { evaluatesCode, isUnfinishedChain, NO_UPSTREAM, PAGES } from "../../core/handler-marks.ts";
import { checkOptions, type OptionNames, optionNames } from "../../core/options.ts";
import { defined, errorMessage, isObject } from "../../core/values.ts";
import { CONNECTION_OPTIONS } from "../../dialogue/connection.ts";
import { checkIdentity } from "./admission.ts";
import { createGuard } from "./guard.ts";
import type { HostInfo } from "./http-request.ts";
import { HttpRouter } from "./router.ts";
import type { ListenOptions } from "./fields.ts";
import type { FixedLimits, HttpRouterOptions } from "./options.ts";

/** Options of `nodeHandler()` and `fetchHandler()`. */
export interface MountOptions
  extends Omit<HttpRouterOptions, "auth" | "pages">, Pick<ListenOptions, "allowedHosts" | "allowedOrigins"> {
  /**
   * Authenticates callers. Without it anyone may call. For a handler that evaluates code, this option is required. If
   * it is `false` for such a handler, anyone who can reach the port can run code on this machine.
   */
  readonly auth?: Authenticator | false | undefined;
}

/** The option `http` of `serve()`. */
export type ServeHttpOptions = MountOptions & ListenOptions;

const MOUNT_OPTIONS: OptionNames<MountOptions> = {
  ...optionNames(
    "path paths legacySse stateless allowedHosts allowedOrigins auth limits health metrics sealKey onError",
  ),
  ...CONNECTION_OPTIONS,
};
const SERVE_HTTP_OPTIONS: OptionNames<ServeHttpOptions> = { ...MOUNT_OPTIONS, host: true, port: true };

/** Throws a TypeError for an unknown option. `owner` is the function that was called, for the message. */
export function checkMountOptions(owner: string, options: unknown): void {
  checkOptions(owner, options, MOUNT_OPTIONS);
}

const HOST_FIELDS: OptionNames<HostInfo> = optionNames("principal scopes claims env");

/**
 * Reads the last argument of a mounted handler. Runtimes and frameworks pass arguments of their own in its place (the
 * `env` of a Worker, the server of Bun, `next` of Express), so an object without any of our fields is ignored.
 */
export function readHostInfo(owner: string, argument: unknown): HostInfo | undefined {
  if (!isObject(argument) || !Object.keys(HOST_FIELDS).some((name) => Object.hasOwn(argument, name))) return undefined;
  checkOptions(owner, argument, HOST_FIELDS);
  const { principal, scopes, claims }: HostInfo = argument;
  if (principal === undefined) {
    if (scopes === undefined && claims === undefined) return argument;
    throw new TypeError(`${owner}: \`scopes\` and \`claims\` belong to a caller: pass its \`principal\` too`);
  }
  // An empty id is a mistake of the framework's code, and must not make the caller anonymous.
  if (checkIdentity(argument) !== undefined) return argument;
  throw new TypeError(`${owner}: \`principal\` must be a string that is not empty; got ${describe(principal)}`);
}

/** Throws a TypeError if the option `http` of `serve` is not valid. */
export function checkServeHttpOptions(http: unknown): void {
  if (!isObject(http)) {
    throw new TypeError(`serve(): \`http\` must be an object, such as { port: 3000 }; got ${describe(http)}`);
  }
  checkOptions("serve()", http, SERVE_HTTP_OPTIONS, "http.");
  const { host, port } = http;
  if (host !== undefined) checkHost(host);
  if (port !== undefined) checkPort(port);
}

function checkHost(host: unknown): void {
  if (typeof host !== "string") throw new TypeError(`serve(): http.host must be a string; got ${describe(host)}`);
  if (host.trim() !== "") return;
  // An empty host may come from an unset environment variable. Node would then listen on all addresses.
  throw new TypeError(
    "serve(): http.host is empty: leave it out for 127.0.0.1, or write 0.0.0.0 to listen on all addresses",
  );
}

function checkPort(port: unknown): void {
  if (Number.isInteger(port) && Number(port) >= 0 && Number(port) <= 65_535) return;
  const hint = typeof port === "string" ? " (use Number(process.env.PORT) for an environment variable)" : "";
  throw new TypeError(
    `serve(): http.port must be an integer from 0 (picks a free port) to 65535; got ${describe(port)}${hint}`,
  );
}

function describe(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : Array.isArray(value) ? "an array" : errorMessage(value);
}

/** `host` is the address that `serve` listens on; undefined if another server listens. Only tests set `fixed`. */
export function createFront(
  handler: Handler,
  options: MountOptions,
  host?: string,
  fixed?: Partial<FixedLimits>,
): HttpRouter {
  if (typeof handler !== "function") {
    if (isUnfinishedChain(handler)) throw new TypeError(NO_UPSTREAM);
    throw new TypeError("Expected a server or a handler, a function (request, context) => Promise<Result>");
  }
  const { allowedHosts, allowedOrigins, auth, ...rest } = options;
  if (auth === undefined && evaluatesCode(handler)) {
    throw new TypeError(
      "This server evaluates code, so HTTP callers must authenticate: set `auth`, for example bearer({ verify }) " +
        "from catenary/server, or `auth: false` to let anyone who reaches the port run code on this machine",
    );
  }
  const authenticator = auth === undefined || auth === false ? undefined : { auth };
  const gateway: Handler & { metrics?: () => string | undefined; [PAGES]?: HttpRouterOptions["pages"] } = handler;
  const routing = {
    ...(typeof gateway.metrics === "function" && { metrics: () => gateway.metrics?.() }),
    ...defined({ ...rest, pages: gateway[PAGES] }),
    ...authenticator,
  };
  return new HttpRouter(handler, createGuard({ host, allowedHosts, allowedOrigins }), routing, fixed);
}
