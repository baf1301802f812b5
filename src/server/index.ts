// catenary/server: `createServer`, `inputRequired` and `bearer`, and every type that their signatures mention.

export { bearer } from "../auth/bearer/bearer.ts";
export { UserError } from "../core/errors.ts";
export { inputRequired } from "./input-required.ts";
export { createServer } from "./server.ts";
export { defineTool } from "./tools.ts";
export type * from "./types.ts";
