// Who we are to an end over HTTP: the authorizers that a program can bring, where they keep tokens, and the ways to get
// them. All of it is light: what does the work is loaded when a request is first sent.

export type { Authorizer, Challenge, OutgoingRequest } from "../../core/authentication.ts";
export type { Assertion, AssertionWanted } from "./assertion.ts";
export { bearerToken } from "./bearer-token.ts";
export { clientCredentials, type KeyCredentials, type SecretCredentials } from "./client-credentials.ts";
export { enterpriseManaged, type EnterpriseManagedOptions } from "./enterprise.ts";
export { fileTokens, type FileTokensOptions } from "./file-tokens.ts";
export type { Grant, Ground, KnownClient } from "./grant.ts";
export type { ClientIdentity } from "./grant-request.ts";
export type { Idp } from "./identity-provider.ts";
export { keychainTokens, type KeychainTokensOptions } from "./keychain-tokens.ts";
export { loopbackRedirect, type LoopbackRedirectOptions } from "./loopback-redirect.ts";
export { memoryTokens } from "./memory-tokens.ts";
export { oauth, type OAuthOptions, type PreRegisteredClient } from "./oauth.ts";
export type { PrivateKeySource } from "./private-key.ts";
export type { Redirect } from "./redirect.ts";
export type { TokenStore } from "./token-store.ts";
export { workloadIdentity, type WorkloadIdentityOptions } from "./workload-identity.ts";
