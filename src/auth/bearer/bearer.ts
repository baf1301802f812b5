// `bearer()`: the resource server's side of OAuth (RFC 6750, RFC 9728; specification: basic/authorization). Verifies
// the bearer token of each request, and tells a client without a valid token where to get one. Options are checked when
// it is called, so that a mistake is a TypeError at startup. The JWT verification in jwt.ts is loaded with the first
// token.

import type { JSONWebKeySet, JWTVerifyGetKey } from "jose";
import { type Authenticator, AuthError, type Credentials, type Identity } from "../../core/authentication.ts";
import { checkOptions, OptionError, type OptionNames, optionNames } from "../../core/options.ts";
import { defined, isObject, systemErrorCode } from "../../core/values.ts";
import { isLoopback } from "../../core/hosts.ts";
import type { InvalidToken, JwtRules, JwtVerifier } from "./jwt.ts";
import { isScope, scopesProblem } from "../../protocol/scopes.ts";

/** Options of `bearer()`. */
export interface BearerOptions {
  /**
   * The issuer URLs of the authorization servers. Clients are sent to these servers to get a token. Only tokens of
   * these servers are accepted, unless `issuer` or `verify` is set. Required unless `verify` is set. If this option is
   * omitted, clients do not learn where to get a token.
   *
   * @example
   * authorizationServers: ["https://auth.example.com"]
   */
  readonly authorizationServers?: readonly string[] | undefined;
  /**
   * The public URL of this server. Tokens must have been issued for it. Default: the URL of the request, but then only
   * requests to localhost are accepted.
   *
   * @example
   * resource: "https://notes.example.com/mcp"
   */
  readonly resource?: string | undefined;
  /** The accepted issuers. Default: `authorizationServers`. */
  readonly issuer?: string | readonly string[] | undefined;
  /** The issuer's keys, or their URL. Default: the URL that the issuer's metadata names. */
  readonly jwks?: string | URL | JSONWebKeySet | JWTVerifyGetKey | undefined;
  /**
   * Verifies a token, in place of all built-in checks. The token is refused if `verify` returns nothing, or an identity
   * without a principal, or throws. An error that shows that a service could not be reached (a failed fetch, a timeout,
   * a system error) does not refuse the token: the request then fails with status 503.
   *
   * @example
   * verify: async (token) => {
   *   const { active, username } = await introspect(token);
   *   return active ? { principal: username, scopes: ["notes:read"] } : undefined;
   * }
   */
  readonly verify?:
    | ((token: string, credentials: Credentials) => Identity | undefined | null | Promise<Identity | undefined | null>)
    | undefined;
  /** The accepted values of `aud`. Default: `resource`. */
  readonly audience?: string | readonly string[] | undefined;
  /** The scopes that every call needs. Tools, resources and prompts may need more. */
  readonly scopes?: readonly string[] | undefined;
  /** The scopes that clients should request first. Default: `scopes`. */
  readonly scopesSupported?: readonly string[] | undefined;
  /**
   * Scopes that include others.
   *
   * @example
   * implies: { "notes:write": ["notes:read"] }
   */
  readonly implies?: Readonly<Record<string, readonly string[]>> | undefined;
  /** The accepted signature algorithms. Default: all that need no shared secret. */
  readonly algorithms?: readonly string[] | undefined;
  /** The accepted difference between the issuer's clock and ours, in milliseconds. Default: 5,000; at most 300,000. */
  readonly clockToleranceMs?: number | undefined;
  /** A name for humans, published in the metadata. */
  readonly resourceName?: string | undefined;
  /** A URL for humans, published in the metadata. */
  readonly resourceDocumentation?: string | undefined;
}

export interface BearerSettings {
  readonly verifier: JwtRules | NonNullable<BearerOptions["verify"]>;
  readonly resource: string | undefined;
  /** Undefined means the URL of the request. The list is empty with `verify`, which checks the audience itself. */
  readonly audience: readonly string[] | undefined;
  readonly scopes: readonly string[];
  /** Maps a scope to a list: the scope itself, and all scopes that it includes. */
  readonly implied: ReadonlyMap<string, readonly string[]>;
  /** The published metadata without `resource`; undefined if there are no authorization servers. */
  readonly metadata: object | undefined;
}

const OPTIONS: OptionNames<BearerOptions> = optionNames(
  "authorizationServers resource issuer jwks verify audience scopes",
  "scopesSupported implies algorithms clockToleranceMs resourceName resourceDocumentation",
);

const ALGORITHMS = "RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519".split(" ");

const JWT_OPTIONS = ["jwks", "issuer", "audience", "algorithms", "clockToleranceMs"] as const;

const DEFAULT_CLOCK_TOLERANCE_MS = 5_000;
const MAX_CLOCK_TOLERANCE_MS = 300_000;

