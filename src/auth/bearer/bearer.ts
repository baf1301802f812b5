// `bearer()`: the resource server's side of OAuth (RFC 6750, RFC 9728; specification: basic/authorization). Verifies
// the bearer token of each request, and tells a client without a valid token where to get one. The JWT verification in
// jwt.ts is loaded with the first token.

import { type Authenticator, AuthError, type Credentials, type Identity } from "../../core/authentication.ts";
import { isLoopback } from "../../http/server/guard.ts";
import type { InvalidToken, JwtVerifier } from "./jwt.ts";
import { type BearerOptions, type BearerSettings, readBearerOptions, spellingsOf } from "./options.ts";
import { isScope } from "./scopes.ts";

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
    const { scopes: needed } = this.#settings;
    const audience = this.#audience(credentials);
    const token = this.#token(credentials);
    const result = await this.#verify(token, audience, credentials);
    if ("fault" in result) throw this.#error(401, { error: "invalid_token", description: result.fault }, credentials);
    const identity = this.#withImpliedScopes(result);
    if (needed.every((scope) => identity.scopes?.includes(scope))) return identity;
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

  /** The values of `aud` that are accepted. */
  #audience({ endpoint }: Credentials): readonly string[] {
    const { audience } = this.#settings;
    if (audience !== undefined) return audience;
    // `endpoint` contains the host name that the client sent. A client could name another server there, and so use a
    // token for that server. So without `resource`, only localhost is accepted.
    if (URL.canParse(endpoint) && isLoopback(new URL(endpoint).hostname)) return spellingsOf(endpoint);
    throw new Error(`bearer(): set \`resource\` to accept requests for hosts other than localhost; got ${endpoint}`);
  }

  #token(credentials: Credentials): string {
    const parsed = parseAuthorization(credentials.headers["authorization"]);
    if (parsed.kind === "malformed") {
      throw this.#error(400, { error: "invalid_request", description: parsed.why }, credentials);
    }
    if (parsed.kind === "none") throw this.#error(401, {}, credentials);
    if (parsed.token.length <= MAX_TOKEN_LENGTH) return parsed.token;
    throw this.#error(401, { error: "invalid_token", description: "The token is too long" }, credentials);
  }

  async #verify(
    token: string,
    audience: readonly string[],
    credentials: Credentials,
  ): Promise<Identity | InvalidToken> {
    const { verifier } = this.#settings;
    if (typeof verifier === "function") return runVerify(() => verifier(token, credentials));
    this.#jwtVerifier ??= import("./jwt.ts").then(({ JwtVerifier: Verifier }) => new Verifier(verifier));
    return (await this.#jwtVerifier).verify(token, audience);
  }

  #withImpliedScopes(identity: Identity): Identity {
    const { implied } = this.#settings;
    if (identity.scopes === undefined) return identity;
    return { ...identity, scopes: [...new Set(identity.scopes.flatMap((scope) => implied.get(scope) ?? scope))] };
  }

  #error(status: 400 | 401 | 403, challenge: BearerChallenge, { endpoint }: Credentials): AuthError {
    const { scopes: needed, metadata, resource = endpoint } = this.#settings;
    const { scopes = [], ...rest } = challenge;
    // A handler may have named these scopes in an error, so they may be invalid.
    const valid = scopes.filter((scope) => isScope(scope) && scope !== "offline_access");
    const all = [...new Set([...needed, ...valid])];
    const header = challengeHeader({ ...rest, scopes: all, metadata: metadata && metadataUrl(resource)?.href });
    return new AuthError(status, rest.description ?? "A token is required", header);
  }
}

/** The URL of a resource's metadata (RFC 9728, 3.1); undefined if the resource is not a URL. */
function metadataUrl(resource: string): URL | undefined {
  if (!URL.canParse(resource)) return undefined;
  const { origin, pathname } = new URL(resource);
  return new URL(`${origin}${WELL_KNOWN}${pathname === "/" ? "" : pathname}`);
}

/** Calls `verify`. If it throws, the token is refused, unless the error shows that a service could not be reached. */
async function runVerify(
  verify: () => Partial<Identity> | undefined | null | Promise<Partial<Identity> | undefined | null>,
): Promise<Identity | InvalidToken> {
  let identity: Partial<Identity> | undefined | null;
  try {
    identity = await verify();
  } catch (error) {
    if (error instanceof AuthError || isUnreachable(error)) throw error;
    return { fault: "The token was refused" };
  }
  return checkIdentity(identity);
}

/** Whether a service could not be reached. Such an error says nothing about the token. */
function isUnreachable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code } = error as NodeJS.ErrnoException;
  if (error.name === "AbortError" || error.name === "TimeoutError") return true;
  // A failed fetch has no code, only this message. System errors have codes such as ECONNREFUSED.
  return error.message === "fetch failed" || (typeof code === "string" && /^E[A-Z]+$/.test(code));
}

/** Checks the result of `verify`, since an untyped program may return anything. */
function checkIdentity(given: Partial<Identity> | undefined | null): Identity | InvalidToken {
  const { principal, scopes, claims } = given ?? {};
  if (typeof principal !== "string" || principal === "") return { fault: "The token is unknown" };
  if (scopes !== undefined && !(Array.isArray(scopes) && scopes.every((scope) => typeof scope === "string"))) {
    throw new TypeError("bearer(): `verify` must return scopes as an array of strings");
  }
  return {
    principal,
    ...(scopes === undefined ? undefined : { scopes }),
    ...(claims === undefined ? undefined : { claims }),
  };
}

export type ParsedAuthorization =
  | { readonly kind: "none" }
  | { readonly kind: "malformed"; readonly why: string }
  | { readonly kind: "token"; readonly token: string };

/** RFC 6750, 2.1. */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

/** Parses the header Authorization. The scheme is case-insensitive. */
export function parseAuthorization(authorization: string | undefined): ParsedAuthorization {
  if (authorization === undefined) return { kind: "none" };
  const [scheme = "", ...rest] = authorization.trim().split(" ");
  if (scheme.toLowerCase() !== "bearer") {
    // Repeated headers arrive as one value, joined by commas.
    if (!/,\s*bearer(?:\s|$)/i.test(authorization)) return { kind: "none" };
    return { kind: "malformed", why: "Authorization has more than one scheme" };
  }
  const token = rest.join(" ").trim();
  // An empty token counts as none: the client then gets the plain challenge, which makes it request a token.
  if (token === "") return { kind: "none" };
  if (TOKEN.test(token)) return { kind: "token", token };
  return { kind: "malformed", why: "Authorization must have the form: Bearer, one space, one token" };
}

export interface BearerChallenge {
  readonly error?: "invalid_request" | "invalid_token" | "insufficient_scope";
  readonly description?: string;
  /** The scopes that the call needs. */
  readonly scopes?: readonly string[];
  /** The URL of the resource metadata. */
  readonly metadata?: string | undefined;
}

/** The value of the header WWW-Authenticate. */
export function challengeHeader({ error, description, scopes = [], metadata }: BearerChallenge): string {
  const fields = {
    error,
    error_description: description,
    scope: scopes.length === 0 ? undefined : scopes.join(" "),
    resource_metadata: metadata,
  };
  const params = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : `${name}=${quote(value)}`,
  );
  return params.length === 0 ? "Bearer" : `Bearer ${params.join(", ")}`;
}

/** Quotes a value that may come from a client, so that it can end neither the string nor the header. */
function quote(text: string): string {
  return `"${text.replaceAll(/[^\x20-\x7e]/g, "?").replaceAll(/["\\]/g, "\\$&")}"`;
}
