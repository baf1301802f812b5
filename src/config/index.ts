// catenary/config: loads and checks a config, and builds the gateway it describes.

export type { MiddlewareFactories } from "./readers.ts";
export { createGateway, type CreateGatewayOptions } from "./gateway.ts";
export {
  checkConfig,
  examineConfig,
  loadConfig,
  type Config,
  type ConfigOptions,
  type ConfigReport,
  type Listen,
} from "./load.ts";
export type { MiddlewareEntry, MiddlewareModule, ModuleMiddleware, NamedMiddleware } from "./middleware.ts";
export { ConfigError, describeProblem, type Position, type Problem } from "./document.ts";
export type { SignIn, SignInSettings, SignInTarget } from "./sign-in.ts";
export type { UpstreamEntry, UpstreamPolicy } from "./upstreams.ts";
export { inputVariable, type AskInput, type Environment, type Input } from "./variables.ts";
