// The subpath `catenary/chain`: puts middleware in front of upstreams, and has the types to write middleware and
// handlers. The built-in middleware is in `catenary/middleware`.
// A tool's name on its way to a client: router/names.ts gives it a label if others have it too, and driver.ts applies the
// transforms to it, inside out (layer.ts says what a transform is). A call takes the way back: follow.ts follows the name
// to its item (catalogue.ts), then the request passes the middleware, and router/calls.ts sends it to the upstream.
// docs/concepts/transforms.md has a picture.

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
