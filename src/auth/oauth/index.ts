// The subpath `catenary/oauth`: authorizers for a client over HTTP, token stores, grants and redirects. Importing it
// loads no package; the flow itself is loaded with the first request.

export type { Authorizer, Challenge, OutgoingRequest } from "../../core/authentication.ts";
export type {
  AuthorizationDetails,
  AuthorizationServer,
  JsonValue,
  MTLSEndpointAliases,
  TokenEndpointRequestOptions,
  TokenEndpointResponse,
} from "oauth4webapi";
export { bearerToken, oauth } from "./authorizers.ts";
export {
  clientCredentials,
  enterpriseManaged,
  workloadIdentity,
  type EnterpriseManagedOptions,
  type KeyCredentials,
  type SecretCredentials,
  type WorkloadIdentityOptions,
} from "./grants.ts";
export { loopbackRedirect, type LoopbackRedirectOptions } from "./loopback-redirect.ts";
export { memoryTokens } from "./stored-tokens.ts";
export {
  fileTokens,
  keychainTokens,
  type FileTokensOptions,
  type FileTokenStore,
  type KeychainTokensOptions,
} from "./token-stores.ts";
export type * from "./types.ts";
