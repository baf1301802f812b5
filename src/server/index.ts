// catenary/server: `createServer`, `inputRequired` and `bearer`, and every type that their signatures mention.

export { bearer, type BearerOptions } from "../auth/bearer/bearer.ts";
export type { AuthError, Authenticator, Credentials, Identity } from "../core/authentication.ts";
export { UserError } from "../core/errors.ts";
export type {
  AskOptions,
  Caller,
  Context,
  Handler,
  LogLevel,
  Meta,
  Middleware,
  Notification,
  Params,
  Request,
  Result,
  SessionHints,
} from "../core/handler.ts";
export type {
  CompactJWSHeaderParameters,
  FlattenedJWSInput,
  JSONWebKeySet,
  JWK,
  JWTVerifyGetKey,
  KeyObject,
} from "jose";
export type { ExactId, Id } from "../jsonrpc/message.ts";
export type * from "../protocol/model/index.ts";
export type { TaskSupport } from "../protocol/tasks.ts";
export type { TemplateMatch } from "../protocol/uri-template.ts";
export type { Ask, ElicitQuestion, ToolContext } from "./call-context.ts";
export type { ErrorListener, FailedRequest } from "./handler-errors.ts";
export { type InputRequired, inputRequired } from "./input-required.ts";
export type { MethodOptions, NotificationHandler, VendorMethodHandler } from "./methods.ts";
export type { CacheHint, ServerInfo, ServerOptions, TaskLimits, TaskOptions, VendorCapabilities } from "./options.ts";
export type {
  Completer,
  PromptArgumentOptions,
  PromptArguments,
  PromptHandler,
  PromptOptions,
  PromptReturn,
} from "./prompts.ts";
export type {
  CommonResourceOptions,
  ResourceHandler,
  ResourceOptions,
  TemplateHandler,
  TemplateOptions,
  TemplateVariables,
} from "./resources.ts";
export type { BareFields, FromJsonSchema, Schema, SchemaInput, SchemaOutput, Simplify } from "./schema.ts";
export type { Session, Visible } from "./sessions.ts";
export { createServer, type Server } from "./server.ts";
export type {
  ToolAnswer,
  ToolArguments,
  ToolHandler,
  ToolOptions,
  ToolReturn,
  ToolTypeOf,
  WrappedInput,
} from "./tools.ts";
