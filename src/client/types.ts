// The types of `catenary/client`, which the main entry exports too.

export type { Authorizer, Challenge, OutgoingRequest } from "../core/authentication.ts";
export type { ConnectionErrorKind, ConnectionErrorOptions, Hint } from "../core/errors.ts";
export type * from "../core/handler-types.ts";
export type { ListenerErrors } from "../core/listeners.ts";
export type { Limits } from "../jsonrpc/codec.ts";
export type {
  ErrorBody,
  ErrorMessage,
  ExactId,
  Id,
  Message,
  NotificationMessage,
  RequestMessage,
  ResponseMessage,
  ResultMessage,
} from "../jsonrpc/message.ts";
export type { ErrorKind } from "../protocol/errors.ts";
export type { ClientMethods, MethodName, Methods, Notifications } from "../protocol/model/index.ts";
export type * from "../protocol/model/index.ts";
export type { Carrier, CarrierListener } from "../transport/carrier.ts";
export type { Noise } from "../transport/child-process.ts";
export type { Tap, TappedMessage } from "../transport/tap.ts";
export type {
  BatchItem,
  FaultItem,
  Inbound,
  QuietCancel,
  Receive,
  Received,
  SendOptions,
  Transport,
  TransportSource,
} from "../transport/transport.ts";
export type { FromJsonSchema, Schema, SchemaOutput } from "../server/schema.ts";
export type { CallOptions } from "./calls.ts";
export type {
  ClientRequestContext,
  ClientRequestHandler,
  ClientRequestHandlers,
  FormHandler,
  SampleHandler,
  UrlHandler,
} from "./client-requests.ts";
export type { NotificationListeners, Progress } from "./contexts.ts";
export type { Client, ListOptions } from "./client.ts";
export type { ToolCall, ToolName, ToolResult, ToolsOf, ToolType, ToolTypes } from "./tool-types.ts";
export type { Command, CommandOptions, Program } from "./command.ts";
export type { ConnectOptions, HttpClientOptions, Target } from "./connect.ts";
export type { ChangeEvent, ListenOptions, Subscription } from "./subscriptions.ts";
export type { TaskHandle } from "./tasks.ts";
