// The subpath `catenary/chain`: puts middleware in front of upstreams, and has the types to write middleware and
// handlers. The built-in middleware is in `catenary/middleware`.

export { chain, type Chain, type ChainTarget, type GatewayOptions } from "./chain.ts";
export { compose, type ComposedHandler } from "./compose.ts";
export type { ChainEntry } from "../protocol/compose.ts";
export type { Gateway, GatewayUpstream } from "./gateway.ts";
export { on } from "./on.ts";
export { transform, type Metadata, type MetadataServer, type TransformOptions } from "./transform.ts";
export type {
  FailureCause,
  RestartOptions,
  Share,
  UpstreamOptions,
  UpstreamState,
  UpstreamStatus,
  UpstreamTarget,
} from "./upstream/options.ts";
export {
  fromSdk,
  type FromSdkOptions,
  type SdkServer,
  type SdkServerFactory,
  type SdkTransport,
} from "./upstream/from-sdk.ts";
export { upstream, type Upstream } from "./upstream/upstream.ts";
export type {
  AskOptions,
  Caller,
  Context,
  EnvOf,
  EnvOption,
  Handler,
  LogLevel,
  Meta,
  Middleware,
  Notification,
  Params,
  Request,
  Result,
  Session,
  TaskWish,
} from "../core/handler.ts";
export type { NamesOption } from "./router/names.ts";
export type { SelectPart, UpstreamNaming } from "./router/naming.ts";
export type * from "../protocol/model/index.ts";

// The types in the options of `upstream`.
export type { Command } from "../client/command.ts";
export type { Target } from "../client/connect.ts";
export type { Authorizer, Challenge, OutgoingRequest } from "../core/authentication.ts";
export type { Limits } from "../jsonrpc/codec.ts";
export type { Message, ResponseMessage } from "../jsonrpc/message.ts";
export type { Inbound, SendOptions, Transport, TransportSource } from "../transport/transport.ts";
