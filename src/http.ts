// The subpath `catenary/http`: mounts a handler in an existing HTTP server. `nodeHandler` is for Express, Fastify and
// any node:http server, `fetchHandler` for Hono, Bun, Deno and Workers. Without an existing server, use
// `serve(handler, { http: { port } })`.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { EnvOf, Handler } from "./core/handler.ts";
import type { HostInfo } from "./http/server/http-request.ts";
import { createFront, checkMountOptions, readHostInfo, type MountOptions } from "./http/server/mount.ts";
import { NodeHttpRequest } from "./http/server/node-request.ts";
import { WebHttpRequest } from "./http/server/web-request.ts";

export { AuthError, type Authenticator, type Credentials, type Identity } from "./core/authentication.ts";
export type { EnvOf } from "./core/handler.ts";
export type { Optional } from "./core/values.ts";
export type { HostInfo } from "./http/server/http-request.ts";
export type { ParkedCallsOptions } from "./dialogue/stateless/parked-calls.ts";
export type { HttpLimits } from "./http/server/fields.ts";
export type { Health } from "./http/server/options.ts";
export type { MountOptions } from "./http/server/mount.ts";
export type { ErrorBody, ErrorMessage, Id, Message, ResponseMessage } from "./jsonrpc/message.ts";
export type { Compat } from "./protocol/compat.ts";
export type { Tap, TappedMessage } from "./transport/tap.ts";

/** An IncomingMessage of node:http. Not that type itself, so that projects without the types of Node can use this. */
export interface NodeRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: object;
  readonly socket: object;
}

/** A ServerResponse of node:http. */
export interface NodeResponse {
  readonly headersSent: boolean;
  end(): unknown;
}

/** A request listener for node:http. `close` ends the sessions and subscriptions of its callers. */
export interface NodeHandler<Env = unknown> {
  (request: NodeRequest, response: NodeResponse, host?: HostInfo<Env> | ((error?: unknown) => void)): void;
  /** Ends the sessions and subscriptions of all callers. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Answers a web-standard request. `close` ends the sessions and subscriptions of its callers. */
export interface FetchHandler<Env = unknown> {
  (request: Request, host?: HostInfo<Env>): Promise<Response>;
  /** Ends the sessions and subscriptions of all callers. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Turns a handler into a request listener for node:http.
 *
 * @example
 * app.all("/mcp{/*rest}", nodeHandler(server));
 *
 * @example
 * const mcp = nodeHandler(server);
 * app.all("/mcp{/*rest}", (request, response) => mcp(request, response, { principal: request.user.id }));
 */
export function nodeHandler<Of extends Handler>(
  handler: Of,
  options: MountOptions & { readonly env?: EnvOf<Of> | undefined } = {},
): NodeHandler<EnvOf<Of>> {
  checkMountOptions("nodeHandler()", options);
  const front = createFront(handler, options);
  const handle = ((request, response, host) => {
    const info = readHostInfo("nodeHandler()", host);
    front.handle(new NodeHttpRequest(request as IncomingMessage, response as ServerResponse, false, info));
  }) as NodeHandler;
  handle.close = handle[Symbol.asyncDispose] = () => front.close();
  return handle;
}

/**
 * Turns a handler into a function that answers a web-standard `Request` with a `Response`.
 *
 * @example
 * export default { fetch: fetchHandler(server, { allowedHosts: ["mcp.example.com"] }) };
 *
 * @example
 * const mcp = fetchHandler(server, { allowedHosts: ["*.example.com"] });
 * app.all("/mcp", async (c) => mcp(c.req.raw, { principal: c.get("user").id, env: c.env }));
 */
export function fetchHandler<Of extends Handler>(
  handler: Of,
  options: MountOptions & { readonly env?: EnvOf<Of> | undefined } = {},
): FetchHandler<EnvOf<Of>> {
  checkMountOptions("fetchHandler()", options);
  const front = createFront(handler, options);
  const handle = ((request, host) => {
    const webRequest = new WebHttpRequest(request, readHostInfo("fetchHandler()", host));
    front.handle(webRequest);
    return webRequest.response;
  }) as FetchHandler;
  handle.close = handle[Symbol.asyncDispose] = () => front.close();
  return handle;
}
