// The options of `bearer()`. They are checked when it is called, so that a mistake is a TypeError at startup.

import type { JSONWebKeySet, JWTVerifyGetKey } from "jose";
import type { Credentials, Identity } from "../../core/authentication.ts";
import { isObject } from "../../core/values.ts";
import { checkOptions } from "../../core/options.ts";
import { isLoopback } from "../../http/server/guard.ts";
import { scopesProblem } from "./scopes.ts";

export interface BearerOptions {
  /**
   * The issuer URLs of the authorization servers. Clients are sent to these servers to get a token. Only tokens of
   * these servers are accepted, unless `issuer` or `verify` is set. Required unless `verify` is set. If this option is
   * omitted, clients do not learn where to get a token.
   *
   * @example
   * authorizationServers: ["https://auth.example.com"]
   */
  readonly authorizationServers?: readonly string[];
  /**
   * The public URL of this server. Tokens must have been issued for it. Default: the URL of the request, but then only
   * requests to localhost are accepted.
   *
   * @example
   * resource: "https://notes.example.com/mcp"
   */
  readonly resource?: string;
  /** The accepted issuers. Default: `authorizationServers`. */
  readonly issuer?: string | readonly string[];
  /** The issuer's keys, or their URL. Default: the URL that the issuer's metadata names. */
  readonly jwks?: string | URL | JSONWebKeySet | JWTVerifyGetKey;
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
  readonly verify?: (
    token: string,
    credentials: Credentials,
  ) => Identity | undefined | null | Promise<Identity | undefined | null>;
  /** The accepted values of `aud`. Default: `resource`. */
  readonly audience?: string | readonly string[];
  /** The scopes that every call needs. Tools, resources and prompts may need more. */
  readonly scopes?: readonly string[];
  /** The scopes that clients should request first. Default: `scopes`. */
  readonly scopesSupported?: readonly string[];
  /**
   * Scopes that include others.
   *
   * @example
   * implies: { "notes:write": ["notes:read"] }
   */
  readonly implies?: Readonly<Record<string, readonly string[]>>;
  /** The accepted signature algorithms. Default: all that need no shared secret. */
  readonly algorithms?: readonly string[];
  /** The accepted difference between the issuer's clock and ours, in milliseconds. Default: 5,000; at most 300,000. */
  readonly clockToleranceMs?: number;
  /** A name for humans, published in the metadata. */
  readonly resourceName?: string;
  /** A URL for humans, published in the metadata. */
  readonly resourceDocumentation?: string;
}

/** How JWTs are verified. */
export interface JwtRules {
  readonly issuers: readonly string[];
  readonly jwks: URL | JSONWebKeySet | JWTVerifyGetKey | undefined;
  readonly algorithms: readonly string[];
  readonly clockToleranceMs: number;
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

// `satisfies` makes the compiler report an option that is missing here.
const OPTIONS = {
  authorizationServers: true,
  resource: true,
  issuer: true,
  jwks: true,
  verify: true,
  audience: true,
  scopes: true,
  scopesSupported: true,
  implies: true,
  algorithms: true,
  clockToleranceMs: true,
  resourceName: true,
  resourceDocumentation: true,
} as const satisfies Record<keyof BearerOptions, true>;

const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];

/** The options of the built-in verification of JWTs. */
const JWT_OPTIONS = ["jwks", "issuer", "audience", "algorithms", "clockToleranceMs"] as const;

const DEFAULT_CLOCK_TOLERANCE_MS = 5_000;
const MAX_CLOCK_TOLERANCE_MS = 300_000;

export function readBearerOptions(options: BearerOptions): BearerSettings {
  checkOptions("bearer()", options, OPTIONS);
  const { authorizationServers: servers = [], resource, verify, scopes = [], resourceName } = options;
  const { scopesSupported = scopes, resourceDocumentation } = options;
  if (!isArray(servers)) throw invalid("authorizationServers", "must be an array of URLs");
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
  const metadata = {
    authorization_servers: [...servers],
    ...(supported.length === 0 ? undefined : { scopes_supported: supported }),
    bearer_methods_supported: ["header"],
    ...(resourceName === undefined ? undefined : { resource_name: resourceName }),
    ...(resourceDocumentation === undefined ? undefined : { resource_documentation: resourceDocumentation }),
  };
  return {
    verifier: verify === undefined ? readJwtRules(options, servers) : checkVerify(options, verify),
    resource,
    audience: readAudience(options),
    scopes: [...scopes],
    implied: expandImplied(options.implies),
    metadata: servers.length === 0 ? undefined : metadata,
  };
}

function checkVerify(options: BearerOptions, verify: unknown): NonNullable<BearerOptions["verify"]> {
  if (typeof verify !== "function") throw invalid("verify", "must be a function");
  const unused = JWT_OPTIONS.find((name) => options[name] !== undefined);
  if (unused !== undefined) throw invalid(unused, "has no effect with `verify`, which makes all checks itself");
  return verify as NonNullable<BearerOptions["verify"]>;
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
  if (jwks === undefined) for (const one of issuers) parseSecureUrl("issuer", one);
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

function readAudience({ audience, resource, verify }: BearerOptions): readonly string[] | undefined {
  if (verify !== undefined) return [];
  if (audience !== undefined) return readStrings("audience", audience);
  return resource === undefined ? undefined : spellingsOf(resource);
}

/** All spellings of a URL that clients use: they differ in the case of the host, and in the slash after a bare host. */
export function spellingsOf(resource: string): readonly string[] {
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
      for (const one of all) for (const next of direct.get(one) ?? []) all.add(next);
      return [scope, [...all]];
    }),
  );
}

function checkScopes(name: string, scopes: unknown): void {
  const problem = scopesProblem(scopes);
  if (problem !== undefined) throw invalid(name, problem);
}

function readStrings(name: string, given: string | readonly string[]): readonly string[] {
  const list: readonly unknown[] = Array.isArray(given) ? [...(given as readonly unknown[])] : [given];
  if (list.length > 0 && list.every((text) => typeof text === "string" && /^\S+$/.test(text))) return list as string[];
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

/** Array.isArray without its type guard, which would turn the type into any[]. */
function isArray(value: unknown): boolean {
  return Array.isArray(value);
}

function invalid(name: string, problem: string): TypeError {
  return new TypeError(`bearer(): \`${name}\` ${problem}`);
}
