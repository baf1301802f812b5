// Obtains and refreshes the tokens of one MCP server: finds the authorization server, finds or registers our client
// there, and runs the grant. oauth-authorizer.ts decides when tokens are needed, and stores them.

import * as oauth from "oauth4webapi";
import { isLoopback } from "../../http/server/guard.ts";
import { discover, type DiscoveryResult, fetchKnownServer, type TokenTarget } from "./discovery.ts";
import { authFailure, errorCode, unauthorized } from "./errors.ts";
import { isSameIssuer } from "./grants.ts";
import type { DPoPKey } from "./keys.ts";
import type { OAuthFetch } from "./oauth-fetch.ts";
import { type RegisteredClient, type StorageKey, type StoredTokens, type Tokens, toTokens } from "./stored-tokens.ts";
import { oauthClient, refreshTokens } from "./token-request.ts";
import type { Grant, OAuthClient, OAuthOptions, PreRegisteredClient } from "./types.ts";
import type { ChallengeParams } from "./www-authenticate.ts";

export interface TokenSourceOptions {
  readonly options: OAuthOptions;
  readonly mcpServer: URL;
  readonly stored: StoredTokens;
  readonly http: OAuthFetch;
  readonly grant: Grant;
}

export class TokenSource {
  readonly #options: TokenSourceOptions;
  readonly #clients: ClientRegistry;
  /** The server that was looked up last. */
  #server: oauth.AuthorizationServer | undefined;

  constructor(options: TokenSourceOptions) {
    this.#options = options;
    this.#clients = new ClientRegistry(options.options, options.stored, options.grant.grantType);
  }

  async discover(
    challenge: ChallengeParams,
    lastIssuer: string | undefined,
    signal: AbortSignal,
  ): Promise<DiscoveryResult> {
    const { mcpServer, http, grant, options } = this.#options;
    const found = await discover({
      mcpServer,
      challenge,
      http,
      signal,
      lastIssuer,
      onlyIssuer: options.client?.issuer,
      rejectServer: (server) => grant.rejectServer?.(server),
    });
    this.#server = found.server;
    return found;
  }

