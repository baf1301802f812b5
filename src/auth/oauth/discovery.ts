// Finds the authorization server of an MCP server, and the name of the resource to request tokens for (specification:
// basic/authorization/authorization-server-discovery). The metadata of the MCP server names both. Without metadata, the
// MCP server's own origin is the authorization server, as in the first protocol revision that had authorization.
// Metadata of another resource or another issuer is rejected, since a hostile server could use it to get tokens for
// another server.

import * as oauth from "oauth4webapi";
import { ConnectionError } from "../../core/errors.ts";
import { defined, fieldsOf } from "../../core/values.ts";
import { type ChallengeParams, reasonOf, redact, unauthorized } from "./errors.ts";
import { isSameIssuer } from "./grants.ts";
import { type DocumentSearch, metadataUrls, type OAuthFetch } from "./oauth-fetch.ts";

export interface TokenTarget {
  readonly server: oauth.AuthorizationServer;
  readonly resource: string;
  /** Whether the default endpoints are used, because the server publishes no metadata. */
  readonly usesDefaultEndpoints: boolean;
}

export interface DiscoveryResult extends TokenTarget {
  readonly scopes?: readonly string[];
  /** Whether the MCP server accepts only tokens that are bound to a key. */
  readonly requiresDpop: boolean;
}

export interface Discovery {
  readonly mcpServer: URL;
  readonly challenge: ChallengeParams;
  readonly http: OAuthFetch;
  readonly signal: AbortSignal;
  /** The issuer that was used before. It is tried first. */
  readonly lastIssuer?: string | undefined;
  /** Returns why a server cannot be used, as the end of a sentence; undefined if it can. */
  readonly rejectServer: (server: oauth.AuthorizationServer) => string | undefined;
}

/** Further authorization servers in the metadata are ignored. Real MCP servers list fewer. */
const MAX_SERVERS = 8;
const MAX_ISSUER_LENGTH = 2_048;

export async function discover(discovery: Discovery): Promise<DiscoveryResult> {
  const { mcpServer, http, signal, lastIssuer, rejectServer } = discovery;
  const name = resourceName(mcpServer);
  const { document: metadata, reasons: missing, isAbsent } = await resourceMetadata(discovery);
  if (metadata === undefined && !isAbsent) {
    throw unauthorized(`Cannot find out how to get a token for ${name}: ${missing.join("; ")}`);
  }
  const listed = metadata?.authorization_servers?.slice(0, MAX_SERVERS) ?? [];
  const isOrigin = listed.length === 0;
  const wasLast = (issuer: string): number => Number(lastIssuer !== undefined && isSameIssuer(issuer, lastIssuer));
  const issuers = isOrigin ? [mcpServer.origin] : listed.toSorted((one, other) => wasLast(other) - wasLast(one));
  const reasons = metadata === undefined ? [...missing] : [];
  for (const issuer of issuers) {
    try {
      const chosen = await fetchServer(issuer, isOrigin, http, signal);
      const reason = rejectServer(chosen.server);
      if (reason === undefined) {
        return {
          ...chosen,
          resource: metadata?.resource ?? name,
          requiresDpop: metadata?.dpop_bound_access_tokens_required === true,
          ...defined({ scopes: metadata?.scopes_supported }),
        };
      }
      reasons.push(`${chosen.server.issuer}: ${reason}`);
    } catch (error) {
      if (signal.aborted) throw error;
      reasons.push(error instanceof ConnectionError ? error.message : `${redact(issuer)}: ${reasonOf(error)}`);
    }
  }
  throw unauthorized(`No authorization server of ${name} can be used: ${reasons.join("; ")}`);
}

async function resourceMetadata(discovery: Discovery): Promise<DocumentSearch<oauth.ResourceServer>> {
  const { mcpServer, challenge, http, signal } = discovery;
  const wellKnown = "/.well-known/oauth-protected-resource";
  const atPath = new URL(`${wellKnown}${mcpServer.pathname.replace(/^\/$/, "")}${mcpServer.search}`, mcpServer);
  const atRoot = new URL(wellKnown, mcpServer);
  const { metadata: named = "" } = challenge;
  // Servers behind a proxy often name a URL that only they can reach, so the well-known URLs are tried too.
  const urls = new Set([...(URL.canParse(named) ? [new URL(named).href] : []), atPath.href, atRoot.href]);
  return http.document(urls, signal, (response) => readResourceMetadata(mcpServer, response));
}

