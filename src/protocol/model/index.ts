// The model: the message types of the newest revision. They allow unknown fields, because such fields are passed on.

export type * from "./base.ts";
export { META } from "./base.ts";
export type * from "./client-requests.ts";
export type * from "./server-features.ts";
