// The types of `catenary/server`, which the main entry exports too.

export type { BearerOptions } from "../auth/bearer/bearer.ts";
export type { AuthError, Authenticator, Credentials, Identity } from "../core/authentication.ts";
export type * from "../core/handler-types.ts";
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
export type { InputRequired } from "./input-required.ts";
export type { MethodOptions, NotificationHandler, VendorMethodHandler } from "./methods.ts";
export type {
  CacheHint,
  RegistrationOptions,
  ServerInfo,
  ServerOptions,
  TaskOptions,
  VendorCapabilities,
  Visible,
} from "./options.ts";
export type {
  CommonPromptOptions,
  Completer,
  PromptArgumentOptions,
  PromptArguments,
  PromptHandler,
  PromptOptions,
  PromptReturn,
  PromptSchema,
  SchemaPromptHandler,
  SchemaPromptOptions,
} from "./prompts.ts";
export type {
  CommonResourceOptions,
  ResourceHandler,
  ResourceOptions,
  TemplateHandler,
  TemplateOptions,
  TemplateVariables,
} from "./resources.ts";
export type { TaskLimits } from "../tasks/memory.ts";
export type * from "./returned-types.ts";
export type {
  ArgumentsMistake,
  BareFields,
  FromJsonSchema,
  Schema,
  SchemaInput,
  SchemaMistake,
  SchemaOutput,
  Simplify,
} from "./schema.ts";
export type { Server } from "./server.ts";
export type {
  AnyTool,
  CheckedSchemas,
  Refused,
  ToolArguments,
  ToolDefinition,
  ToolHandler,
  ToolOptions,
  ToolTypeOf,
  ToolTypesOf,
} from "./tools.ts";
