// The door `catenary/client`: connecting to an end, and the types of what a client is given and gives.

export type { Authorizer, Challenge, Sending } from "../core/authorizer.ts";
export type { LogLevel } from "../core/context.ts";
export { LinkError, type LinkErrorKind, type LinkErrorOptions } from "../core/errors.ts";
export type { Handler, Notification, Params, Request, Result } from "../core/handler.ts";
export { McpError, type ErrorKind } from "../protocol/errors.ts";
export type { Asks, MethodName, Methods, Notifications } from "../protocol/methods.ts";
export type * from "../protocol/model/index.ts";
export type { Inbound, Transport } from "../transport/transport.ts";
export {
  rejected,
  type Asked,
  type AskHandlers,
  type FormHandler,
  type SampleHandler,
  type UrlHandler,
} from "./asks.ts";
export type { CallOptions } from "./calls.ts";
export type { Client, ListOptions } from "./client.ts";
export type { Command, Program } from "./command.ts";
export { connect, type ConnectOptions, type Target } from "./connect.ts";
export type { Progress } from "./contexts.ts";
export type { TaskHandle } from "./task-handle.ts";
export type { ChangeEvent, ListenOptions, Subscription } from "./listen.ts";
export type { HttpOptions } from "./http.ts";
export { bearerToken } from "./oauth/bearer-token.ts";
export { openBrowser } from "./oauth/browser.ts";
export { clientCredentials, type KeyCredentials, type SecretCredentials } from "./oauth/client-credentials.ts";
export { enterpriseManaged, type EnterpriseManagedOptions } from "./oauth/enterprise.ts";
export { fileTokens, type FileTokensOptions } from "./oauth/file-tokens.ts";
export type { Grant, Ground, KnownClient } from "./oauth/grant.ts";
export { keychainTokens, type KeychainTokensOptions } from "./oauth/keychain-tokens.ts";
export { loopbackRedirect, type LoopbackRedirectOptions } from "./oauth/loopback-redirect.ts";
export { memoryTokens } from "./oauth/memory-tokens.ts";
export { oauth, type OAuthOptions, type PreRegisteredClient } from "./oauth/oauth.ts";
export type { Redirect } from "./oauth/redirect.ts";
export type { TokenStore } from "./oauth/token-store.ts";
export { workloadIdentity, type WorkloadIdentityOptions } from "./oauth/workload-identity.ts";
