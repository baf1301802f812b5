// What a person says of bearer tokens, checked when it is said: options that could let nobody in, or that would be
// passed over in silence, are a TypeError at the start of the program and not a surprise in the middle of a night.
// Nothing here looks at a token.

import type { JSONWebKeySet, JWTVerifyGetKey } from "jose";
import type { Credentials, Identity } from "../../core/authentication.ts";
import { isObject } from "../../core/objects.ts";
import { scopesProblem } from "./scopes.ts";

export interface BearerOptions {
  /**
   * Who issues tokens for this server, by their issuer addresses: callers are sent there, and tokens of nobody else
   * count. May only be left out beside `verify`; callers are then told nothing of how to get a token.
   *
   * @example
   * authorizationServers: ["https://auth.example.com"]
   */
  readonly authorizationServers?: readonly string[];
  /**
   * The address of this server as its callers know it: what tokens must have been issued for. Where it is left out it
   * is the address of the call, which nobody but this machine may then call by.
   *
   * @example
   * resource: "https://notes.example.com/mcp"
   */
  readonly resource?: string;
  /** Whose tokens count, where that is not `authorizationServers`. */
  readonly issuer?: string | readonly string[];
  /** The issuer's keys: where they are, or themselves. Where it is left out, the issuer's metadata says where. */
  readonly jwks?: string | URL | JSONWebKeySet | JWTVerifyGetKey;
  /**
   * Says itself who brings this token, instead of all checks of JWTs: what it does not check is not checked. Nothing, or
   * an identity without a principal, is a refusal, and so is what it throws, unless that says that it could not reach
   * what it asks: a failed fetch, a timeout, an error of the system.
   *
   * @example
   * verify: async (token) => (await introspect(token)).active ? { principal: "ada", scopes: ["notes:read"] } : undefined
   */
  readonly verify?: (
    token: string,
    credentials: Credentials,
  ) => Identity | undefined | null | Promise<Identity | undefined | null>;
  /** What must stand in `aud`, where that is not `resource`. One of several is enough. */
  readonly audience?: string | readonly string[];
  /** What every call needs. Tools, resources and prompts may name more. */
  readonly scopes?: readonly string[];
  /** What callers are told to ask for first, where they are not told more exactly; `scopes` where it is left out. */
  readonly scopesSupported?: readonly string[];
  /**
   * Scopes that hold others.
   *
   * @example
   * implies: { "notes:write": ["notes:read"] }
   */
  readonly implies?: Readonly<Record<string, readonly string[]>>;
  /** Of signatures; all that need no shared secret where it is left out. */
  readonly algorithms?: readonly string[];
  /** How far the issuer's clock may be from ours; 5 where it is left out, and never more than 300. */
  readonly clockToleranceSec?: number;
  /** For people. */
  readonly resourceName?: string;
  /** An address, for people. */
  readonly resourceDocumentation?: string;
}

/** How JWTs are judged. */
export interface TokenRules {
  readonly issuers: readonly string[];
  readonly jwks: URL | JSONWebKeySet | JWTVerifyGetKey | undefined;
  readonly algorithms: readonly string[];
  readonly clockToleranceSec: number;
}

export interface BearerSettings {
  readonly judge: TokenRules | NonNullable<BearerOptions["verify"]>;
  readonly resource: string | undefined;
  /** Undefined where it is the address of the call; empty where others judge. */
  readonly audience: readonly string[] | undefined;
  readonly scopes: readonly string[];
  /** By a scope: what else it holds. */
  readonly implied: ReadonlyMap<string, readonly string[]>;
  /** What anybody may read of us, but for our address; undefined where nobody issues tokens for us. */
  readonly metadata: object | undefined;
}

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

/** What only matters where tokens are JWTs. */
const OF_TOKENS = ["jwks", "issuer", "audience", "algorithms", "clockToleranceSec"] as const;

const MOST_TOLERANCE_SEC = 300;

export function settle(options: BearerOptions): BearerSettings {
  if (!isPlain(options)) throw wrong("the options must be an object");
  const { authorizationServers: servers = [], resource, verify, scopes = [], resourceName } = options;
  const { scopesSupported = scopes, resourceDocumentation } = options;
  if (!isList(servers)) throw wrong("authorizationServers must be a list of addresses");
  for (const server of servers) address("authorizationServers", server);
  if (resource !== undefined) parsed("resource", resource);
  checkScopes("scopes", scopes);
  checkScopes("scopesSupported", scopesSupported);
  // It asks for tokens that can be renewed, which is between a caller and the issuer.
  if (scopes.includes("offline_access")) throw wrong("scopes must not have offline_access, which no call can need");
  for (const [name, text] of Object.entries({ resourceName, resourceDocumentation })) {
    if (text !== undefined && typeof text !== "string") throw wrong(`${name} must be a string`);
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
    judge: verify === undefined ? tokenRules(options, servers) : checkedVerify(options, verify),
    resource,
    audience: audienceOf(options),
    scopes: [...scopes],
    implied: impliedBy(options.implies),
    metadata: servers.length === 0 ? undefined : metadata,
  };
}

