// The subpath `catenary/chain`: puts middleware in front of upstreams, and has the types to write middleware and
// handlers. The built-in middleware is in `catenary/middleware`.

export { chain, type Chain, type ChainTarget, type GatewayOptions } from "./chain.ts";
export type { ChainEntry } from "../protocol/compose.ts";
export type { Gateway, GatewayUpstream } from "./gateway.ts";
export { on } from "./on.ts";
export { transform, type Metadata, type MetadataServer, type TransformOptions } from "./transform.ts";
export type {
  RestartOptions,
  Share,
  UpstreamOptions,
  UpstreamState,
  UpstreamStatus,
  UpstreamTarget,
} from "./upstream/options.ts";
export { upstream, type Upstream } from "./upstream/upstream.ts";
export type { Context, Handler, Middleware, Notification, Request, Result } from "../core/handler.ts";
