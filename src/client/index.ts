// The door `catenary/client`: connecting to an end, and the types of what a client is given and gives.

export type { Authorizer, Challenge, OutgoingRequest } from "../core/authentication.ts";
export type { LogLevel } from "../core/handler.ts";
export { ConnectionError, type ConnectionErrorKind, type ConnectionErrorOptions } from "../core/errors.ts";
export type { Handler, Notification, Params, Request, Result } from "../core/handler.ts";
export { McpError, type ErrorKind } from "../protocol/errors.ts";
export type { Asks, MethodName, Methods, Notifications } from "../protocol/methods.ts";
export type * from "../protocol/model/index.ts";
export type { Inbound, Transport } from "../transport/transport.ts";
export {
  rejected,
  type Asked,
  type AskHandlers,
  type FormHandler,
  type SampleHandler,
  type UrlHandler,
} from "./client-requests.ts";
export type { CallOptions } from "./calls.ts";
export type { Client, ListOptions } from "./client.ts";
export type { Command, Program } from "./command.ts";
export { connect, type ConnectOptions, type Target } from "./connect.ts";
export type { Progress } from "./contexts.ts";
export type { TaskHandle } from "./tasks.ts";
export type { ChangeEvent, ListenOptions, Subscription } from "./subscriptions.ts";
export type { HttpOptions } from "./http.ts";
export * from "../auth/oauth/index.ts";
