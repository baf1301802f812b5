// The subpath `catenary/http`: a handler over HTTP. `serve(x, { http })` listens by itself; `nodeHandler` and
// `fetchHandler` give the same front as a function, for a server that is there already: Express, Fastify and any
// node:http server take the first, Hono, Bun, Deno and Workers the second.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Handler } from "./core/handler.ts";
import { HttpFront } from "./dialogue/http/front.ts";
import { HTTP_LIMITS, type HttpFrontOptions } from "./dialogue/http/options.ts";
import type { Serving } from "./serve.ts";
import { createGuard } from "./transport/http/guard.ts";
import { NodeVisit } from "./transport/http/node-visit.ts";
import { WebVisit } from "./transport/http/web-visit.ts";

export { AuthRefusal, type Authenticator, type Credentials, type Identity } from "./core/authenticator.ts";
export type { HttpLimits, HttpFrontOptions } from "./dialogue/http/options.ts";

/** A front that somebody else's server calls. */
export interface MountOptions extends HttpFrontOptions {
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

export type NodeHandler = ((request: IncomingMessage, response: ServerResponse) => void) & { close(): Promise<void> };
export type FetchHandler = ((request: Request) => Promise<Response>) & { close(): Promise<void> };

/**
 * The front as a function for node:http.
 *
 * @example
 * app.all("/mcp", nodeHandler(server));
 */
export function nodeHandler(handler: Handler, options: MountOptions = {}): NodeHandler {
  const front = mounted(handler, options, undefined);
  const take = (request: IncomingMessage, response: ServerResponse): void =>
    front.take(new NodeVisit(request, response));
  take.close = (): Promise<void> => front.close();
  return take;
}

/**
 * The front as a function of the web: a `Request` in, a `Response` out.
 *
 * @example
 * export default { fetch: fetchHandler(server, { allowedHosts: ["mcp.example.com"] }) };
 */
export function fetchHandler(handler: Handler, options: MountOptions = {}): FetchHandler {
  const front = mounted(handler, options, undefined);
  const take = (request: Request): Promise<Response> => {
    const visit = new WebVisit(request);
    front.take(visit);
    return visit.response;
  };
  take.close = (): Promise<void> => front.close();
  return take;
}

/** Resolves when it can be called. */
export async function serveHttp(handler: Handler, options: HttpOptions): Promise<Serving & { readonly url: string }> {
  const { host = "127.0.0.1", port = 3000, graceMs = 1_000, path = "/mcp" } = options;
  const front = mounted(handler, options, host);
  // Loaded late: runtimes that only speak `fetch` have no such servers.
  const { listen } = await import("./transport/http/listener.ts");
  const listener = await listen({
    host,
    port,
    limits: { ...HTTP_LIMITS, ...options.limits },
    onVisit: (visit) => front.take(visit),
  });
  let closing: Promise<void> | undefined;
  let markClosed: () => void = () => undefined;
  const closed = new Promise<void>((resolve) => {
    markClosed = resolve;
  });
  const close = async (): Promise<void> => {
    await front.close();
    await listener.close(graceMs);
    markClosed();
  };
  return { url: `${listener.url}${path}`, closed, close: () => (closing ??= close()) };
}

function mounted(handler: Handler, options: MountOptions, host: string | undefined): HttpFront {
  if (typeof handler !== "function") {
    throw new TypeError("What is served must be a server or a handler: (request, context) => Promise<Result>");
  }
  const { allowedHosts, allowedOrigins, ...rest } = options;
  const guard = createGuard({
    ...(host === undefined ? undefined : { host }),
    ...(allowedHosts === undefined ? undefined : { allowedHosts }),
    ...(allowedOrigins === undefined ? undefined : { allowedOrigins }),
  });
  const { host: _host, port: _port, ...front } = rest as HttpOptions;
  return new HttpFront(handler, guard, front);
}
