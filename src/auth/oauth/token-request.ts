// Requests to authorization servers: client authentication, the authorization code grant with PKCE (specification:
// basic/authorization, "Authorization Flow Steps"), grants without a user, and the token exchange at an identity
// provider. Errors never contain a secret of the request.

import * as oauth from "oauth4webapi";
import { isLoopback } from "../../core/hosts.ts";
import { defined, fieldsOf } from "../../core/values.ts";
import { attempting, authFailure, errorCode, redact, type Secrets, unauthorized } from "./errors.ts";
import type { OAuthFetch } from "./oauth-fetch.ts";
import type { ClientIdentity, Grant, GrantContext, IdentityProvider, OAuthClient, Redirect } from "./types.ts";

/** For a server that identifies the client by its assertion alone. */
export const ANONYMOUS_CLIENT: OAuthClient = { client: { client_id: "-" }, auth: () => undefined };

export async function oauthClient(identity: ClientIdentity, server: oauth.AuthorizationServer): Promise<OAuthClient> {
  const { id, secret } = identity;
  return { client: { client_id: id }, auth: await clientAuth(identity, server), secret };
}

const SECRET_METHODS = ["client_secret_basic", "client_secret_post", "client_secret_jwt"];

/**
 * Authenticates the client with its private key, with its secret, or not at all. Without `authMethod`, a secret is sent
 * by a method that the server lists (RFC 8414). A server that lists none accepts client_secret_basic.
 */
export async function clientAuth(
  { secret, privateKey, alg, authMethod }: Omit<ClientIdentity, "id">,
  server: oauth.AuthorizationServer,
): Promise<oauth.ClientAuth> {
  const listed = server.token_endpoint_auth_methods_supported;
  const secretMethod = SECRET_METHODS.find((known) => listed?.includes(known)) ?? "client_secret_basic";
  const keyMethod = privateKey === undefined ? undefined : "private_key_jwt";
  const method = authMethod ?? keyMethod ?? (secret === undefined ? "none" : secretMethod);
  if (method === "none") return oauth.None();
  if (method === "private_key_jwt") {
    if (privateKey === undefined) throw missingCredential(method, "a private key");
    if (typeof privateKey === "object" && "key" in privateKey) return oauth.PrivateKeyJwt(privateKey);
    const { importSigningKey } = await import("./keys.ts");
    return oauth.PrivateKeyJwt(await importSigningKey(privateKey, server, alg));
  }
  if (secret === undefined) throw missingCredential(method, "a secret");
  if (method === "client_secret_basic") return secretBasic(secret);
  if (method === "client_secret_post") return oauth.ClientSecretPost(secret);
  if (method === "client_secret_jwt") return oauth.ClientSecretJwt(secret);
  throw unauthorized(`The client authentication method ${redact(method)} is not supported`);
}

function missingCredential(method: string, what: string): Error {
  return unauthorized(`A client that authenticates by ${method} needs ${what}, and none was given`);
}

/**
 * Like oauth4webapi's ClientSecretBasic, but escapes only what form encoding (RFC 6749, 2.3.1) requires. oauth4webapi
 * also escapes hyphens, so a server that does not decode would not recognize a client ID with a hyphen.
 */