const WELL_KNOWN = "/.well-known/oauth-protected-resource";
/** Longer than any real token, but short enough that invalid tokens cost little time. */
const MAX_TOKEN_LENGTH = 16 * 1024;

/**
 * Accepts requests with a token that was issued for this server: a JWT of one of the authorization servers, or a token
 * that `verify` accepts.
 *
 * @example
 * await serve(server, {
 *   http: {
 *     auth: bearer({
 *       authorizationServers: ["https://auth.example.com"],
 *       resource: "https://notes.example.com/mcp",
 *     }),
 *   },
 * });
 */
export function bearer(options: BearerOptions): Required<Authenticator> {
  return new Bearer(readBearerOptions(options));
}

class Bearer implements Required<Authenticator> {
  readonly #settings: BearerSettings;
  #jwtVerifier: Promise<JwtVerifier> | undefined;

  constructor(settings: BearerSettings) {
    this.#settings = settings;
  }

  async authenticate(credentials: Credentials): Promise<Identity> {
    const { scopes: needed, implied } = this.#settings;
    const audience = this.#audience(credentials);
    const token = this.#token(credentials);
    const result = await this.#verify(token, audience, credentials);
    if ("fault" in result) throw this.#error(401, { error: "invalid_token", description: result.fault }, credentials);
    const scopes = result.scopes?.flatMap((scope) => implied.get(scope) ?? scope);
    const identity = scopes === undefined ? result : { ...result, scopes: [...new Set(scopes)] };
    if (needed.every((scope) => scopes?.includes(scope))) return identity;
    throw this.insufficientScope([], identity, credentials);
  }

  insufficientScope(scopes: readonly string[], _identity: Identity, credentials: Credentials): AuthError {
    const description = "The token lacks a required scope";
    return this.#error(403, { error: "insufficient_scope", description, scopes }, credentials);
  }

  document(path: string, endpoint: string): object | undefined {
    const { metadata, resource = endpoint } = this.#settings;
    if (metadata === undefined) return undefined;
    const paths = [WELL_KNOWN, metadataUrl(resource)?.pathname, metadataUrl(endpoint)?.pathname];
    return paths.includes(path) ? { resource, ...metadata } : undefined;
  }

  #audience({ endpoint }: Credentials): readonly string[] {
    const { audience } = this.#settings;
    if (audience !== undefined) return audience;
    // `endpoint` contains the host name that the client sent. A client could name another server there, and so use a
    // token for that server. So without `resource`, only localhost is accepted.
    if (URL.canParse(endpoint) && isLoopback(new URL(endpoint).hostname)) return spellingsOf(endpoint);
    throw new Error(`bearer(): set \`resource\` to accept requests for hosts other than localhost; got ${endpoint}`);
  }

  #token(credentials: Credentials): string {
    const { token, fault } = parseAuthorization(credentials.headers["authorization"]);
    if (fault !== undefined) throw this.#error(400, { error: "invalid_request", description: fault }, credentials);
    if (token === undefined) throw this.#error(401, {}, credentials);
    if (token.length <= MAX_TOKEN_LENGTH) return token;
    throw this.#error(401, { error: "invalid_token", description: "The token is too long" }, credentials);
  }

  async #verify(
    token: string,
    audience: readonly string[],
    credentials: Credentials,
  ): Promise<Identity | InvalidToken> {
    const { verifier } = this.#settings;
    if (typeof verifier !== "function") {
      this.#jwtVerifier ??= import("./jwt.ts").then(({ jwtVerifier }) => jwtVerifier(verifier));
      return (await this.#jwtVerifier)(token, audience);
    }
    let identity: Partial<Identity> | undefined | null;
    try {
      identity = await verifier(token, credentials);
    } catch (error) {
      if (error instanceof AuthError || isUnreachable(error)) throw error;
      return { fault: "The token was refused" };
    }
    return checkIdentity(identity);
  }

  #error(status: 400 | 401 | 403, challenge: BearerChallenge, { endpoint }: Credentials): AuthError {
    const { scopes: needed, metadata, resource = endpoint } = this.#settings;
    // A handler may have named these scopes in an error, so they may be invalid.
    const valid = challenge.scopes?.filter((scope) => isScope(scope) && scope !== "offline_access") ?? [];
    const scopes = [...new Set([...needed, ...valid])];
    const header = challengeHeader({ ...challenge, scopes, metadata: metadata && metadataUrl(resource)?.href });
    return new AuthError(status, challenge.description ?? "A token is required", header);
  }
}

/** The URL of a resource's metadata (RFC 9728, 3.1); undefined if the resource is not a URL. */
function metadataUrl(resource: string): URL | undefined {
  if (!URL.canParse(resource)) return undefined;
  const { origin, pathname } = new URL(resource);
  return new URL(`${origin}${WELL_KNOWN}${pathname === "/" ? "" : pathname}`);
}

