// Finds the authorization server of an MCP server, and the name of the resource to request tokens for (specification:
// basic/authorization/authorization-server-discovery). The metadata of the MCP server names both. Without metadata, the
// MCP server's own origin is the authorization server, as in the first protocol revision that had authorization.
// Metadata of another resource or another issuer is rejected, since a hostile server could use it to get tokens for
// another server. `OAuthFetch` makes all requests of the OAuth flow.

import * as oauth from "oauth4webapi";
import { ConnectionError } from "../../core/errors.ts";
import { defined } from "../../core/values.ts";
import { isLoopback } from "../../core/hosts.ts";
import { type ChallengeParams, describeResponse, errorCode, reasonOf, redact, unauthorized } from "./errors.ts";
import { isSameIssuer } from "./grants.ts";
import type { OAuthOptions } from "./types.ts";

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
  /** Returns why a server cannot be used, as the end of a sentence; undefined if it can. */
  readonly rejectServer: (server: oauth.AuthorizationServer) => string | undefined;
}

/** Further authorization servers in the metadata are ignored. Real MCP servers list fewer. */
const MAX_SERVERS = 8;
const MAX_ISSUER_LENGTH = 2_048;

export async function discover(discovery: Discovery): Promise<DiscoveryResult> {
  const { mcpServer, http, signal, lastIssuer, rejectServer } = discovery;
  const name = resourceName(mcpServer);
  const { found: metadata, reasons: missing, isAbsent } = await resourceMetadata(discovery);
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

async function resourceMetadata(discovery: Discovery): Promise<SearchResult<oauth.ResourceServer>> {
  const { mcpServer, challenge, http, signal } = discovery;
  const wellKnown = "/.well-known/oauth-protected-resource";
  const atPath = new URL(`${wellKnown}${mcpServer.pathname.replace(/^\/$/, "")}${mcpServer.search}`, mcpServer);
  const atRoot = new URL(wellKnown, mcpServer);
  const { metadata: named = "" } = challenge;
  // Servers behind a proxy often name a URL that only they can reach, so the well-known URLs are tried too.
  const urls = new Set([...(URL.canParse(named) ? [new URL(named).href] : []), atPath.href, atRoot.href]);
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
  const urls = metadataUrls(url);
  const { found, reasons, isAbsent } = await search(urls, http, signal, (response) => readServer(url, response));
  if (found !== undefined) return { server: found, usesDefaultEndpoints: false };
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

interface SearchResult<T> {
  readonly found?: T;
  /** One reason for each URL that had no document. */
  readonly reasons: readonly string[];
  /** Whether the document does not exist. False if a URL was unreachable or failed, since it may exist there. */
  readonly isAbsent: boolean;
}

/** Returns the first document that `read` accepts. If `read` throws a ConnectionError, the search ends with it. */
async function search<T>(
  urls: Iterable<string>,
  http: OAuthFetch,
  signal: AbortSignal | undefined,
  read: (response: Response) => Promise<T>,
): Promise<SearchResult<T>> {
  const reasons: string[] = [];
  let isAbsent = true;
  for (const href of urls) {
    const url = new URL(href);
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

async function readServer(issuer: URL, response: Response): Promise<oauth.AuthorizationServer> {
  const document = response.clone();
  try {
    const server = await oauth.processDiscoveryResponse(issuer, response);
    // Check fields that we use and that oauth4webapi does not check.
    if (hasInvisible(server.issuer)) throw new TypeError("its issuer has characters that a URL cannot have");
    checkLists(server.scopes_supported, server.token_endpoint_auth_methods_supported, server.grant_types_supported);
    return server;
  } catch (error) {
    const { issuer: other } = ((await document.json().catch(() => undefined)) ?? {}) as { issuer?: unknown };
    const isOther = typeof other === "string" && URL.canParse(other) && new URL(other).href !== issuer.href;
    if (!isOther) throw error;
    const found = `its metadata is that of another issuer (${redact(new URL(other).href)})`;
    throw unauthorized(`The authorization server ${issuer.href} cannot be trusted: ${found}`);
  }
}

/** The URLs that the specification requires. oauth4webapi tries only some of them. */
function metadataUrls({ origin, pathname }: URL): Iterable<string> {
  const path = pathname.replace(/\/$/, "");
  return new Set([
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]);
}

function checkLists(...lists: readonly unknown[]): void {
  for (const list of lists) {
    if (list === undefined || (Array.isArray(list) && list.every((one) => typeof one === "string"))) continue;
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

type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** A metadata document has a few thousand bytes, a token response rarely more. */
const MAX_RESPONSE_BYTES = 1024 * 1024;
const MAX_REDIRECTS = 3;
/** For a request and its whole response. */
const REQUEST_TIMEOUT_MS = 30_000;

/**
 * Makes all requests of the OAuth flow: for metadata, and to the endpoints of authorization servers. Remote servers
 * choose these URLs, so it enforces https (or http, if both the URL and the MCP server are on this machine), follows no
 * redirect of a request with credentials, and limits time and size. The guarded fetch decides which IP addresses may be
 * reached.
 */
export class OAuthFetch {
  readonly #fetch: Fetch;
  readonly #allowsHttp: boolean;

  /** @param mcpServer The MCP server that the tokens are for. */
  constructor(mcpServer: URL, options: Pick<OAuthOptions, "fetch" | "allowPrivateNetwork"> = {}) {
    this.#fetch =
      options.fetch === undefined
        ? lazyGuardedFetch(mcpServer, options.allowPrivateNetwork ?? false)
        : withTimeout(options.fetch);
    this.#allowsHttp = mcpServer.protocol === "http:" && isLoopback(mcpServer.hostname);
  }

  /** The options for every function of oauth4webapi that makes a request. */
  options(signal: AbortSignal | undefined, key?: oauth.DPoPHandle): oauth.TokenEndpointRequestOptions {
    return {
      ...defined({ signal, DPoP: key }),
      [oauth.customFetch]: (url, init) => this.#request(new URL(url), init),
      // oauth4webapi marks this as deprecated only to make it stand out. `allows` decides when http is used.
      // oxlint-disable-next-line typescript/no-deprecated
      [oauth.allowInsecureRequests]: this.#allowsHttp,
    };
  }

  /** Fetches a public document. Follows redirects within its origin. */
  async document(url: URL, signal?: AbortSignal): Promise<Response> {
    const headers = { accept: "application/json" };
    const init: RequestInit = { method: "GET", headers, redirect: "manual", ...defined({ signal }) };
    let current = url;
    for (let count = 0; ; count += 1) {
      const response = await this.#request(current, init);
      const location = response.headers.get("location") ?? "";
      const isRedirect = response.status >= 300 && response.status < 400 && URL.canParse(location, current.href);
      const next = isRedirect ? new URL(location, current) : undefined;
      if (next?.origin !== current.origin || count >= MAX_REDIRECTS) return response;
      current = next;
    }
  }

  /** Whether the user, or a request, may be sent to this URL. */
  allows(url: URL): boolean {
    if (url.protocol === "https:") return true;
    return this.#allowsHttp && url.protocol === "http:" && isLoopback(url.hostname);
  }

  async #request(url: URL, init: RequestInit): Promise<Response> {
    if (!this.allows(url)) {
      const rule = "http is allowed only between servers on this machine";
      throw unauthorized(`Refused to connect to ${url.origin}: https is needed (${rule})`);
    }
    const response = await this.#fetch(url.href, init);
    const text = await readText(url, response);
    const headers = new Headers(response.headers);
    // An error response as in RFC 6749 (5.2), even if its status is 200.
    const isError = init.method === "POST" && errorIn(text) !== undefined;
    // If there is a challenge, oauth4webapi does not read the error in the body.
    if (isError) headers.delete("www-authenticate");
    const status = isError && response.status === 200 ? 400 : response.status;
    return new Response(STATUS_WITHOUT_BODY.has(status) ? null : text, { status, headers });
  }
}

/** Loads the guarded fetch with the first request, since a program that gives its own `fetch` may have no node:http. */
function lazyGuardedFetch(target: URL, allowPrivate: boolean): Fetch {
  let guarded: Promise<Fetch> | undefined;
  return async (url, init) => {
    guarded ??= import("../../http/client/network-guard.ts").then(({ guardedFetch }) =>
      guardedFetch({ target, allowPrivate, totalMs: REQUEST_TIMEOUT_MS }),
    );
    return (await guarded)(url, init);
  };
}

/** Adds the timeout to the program's own `fetch`. The guarded fetch has its own. */
function withTimeout(fetch: Fetch): Fetch {
  return (url, init) => {
    const timeout = AbortSignal.timeout(REQUEST_TIMEOUT_MS);
    return fetch(url, { ...init, signal: init.signal ? AbortSignal.any([init.signal, timeout]) : timeout });
  };
}

const STATUS_WITHOUT_BODY: ReadonlySet<number> = new Set([101, 204, 205, 304]);

/** Reads the whole body, up to the limit. */
async function readText(url: URL, { status, body }: Response): Promise<string> {
  // Browsers report a redirect that is not followed as status 0.
  if (status === 0) throw unauthorized(`${url.origin} answers with a redirect, which is not followed here`);
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop early cancels the stream.
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.byteLength;
    if (length > MAX_RESPONSE_BYTES) {
      throw unauthorized(`${url.origin} answers with more than ${MAX_RESPONSE_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return new Blob(chunks).text();
}

/** The error code in the body of a response, if there is one. */
function errorIn(text: string): string | undefined {
  try {
    return errorCode(JSON.parse(text)) || undefined;
  } catch {
    return undefined;
  }
}
