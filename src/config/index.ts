// The config as others use it: `catenary/config`.

export type { Config } from "./config.ts";
export type { UpstreamEntry, UpstreamPolicy } from "./upstreams.ts";
export type { Listen } from "./listen-options.ts";
export { gatewayOf, type GatewayOfOptions } from "./gateway.ts";
export { inputVariable, type AskInput, type Input } from "./inputs.ts";
export type { MiddlewareModule } from "./link-module.ts";
export type { MiddlewareEntry, MiddlewareFactories, ModuleMiddleware, NamedLink } from "./middleware.ts";
export { checkConfig, examineConfig, loadConfig, type Examined } from "./load.ts";
export { ConfigError, describeProblem, type Position, type Problem } from "./problems.ts";
export type { ConfigOptions, Environment } from "./read.ts";
