// Requests to a token endpoint: client authentication, grants without a user, the refresh of tokens, and the token
// exchange at an identity provider. Errors never contain a secret of the request.

import * as oauth from "oauth4webapi";
import { ConnectionError } from "../../core/errors.ts";
import { authFailure, errorCode, redact, type Secrets, unauthorized } from "./errors.ts";
import { type Tokens, toTokens } from "./stored-tokens.ts";
import type { ClientIdentity, GrantContext, IdentityProvider, OAuthClient, PrivateKeySource } from "./types.ts";

/** For a server that identifies the client by its assertion alone. */
export const ANONYMOUS_CLIENT: OAuthClient = { client: { client_id: "-" }, auth: () => undefined };

export async function oauthClient(identity: ClientIdentity, server: oauth.AuthorizationServer): Promise<OAuthClient> {
  const { id, secret } = identity;
  return { client: { client_id: id }, auth: await clientAuth(identity, server), secret };
}

type ClientCredentials = Omit<ClientIdentity, "id">;

/**
 * Authenticates the client with its private key, with its secret, or not at all. Without `authMethod`, a secret is sent
 * by a method that the server lists (RFC 8414). A server that lists none accepts client_secret_basic.
 */
export async function clientAuth(
  credentials: ClientCredentials,
  server: oauth.AuthorizationServer,
): Promise<oauth.ClientAuth> {
  const method = credentials.authMethod ?? chooseAuthMethod(credentials, server);
  const { secret, privateKey } = credentials;
  if (method === "none") return oauth.None();
  if (method === "private_key_jwt") {
    if (privateKey === undefined) throw missingCredential(method, "a private key");
    return oauth.PrivateKeyJwt(await loadKey(privateKey, server, credentials.alg));
  }
  if (secret === undefined) throw missingCredential(method, "a secret");
  if (method === "client_secret_basic") return secretBasic(secret);
  if (method === "client_secret_post") return oauth.ClientSecretPost(secret);
  if (method === "client_secret_jwt") return oauth.ClientSecretJwt(secret);
  throw unauthorized(`The client authentication method ${redact(method)} is not supported`);
}

const SECRET_METHODS = ["client_secret_basic", "client_secret_post", "client_secret_jwt"];

function chooseAuthMethod({ secret, privateKey }: ClientCredentials, server: oauth.AuthorizationServer): string {
  if (privateKey !== undefined) return "private_key_jwt";
  if (secret === undefined) return "none";
  const listed = server.token_endpoint_auth_methods_supported;
  return SECRET_METHODS.find((method) => listed?.includes(method)) ?? "client_secret_basic";
}

function missingCredential(method: string, what: string): Error {
  return unauthorized(`A client that authenticates by ${method} needs ${what}, and none was given`);
}

/**
 * Like oauth4webapi's ClientSecretBasic, but escapes only what form encoding (RFC 6749, 2.3.1) requires. oauth4webapi
 * also escapes hyphens, so a server that does not decode would not recognize a client ID with a hyphen.
 */
function secretBasic(secret: string): oauth.ClientAuth {
  return (_server, client, _body, headers) => {
    const pair = `${formEncode(client.client_id)}:${formEncode(secret)}`;
    headers.set("authorization", `Basic ${btoa(pair)}`);
  };
}

function formEncode(text: string): string {
  return new URLSearchParams({ "": text }).toString().slice(1);
}

async function loadKey(
  key: PrivateKeySource,
  server: oauth.AuthorizationServer,
  alg: string | undefined,
): Promise<oauth.PrivateKey> {
  if (typeof key === "object" && "key" in key) return key;
  const { importSigningKey } = await import("./keys.ts");
  return importSigningKey(key, server, alg);
}

/**
 * Runs `work`, which makes a request and reads its response. A server that requires its own nonce in the DPoP proof
 * refuses the first request (RFC 9449, 8). oauth4webapi stores the nonce of the refusal, so `work` runs once more.
 */
export async function withNonce<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!oauth.isDPoPNonceError(error)) throw error;
    return await work();
  }
}

export interface TokenRequest {
  readonly grantType: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly secrets: Secrets;
  /** What to check if the server refuses, as the end of a sentence. */
  readonly advice: string;
}

/** Makes the token request of a grant without a user. If the server refuses, no other server is tried. */
export async function requestTokens(
  context: GrantContext,
  { client, auth }: OAuthClient,
  request: TokenRequest,
): Promise<oauth.TokenEndpointResponse> {
  const { server, resource, scope, http } = context;
  const parameters = { ...request.parameters, resource, ...(scope === undefined ? {} : { scope }) };
  return withSafeErrors(server, request, () =>
    withNonce(async () =>
      oauth.processGenericTokenEndpointResponse(
        server,
        client,
        await oauth.genericTokenEndpointRequest(server, client, auth, request.grantType, parameters, http),
      ),
    ),
  );
}

async function withSafeErrors<T>(
  server: oauth.AuthorizationServer,
  { secrets, advice }: Pick<TokenRequest, "secrets" | "advice">,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { kind, message, mayHaveRun } = authFailure(`asking ${server.issuer} for a token`, error, secrets);
    const hint = errorCode(error) === undefined ? "" : `; ${advice}`;
    throw new ConnectionError(kind, `${message}${hint}`, { mayHaveRun });
  }
}

