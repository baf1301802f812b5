// As whom we ask an authorization server (specification: basic/authorization/client-registration): as the client that
// it knows already, by the address of a document about us, or as whom it registers us. Whatever a server gave is kept
// under that server and shown to no other.

import * as oauth from "oauth4webapi";
import { isLoopback } from "../../http/server/guard.ts";
import { clientAuth } from "./client-auth.ts";
import { errorCode, refusal, unauthorized } from "./failures.ts";
import type { KnownClient } from "./grant.ts";
import { sameIssuer } from "./issuer-bond.ts";
import type { OAuthOptions } from "./oauth.ts";
import type { Registered } from "./records.ts";
import type { Vault } from "./vault.ts";

export interface Registrar {
  readonly options: OAuthOptions;
  readonly vault: Vault;
  /** What we register for: the kind of our grant. */
  readonly grantType: string;
  /** The server that a client whose own was not named was first used with. */
  firstIssuer?: string;
}

export interface Place {
  readonly server: oauth.AuthorizationServer;
  readonly resource: string;
}

/** Registers us where nothing else is left. */
export async function ourClient(
  registrar: Registrar,
  place: Place,
  http: oauth.TokenEndpointRequestOptions,
): Promise<KnownClient> {
  const { options, vault } = registrar;
  const { server } = place;
  if (options.client !== undefined) {
    await heldToIssuer(options.client, server, registrar);
    return known(server, options.client.id, options.client);
  }
  if (options.metadataUrl !== undefined && server.client_id_metadata_document_supported === true) {
    return known(server, options.metadataUrl, {});
  }
  const redirectUri = await options.redirect?.uri;
  const stored = await vault.registered(at(place));
  const registered = isUsable(stored, redirectUri) ? stored : await register(registrar, place, http, redirectUri);
  return fromRegistered(server, registered);
}

/** The client that tokens were given to, where we still are it. */
export async function clientBefore(registrar: Registrar, place: Place, id: string): Promise<KnownClient | undefined> {
  const { options, vault } = registrar;
  const { server } = place;
  if (options.client?.id === id) {
    await heldToIssuer(options.client, server, registrar);
    return known(server, id, options.client);
  }
  if (options.metadataUrl === id) return known(server, id, {});
  const registered = await registeredAs(vault, place, id);
  return registered === undefined ? undefined : fromRegistered(server, registered);
}

async function registeredAs(vault: Vault, place: Place, id: string | undefined): Promise<Registered | undefined> {
  const last = await vault.registered(at(place));
  return [last, last?.before].find((one) => one !== undefined && one.client_id === id);
}

/** A server that no longer knows a client which it registered: the next try registers anew. */
export async function forgotten({ options, vault }: Registrar, place: Place, error: unknown): Promise<boolean> {
  if (options.client !== undefined || errorCode(error) !== "invalid_client") return false;
  if ((await vault.registered(at(place))) === undefined) return false;
  await vault.keepRegistered(at(place), undefined);
  return true;
}

function at({ server, resource }: Place): { issuer: string; resource: string } {
  return { issuer: server.issuer, resource };
}

async function known(
  server: oauth.AuthorizationServer,
  id: string,
  credentials: Parameters<typeof clientAuth>[0],
): Promise<KnownClient> {
  return { client: { client_id: id }, auth: await clientAuth(credentials, server), secret: credentials.secret };
}

/** Credentials that somebody gave us for one server are not tried on another that an end names later. */
async function heldToIssuer(
  client: { readonly id: string; readonly issuer?: string },
  { issuer }: oauth.AuthorizationServer,
  registrar: Registrar,
): Promise<void> {
  const trace = client.issuer === undefined ? await registrar.vault.trace() : undefined;
  const own = client.issuer ?? (trace?.client === client.id ? trace.issuer : registrar.firstIssuer);
  // Also where it came to nothing there: what was shown to one is not shown around.
  registrar.firstIssuer ??= own ?? issuer;
  if (own === undefined || sameIssuer(own, issuer)) return;
  const advice = "give the client that it knows, and name its `issuer`";
  throw unauthorized(`The end now wants tokens of ${issuer}, but the client is registered with ${own}: ${advice}`);
}

function isUsable(stored: Registered | undefined, redirectUri: string | undefined): stored is Registered {
  if (stored === undefined) return false;
  const { client_secret_expires_at: expires = 0, redirect_uris: uris } = stored;
  if (expires !== 0 && Date.now() >= expires * 1000) return false;
  return redirectUri === undefined || uris.includes(redirectUri);
}

