// catenary/config: loads and checks a config, and builds the gateway it describes.

export type { MiddlewareFactories, MiddlewareFactory } from "./readers.ts";
export type { Place } from "../chain/define.ts";
export type * from "../chain/index.ts";
export type { Redirect } from "../auth/oauth/types.ts";
export type { CodeModeOptions } from "../live/code-mode.ts";
export type { Limits as LiveLimits } from "../live/runtime.ts";
export type { LiveOptions, SandboxOptions } from "../live/options.ts";
export type { LanguageOptions } from "../live/tool.ts";
export type { HttpLimits } from "../http/server/fields.ts";
export type { Compat } from "../protocol/compat.ts";
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
export type { ConfigPlace, RequiredProgram } from "./kinds.ts";
export type { CodeSettings } from "./live.ts";
export type { MiddlewareEntry, MiddlewareModule, ModuleMiddleware, NamedMiddleware } from "./middleware.ts";
export { ConfigError, describeProblem, type Position, type Problem } from "./document.ts";
export type { CallerEntry, Profile } from "./profiles.ts";
export type { SignIn, SignInSettings, SignInTarget } from "./sign-in.ts";
export type { Requirements, UpstreamEntry, UpstreamPolicy } from "./upstreams.ts";
export type { Secret } from "../core/secrets.ts";
export { inputVariable, type AskInput, type Environment, type Input } from "./variables.ts";
