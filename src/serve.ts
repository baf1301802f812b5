// `serve`: runs one handler on one transport and manages the lifetime of the process. At the end of its input, or on
// SIGTERM or SIGINT, a server on stdio closes the handler and exits, since clients soon kill a server that does not. At
// the end of input, calls in flight first get a short time to finish. On streams passed as options, the handler is
// closed but the process continues. Over HTTP, only `close` ends the server.

import type { Readable, Writable } from "node:stream";
import { deferred, within } from "./core/async.ts";
import type { EnvOption, Handler, OptionsWithEnv } from "./core/handler.ts";
import { isUnfinishedChain, NO_UPSTREAM } from "./core/handler-marks.ts";
import { printProblem } from "./core/listeners.ts";
import { checkOptions } from "./core/options.ts";
import { STDIO_TAKEN, takeStdio } from "./core/process-stdio.ts";
import { defined, type Optional } from "./core/values.ts";
import { CONNECTION_OPTIONS, serveTransport, type ConnectionOptions } from "./dialogue/connection.ts";
import { LISTEN_DEFAULTS } from "./http/server/defaults.ts";
import type { ServeHttpOptions } from "./http/server/mount.ts";
import type { Limits } from "./jsonrpc/codec.ts";
import type { Server } from "./server/server.ts";
import { stdioTransport } from "./transport/stdio.ts";

/** How long closing the handler may take. Clients kill a server about four seconds after the end of input. */
const CLOSE_BUDGET_MS = 1_500;

/** Options of `serve()`. */
export interface ServeOptions extends ConnectionOptions {
  /** Streams to use instead of the process's own. */
  readonly stdio?: { readonly input: Readable; readonly output: Writable } | undefined;
  /** Limits of each message. */
  readonly limits?: Optional<Limits> | undefined;
  /**
   * Serves over HTTP instead of stdio.
   *
   * @example
   * const front = await serve(server, { http: { port: 3000 } });
   * console.error(front.url); // http://127.0.0.1:3000/mcp
   */
  readonly http?: ServeHttpOptions | undefined;
}

/** A handler that is being served. */
export interface Serving {
  /** The URL of the endpoint, if served over HTTP. */
  readonly url?: string | undefined;
  /** Resolves when the server has been closed. */
  readonly closed: Promise<void>;
  /** Stops serving and closes the handler. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** A handler that may hold resources, which `close` releases. */
export type Closeable = Handler & { close?(budgetMs?: number): Promise<void> | void };

// Typed against the options, so that a new option must be added here too.
const SERVE_OPTIONS = {
  http: true,
  stdio: true,
  limits: true,
  mayShutDown: true,
  ...CONNECTION_OPTIONS,
} as const satisfies Record<keyof ServeOptions, true>;

/** Serves a server or any other handler; resolves when it accepts messages. */
export function serve<Of extends Closeable>(
  handler: Of,
  options: ServeOptions & EnvOption<Of> & { readonly http: ServeHttpOptions },
): Promise<Serving & { readonly url: string }>;
export function serve<Of extends Closeable>(
  handler: Of,
  ...options: OptionsWithEnv<Of, ServeOptions>
): Promise<Serving>;
export async function serve(handler: Closeable, options: ServeOptions = {}): Promise<Serving> {
  if (typeof handler !== "function") {
    if (isUnfinishedChain(handler)) throw new TypeError(`serve(): ${NO_UPSTREAM}`);
    throw new TypeError("serve() takes a server or a handler: a function (request, context) => Promise<Result>");
  }
  const ofHttp = ["port", "host"].find((name) => Object.hasOwn(Object(options) as object, name));
  if (ofHttp !== undefined) {
    const example = ofHttp === "port" ? "port: 3000" : 'host: "127.0.0.1"';
    throw new TypeError(`serve() has no option \`${ofHttp}\`; write http: { ${example} }`);
  }
  checkOptions("serve()", options, SERVE_OPTIONS);
  const { stdio, limits, http, ...connection } = options;
  if (http !== undefined) {
    if (stdio !== undefined) throw new TypeError("serve() takes either `stdio` or `http`: call it once for each");
    const { checkServeHttpOptions } = await import("./http/server/mount.ts");
    checkServeHttpOptions(http);
    return serveHttp(handler, { ...connection, ...http, limits: { ...limits, ...http.limits } });
  }
  if (stdio === undefined) takeStdio(STDIO_TAKEN);
  const transport = stdioTransport({ ...stdio, ...defined({ limits }) });
  const connected = await serveTransport(handler, transport, { mayShutDown: true, ...defined(connection) });
  const closed = connected.closed.then(() => within(CLOSE_BUDGET_MS, closeHandler(handler)));
  if (stdio === undefined) exitWhenClosed(closed, () => connected.close());
  const close = async (): Promise<void> => {
    await connected.close();
    await closed;
  };
  return { closed, close, [Symbol.asyncDispose]: close };
}

async function serveHttp(handler: Closeable, options: ServeHttpOptions): Promise<Serving & { readonly url: string }> {
  const { host = LISTEN_DEFAULTS.host, port = LISTEN_DEFAULTS.port, ...rest } = options;
  const [{ createFront }, { listen }] = await Promise.all([
    import("./http/server/mount.ts"),
    import("./http/server/listener.ts"),
  ]);
  const front = createFront(handler, rest, host);
  warnOfScopes(handler as Partial<Pick<Server, "requiredScopes">>, rest.auth);
  const listener = await listen({ host, port, limits: front.limits, onRequest: front.handle });
  const closed = deferred();
  const stop = async (): Promise<void> => {
    await front.close();
    await listener.close(front.graceMs);
    await within(CLOSE_BUDGET_MS, closeHandler(handler));
    closed.resolve();
  };
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= stop());
  return { url: `${listener.url}${front.path}`, closed: closed.promise, close, [Symbol.asyncDispose]: close };
}

/** Without authentication callers have no scopes, which may only be noticed when a client is refused. */
function warnOfScopes({ requiredScopes = [] }: Partial<Pick<Server, "requiredScopes">>, auth: unknown): void {
  if (auth || requiredScopes.length === 0) return;
  const what = `what needs a scope (${requiredScopes.join(", ")})`;
  printProblem(
    `serve(): no caller can use ${what}, since there is no \`auth\`; set it, for example to bearer({ ... })`,
  );
}

async function closeHandler(handler: Closeable): Promise<void> {
  try {
    await handler.close?.(CLOSE_BUDGET_MS);
  } catch {
    // A handler that fails to close must not prevent the rest of the shutdown.
  }
}

function exitWhenClosed(closed: Promise<void>, close: () => Promise<void>): void {
  let code = 0;
  const stop = (signal: NodeJS.Signals): void => {
    if (signal === "SIGINT") code = 130;
    void close();
  };
  process.once("SIGTERM", stop);
  process.once("SIGINT", stop);
  void closed.finally(() => {
    process.exit(process.exitCode ?? code);
  });
}
