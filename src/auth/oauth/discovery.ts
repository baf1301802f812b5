// Finds the authorization server of an MCP server, and the name of the resource to request tokens for (specification:
// basic/authorization/authorization-server-discovery). The metadata of the MCP server names both. Without metadata, the
// MCP server's own origin is the authorization server, as in the first protocol revision that had authorization.
// Metadata of another resource or another issuer is rejected, since a hostile server could use it to get tokens for
// another server.

import * as oauth from "oauth4webapi";
import { ConnectionError } from "../../core/errors.ts";
import { describeResponse, reasonOf, redact, unauthorized } from "./errors.ts";
import { isSameIssuer } from "./grants.ts";
import type { OAuthFetch } from "./oauth-fetch.ts";
import type { ChallengeParams } from "./errors.ts";

/** An authorization server, and the resource to request tokens for. */
export interface TokenTarget {
  readonly server: oauth.AuthorizationServer;
  readonly resource: string;
  /** Whether the default endpoints are used, because the server publishes no metadata. */
  readonly usesDefaultEndpoints: boolean;
}

export interface DiscoveryResult extends TokenTarget {
  /** The scopes that the resource metadata lists. */
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
  /** The only issuer that may be used. */
  readonly onlyIssuer?: string | undefined;
  /** Returns why a server cannot be used, as the end of a sentence; undefined if it can. */
  readonly rejectServer?: ((server: oauth.AuthorizationServer) => string | undefined) | undefined;
}

/** Further authorization servers in the metadata are ignored. Real MCP servers list fewer. */
const MAX_SERVERS = 8;
const MAX_ISSUER_LENGTH = 2_048;

export async function discover(discovery: Discovery): Promise<DiscoveryResult> {
  const { mcpServer } = discovery;
  const { found: metadata, reasons, isAbsent } = await resourceMetadata(discovery);
  if (metadata === undefined && !isAbsent) {
    throw unauthorized(`Cannot find out how to get a token for ${resourceName(mcpServer)}: ${reasons.join("; ")}`);
  }
  const listed = metadata?.authorization_servers?.slice(0, MAX_SERVERS) ?? [];
  const chosen = listed.length === 0 ? await originServer(discovery, reasons) : await listedServer(discovery, listed);
  return {
    ...chosen,
    resource: metadata?.resource ?? resourceName(mcpServer),
    requiresDpop: metadata?.dpop_bound_access_tokens_required === true,
    ...(metadata?.scopes_supported === undefined ? undefined : { scopes: metadata.scopes_supported }),
  };
}

async function resourceMetadata(discovery: Discovery): Promise<SearchResult<oauth.ResourceServer>> {
  const { mcpServer, challenge, http, signal } = discovery;
  const wellKnown = "/.well-known/oauth-protected-resource";
  const atPath = new URL(`${wellKnown}${mcpServer.pathname.replace(/^\/$/, "")}${mcpServer.search}`, mcpServer);
  const atRoot = new URL(wellKnown, mcpServer);
  const named =
    challenge.metadata !== undefined && URL.canParse(challenge.metadata) ? [new URL(challenge.metadata)] : [];
  // Servers behind a proxy often name a URL that only they can reach, so the well-known URLs are tried too.
  const urls = [...named, atPath, atRoot].filter(
    (url, index, all) => all.findIndex(({ href }) => href === url.href) === index,
  );
  return search(urls, http, signal, (response) => readResourceMetadata(mcpServer, response));
}