async function register(
  { options, vault, grantType }: Registrar,
  place: Place,
  http: oauth.TokenEndpointRequestOptions,
  redirectUri: string | undefined,
): Promise<Registered> {
  const { server } = place;
  // A program that acts for itself is known beforehand: who registers itself would prove nothing.
  if (server.registration_endpoint === undefined || redirectUri === undefined) throw nobody(server, options);
  const method = methodToAsk(server);
  const wish = {
    client_name: options.clientName ?? "Catenary",
    token_endpoint_auth_method: method,
    application_type: isNative(redirectUri) ? "native" : "web",
    redirect_uris: [redirectUri],
    grant_types: [grantType, "refresh_token"],
    response_types: ["code"],
    ...(http.DPoP === undefined ? undefined : { dpop_bound_access_tokens: true }),
  };
  const { DPoP: _key, ...without } = http;
  try {
    const response = await oauth.dynamicClientRegistrationRequest(server, wish, without as object);
    const answer = await oauth.processDynamicClientRegistrationResponse(await lenient(response));
    const registered = registeredOf(answer, method, redirectUri);
    await vault.keepRegistered(at(place), { ...registered, ...(await stillUsed(vault, place)) });
    return registered;
  } catch (error) {
    const advice = "if it takes no clients that register themselves, configure `client` with one that it knows";
    throw refusal(`registering with ${server.issuer} as a client (${advice})`, error);
  }
}

/** The new client may never get a token, if the person does not come back: then what the old one has must be renewed. */
async function stillUsed(vault: Vault, place: Place): Promise<Pick<Registered, "before"> | undefined> {
  const tokens = await vault.tokens(at(place));
  const found = await registeredAs(vault, place, tokens?.client);
  if (found === undefined) return undefined;
  const { before: _, ...before } = found;
  return { before };
}

function nobody({ issuer }: oauth.AuthorizationServer, { metadataUrl }: OAuthOptions): Error {
  const documents = metadataUrl === undefined ? "" : " and reads no client id metadata documents";
  const advice = "register one there by hand and configure it: oauth({ client: { id, secret } })";
  return unauthorized(`${issuer} lets no client register itself${documents}: ${advice}`);
}

/** A secret that anybody can read out of a program proves nothing: none where the server is content with that. */
function methodToAsk({ token_endpoint_auth_methods_supported: listed }: oauth.AuthorizationServer): string {
  const methods = listed ?? ["client_secret_basic"];
  return ["none", "client_secret_basic", "client_secret_post"].find((one) => methods.includes(one)) ?? "none";
}

/** RFC 8252: what runs on a person's own machine comes back to that machine, or by a scheme of its own. */
function isNative(redirectUri: string): boolean {
  const { protocol, hostname } = new URL(redirectUri);
  return isLoopback(hostname) || (protocol !== "https:" && protocol !== "http:");
}

/** Servers leave out when a secret expires, and answer 200, though RFC 7591 has it otherwise. */
async function lenient(response: Response): Promise<Response> {
  if (response.status !== 200 && response.status !== 201) return response;
  const body: unknown = await response.json().catch(() => undefined);
  const given = typeof body === "object" && body !== null ? body : {};
  return Response.json({ client_secret_expires_at: 0, ...given }, { status: 201 });
}

function registeredOf(
  answer: oauth.OmitSymbolProperties<oauth.Client>,
  asked: string,
  redirectUri: string | undefined,
): Registered {
  const { client_id, client_secret: secret, client_secret_expires_at: expires, token_endpoint_auth_method } = answer;
  const named = typeof token_endpoint_auth_method === "string" ? token_endpoint_auth_method : asked;
  return {
    client_id,
    token_endpoint_auth_method: typeof secret === "string" ? named : "none",
    redirect_uris: redirectUri === undefined ? [] : [redirectUri],
    ...(typeof secret === "string" ? { client_secret: secret } : undefined),
    ...(typeof expires === "number" ? { client_secret_expires_at: expires } : undefined),
  };
}

function fromRegistered(server: oauth.AuthorizationServer, registered: Registered): Promise<KnownClient> {
  const { client_id: id, client_secret: secret, token_endpoint_auth_method: authMethod } = registered;
  return known(server, id, { authMethod, ...(secret === undefined ? undefined : { secret }) });
}