  /** Uses the refresh token. Returns undefined if there is none, or if it is no longer valid. */
  async refresh(tokens: Tokens, key: DPoPKey | undefined): Promise<Tokens | undefined> {
    if (tokens.refresh === undefined) return undefined;
    const { server, resource } = await this.#targetOf(tokens);
    const client = await this.#clients.find(server, resource, tokens.client);
    if (client === undefined) return undefined;
    // The request gets no signal: the server may already have replaced the refresh token when the abort comes, and the
    // new refresh token would be lost.
    const http = this.#options.http.options(undefined, key?.handle);
    const next = await refreshTokens(tokens, server, client, http).catch(async (error: unknown) => {
      if (await this.#clients.forgetIfUnknown(server, resource, error)) return undefined;
      throw authFailure(`refreshing the access token at ${server.issuer}`, error, [tokens.refresh, client.secret]);
    });
    return next && checkTokens(next);
  }

  /** Runs the grant again with the same scopes. Returns undefined if it needs the user. */
  async repeat(tokens: Tokens, key: DPoPKey | undefined, signal: AbortSignal): Promise<Tokens | undefined> {
    if (this.#options.grant.interactive) return undefined;
    return this.obtain(await this.#targetOf(tokens), tokens.asked, key, signal);
  }

  async obtain(
    target: TokenTarget,
    scopes: readonly string[],
    key: DPoPKey | undefined,
    signal: AbortSignal,
  ): Promise<Tokens> {
    const { server, resource, usesDefaultEndpoints } = target;
    const { grant } = this.#options;
    const { issuer } = server;
    const http = this.#options.http.options(signal, key?.handle);
    let clientId = grant.identity ?? "";
    const client = async (): Promise<OAuthClient> => {
      const current = await this.#clients.current(server, resource, http);
      clientId = current.client.client_id;
      return current;
    };
    const scope = scopes.length === 0 ? undefined : { scope: scopes.join(" ") };
    const attempt = (): Promise<oauth.TokenEndpointResponse> =>
      grant.obtain({ server, resource, http, signal, client, ...scope });
    let response: oauth.TokenEndpointResponse;
    try {
      response = await attempt().catch(async (error: unknown) => {
        if (await this.#clients.forgetIfUnknown(server, resource, error)) return attempt();
        throw error;
      });
    } catch (error) {
      const failure = authFailure(`getting an access token from ${issuer}`, error);
      if (!usesDefaultEndpoints || failure.kind === "cancelled") throw failure;
      throw unauthorized(
        `${resource} does not say how to get a token, and the default endpoints failed: ${failure.message}`,
      );
    }
    const binding = { issuer, resource, client: clientId, asked: scopes, plain: usesDefaultEndpoints };
    return checkTokens(toTokens(response, { ...binding, key: await key?.export() }));
  }

  async #targetOf({ issuer, resource, plain = false }: Tokens): Promise<TokenTarget> {
    if (this.#server?.issuer !== issuer) this.#server = await fetchKnownServer(issuer, plain, this.#options.http);
    return { server: this.#server, resource, usesDefaultEndpoints: plain };
  }
}

/** Rejects tokens that cannot be used, or that are not bound to the key although they should be. */
function checkTokens(tokens: Tokens): Tokens {
  const { issuer, access, scheme, key } = tokens;
  if (!/^[\x21-\x7e]+$/.test(access)) {
    throw unauthorized(`${issuer} issued an access token that a header cannot carry`);
  }
  const isBound = key !== undefined;
  if (isBound === (scheme === "DPoP")) return tokens;
  throw unauthorized(
    isBound
      ? `${issuer} issued an access token that is not bound to our key, though DPoP is needed; it may not support DPoP`
      : `${issuer} issued an access token for DPoP, though no key was used; try oauth({ dpop: true })`,
  );
}

/**
 * Finds or registers our client at an authorization server (specification: basic/authorization/client-registration):
 * the pre-registered client, the URL of our metadata document, or a dynamically registered client. A registration is
 * stored under its authorization server and never used with another.
 */
class ClientRegistry {
  readonly #options: OAuthOptions;
  readonly #stored: StoredTokens;
  readonly #grantType: string;
  /** The server that a pre-registered client without an issuer was first used with. */
  #firstIssuer: string | undefined;

  constructor(options: OAuthOptions, stored: StoredTokens, grantType: string) {
    this.#options = options;
    this.#stored = stored;
    this.#grantType = grantType;
  }

  /** The client for new tokens. Registers it if necessary. */
  async current(
    server: oauth.AuthorizationServer,
    resource: string,
    http: oauth.TokenEndpointRequestOptions,
  ): Promise<OAuthClient> {
    const { client, metadataUrl, redirect } = this.#options;
    if (client !== undefined) {
      await this.#checkIssuer(client, server);
      return oauthClient(client, server);
    }
    if (metadataUrl !== undefined && server.client_id_metadata_document_supported === true) {
      return oauthClient({ id: metadataUrl }, server);
    }
    const key = { issuer: server.issuer, resource };
    const redirectUri = await redirect?.uri;
    const stored = await this.#stored.client(key);
    const registered = isUsable(stored, redirectUri) ? stored : await this.#register(server, key, http, redirectUri);
    return fromRegistered(server, registered);
  }

  /** The client that tokens were issued to, if we can still act as it. */
  async find(server: oauth.AuthorizationServer, resource: string, id: string): Promise<OAuthClient | undefined> {
    const { client, metadataUrl } = this.#options;
    if (client?.id === id) {
      await this.#checkIssuer(client, server);
      return oauthClient(client, server);
    }
    if (metadataUrl === id) return oauthClient({ id }, server);
    const registered = await this.#findRegistered({ issuer: server.issuer, resource }, id);
    return registered === undefined ? undefined : fromRegistered(server, registered);
  }

  /** Drops the registration if the server no longer knows it. Returns true if so; a retry then registers again. */
  async forgetIfUnknown(server: oauth.AuthorizationServer, resource: string, error: unknown): Promise<boolean> {
    if (this.#options.client !== undefined || errorCode(error) !== "invalid_client") return false;
    const key = { issuer: server.issuer, resource };
    if ((await this.#stored.client(key)) === undefined) return false;
    await this.#stored.saveClient(key, undefined);
    return true;
  }

  async #findRegistered(key: StorageKey, id: string | undefined): Promise<RegisteredClient | undefined> {
    const last = await this.#stored.client(key);
    return [last, last?.before].find((one) => one !== undefined && one.client_id === id);
  }

  /** Throws if the credentials belong to another authorization server, since the MCP server may name any server. */
  async #checkIssuer(client: PreRegisteredClient, { issuer }: oauth.AuthorizationServer): Promise<void> {
    const lastUsed = client.issuer === undefined ? await this.#stored.lastUsed() : undefined;
    const known = client.issuer ?? (lastUsed?.client === client.id ? lastUsed.issuer : this.#firstIssuer);
    // This is set before the request, even if it fails: credentials sent to one server are never sent to another.
    this.#firstIssuer ??= known ?? issuer;
    if (known === undefined || isSameIssuer(known, issuer)) return;
    const advice = `configure a client of ${issuer}, with its \`issuer\``;
    throw unauthorized(
      `The server requires tokens of ${issuer}, but the client is registered with ${known}: ${advice}`,
    );
  }

  async #register(
    server: oauth.AuthorizationServer,
    key: StorageKey,
    http: oauth.TokenEndpointRequestOptions,
    redirectUri: string | undefined,
  ): Promise<RegisteredClient> {
    // Without a redirect, the program acts for itself. Its client must be registered by hand: anyone can register a
    // client dynamically, so such a client proves nothing.
    if (server.registration_endpoint === undefined || redirectUri === undefined) {
      throw cannotRegister(server, this.#options);
    }
    const method = methodToRegister(server);
    const metadata = {
      client_name: this.#options.clientName ?? "Catenary",
      token_endpoint_auth_method: method,
      application_type: isNative(redirectUri) ? "native" : "web",
      redirect_uris: [redirectUri],
      grant_types: [this.#grantType, "refresh_token"],
      response_types: ["code"],
      ...(http.DPoP === undefined ? undefined : { dpop_bound_access_tokens: true }),
    };
    const { DPoP: _key, ...withoutKey } = http;
    try {
      const response = await oauth.dynamicClientRegistrationRequest(server, metadata, withoutKey as object);
      const answer = await oauth.processDynamicClientRegistrationResponse(await normalizeRegistration(response));
      const registered = toRegistered(answer, method, redirectUri);
      await this.#stored.saveClient(key, { ...registered, ...(await this.#replacedClient(key)) });
      return registered;
    } catch (error) {
      const advice = "if it does not allow dynamic registration, configure `client` with one that it knows";
      throw authFailure(`registering with ${server.issuer} as a client (${advice})`, error);
    }
  }

  /** The client of the stored tokens. Kept to renew them, in case the user does not complete the new sign-in. */
  async #replacedClient(key: StorageKey): Promise<Pick<RegisteredClient, "before"> | undefined> {
    const tokens = await this.#stored.get(key);
    const found = await this.#findRegistered(key, tokens?.client);
    if (found === undefined) return undefined;
    const { before: _, ...before } = found;
    return { before };
  }
}

function isUsable(stored: RegisteredClient | undefined, redirectUri: string | undefined): stored is RegisteredClient {
  if (stored === undefined) return false;
  const { client_secret_expires_at: expires = 0, redirect_uris: uris } = stored;
  if (expires !== 0 && Date.now() >= expires * 1000) return false;
  return redirectUri === undefined || uris.includes(redirectUri);
}

function cannotRegister({ issuer }: oauth.AuthorizationServer, { metadataUrl }: OAuthOptions): Error {
  const documents = metadataUrl === undefined ? "" : ", and client ID metadata documents are not supported there";
  const advice = "register a client there by hand and configure it: oauth({ client: { id, secret } })";
  return unauthorized(`A client cannot be registered dynamically with ${issuer}${documents}: ${advice}`);
}

/** Prefers a client without a secret: a secret that users can extract from the program proves nothing. */
function methodToRegister({ token_endpoint_auth_methods_supported: listed }: oauth.AuthorizationServer): string {
  const methods = listed ?? ["client_secret_basic"];
  return ["none", "client_secret_basic", "client_secret_post"].find((one) => methods.includes(one)) ?? "none";
}

/** RFC 8252: a native app is redirected to its own machine, or to a scheme of its own. */
function isNative(redirectUri: string): boolean {
  const { protocol, hostname } = new URL(redirectUri);
  return isLoopback(hostname) || (protocol !== "https:" && protocol !== "http:");
}

/** Corrects responses that RFC 7591 does not allow: status 200, or no `client_secret_expires_at`. */
async function normalizeRegistration(response: Response): Promise<Response> {
  if (response.status !== 200 && response.status !== 201) return response;
  const body: unknown = await response.json().catch(() => undefined);
  const given = typeof body === "object" && body !== null ? body : {};
  return Response.json({ client_secret_expires_at: 0, ...given }, { status: 201 });
}

function toRegistered(
  answer: oauth.OmitSymbolProperties<oauth.Client>,
  requestedMethod: string,
  redirectUri: string,
): RegisteredClient {
  const { client_id, client_secret: secret, client_secret_expires_at: expires, token_endpoint_auth_method } = answer;
  const method = typeof token_endpoint_auth_method === "string" ? token_endpoint_auth_method : requestedMethod;
  return {
    client_id,
    token_endpoint_auth_method: typeof secret === "string" ? method : "none",
    redirect_uris: [redirectUri],
    ...(typeof secret === "string" ? { client_secret: secret } : undefined),
    ...(typeof expires === "number" ? { client_secret_expires_at: expires } : undefined),
  };
}

function fromRegistered(server: oauth.AuthorizationServer, registered: RegisteredClient): Promise<OAuthClient> {
  const { client_id: id, client_secret: secret, token_endpoint_auth_method: authMethod } = registered;
  return oauthClient({ id, authMethod, ...(secret === undefined ? undefined : { secret }) }, server);
}
