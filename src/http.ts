// The subpath `catenary/http`: a handler over HTTP, as a function for a server that is there already. Express, Fastify
// and any node:http server take `nodeHandler`; Hono, Bun, Deno and Workers take `fetchHandler`. To listen without
// any of them, `serve(x, { http: { port } })` is enough.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Handler } from "./core/handler.ts";
import { createFront, checkMountOptions, type MountOptions } from "./http/server/mount.ts";
import { NodeHttpRequest } from "./http/server/node-request.ts";
import { WebHttpRequest } from "./http/server/web-request.ts";

export { AuthError, type Authenticator, type Credentials, type Identity } from "./core/authentication.ts";
export type { HttpLimits, HttpRouterOptions } from "./http/server/options.ts";
export type { MountOptions } from "./http/server/mount.ts";

export type NodeHandler = ((request: IncomingMessage, response: ServerResponse) => void) & { close(): Promise<void> };
export type FetchHandler = ((request: Request) => Promise<Response>) & { close(): Promise<void> };

/**
 * The front as a function for node:http.
 *
 * @example
 * app.all("/mcp{/*rest}", nodeHandler(server));
 */
export function nodeHandler(handler: Handler, options: MountOptions = {}): NodeHandler {
  checkMountOptions("nodeHandler()", options);
  const front = createFront(handler, options);
  const take = (request: IncomingMessage, response: ServerResponse): void =>
    front.take(new NodeHttpRequest(request, response));
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
  checkMountOptions("fetchHandler()", options);
  const front = createFront(handler, options);
  const take = (request: Request): Promise<Response> => {
    const visit = new WebHttpRequest(request);
    front.take(visit);
    return visit.response;
  };
  take.close = (): Promise<void> => front.close();
  return take;
}