/** Whether a service could not be reached. Such an error says nothing about the token. */
function isUnreachable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = systemErrorCode(error);
  if (error.name === "AbortError" || error.name === "TimeoutError") return true;
  // A failed fetch has no code, only this message. System errors have codes such as ECONNREFUSED.
  return error.message === "fetch failed" || /^E[A-Z]+$/.test(code ?? "");
}

/** Checks the result of `verify`, since an untyped program may return anything. */
function checkIdentity(identity: Partial<Identity> | undefined | null): Identity | InvalidToken {
  const { principal, scopes, claims } = identity ?? {};
  if (typeof principal !== "string" || principal === "") return { fault: "The token is unknown" };
  if (scopes !== undefined && !(Array.isArray(scopes) && scopes.every((scope) => typeof scope === "string"))) {
    throw new TypeError("bearer(): `verify` must return scopes as an array of strings");
  }
  return { principal, ...defined({ scopes, claims }) };
}

/** RFC 6750, 2.1. */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

/** Parses the header Authorization: it has a token, is malformed (`fault` says why), or neither. */
export function parseAuthorization(authorization: string = ""): { readonly token?: string; readonly fault?: string } {
  // The scheme is case-insensitive.
  const [scheme = "", ...rest] = authorization.trim().split(" ");
  if (scheme.toLowerCase() !== "bearer") {
    // Repeated headers arrive as one value, joined by commas.
    if (!/,\s*bearer(?:\s|$)/i.test(authorization)) return {};
    return { fault: "Authorization has more than one scheme" };
  }
  const token = rest.join(" ").trim();
  // An empty token counts as none: the client then gets the plain challenge, which makes it request a token.
  if (token === "") return {};
  if (TOKEN.test(token)) return { token };
  return { fault: "Authorization must have the form: Bearer, one space, one token" };
}

export interface BearerChallenge {
  readonly error?: "invalid_request" | "invalid_token" | "insufficient_scope";
  readonly description?: string;
  readonly scopes?: readonly string[];
  readonly metadata?: string | undefined;
}

export function challengeHeader({ error, description, scopes = [], metadata }: BearerChallenge): string {
  const scope = scopes.length === 0 ? undefined : scopes.join(" ");
  const fields = defined({ error, error_description: description, scope, resource_metadata: metadata });
  const params = Object.entries(fields).map(([name, value]) => `${name}=${quote(value)}`);
  return `Bearer ${params.join(", ")}`.trim();
}

/** Quotes a value that may come from a client, so that it can end neither the string nor the header. */
function quote(text: string): string {
  return `"${text.replaceAll(/[^\x20-\x7e]/g, "?").replaceAll(/["\\]/g, "\\$&")}"`;
}

export function readBearerOptions(options: BearerOptions): BearerSettings {
  checkOptions("bearer()", options, OPTIONS);
  const { authorizationServers: servers = [], resource, verify, scopes = [], audience } = options;
  const { scopesSupported = scopes, resourceName, resourceDocumentation } = options;
  const list: unknown = servers;
  if (!Array.isArray(list)) throw invalid("authorizationServers", "must be an array of URLs");
  for (const server of servers) parseSecureUrl("authorizationServers", server);
  if (resource !== undefined) parseUrl("resource", resource);
  checkScopes("scopes", scopes);
  checkScopes("scopesSupported", scopesSupported);
  // This scope asks the issuer for a refresh token, which does not concern this server.
  if (scopes.includes("offline_access")) throw invalid("scopes", "must not contain offline_access");
  for (const [name, text] of Object.entries({ resourceName, resourceDocumentation })) {
    if (text !== undefined && typeof text !== "string") throw invalid(name, "must be a string");
  }
  const supported = scopesSupported.filter((scope) => scope !== "offline_access");
  const metadata = defined({
    authorization_servers: [...servers],
    scopes_supported: supported.length === 0 ? undefined : supported,
    bearer_methods_supported: ["header"],
    resource_name: resourceName,
    resource_documentation: resourceDocumentation,
  });
  if (verify !== undefined) {
    if (typeof verify !== "function") throw invalid("verify", "must be a function");
    const unused = JWT_OPTIONS.find((name) => options[name] !== undefined);
    if (unused !== undefined) throw invalid(unused, "has no effect with `verify`, which makes all checks itself");
  }
  const ownAudience = resource === undefined ? undefined : spellingsOf(resource);
  const jwtAudience = audience === undefined ? ownAudience : readStrings("audience", audience);
  return {
    verifier: verify ?? readJwtRules(options, servers),
    resource,
    audience: verify === undefined ? jwtAudience : [],
    scopes: [...scopes],
    implied: expandImplied(options.implies),
    metadata: servers.length === 0 ? undefined : metadata,
  };
}

