// catenary/server: servers, and all that their authors may need to name.

export type { TaskSupport } from "../protocol/tasks.ts";
export type { BearerOptions } from "../auth/bearer/bearer-options.ts";
export { bearer } from "../auth/bearer/bearer.ts";
export type { Ask, ElicitQuestion, ToolContext } from "./call-context.ts";
export type { Completer } from "./completion.ts";
export type { CacheHint, ServerInfo } from "./result-builder.ts";
export { type InputRequired, inputRequired } from "./input-required.ts";
export type { PromptArgumentOptions, PromptHandler, PromptOptions, PromptReturn } from "./prompts.ts";
export type { ResourceHandler, ResourceOptions, TemplateHandler, TemplateOptions } from "./resources.ts";
export type { FromJsonSchema, Schema } from "./schema.ts";
export { createServer, type Server } from "./server.ts";
export type { TaskLimits, TaskOptions } from "./options.ts";
export type { TemplateVariables } from "./resources.ts";
export type { ToolAnswer, ToolArguments, ToolHandler, ToolOptions, ToolReturn } from "./tools.ts";
