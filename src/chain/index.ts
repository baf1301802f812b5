// The subpath `catenary/chain`: links in front of ends, and what one needs to write either. The links that we bring
// are in `catenary/links`.

export { chain, type Chain, type GatewayOptions } from "./chain.ts";
export { upstream, type Upstream, type UpstreamOptions, type UpstreamTarget, type Share } from "./upstream/upstream.ts";
export type { UpstreamState, UpstreamStatus } from "./upstream/status.ts";
export type { Gateway } from "./gateway.ts";
export { on } from "./on.ts";
export type { RestartOptions } from "./upstream/restarts.ts";
export type { Handler, Link, Middleware, Notification, Request, Result } from "../core/handler.ts";
export type { Context } from "../core/handler.ts";
