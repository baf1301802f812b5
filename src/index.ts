// The front door: the few names that most programs need. Everything else is behind a subpath.

export { connect } from "./client/connect.ts";
export type { Client } from "./client/client.ts";
export type { AskOptions, Caller, Context, LogLevel } from "./core/context.ts";
export { LinkError, type LinkErrorKind } from "./core/errors.ts";
export type { Handler, Link, Middleware, Notification, Params, Request, Result } from "./core/handler.ts";
export { McpError, type ErrorKind, type Profile } from "./protocol/errors.ts";
export { serve, type ServeOptions, type Serving } from "./serve.ts";
export { createServer } from "./server/server.ts";
