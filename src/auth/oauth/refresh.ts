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
  { client, auth, secret }: KnownClient,
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
    if (isFinal(error)) return undefined;
    // That is for whoever knows where the client came from.
    if (errorCode(error) === "invalid_client") throw error;
    throw refusal(`refreshing the access token at ${server.issuer}`, error, [refresh, secret]);
  }
}

/** What says nothing of the refresh token. All else does: servers have many names for one that they do not take. */
const OTHERWISE: ReadonlySet<string> = new Set([
  "invalid_client",
  "invalid_dpop_proof",
  "server_error",
  "slow_down",
  "temporarily_unavailable",
  "use_dpop_nonce",
]);
const REFUSALS: ReadonlySet<unknown> = new Set([400, 401, 403]);

/** The server has judged it, and would not judge otherwise if it were asked again. */
function isFinal(error: unknown): boolean {
  const code = errorCode(error);
  return code !== undefined && !OTHERWISE.has(code) && REFUSALS.has((error as { status?: unknown }).status);
}
