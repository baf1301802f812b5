// catenary/config: loads and checks a config, and builds the gateway it describes.

export type { MiddlewareFactories } from "./readers.ts";
export { createGateway, type CreateGatewayOptions } from "./gateway.ts";
export { inputVariable, type AskInput, type Input } from "./inputs.ts";
export type { Listen } from "./load.ts";
export {
  checkConfig,
  examineConfig,
  loadConfig,
  type Config,
  type ConfigOptions,
  type ConfigReport,
  type Environment,
} from "./load.ts";
export type { MiddlewareEntry, ModuleMiddleware, NamedMiddleware } from "./middleware.ts";
export { ConfigError, describeProblem, type Position, type Problem } from "./document.ts";
export type { UpstreamEntry, UpstreamPolicy } from "./upstreams.ts";
export type { MiddlewareModule } from "./user-modules.ts";
