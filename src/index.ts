// The front door: the few names that most programs need. Everything else is behind a subpath. What is only
// called later is loaded later: a server's author pays nothing for the client, nor the other way round.

import type { Client } from "./client/client.ts";
import type { ConnectOptions, Target } from "./client/connect.ts";
import type { ServeHttpOptions } from "./http/server/mount.ts";
import type { Closeable, ServeOptions, Serving } from "./serve.ts";

/** Connects to a command, a handler or a transport, in whatever revision it speaks. */
export async function connect(target: Target, options?: ConnectOptions): Promise<Client> {
  return (await import("./client/connect.ts")).connect(target, options);
}

/** Serves a server, or any handler, on stdio or over HTTP; resolves when it is ready to be spoken to. */
export function serve(
  handler: Closeable,
  options: ServeOptions & { readonly http: ServeHttpOptions },
): Promise<Serving & { readonly url: string }>;
export function serve(handler: Closeable, options?: ServeOptions): Promise<Serving>;
export async function serve(handler: Closeable, options?: ServeOptions): Promise<Serving> {
  return (await import("./serve.ts")).serve(handler, options);
}

export { chain, type Chain, type GatewayOptions } from "./chain/chain.ts";
export { upstream, type Upstream, type UpstreamOptions, type UpstreamTarget } from "./chain/upstream/upstream.ts";
export type { Gateway } from "./chain/gateway.ts";
export type { Client, ConnectOptions, ServeHttpOptions, ServeOptions, Serving, Target };
export type { AskOptions, Caller, Context, LogLevel } from "./core/handler.ts";
export { ConnectionError, type ConnectionErrorKind } from "./core/errors.ts";
export type { Handler, Link, Middleware, Notification, Params, Request, Result } from "./core/handler.ts";
export { McpError, type ErrorKind, type Profile } from "./protocol/errors.ts";
export type { ToolContext } from "./server/call-context.ts";
export { createServer, type Server } from "./server/server.ts";
export type { CallToolResult } from "./protocol/model/index.ts";