function checkedVerify(options: BearerOptions, verify: unknown): NonNullable<BearerOptions["verify"]> {
  if (typeof verify !== "function") throw wrong("verify must be a function");
  const idle = OF_TOKENS.find((name) => options[name] !== undefined);
  if (idle !== undefined) throw wrong(`${idle} says nothing beside verify, which makes all checks itself`);
  return verify as NonNullable<BearerOptions["verify"]>;
}

function tokenRules(options: BearerOptions, servers: readonly string[]): TokenRules {
  const { issuer = servers, jwks, algorithms = ALGORITHMS, clockToleranceSec = 5 } = options;
  if (servers.length === 0)
    throw wrong("authorizationServers must name who issues the tokens, or verify must be given");
  const issuers = texts("issuer", issuer);
  if (jwks !== undefined && issuers.length > 1) {
    throw wrong(
      "jwks are the keys of one issuer; leave them out, and the metadata of each issuer says where its keys are",
    );
  }
  // Without keys of our own we ask the issuer, so it must be an address.
  if (jwks === undefined) for (const one of issuers) address("issuer", one);
  const foreign = texts("algorithms", algorithms).find((algorithm) => !ALGORITHMS.includes(algorithm));
  if (foreign !== undefined) {
    throw wrong(`algorithms must be of ${ALGORITHMS.join(", ")}, which need no shared secret; ${foreign} is not`);
  }
  if (typeof clockToleranceSec !== "number" || !(clockToleranceSec >= 0 && clockToleranceSec <= MOST_TOLERANCE_SEC)) {
    throw wrong(`clockToleranceSec must be a number from 0 to ${MOST_TOLERANCE_SEC}`);
  }
  return { issuers, jwks: keys(jwks), algorithms: [...algorithms], clockToleranceSec };
}

function keys(jwks: BearerOptions["jwks"]): TokenRules["jwks"] {
  if (jwks === undefined || typeof jwks === "function") return jwks;
  if (typeof jwks === "string" || jwks instanceof URL) return address("jwks", String(jwks), /#/);
  const set: unknown = jwks.keys;
  if (Array.isArray(set) && set.length > 0 && set.every(isPublicKey)) return jwks;
  throw wrong("jwks must be an address, a set of public keys and no others, or a function that gives a key");
}

function isPublicKey(key: unknown): boolean {
  return isObject(key) && typeof key["kty"] === "string" && key["kty"] !== "oct" && key["d"] === undefined;
}

function audienceOf({ audience, resource, verify }: BearerOptions): readonly string[] | undefined {
  if (verify !== undefined) return [];
  if (audience !== undefined) return texts("audience", audience);
  return resource === undefined ? undefined : spellings(resource);
}

/** All that names one address: clients write the case of its host, and the slash behind a bare host, as they like. */
export function spellings(resource: string): readonly string[] {
  const { href, origin, pathname } = new URL(resource);
  return [...new Set([resource, href, ...(pathname === "/" ? [origin] : [])])];
}

function impliedBy(implies: BearerOptions["implies"] = {}): ReadonlyMap<string, readonly string[]> {
  if (!isPlain(implies)) throw wrong('implies must say what holds what, as in { "write": ["read"] }');
  const direct = new Map(Object.entries(implies));
  checkScopes("implies", [...direct.keys()]);
  for (const held of direct.values()) checkScopes("implies", held);
  return new Map(
    Array.from(direct.keys(), (scope) => {
      const all = new Set([scope]);
      // It grows while it is walked, until all that follows is in it.
      for (const one of all) for (const next of direct.get(one) ?? []) all.add(next);
      return [scope, [...all]];
    }),
  );
}

function checkScopes(name: string, scopes: unknown): void {
  const problem = scopesProblem(scopes);
  if (problem !== undefined) throw wrong(`${name} ${problem}`);
}

function texts(name: string, given: string | readonly string[]): readonly string[] {
  const list: readonly unknown[] = Array.isArray(given) ? [...(given as readonly unknown[])] : [given];
  if (list.length > 0 && list.every((text) => typeof text === "string" && /^\S+$/.test(text))) return list as string[];
  throw wrong(`${name} must be a string or a list of strings, none of them empty or with blanks`);
}

function parsed(name: string, text: unknown, without = /[?#]/): URL {
  const url = typeof text === "string" && URL.canParse(text) ? new URL(text) : undefined;
  if (
    url === undefined ||
    !["https:", "http:"].includes(url.protocol) ||
    without.test(url.href) ||
    url.username !== ""
  ) {
    throw wrong(`${name} must be an http or https address without query, fragment and user; got ${String(text)}`);
  }
  return url;
}

/** Where something is fetched from: whoever could change it on the way could let anybody in. */
function address(name: string, text: unknown, without?: RegExp): URL {
  const url = parsed(name, text, without);
  if (url.protocol === "https:" || isLoopback(url)) return url;
  throw wrong(`${name} must be an https address, but for this machine's own; got ${String(text)}`);
}

/** Whether the address is on this machine. */
export function isLoopback({ hostname }: URL): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

// Programs without types may give anything; these two do not believe the types.
function isPlain(value: unknown): boolean {
  return isObject(value);
}

function isList(value: unknown): boolean {
  return Array.isArray(value);
}

function wrong(text: string): TypeError {
  return new TypeError(`bearer(): ${text}`);
}
