// The types of `catenary/chain`, which the main entry exports too.

export type { Chain, ChainTarget, GatewayOptions } from "./chain.ts";
export type { ComposedHandler } from "./compose.ts";
export type { ChainEntry } from "../protocol/compose.ts";
export type { ActingMiddleware, DefinedMiddleware, Definition, DefinitionPlace, Place } from "./define.ts";
export type { Layer, Transform, TransformView } from "./layer.ts";
export type { Gateway, GatewayUpstream } from "./gateway.ts";
export type { CallReader, ObservedCall, ObservedQuestion } from "./observe.ts";
export type { Step } from "./steps.ts";
export type { Metadata, MetadataServer, TransformedItem, TransformOptions } from "./transform.ts";
export type {
  FailureCause,
  RestartOptions,
  Share,
  UpstreamOptions,
  UpstreamState,
  UpstreamStatus,
  UpstreamTarget,
} from "./upstream/options.ts";
export type { FromSdkOptions, SdkServer, SdkServerFactory, SdkTransport } from "./upstream/from-sdk.ts";
export type { Upstream } from "./upstream/upstream.ts";
export type * from "../core/handler-types.ts";
export type { ConnectionErrorKind } from "../core/errors.ts";
export type { LiveServer } from "../core/live-server.ts";
export type {
  Field,
  Fields,
  ListField,
  MapField,
  ObjectField,
  ObjectOrFlagField,
  OptionError,
  OptionPlace,
  OptionsOf,
  RequiredField,
  OptionSchema,
} from "../core/options.ts";
export type { NamesOption } from "./router/names.ts";
export type { SelectPart, UpstreamNaming } from "./router/naming.ts";
export type * from "../protocol/model/index.ts";
// The types in the options of `upstream`.
export type { Command } from "../client/command.ts";
export type { Target } from "../client/connect.ts";
export type { Authorizer, Challenge, OutgoingRequest } from "../core/authentication.ts";
export type { Limits } from "../jsonrpc/codec.ts";
export type { Message, ResponseMessage } from "../jsonrpc/message.ts";
export type { Inbound, Receive, SendOptions, Transport, TransportSource } from "../transport/transport.ts";
export type { ItemDefinition, Item, ItemKind } from "./item.ts";
export type { McpError } from "../protocol/errors.ts";
