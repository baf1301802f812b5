// A person's consent as a grant: the authorization code with PKCE (specification: basic/authorization, "Authorization
// Flow Steps"). The person is sent to the server and comes back with a code, which is good only together with what
// was made for this one visit: the verifier, the state, the issuer that was asked. All three are held against what
// comes back before the code goes anywhere.

import * as oauth from "oauth4webapi";
import { isLoopback } from "../../http/server/guard.ts";
import { plain, refusal, unauthorized } from "./failures.ts";
import type { Grant, Ground, KnownClient } from "./grant.ts";
import type { Redirect } from "./redirect.ts";
import { withNonce } from "./token-request.ts";

export interface AuthorizationCodeOptions {
  readonly redirect: Redirect | undefined;
  /** Whether a person may be sent there. */
  readonly allows: (url: URL) => boolean;
}

/** An end decides when a person is asked, and must not open one page after another. */
const MOST_VISITS = 10;
const VISITS_MS = 600_000;

export function authorizationCode({ redirect, allows }: AuthorizationCodeOptions): Grant {
  const visits: number[] = [];
  return {
    kind: "authorization_code",
    interactive: true,
    fits: (server) => misfit(server, allows),
    obtain: async (ground) => {
      if (redirect === undefined) {
        const advice = "give `redirect` (loopbackRedirect() opens a browser), or another grant";
        throw unauthorized(`${ground.server.issuer} wants a person's consent, and nobody can be asked: ${advice}`);
      }
      count(visits, ground);
      return obtain(ground, redirect);
    },
  };
}

function count(visits: number[], { server, resource }: Ground): void {
  const now = performance.now();
  while (visits[0] !== undefined && visits[0] < now - VISITS_MS) visits.shift();
  if (visits.length >= MOST_VISITS) {
    const often = `${MOST_VISITS} times within ${VISITS_MS / 60_000} minutes`;
    throw unauthorized(`${resource} had a person sent to ${server.issuer} ${often}; wait, or look into what it wants`);
  }
  visits.push(now);
}

function misfit(server: oauth.AuthorizationServer, allows: (url: URL) => boolean): string | undefined {
  const { authorization_endpoint: endpoint, token_endpoint: token } = server;
  const { code_challenge_methods_supported: methods } = server;
  if (endpoint === undefined || token === undefined) return "it names no authorization endpoint or no token endpoint";
  if (!URL.canParse(endpoint) || !allows(new URL(endpoint))) return "its authorization endpoint is no https address";
  if (!URL.canParse(token) || !allows(new URL(token))) return "its token endpoint is no https address";
  if (!Array.isArray(methods) || !methods.includes("S256")) {
    return "it does not say that it supports PKCE with S256 (code_challenge_methods_supported), without which a code could be stolen";
  }
  return undefined;
}

async function obtain(ground: Ground, redirect: Redirect): Promise<oauth.TokenEndpointResponse> {
  const { server, resource, http, signal } = ground;
  const redirectUri = await uriOf(redirect);
  const known = await ground.client();
  const { client, auth, secret } = known;
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
    ...(ground.scope === undefined ? undefined : { scope: ground.scope }),
    // OpenID Connect, 11: without it a server may leave out the refresh token that the scope asks for.
    ...(ground.scope?.split(" ").includes("offline_access") === true ? { prompt: "consent" } : undefined),
    ...(key === undefined ? undefined : { dpop_jkt: key }),
  });
  const back = await visit(await addressFor(ground, known, request), redirect, server, signal);
  const code = validated(server, client, back, state);
  const more = { ...http, additionalParameters: { resource } };
  try {
    return await withNonce(async () => {
      const answer = await oauth.authorizationCodeGrantRequest(server, client, auth, code, redirectUri, verifier, more);
      return oauth.processAuthorizationCodeResponse(server, client, answer);
    });
  } catch (error) {
    // The server no longer knows the client: whoever called may register it anew.
    if (isInvalidClient(error)) throw error;
    throw refusal(`exchanging the authorization code at ${server.issuer}`, error, [
      back.searchParams.get("code") ?? undefined,
      verifier,
      secret,
    ]);
  }
}

/** A code that comes back in the open, over a network, is anybody's. */
async function uriOf(redirect: Redirect): Promise<string> {
  const uri = await redirect.uri;
  const { protocol = "", hostname = "" } = URL.canParse(uri) ? new URL(uri) : {};
  if (protocol !== "" && (protocol !== "http:" || isLoopback(hostname))) return uri;
  throw unauthorized(`The redirect's address must be https, or http on this machine: ${plain(uri)} is neither`);
}

function isInvalidClient(error: unknown): boolean {
  return error instanceof oauth.ResponseBodyError && error.error === "invalid_client";
}

/** Where the person goes: with the request in the address, or with a name that the server gave the request (RFC 9126). */
async function addressFor(
  { server, http }: Ground,
  { client, auth, secret }: KnownClient,
  request: URLSearchParams,
): Promise<URL> {
  const url = new URL(server.authorization_endpoint ?? "");
  if (server.require_pushed_authorization_requests !== true) {
    for (const [name, value] of request) url.searchParams.set(name, value);
    return url;
  }
  try {
    const { request_uri: name } = await withNonce(async () => {
      const answer = await oauth.pushedAuthorizationRequest(server, client, auth, request, http);
      return oauth.processPushedAuthorizationResponse(server, client, answer);
    });
    url.searchParams.set("client_id", client.client_id);
    url.searchParams.set("request_uri", name);
    // The server does not read it here, but a redirect knows by it who comes back.
    url.searchParams.set("state", request.get("state") ?? "");
    return url;
  } catch (error) {
    throw refusal(`handing the authorization request to ${server.issuer}`, error, [secret]);
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
    throw refusal(`waiting for a person to come back from ${issuer}`, error);
  }
}

/** What a server that is not the one we asked says is not even shown: it comes after `iss` and `state`. */
function validated(server: oauth.AuthorizationServer, client: oauth.Client, back: URL, state: string): URLSearchParams {
  try {
    return oauth.validateAuthResponse(server, client, back, state);
  } catch (error) {
    throw refusal(`accepting what came back from ${server.issuer}`, error);
  }
}
