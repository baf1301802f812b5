// The subpath `catenary/chain`: links in front of ends, and what one needs to write either. The links that we bring
// are in `catenary/links`.

export { chain, type Chain, type GatewayOptions } from "./chain.ts";
export { end, type End, type EndOptions, type EndTarget, type Share } from "./end.ts";
export type { EndState, EndStatus } from "./end-status.ts";
export type { Gateway } from "./gateway.ts";
export { on } from "./on.ts";
export type { RestartOptions } from "./restarts.ts";
export type { Handler, Link, Middleware, Notification, Request, Result } from "../core/handler.ts";
export type { Context } from "../core/context.ts";
