// The subpath `catenary/chain`: puts middleware in front of upstreams, and has the types to write middleware and
// handlers. The built-in middleware is in `catenary/middleware`. README.md beside this file tells the way of a name.

export { chain } from "./chain.ts";
export { compose } from "./compose.ts";
export { define } from "./define.ts";
export * as fields from "../core/fields.ts";
export { observe } from "./observe.ts";
export { on } from "./on.ts";
export { transform } from "./transform.ts";
export { fromSdk } from "./upstream/from-sdk.ts";
export { upstream } from "./upstream/upstream.ts";
export type * from "./types.ts";
