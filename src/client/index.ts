// catenary/client: connect, and every type that its signatures mention.

export { ConnectionError } from "../core/errors.ts";
export { McpError } from "../protocol/errors.ts";
export { userRejected } from "./client-requests.ts";
export { connect } from "./connect.ts";
export type * from "./types.ts";