function secretBasic(secret: string): oauth.ClientAuth {
  const formEncode = (text: string): string => new URLSearchParams({ "": text }).toString().slice(1);
  return (_server, client, _body, headers) => {
    headers.set("authorization", `Basic ${btoa(`${formEncode(client.client_id)}:${formEncode(secret)}`)}`);
  };
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

/** The options for every function of oauth4webapi that makes a request. */
export function requestOptions(
  http: OAuthFetch,
  signal: AbortSignal | undefined,
  key?: oauth.DPoPHandle,
): oauth.TokenEndpointRequestOptions {
  return {
    ...defined({ signal, DPoP: key }),
    [oauth.customFetch]: (url, init) => http.request(new URL(url), init),
    // oauth4webapi marks this as deprecated only to make it stand out. `allows` decides when http is used.
    // oxlint-disable-next-line typescript/no-deprecated
    [oauth.allowInsecureRequests]: http.allowsHttp,
  };
}

/** Makes a token request. `options` are for reading the response. */
export function requestToken(
  server: oauth.AuthorizationServer,
  { client, auth }: OAuthClient,
  parameters: Readonly<Record<string, string | undefined>> & { readonly grant_type: string },
  http: oauth.TokenEndpointRequestOptions,
  options?: oauth.ProcessTokenResponseOptions,
): Promise<oauth.TokenEndpointResponse> {
  const form = defined(parameters);
  return withNonce(async () => {
    const response = await oauth.genericTokenEndpointRequest(server, client, auth, form.grant_type, form, http);
    return oauth.processGenericTokenEndpointResponse(server, client, response, options);
  });
}

/**
 * Makes the token request of a grant without a user. `advice`: what to check if the server refuses, as the end of a
 * sentence. No other server is tried.
 */
export function requestTokens(
  { server, resource, scope, http }: GrantContext,
  client: OAuthClient,
  parameters: { readonly grant_type: string; readonly assertion?: string },
  advice: string,
): Promise<oauth.TokenEndpointResponse> {
  const secrets = [parameters.assertion, client.secret];
  return withAdvice(server.issuer, secrets, advice, () =>
    requestToken(server, client, { ...parameters, resource, scope }, http),
  );
}

async function withAdvice<T>(issuer: string, secrets: Secrets, advice: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const failure = authFailure(`asking ${issuer} for a token`, error, secrets);
    throw errorCode(error) === undefined ? failure : unauthorized(`${failure.message}; ${advice}`);
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

/** Whether the server has rejected the refresh token, so that a retry is useless. */
export function isFinalRefusal(error: unknown): boolean {
  const code = errorCode(error);
  if (code === undefined || UNRELATED_ERRORS.has(code)) return false;
  const { status } = fieldsOf(error);
  return status === 400 || status === 401 || status === 403;
}

/**
 * Revokes tokens (RFC 7009), the refresh token first. Resolves to why they may still be accepted, as the end of a
 * sentence, and to undefined if all of them are revoked.
 */
export async function revokeTokens(
  server: oauth.AuthorizationServer,
  { client, auth }: OAuthClient,
  { access, refresh }: { readonly access: string; readonly refresh?: string },
  { DPoP: _, ...http }: oauth.TokenEndpointRequestOptions,
): Promise<string | undefined> {
  if (server.revocation_endpoint === undefined) return "it offers no revocation";
  const revoke = async (token: string, hint: string): Promise<void> => {
    const options = { ...http, additionalParameters: { token_type_hint: hint } };
    const response = await oauth.revocationRequest(server, client, auth, token, options);
    await oauth.processRevocationResponse(response);
  };
  if (refresh !== undefined) await revoke(refresh, "refresh_token");
  try {
    await revoke(access, "access_token");
  } catch (error) {
    // MCP servers check signed tokens by themselves, so many authorization servers cannot revoke these (RFC 7009, 2.2.1).
    if (errorCode(error) !== "unsupported_token_type") throw error;
    return "it does not revoke access tokens";
  }
  return undefined;
}

const TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange";
const TOKEN_TYPE = "urn:ietf:params:oauth:token-type:";
const ID_JAG = `${TOKEN_TYPE}id-jag`;

async function findIdentityProvider(
  { issuer, tokenEndpoint }: IdentityProvider,
  { http }: GrantContext,
): Promise<oauth.AuthorizationServer> {
  if (tokenEndpoint !== undefined && URL.canParse(tokenEndpoint)) {
    return { issuer: issuer ?? new URL(tokenEndpoint).origin, token_endpoint: tokenEndpoint };
  }
  if (issuer === undefined || !URL.canParse(issuer)) {
    throw unauthorized("The identity provider is unknown: set `idp.issuer` or `idp.tokenEndpoint` to its URL");
  }
  const url = new URL(issuer);
  return withAdvice(issuer, [], "check the URL of the identity provider", async () => {
    // The type of `http` is for POST requests only, but the fetch in it makes any request.
    const options = http as unknown as oauth.DiscoveryRequestOptions;
    let response = await oauth.discoveryRequest(url, { ...options, algorithm: "oidc" });
    if (response.status === 404) response = await oauth.discoveryRequest(url, { ...options, algorithm: "oauth2" });
    return oauth.processDiscoveryResponse(url, response);
  });
}

export interface IdentityAssertion {
  readonly assertion: string;
  /** The issuer of the identity provider. */
  readonly issuer: string;
  /** The scopes that the organization allows, if the response names them. */
  readonly scope: string | undefined;
}

/** Exchanges the user's identity token for an ID-JAG (RFC 8693), an assertion that the authorization server accepts. */
export async function identityAssertion(
  context: GrantContext,
  idp: IdentityProvider,
  type: "id_token" | "saml2",
  readIdToken: (audience: string) => Promise<string>,
): Promise<IdentityAssertion> {
  const provider = await findIdentityProvider(idp, context);
  const idToken = await readIdToken(provider.issuer);
  const client = await oauthClient(idp.client, provider);
  const { DPoP: _, ...http } = context.http;
  const parameters = {
    grant_type: TOKEN_EXCHANGE,
    requested_token_type: ID_JAG,
    audience: context.server.issuer,
    resource: context.resource,
    subject_token: idToken,
    subject_token_type: `${TOKEN_TYPE}${type}`,
    scope: context.scope,
  };
  // The response has the token type N_A, since it is not an access token. So no DPoP key is used either.
  const options = { recognizedTokenTypes: { n_a: () => undefined } };
  const advice = "ask the administrator there for access, or sign in again";
  const answer = await withAdvice(provider.issuer, [idToken, idp.client.secret], advice, () =>
    requestToken(provider, client, parameters, http, options),
  );
  if (answer["issued_token_type"] !== ID_JAG) {
    throw unauthorized(`The identity provider ${provider.issuer} did not issue an ID-JAG assertion`);
  }
  return { assertion: answer.access_token, issuer: provider.issuer, scope: answer.scope };
}

/** The MCP server decides when the user must sign in, so the number of pages that it can open is limited. */
const MAX_VISITS = 10;
const VISITS_WINDOW_MS = 600_000;

/** The user is sent to the authorization server and comes back with a code. `allows`: whether to this URL. */
export function authorizationCode(redirect: Redirect | undefined, allows: (url: URL) => boolean): Grant {
  const visits: number[] = [];
  return {
    grantType: "authorization_code",
    interactive: true,
    rejectServer: (server) => rejectServer(server, allows),
    obtain: async (context) => {
      if (redirect === undefined) {
        const text = "set `redirect` (loopbackRedirect() opens a browser), or use another grant";
        const message = `${context.server.issuer} needs the user's consent, and no user can be asked`;
        throw unauthorized(message, { text, flags: "" });
      }
      countVisit(visits, context);
      return signIn(context, redirect);
    },
  };
}

function countVisit(visits: number[], { server, resource }: GrantContext): void {
  const now = performance.now();
  while (visits[0] !== undefined && visits[0] < now - VISITS_WINDOW_MS) visits.shift();
  if (visits.length >= MAX_VISITS) {
    const often = `${MAX_VISITS} times within ${VISITS_WINDOW_MS / 60_000} minutes`;
    throw unauthorized(`${resource} sent the user to ${server.issuer} ${often}; wait, or find out why`);
  }
  visits.push(now);
}

function rejectServer(server: oauth.AuthorizationServer, allows: (url: URL) => boolean): string | undefined {
  const { authorization_endpoint: endpoint, token_endpoint: token } = server;
  const { code_challenge_methods_supported: methods } = server;
  if (endpoint === undefined || token === undefined) return "it lacks authorization_endpoint or token_endpoint";
  if (!URL.canParse(endpoint) || !allows(new URL(endpoint))) return "its authorization endpoint is not an https URL";
  if (!URL.canParse(token) || !allows(new URL(token))) return "its token endpoint is not an https URL";
  if (!Array.isArray(methods) || !methods.includes("S256")) {
    return "it does not list PKCE with S256 (code_challenge_methods_supported), without which a code could be stolen";
  }
  return undefined;
}

async function signIn(context: GrantContext, redirect: Redirect): Promise<oauth.TokenEndpointResponse> {
  const { server, resource, scope, http, signal } = context;
  const { issuer } = server;
  const redirectUri = await checkedRedirectUri(redirect);
  const oauthClient = await context.client();
  const { client, auth, secret } = oauthClient;
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const request = defined({
    client_id: client.client_id,
    response_type: "code",
    redirect_uri: redirectUri,
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    resource,
    scope,
    // OpenID Connect Core, section 11: without this prompt, a server may ignore offline_access.
    prompt: scope?.split(" ").includes("offline_access") === true ? "consent" : undefined,
    dpop_jkt: await http.DPoP?.calculateThumbprint(),
  });
  const url = await authorizationUrl(context, oauthClient, request);
  const callback = await attempting(`waiting for the user to come back from ${issuer}`, [], () =>
    redirect.visit(url, { signal }),
  );
  // This checks `iss` and `state` first, so that the error text of another server is never shown.
  const code = await attempting(`checking the callback from ${issuer}`, [], () =>
    oauth.validateAuthResponse(server, client, callback, state),
  );
  const options = { ...http, additionalParameters: { resource } };
  try {
    return await withNonce(async () => {
      const sent = oauth.authorizationCodeGrantRequest(server, client, auth, code, redirectUri, verifier, options);
      return oauth.processAuthorizationCodeResponse(server, client, await sent);
    });
  } catch (error) {
    // The server does not accept the client. The caller needs the original error, to register the client again.
    if (errorCode(error) === "invalid_client") throw error;
    const secrets = [callback.searchParams.get("code") ?? undefined, verifier, secret];
    throw authFailure(`exchanging the authorization code at ${issuer}`, error, secrets);
  }
}

/** Refuses http across a network, where anyone could read the code. */
async function checkedRedirectUri(redirect: Redirect): Promise<string> {
  const uri = await redirect.uri;
  const { protocol = "", hostname = "" } = URL.canParse(uri) ? new URL(uri) : {};
  if (protocol !== "" && (protocol !== "http:" || isLoopback(hostname))) return uri;
  throw unauthorized(`The redirect URI must be https, or http on this machine: ${redact(uri)} is neither`);
}

/**
 * Returns the URL to send the user to. The request is in the query of the URL. If the server requires it, the request
 * is pushed to the server instead, and the URL refers to it (RFC 9126).
 */
async function authorizationUrl(
  { server, http }: GrantContext,
  { client, auth, secret }: OAuthClient,
  request: Readonly<Record<string, string>>,
): Promise<URL> {
  const url = new URL(server.authorization_endpoint ?? "");
  let query = request;
  if (server.require_pushed_authorization_requests === true) {
    const form = new URLSearchParams(request);
    const pushing = `pushing the authorization request to ${server.issuer}`;
    const pushed = await attempting(pushing, [secret], () =>
      withNonce(async () => {
        const response = await oauth.pushedAuthorizationRequest(server, client, auth, form, http);
        return oauth.processPushedAuthorizationResponse(server, client, response);
      }),
    );
    // The server ignores `state` in this URL, but `redirect.visit` may use it to recognize the callback.
    const { client_id = "", state = "" } = request;
    query = { client_id, request_uri: pushed.request_uri, state };
  }
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
  return url;
}
