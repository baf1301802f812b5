// Signs out of a server: deletes its tokens from the store, and revokes them at the authorization server. Programs that
// share the store look into it before each request, so they stop using the tokens at once.

import { fromRegistered } from "./client-registry.ts";
import { fetchKnownServer } from "./discovery.ts";
import { reasonOf } from "./errors.ts";
import { OAuthFetch } from "./oauth-fetch.ts";
import { readTokens, type StoredServer, type Tokens } from "./stored-tokens.ts";
import { oauthClient, requestOptions, revokeTokens } from "./token-request.ts";
import type { ClientIdentity, OAuthOptions, TokenStore } from "./types.ts";

export interface SignOutOptions extends Pick<OAuthOptions, "allowPrivateNetwork" | "fetch"> {
  /** The client that is configured for the server. Its secret may be needed to revoke the tokens. */
  readonly client?: ClientIdentity | undefined;
}

/** How long to wait for a program that is renewing the tokens. A user who is signing in may take longer. */
const LOCK_MS = 5_000;
const REVOCATION_MS = 15_000;

/**
 * Resolves to why the tokens may still be accepted, as the end of a sentence, and to undefined if they are revoked or if
 * there were none. They are deleted in any case.
 */
export async function signOut(
  store: TokenStore,
  { url, keys }: StoredServer,
  options: SignOutOptions = {},
): Promise<string | undefined> {
  const tokensKey = keys.find((key) => key.startsWith("tokens "));
  let tokens: Tokens | undefined;
  const remove = async (): Promise<void> => {
    if (tokensKey !== undefined) tokens = readTokens(await store.get(tokensKey)) ?? tokens;
    for (const key of keys) await store.set(key, undefined);
  };
  // If a renewal takes longer, it finds that the tokens are gone, and saves none.
  if (tokensKey === undefined) await remove();
  else await store.exclusively(tokensKey, remove, AbortSignal.timeout(LOCK_MS)).catch(remove);
  return tokens && revoke(new URL(url), tokens, options);
}

async function revoke(url: URL, tokens: Tokens, options: SignOutOptions): Promise<string | undefined> {
  const { issuer, client: id, registered, plain = false, access, refresh } = tokens;
  const http = new OAuthFetch(url, options);
  const configured: ClientIdentity = options.client?.id === id ? options.client : { id };
  try {
    const server = await fetchKnownServer(issuer, plain, http);
    const client = await (registered === undefined
      ? oauthClient(configured, server)
      : fromRegistered(server, registered));
    return await revokeTokens(server, client, tokens, requestOptions(http, AbortSignal.timeout(REVOCATION_MS)));
  } catch (error) {
    return reasonOf(error, [access, refresh, configured.secret, registered?.client_secret]);
  }
}
