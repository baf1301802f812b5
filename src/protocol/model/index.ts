// The model: types of the newest revision. They are open, so that unknown fields survive.

export type * from "./base.ts";
export { META } from "./base.ts";
export type * from "./client-requests.ts";
export type * from "./content.ts";
export type * from "./server-features.ts";