/**
 * Uses the refresh token (OAuth 2.1, 4.3), only with the server that issued it. Returns undefined if there is none, or
 * if it is no longer valid: a new authorization is needed then.
 */
export async function refreshTokens(
  tokens: Tokens,
  server: oauth.AuthorizationServer,
  { client, auth, secret }: OAuthClient,
  http: oauth.TokenEndpointRequestOptions,
): Promise<Tokens | undefined> {
  const { refresh, resource } = tokens;
  if (refresh === undefined || server.issuer !== tokens.issuer) return undefined;
  const options = { ...http, additionalParameters: { resource } };
  try {
    const response = await withNonce(async () =>
      oauth.processRefreshTokenResponse(
        server,
        client,
        await oauth.refreshTokenGrantRequest(server, client, auth, refresh, options),
      ),
    );
    // Without `scope` in the response the scopes are unchanged.
    const granted =
      response.scope === undefined && tokens.granted !== undefined ? { granted: tokens.granted } : undefined;
    return { ...toTokens(response, { ...tokens, refresh }), ...granted };
  } catch (error) {
    if (isFinalRefusal(error)) return undefined;
    // The caller handles this error, because it may be able to register the client again.
    if (errorCode(error) === "invalid_client") throw error;
    throw authFailure(`refreshing the access token at ${server.issuer}`, error, [refresh, secret]);
  }
}

/** Errors that are not about the refresh token. All others mean that it is invalid, since servers use many codes. */
const UNRELATED_ERRORS: ReadonlySet<string> = new Set([
  "invalid_client",
  "invalid_dpop_proof",
  "server_error",
  "slow_down",
  "temporarily_unavailable",
  "use_dpop_nonce",
]);
const REFUSAL_STATUSES: ReadonlySet<unknown> = new Set([400, 401, 403]);

/** Whether the server has rejected the refresh token, so that a retry is useless. */
function isFinalRefusal(error: unknown): boolean {
  const code = errorCode(error);
  if (code === undefined || UNRELATED_ERRORS.has(code)) return false;
  return REFUSAL_STATUSES.has((error as { status?: unknown }).status);
}

const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const TOKEN_TYPE = "urn:ietf:params:oauth:token-type:";
const ID_JAG = `${TOKEN_TYPE}id-jag`;

export async function findIdentityProvider(
  { issuer, tokenEndpoint }: IdentityProvider,
  context: GrantContext,
): Promise<oauth.AuthorizationServer> {
  if (tokenEndpoint !== undefined && URL.canParse(tokenEndpoint)) {
    return { issuer: issuer ?? new URL(tokenEndpoint).origin, token_endpoint: tokenEndpoint };
  }
  if (issuer === undefined || !URL.canParse(issuer)) {
    throw unauthorized("The identity provider is unknown: set `idp.issuer` or `idp.tokenEndpoint` to its URL");
  }
  const advice = "check the URL of the identity provider";
  return withSafeErrors({ issuer }, { secrets: [], advice }, async () => {
    const url = new URL(issuer);
    // The type of `context.http` is for POST requests only, but the fetch in it makes any request.
    const http = context.http as unknown as oauth.DiscoveryRequestOptions;
    let response = await oauth.discoveryRequest(url, { ...http, algorithm: "oidc" });
    if (response.status === 404) response = await oauth.discoveryRequest(url, { ...http, algorithm: "oauth2" });
    return oauth.processDiscoveryResponse(url, response);
  });
}

export interface IdTokenExchange {
  readonly idp: IdentityProvider;
  readonly provider: oauth.AuthorizationServer;
  readonly idToken: string;
  readonly type: "id_token" | "saml2" | undefined;
}

export interface IdentityAssertion {
  readonly assertion: string;
  /** The scopes that the organization allows, if the response names them. */
  readonly scope: string | undefined;
}

/** Exchanges the user's identity token for an ID-JAG (RFC 8693), an assertion that the authorization server accepts. */
export async function exchangeIdToken(context: GrantContext, exchange: IdTokenExchange): Promise<IdentityAssertion> {
  const { idp, provider, idToken, type } = exchange;
  const { server, resource, scope } = context;
  const { client, auth } = await oauthClient(idp.client, provider);
  // The DPoP key is only for access tokens, and the assertion is not one.
  const { DPoP: _, ...http } = context.http;
  const parameters = {
    requested_token_type: ID_JAG,
    audience: server.issuer,
    resource,
    subject_token: idToken,
    subject_token_type: `${TOKEN_TYPE}${type ?? "id_token"}`,
    ...(scope === undefined ? {} : { scope }),
  };
  const advice = "ask the administrator there for access, or sign in again";
  const answer = await withSafeErrors(provider, { secrets: [idToken, idp.client.secret], advice }, async () =>
    oauth.processGenericTokenEndpointResponse(
      provider,
      client,
      await oauth.genericTokenEndpointRequest(provider, client, auth, TOKEN_EXCHANGE, parameters, http),
      // The response has the token type N_A, since it is not an access token.
      { recognizedTokenTypes: { n_a: () => undefined } },
    ),
  );
  if (answer["issued_token_type"] !== ID_JAG) {
    throw unauthorized(`The identity provider ${provider.issuer} did not issue an ID-JAG assertion`);
  }
  return { assertion: answer.access_token, scope: answer.scope };
}
