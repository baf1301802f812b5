// The authorization code grant with PKCE (specification: basic/authorization, "Authorization Flow Steps"). The user is
// sent to the authorization server and comes back with a code. The code is exchanged for tokens only after the state
// and the issuer were checked.

import * as oauth from "oauth4webapi";
import { isLoopback } from "../../http/server/guard.ts";
import { authFailure, redact, unauthorized } from "./errors.ts";
import { withNonce } from "./token-request.ts";
import type { Grant, GrantContext, OAuthClient, Redirect } from "./types.ts";

export interface AuthorizationCodeOptions {
  readonly redirect: Redirect | undefined;
  /** Whether the user may be sent to this URL. */
  readonly allows: (url: URL) => boolean;
}

/** The MCP server decides when the user must sign in, so the number of pages that it can open is limited. */
const MAX_VISITS = 10;
const VISITS_WINDOW_MS = 600_000;

export function authorizationCode({ redirect, allows }: AuthorizationCodeOptions): Grant {
  const visits: number[] = [];
  return {
    grantType: "authorization_code",
    interactive: true,
    rejectServer: (server) => rejectServer(server, allows),
    obtain: async (context) => {
      if (redirect === undefined) {
        const advice = "set `redirect` (loopbackRedirect() opens a browser), or use another grant";
        throw unauthorized(`${context.server.issuer} needs the user's consent, and no user can be asked: ${advice}`);
      }
      countVisit(visits, context);
      return obtain(context, redirect);
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

async function obtain(context: GrantContext, redirect: Redirect): Promise<oauth.TokenEndpointResponse> {
  const { server, resource, http, signal } = context;
  const redirectUri = await checkedRedirectUri(redirect);
  const oauthClient = await context.client();
  const { client, auth, secret } = oauthClient;
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const challenge = await oauth.calculatePKCECodeChallenge(verifier);
  const key = await http.DPoP?.calculateThumbprint();
  const request = new URLSearchParams({
    client_id: client.client_id,
    response_type: "code",
    redirect_uri: redirectUri,
    state,
    code_challenge: challenge,
    code_challenge_method: "S256",
    resource,
    ...(context.scope === undefined ? undefined : { scope: context.scope }),
    // OpenID Connect Core, section 11: without this prompt, a server may ignore offline_access.
    ...(context.scope?.split(" ").includes("offline_access") === true ? { prompt: "consent" } : undefined),
    ...(key === undefined ? undefined : { dpop_jkt: key }),
  });
  const callback = await visit(await authorizationUrl(context, oauthClient, request), redirect, server, signal);
  const code = validateCallback(server, client, callback, state);
  const options = { ...http, additionalParameters: { resource } };
  try {
    return await withNonce(async () =>
      oauth.processAuthorizationCodeResponse(
        server,
        client,
        await oauth.authorizationCodeGrantRequest(server, client, auth, code, redirectUri, verifier, options),
      ),
    );
  } catch (error) {
    // The server does not accept the client. The caller needs the original error, to register the client again.
    if (isInvalidClient(error)) throw error;
    const secrets = [callback.searchParams.get("code") ?? undefined, verifier, secret];
    throw authFailure(`exchanging the authorization code at ${server.issuer}`, error, secrets);
  }
}

/** Refuses http across a network, where anyone could read the code. */
async function checkedRedirectUri(redirect: Redirect): Promise<string> {
  const uri = await redirect.uri;
  const { protocol = "", hostname = "" } = URL.canParse(uri) ? new URL(uri) : {};
  if (protocol !== "" && (protocol !== "http:" || isLoopback(hostname))) return uri;
  throw unauthorized(`The redirect URI must be https, or http on this machine: ${redact(uri)} is neither`);
}

function isInvalidClient(error: unknown): boolean {
  return error instanceof oauth.ResponseBodyError && error.error === "invalid_client";
}

/**
 * Returns the URL to send the user to. The request is in the query of the URL. If the server requires it, the request
 * is pushed to the server instead, and the URL refers to it (RFC 9126).
 */
async function authorizationUrl(
  { server, http }: GrantContext,
  { client, auth, secret }: OAuthClient,
  request: URLSearchParams,
): Promise<URL> {
  const url = new URL(server.authorization_endpoint ?? "");
  if (server.require_pushed_authorization_requests !== true) {
    for (const [name, value] of request) url.searchParams.set(name, value);
    return url;
  }
  try {
    const { request_uri: requestUri } = await withNonce(async () =>
      oauth.processPushedAuthorizationResponse(
        server,
        client,
        await oauth.pushedAuthorizationRequest(server, client, auth, request, http),
      ),
    );
    url.searchParams.set("client_id", client.client_id);
    url.searchParams.set("request_uri", requestUri);
    // The server ignores `state` in this URL, but `redirect.visit` may use it to recognize the callback.
    url.searchParams.set("state", request.get("state") ?? "");
    return url;
  } catch (error) {
    throw authFailure(`pushing the authorization request to ${server.issuer}`, error, [secret]);
  }
}

async function visit(
  url: URL,
  redirect: Redirect,
  { issuer }: oauth.AuthorizationServer,
  signal: AbortSignal,
): Promise<URL> {
  try {
    return await redirect.visit(url, { signal });
  } catch (error) {
    throw authFailure(`waiting for the user to come back from ${issuer}`, error);
  }
}

/** Checks `iss` and `state` first, so that the error text of another server is never shown. */
function validateCallback(
  server: oauth.AuthorizationServer,
  client: oauth.Client,
  callback: URL,
  state: string,
): URLSearchParams {
  try {
    return oauth.validateAuthResponse(server, client, callback, state);
  } catch (error) {
    throw authFailure(`checking the callback from ${server.issuer}`, error);
  }
}
