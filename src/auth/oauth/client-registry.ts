// Finds or registers our client at an authorization server (specification: basic/authorization/client-registration):
// the pre-registered client, the URL of our metadata document, or a dynamically registered client. A registration is
// stored under its authorization server and never used with another.

import * as oauth from "oauth4webapi";
import { defined, isObject } from "../../core/values.ts";
import { isLoopback } from "../../core/hosts.ts";
import { attempting, errorCode, unauthorized } from "./errors.ts";
import { isSameIssuer } from "./grants.ts";
import type { RegisteredClient, StoredTokens, Tokens } from "./stored-tokens.ts";
import { oauthClient } from "./token-request.ts";
import type { OAuthClient, OAuthOptions, PreRegisteredClient } from "./types.ts";

type Server = oauth.AuthorizationServer;

export class ClientRegistry {
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

  async current(
    server: Server,
    resource: string,
    http: oauth.TokenEndpointRequestOptions,
  ): Promise<OAuthClient & { readonly registered?: RegisteredClient }> {
    const { client, metadataUrl, redirect } = this.#options;
    if (client !== undefined) return this.#preRegistered(client, server);
    if (metadataUrl !== undefined && server.client_id_metadata_document_supported === true) {
      return oauthClient({ id: metadataUrl }, server);
    }
    const redirectUri = await redirect?.uri;
    let registered = await this.#stored.client({ issuer: server.issuer, resource });
    if (!isUsable(registered, redirectUri)) {
      registered = await this.#register(server, http, redirectUri);
      await this.#stored.saveClient({ issuer: server.issuer, resource }, registered);
    }
    return { ...(await fromRegistered(server, registered)), registered };
  }

  /** The client that tokens were issued to, if we can still act as it. */
  async find(server: Server, { client: id, resource, registered }: Tokens): Promise<OAuthClient | undefined> {
    const { client, metadataUrl } = this.#options;
    if (client?.id === id) return this.#preRegistered(client, server);
    if (metadataUrl === id) return oauthClient({ id }, server);
    // The registration may have been replaced by a sign-in that the user did not complete.
    const known = registered ?? (await this.#stored.client({ issuer: server.issuer, resource }));
    return known?.client_id === id ? fromRegistered(server, known) : undefined;
  }

  /** Drops the registration if the server no longer knows it. Returns true if so; a retry then registers again. */
  async forgetIfUnknown(
    error: unknown,
    { issuer }: Server,
    resource: string,
    registered?: RegisteredClient,
  ): Promise<boolean> {
    if (this.#options.client !== undefined || errorCode(error) !== "invalid_client") return false;
    if ((registered ?? (await this.#stored.client({ issuer, resource }))) === undefined) return false;
    await this.#stored.saveClient({ issuer, resource }, undefined);
    return true;
  }

  /** Throws if the credentials belong to another authorization server, since the MCP server may name any server. */
  async #preRegistered(client: PreRegisteredClient, server: Server): Promise<OAuthClient> {
    const { issuer } = server;
    const lastUsed = client.issuer === undefined ? await this.#stored.lastUsed() : undefined;
    const known = client.issuer ?? (lastUsed?.client === client.id ? lastUsed.issuer : this.#firstIssuer);
    // This is set before the request, even if it fails: credentials sent to one server are never sent to another.
    this.#firstIssuer ??= known ?? issuer;
    if (known === undefined || isSameIssuer(known, issuer)) return oauthClient(client, server);
    const advice = `configure a client of ${issuer}, with its \`issuer\``;
    throw unauthorized(
      `The server requires tokens of ${issuer}, but the client is registered with ${known}: ${advice}`,
    );
  }

  async #register(
    server: Server,
    { DPoP: key, ...http }: oauth.TokenEndpointRequestOptions,
    redirectUri: string | undefined,
  ): Promise<RegisteredClient> {
    const { issuer } = server;
    const { clientName = "Catenary", metadataUrl } = this.#options;
    // Without a redirect, the program acts for itself. Its client must be registered by hand: anyone can register a
    // client dynamically, so such a client proves nothing.
    if (server.registration_endpoint === undefined || redirectUri === undefined) {
      const documents = metadataUrl === undefined ? "" : ", and client ID metadata documents are not supported there";
      const advice = "register a client there by hand and configure it: oauth({ client: { id, secret } })";
      throw unauthorized(`A client cannot be registered dynamically with ${issuer}${documents}: ${advice}`);
    }
    const metadata = defined({
      client_name: clientName,
      token_endpoint_auth_method: methodToRegister(server),
      application_type: isNative(redirectUri) ? "native" : "web",
      redirect_uris: [redirectUri],
      grant_types: [this.#grantType, "refresh_token"],
      response_types: ["code"],
      dpop_bound_access_tokens: key === undefined ? undefined : true,
    });
    const otherwise = "if it does not allow dynamic registration,";
    const hint = {
      text: `${otherwise} configure \`client\` with one that it knows`,
      flags: `${otherwise} use --client-id with the id of a client that it knows`,
    };
    const register = async (): Promise<RegisteredClient> => {
      const response = await oauth.dynamicClientRegistrationRequest(server, metadata, http as object);
      const answer = await oauth.processDynamicClientRegistrationResponse(await normalizeRegistration(response));
      const { client_id, client_secret: secret, client_secret_expires_at: expires } = answer;
      const { token_endpoint_auth_method: registeredMethod } = answer;
      const method = typeof registeredMethod === "string" ? registeredMethod : metadata.token_endpoint_auth_method;
      return {
        client_id,
        token_endpoint_auth_method: typeof secret === "string" ? method : "none",
        redirect_uris: [redirectUri],
        ...(typeof secret === "string" ? { client_secret: secret } : undefined),
        ...(typeof expires === "number" ? { client_secret_expires_at: expires } : undefined),
      };
    };
    return attempting(`registering with ${issuer} as a client`, [], register, hint);
  }
}

function isUsable(stored: RegisteredClient | undefined, redirectUri: string | undefined): stored is RegisteredClient {
  if (stored === undefined) return false;
  const { client_secret_expires_at: expires = 0, redirect_uris: uris } = stored;
  if (expires !== 0 && Date.now() >= expires * 1000) return false;
  return redirectUri === undefined || uris.includes(redirectUri);
}

/** Prefers a client without a secret: a secret that users can extract from the program proves nothing. */
function methodToRegister({ token_endpoint_auth_methods_supported: listed }: Server): string {
  const methods = listed ?? ["client_secret_basic"];
  return ["none", "client_secret_basic", "client_secret_post"].find((known) => methods.includes(known)) ?? "none";
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
  return Response.json({ client_secret_expires_at: 0, ...(isObject(body) ? body : undefined) }, { status: 201 });
}

export function fromRegistered(server: Server, registered: RegisteredClient): Promise<OAuthClient> {
  const { client_id: id, client_secret: secret, token_endpoint_auth_method: authMethod } = registered;
  return oauthClient({ id, authMethod, ...defined({ secret }) }, server);
}