async function readResourceMetadata(mcpServer: URL, response: Response): Promise<oauth.ResourceServer> {
  const document = (await response.clone().json()) as { resource?: unknown } | null;
  const resource = document?.resource;
  if (typeof resource !== "string") throw new TypeError("it names no resource");
  if (!coversUrl(resource, mcpServer)) {
    const name = resourceName(mcpServer);
    const advice = "check the URL, or the server's configuration";
    throw unauthorized(`The metadata of ${name} is that of another resource (${redact(resource)}): ${advice}`);
  }
  const metadata = await oauth.processResourceDiscoveryResponse(new URL(resource), response);
  const { authorization_servers: servers, scopes_supported: scopes } = metadata;
  if (!isOptionalStringArray(servers) || !isOptionalStringArray(scopes))
    throw new TypeError("its lists are not arrays of strings");
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

async function listedServer(discovery: Discovery, listed: readonly string[]): Promise<ChosenServer> {
  const { mcpServer, http, signal, lastIssuer } = discovery;
  const reasons: string[] = [];
  const wasLast = (issuer: string): number => Number(lastIssuer !== undefined && isSameIssuer(issuer, lastIssuer));
  for (const issuer of listed.toSorted((one, other) => wasLast(other) - wasLast(one))) {
    try {
      const server = await fetchServer(issuer, http, signal);
      const reason = rejectionReason(server, discovery);
      if (reason === undefined) return { server, usesDefaultEndpoints: false };
      reasons.push(`${server.issuer}: ${reason}`);
    } catch (error) {
      if (signal.aborted) throw error;
      reasons.push(error instanceof ConnectionError ? error.message : `${redact(issuer)}: ${reasonOf(error)}`);
    }
  }
  throw unauthorized(`No authorization server of ${resourceName(mcpServer)} can be used: ${reasons.join("; ")}`);
}

async function fetchServer(issuer: string, http: OAuthFetch, signal?: AbortSignal): Promise<oauth.AuthorizationServer> {
  if (!URL.canParse(issuer) || issuer.length > MAX_ISSUER_LENGTH) throw new TypeError("it is not a valid URL");
  const { found, reasons } = await serverMetadata(new URL(issuer), http, signal);
  if (found === undefined) throw unauthorized(`${redact(issuer)} has no metadata (${reasons.join("; ")})`);
  return found;
}

/** The MCP server's own origin as the authorization server. */
async function originServer(discovery: Discovery, earlierReasons: readonly string[]): Promise<ChosenServer> {
  const { mcpServer, http, signal } = discovery;
  const { found, reasons, isAbsent } = await serverMetadata(new URL(mcpServer.origin), http, signal);
  if (found === undefined && !isAbsent) {
    const tried = [...earlierReasons, ...reasons].join("; ");
    throw unauthorized(`Cannot get a token for ${resourceName(mcpServer)}: ${tried}`);
  }
  const server = found ?? defaultServer(mcpServer.origin);
  const reason = rejectionReason(server, discovery);
  if (reason === undefined) return { server, usesDefaultEndpoints: found === undefined };
  throw unauthorized(`${server.issuer} cannot be used for ${resourceName(mcpServer)}: ${reason}`);
}

function rejectionReason(
  server: oauth.AuthorizationServer,
  { onlyIssuer, rejectServer }: Discovery,
): string | undefined {
  if (onlyIssuer === undefined || isSameIssuer(server.issuer, onlyIssuer)) return rejectServer?.(server);
  return `the client is registered with ${onlyIssuer}, and its credentials are sent to no other server`;
}

/** Finds an authorization server that has issued tokens before. */
export async function fetchKnownServer(
  issuer: string,
  usesDefaultEndpoints: boolean,
  http: OAuthFetch,
): Promise<oauth.AuthorizationServer> {
  return usesDefaultEndpoints ? defaultServer(new URL(issuer).origin) : fetchServer(issuer, http);
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

interface SearchResult<T> {
  readonly found?: T;
  /** One reason for each URL that had no document. */
  readonly reasons: readonly string[];
  /** Whether the document does not exist. False if a URL was unreachable or failed, since it may exist there. */
  readonly isAbsent: boolean;
}

/** Returns the first document that `read` accepts. If `read` throws a ConnectionError, the search ends with it. */
async function search<T>(
  urls: readonly URL[],
  http: OAuthFetch,
  signal: AbortSignal | undefined,
  read: (response: Response) => Promise<T>,
): Promise<SearchResult<T>> {
  const reasons: string[] = [];
  let isAbsent = true;
  for (const url of urls) {
    const addReason = (why: string): void => void reasons.push(`${url.origin}${url.pathname}: ${why}`);
    let response: Response;
    try {
      response = await http.document(url, signal);
    } catch (error) {
      if (signal?.aborted === true) throw error;
      isAbsent = false;
      addReason(reasonOf(error));
      continue;
    }
    if (response.status !== 200) {
      isAbsent &&= response.status >= 400 && response.status < 500;
      addReason(describeResponse(response));
      continue;
    }
    try {
      return { found: await read(response), reasons, isAbsent };
    } catch (error) {
      if (error instanceof ConnectionError) throw error;
      // Some sites answer every path with the same page, so a document that is not metadata counts as absent.
      addReason(reasonOf(error));
    }
  }
  return { reasons, isAbsent };
}

async function serverMetadata(
  issuer: URL,
  http: OAuthFetch,
  signal: AbortSignal | undefined,
): Promise<SearchResult<oauth.AuthorizationServer>> {
  return search(metadataUrls(issuer), http, signal, async (response) => {
    const document = response.clone();
    try {
      return checkMetadata(await oauth.processDiscoveryResponse(issuer, response));
    } catch (error) {
      const other = await issuerIn(document);
      if (other === undefined || other === issuer.href) throw error;
      const found = `its metadata is that of another issuer (${redact(other)})`;
      throw unauthorized(`The authorization server ${issuer.href} cannot be trusted: ${found}`);
    }
  });
}

/** The URLs that the specification requires. oauth4webapi tries only some of them. */
function metadataUrls(issuer: URL): readonly URL[] {
  const path = issuer.pathname.replace(/\/$/, "");
  const at = (pathname: string): URL => new URL(pathname, issuer.origin);
  if (path === "") {
    return [at("/.well-known/oauth-authorization-server"), at("/.well-known/openid-configuration")];
  }
  return [
    at(`/.well-known/oauth-authorization-server${path}`),
    at(`/.well-known/openid-configuration${path}`),
    at(`${path}/.well-known/openid-configuration`),
  ];
}

/** Checks fields that we use and that oauth4webapi does not check. */
function checkMetadata(server: oauth.AuthorizationServer): oauth.AuthorizationServer {
  const { scopes_supported: scopes, token_endpoint_auth_methods_supported: methods } = server;
  if (hasInvisible(server.issuer)) throw new TypeError("its issuer has characters that a URL cannot have");
  if (
    isOptionalStringArray(scopes) &&
    isOptionalStringArray(methods) &&
    isOptionalStringArray(server.grant_types_supported)
  )
    return server;
  throw new TypeError("its lists are not arrays of strings");
}

/**
 * Finds spaces, control and format characters. A parsed URL does not show them, since the parser drops or escapes them,
 * but error messages contain the text as it was sent.
 */
function hasInvisible(text: string): boolean {
  return /[\s\p{Cc}\p{Cf}]/u.test(text);
}

function isOptionalStringArray(value: unknown): boolean {
  return value === undefined || (Array.isArray(value) && value.every((one) => typeof one === "string"));
}

async function issuerIn(response: Response): Promise<string | undefined> {
  const document = (await response.json().catch(() => undefined)) as { issuer?: unknown } | null | undefined;
  const issuer = document?.issuer;
  return typeof issuer === "string" && URL.canParse(issuer) ? new URL(issuer).href : undefined;
}
