// New tokens for old (OAuth 2.1, 4.3). A refresh token that the server no longer takes is no error but an end: then a
// new authorization is needed. It goes only to the server that gave it, in the name of the client that it was given to.

import * as oauth from "oauth4webapi";
import { errorCode, refusal } from "./failures.ts";
import type { KnownClient } from "./grant.ts";
import { type Tokens, tokensOf } from "./records.ts";
import { withNonce } from "./token-request.ts";

/** Undefined: the refresh token is good for nothing any more. */
export async function refreshed(
  tokens: Tokens,
  server: oauth.AuthorizationServer,
  { client, auth }: KnownClient,
  http: oauth.TokenEndpointRequestOptions,
): Promise<Tokens | undefined> {
  const { refresh, resource } = tokens;
  if (refresh === undefined || server.issuer !== tokens.issuer) return undefined;
  const more = { ...http, additionalParameters: { resource } };
  try {
    const answer = await withNonce(async () => {
      const response = await oauth.refreshTokenGrantRequest(server, client, auth, refresh, more);
      return oauth.processRefreshTokenResponse(server, client, response);
    });
    // A server that says nothing of scopes gave what it gave before.
    const granted =
      answer.scope === undefined && tokens.granted !== undefined ? { granted: tokens.granted } : undefined;
    return { ...tokensOf(answer, { ...tokens, refresh }), ...granted };
  } catch (error) {
    const code = errorCode(error);
    if (code !== undefined && GONE.has(code)) return undefined;
    // That is for whoever knows where the client came from.
    if (code === "invalid_client") throw error;
    throw refusal(`refreshing the access token at ${server.issuer}`, error);
  }
}

/** The grant, or the client's right to refresh, is gone: neither comes back by asking again. */
const GONE: ReadonlySet<string> = new Set(["invalid_grant", "unauthorized_client", "unsupported_grant_type"]);
