// The model: types of the newest revision, a file for each subject. Types are open to fields that we do not
// know, because such fields must survive; no code here, but for the reserved keys of `_meta`.

export type * from "./capabilities.ts";
export type * from "./completion.ts";
export type * from "./content.ts";
export type * from "./elicitation.ts";
export type * from "./logging.ts";
export { META } from "./meta.ts";
export type * from "./prompts.ts";
export type * from "./resources.ts";
export type * from "./results.ts";
export type * from "./roots.ts";
export type * from "./rounds.ts";
export type * from "./sampling.ts";
export type * from "./subscriptions.ts";
export type * from "./tasks.ts";
export type * from "./tools.ts";