function readJwtRules(options: BearerOptions, servers: readonly string[]): JwtRules {
  const { issuer = servers, jwks, algorithms = ALGORITHMS, clockToleranceMs = DEFAULT_CLOCK_TOLERANCE_MS } = options;
  if (servers.length === 0) {
    throw invalid("authorizationServers", "must name the issuers of the tokens, unless `verify` is given");
  }
  const issuers = readStrings("issuer", issuer);
  if (jwks !== undefined && issuers.length > 1) {
    throw invalid(
      "jwks",
      "may be set only for a single issuer; omit it to use the keys in the metadata of each issuer",
    );
  }
  // Without `jwks` the issuer's metadata is fetched, so the issuer must be a URL.
  if (jwks === undefined) for (const issuer of issuers) parseSecureUrl("issuer", issuer);
  const unknown = readStrings("algorithms", algorithms).find((algorithm) => !ALGORITHMS.includes(algorithm));
  if (unknown !== undefined) {
    throw invalid(
      "algorithms",
      `may contain only ${ALGORITHMS.join(", ")}, which need no shared secret; got ${unknown}`,
    );
  }
  const isTolerance = typeof clockToleranceMs === "number" && clockToleranceMs >= 0;
  if (!isTolerance || clockToleranceMs > MAX_CLOCK_TOLERANCE_MS) {
    throw invalid("clockToleranceMs", `must be a number from 0 to ${MAX_CLOCK_TOLERANCE_MS}`);
  }
  return { issuers, jwks: readKeys(jwks), algorithms: [...algorithms], clockToleranceMs };
}

function readKeys(jwks: BearerOptions["jwks"]): JwtRules["jwks"] {
  if (jwks === undefined || typeof jwks === "function") return jwks;
  if (typeof jwks === "string" || jwks instanceof URL) return parseSecureUrl("jwks", String(jwks), /#/);
  const keys: unknown = jwks.keys;
  if (Array.isArray(keys) && keys.length > 0 && keys.every(isPublicKey)) return jwks;
  throw invalid("jwks", "must be a URL, a set of public keys, or a function that returns a key");
}

function isPublicKey(key: unknown): boolean {
  return isObject(key) && typeof key["kty"] === "string" && key["kty"] !== "oct" && key["d"] === undefined;
}

/** All spellings of a URL that clients use: they differ in the case of the host, and in the slash after a bare host. */
function spellingsOf(resource: string): readonly string[] {
  const { href, origin, pathname } = new URL(resource);
  return [...new Set([resource, href, ...(pathname === "/" ? [origin] : [])])];
}

function expandImplied(implies: BearerOptions["implies"] = {}): ReadonlyMap<string, readonly string[]> {
  if (!isObject(implies)) throw invalid("implies", 'must be an object of arrays, such as { "write": ["read"] }');
  const direct = new Map(Object.entries(implies));
  checkScopes("implies", [...direct.keys()]);
  for (const included of direct.values()) checkScopes("implies", included);
  return new Map(
    Array.from(direct.keys(), (scope) => {
      const all = new Set([scope]);
      // The set grows during the loop, until it is closed under implication.
      for (const scope of all) for (const next of direct.get(scope) ?? []) all.add(next);
      return [scope, [...all]];
    }),
  );
}

function checkScopes(name: string, scopes: unknown): void {
  const problem = scopesProblem(scopes);
  if (problem !== undefined) throw invalid(name, problem);
}

function readStrings(name: string, value: unknown): readonly string[] {
  const list: readonly unknown[] = Array.isArray(value) ? value.slice() : [value];
  const isText = (item: unknown): item is string => typeof item === "string" && /^\S+$/.test(item);
  if (list.length > 0 && list.every(isText)) return list;
  throw invalid(name, "must be a string or an array of strings, none of them empty or with spaces");
}

function parseUrl(name: string, text: unknown, forbidden = /[?#]/): URL {
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
  if (
    url === undefined ||
    !["https:", "http:"].includes(url.protocol) ||
    forbidden.test(url.href) ||
    url.username !== ""
  ) {
    throw invalid(name, `must be an http or https URL without query, fragment and user; got ${String(text)}`);
  }
  return url;
}

/** For URLs of keys and metadata. An attacker who could change the response could sign tokens, so https is required. */
function parseSecureUrl(name: string, text: unknown, forbidden?: RegExp): URL {
  const url = parseUrl(name, text, forbidden);
  if (url.protocol === "https:" || isLoopback(url.hostname)) return url;
  throw invalid(name, `must be an https URL, except on this machine; got ${String(text)}`);
}

function invalid(name: string, problem: string): TypeError {
  return new OptionError("bearer()", name, problem);
}