async function readResourceMetadata(mcpServer: URL, response: Response): Promise<oauth.ResourceServer> {
  const { resource } = fieldsOf(await response.clone().json());
  if (typeof resource !== "string") throw new TypeError("it names no resource");
  if (!coversUrl(resource, mcpServer)) {
    const name = resourceName(mcpServer);
    const advice = "check the URL, or the server's configuration";
    throw unauthorized(`The metadata of ${name} is that of another resource (${redact(resource)}): ${advice}`);
  }
  const metadata = await oauth.processResourceDiscoveryResponse(new URL(resource), response);
  checkLists(metadata.authorization_servers, metadata.scopes_supported);
  return metadata;
}

/** Whether a resource is this URL, or a parent path of it. */
export function coversUrl(resource: string, url: URL): boolean {
  if (!URL.canParse(resource) || hasInvisible(resource)) return false;
  const { origin, pathname, search: query, hash } = new URL(resource);
  if (origin !== url.origin || origin === "null" || hash !== "") return false;
  if (query !== "" && query !== url.search) return false;
  const path = pathname.replace(/\/$/, "");
  return url.pathname === path || url.pathname.startsWith(`${path}/`);
}

/** The canonical name of the resource. It has no slash after a bare host. */
function resourceName(mcpServer: URL): string {
  return `${mcpServer.origin}${mcpServer.pathname === "/" ? "" : mcpServer.pathname}`;
}

type ChosenServer = Pick<TokenTarget, "server" | "usesDefaultEndpoints">;

/** @param mayLackMetadata Whether the default endpoints are used if the server has no metadata. */
async function fetchServer(
  issuer: string,
  mayLackMetadata: boolean,
  http: OAuthFetch,
  signal?: AbortSignal,
): Promise<ChosenServer> {
  if (!URL.canParse(issuer) || issuer.length > MAX_ISSUER_LENGTH) throw new TypeError("it is not a valid URL");
  const url = new URL(issuer);
  const {
    document: server,
    reasons,
    isAbsent,
  } = await http.document(metadataUrls(url), signal, (response) => readServer(url, response));
  if (server !== undefined) return { server, usesDefaultEndpoints: false };
  if (mayLackMetadata && isAbsent) return { server: defaultServer(issuer), usesDefaultEndpoints: true };
  throw unauthorized(`${redact(issuer)} has no metadata (${reasons.join("; ")})`);
}

/** Finds an authorization server that has issued tokens before. */
export async function fetchKnownServer(
  issuer: string,
  usesDefaultEndpoints: boolean,
  http: OAuthFetch,
): Promise<oauth.AuthorizationServer> {
  return usesDefaultEndpoints ? defaultServer(new URL(issuer).origin) : (await fetchServer(issuer, false, http)).server;
}

/** The default endpoints of a server without metadata, as in the first protocol revision that had authorization. */
function defaultServer(origin: string): oauth.AuthorizationServer {
  return {
    issuer: origin,
    authorization_endpoint: `${origin}/authorize`,
    token_endpoint: `${origin}/token`,
    registration_endpoint: `${origin}/register`,
    // The server cannot declare PKCE without metadata, but that revision requires PKCE.
    code_challenge_methods_supported: ["S256"],
  };
}

async function readServer(issuer: URL, response: Response): Promise<oauth.AuthorizationServer> {
  const document = response.clone();
  try {
    const server = await oauth.processDiscoveryResponse(issuer, response);
    // Check fields that we use and that oauth4webapi does not check.
    if (hasInvisible(server.issuer)) throw new TypeError("its issuer has characters that a URL cannot have");
    checkLists(server.scopes_supported, server.token_endpoint_auth_methods_supported, server.grant_types_supported);
    return server;
  } catch (error) {
    const { issuer: other } = fieldsOf(await document.json().catch(() => undefined));
    const isOther = typeof other === "string" && URL.canParse(other) && new URL(other).href !== issuer.href;
    if (!isOther) throw error;
    const problem = `its metadata is that of another issuer (${redact(new URL(other).href)})`;
    throw unauthorized(`The authorization server ${issuer.href} cannot be trusted: ${problem}`);
  }
}

function checkLists(...lists: readonly unknown[]): void {
  for (const list of lists) {
    if (list === undefined || (Array.isArray(list) && list.every((item) => typeof item === "string"))) continue;
    throw new TypeError("its lists are not arrays of strings");
  }
}

/**
 * Finds spaces, control and format characters. A parsed URL does not show them, since the parser drops or escapes them,
 * but error messages contain the text as it was sent.
 */
function hasInvisible(text: string): boolean {
  return /[\s\p{Cc}\p{Cf}]/u.test(text);
}
