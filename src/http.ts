// The subpath `catenary/http`: mounts a handler in an existing HTTP server. `nodeHandler` is for Express, Fastify and
// any node:http server, `fetchHandler` for Hono, Bun, Deno and Workers. Without an existing server, use
// `serve(handler, { http: { port } })`.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Handler } from "./core/handler.ts";
import { createFront, checkMountOptions, type MountOptions } from "./http/server/mount.ts";
import { NodeHttpRequest } from "./http/server/node-request.ts";
import { WebHttpRequest } from "./http/server/web-request.ts";

export { AuthError, type Authenticator, type Credentials, type Identity } from "./core/authentication.ts";
export type { HttpLimits } from "./http/server/options.ts";
export type { MountOptions } from "./http/server/mount.ts";

export type NodeHandler = ((request: IncomingMessage, response: ServerResponse) => void) & { close(): Promise<void> };
export type FetchHandler = ((request: Request) => Promise<Response>) & { close(): Promise<void> };

/**
 * Turns a handler into a request listener for node:http.
 *
 * @example
 * app.all("/mcp{/*rest}", nodeHandler(server));
 */
export function nodeHandler(handler: Handler, options: MountOptions = {}): NodeHandler {
  checkMountOptions("nodeHandler()", options);
  const front = createFront(handler, options);
  const handle = (request: IncomingMessage, response: ServerResponse): void =>
    front.handle(new NodeHttpRequest(request, response));
  handle.close = (): Promise<void> => front.close();
  return handle;
}

/**
 * Turns a handler into a function that answers a web-standard `Request` with a `Response`.
 *
 * @example
 * export default { fetch: fetchHandler(server, { allowedHosts: ["mcp.example.com"] }) };
 */
export function fetchHandler(handler: Handler, options: MountOptions = {}): FetchHandler {
  checkMountOptions("fetchHandler()", options);
  const front = createFront(handler, options);
  const handle = (request: Request): Promise<Response> => {
    const webRequest = new WebHttpRequest(request);
    front.handle(webRequest);
    return webRequest.response;
  };
  handle.close = (): Promise<void> => front.close();
  return handle;
}
