// Verifies tokens that are JWTs (RFC 9068, RFC 8725), and finds the keys of their issuers. A problem with the token
// is returned as a sentence. Other failures, such as keys that cannot be fetched, are thrown, since they say nothing
// about the token. This is a module of its own because it loads jose.

import * as jose from "jose";
import type { Identity } from "../../core/authentication.ts";
import { errorMessage, fieldsOf, isObject } from "../../core/values.ts";
import { metadataUrls, OAuthFetch, type OAuthFetchOptions } from "../oauth/oauth-fetch.ts";

export interface JwtRules {
  readonly issuers: readonly string[];
  readonly jwks: URL | jose.JSONWebKeySet | jose.JWTVerifyGetKey | undefined;
  readonly algorithms: readonly string[];
  readonly clockToleranceMs: number;
}

export interface InvalidToken {
  readonly fault: string;
}

/** Accepted values of `typ`. An issuer also signs other tokens, such as logout tokens, which must be refused. */
const ACCEPTED_TYPES: ReadonlySet<unknown> = new Set([undefined, "jwt", "at+jwt", "application/at+jwt"]);

/** Faults of a token, by the code of jose's error. Errors with other codes are not about the token. */
const FAULTS: ReadonlyMap<unknown, string> = new Map([
  ["ERR_JOSE_ALG_NOT_ALLOWED", "The token is signed with an algorithm that is not accepted"],
  ["ERR_JOSE_NOT_SUPPORTED", "The token needs a feature that is not supported"],
  ["ERR_JWKS_NO_MATCHING_KEY", "The token is signed with a key that its issuer does not have"],
  ["ERR_JWS_INVALID", "The token is malformed"],
  ["ERR_JWS_SIGNATURE_VERIFICATION_FAILED", "The signature of the token is not valid"],
  ["ERR_JWT_CLAIM_VALIDATION_FAILED", "The token has a claim that is not valid"],
  ["ERR_JWT_EXPIRED", "The token has expired"],
  ["ERR_JWT_INVALID", "The token is malformed"],
]);

const CLAIM_FAULTS: ReadonlyMap<unknown, string> = new Map([
  ["aud", "The token was not issued for this server"],
  ["exp", "The token does not say when it expires"],
  ["nbf", "The token is not valid yet"],
]);

/** Rejects if the verification fails for a reason other than the token, such as keys that cannot be fetched. */
export type JwtVerifier = (token: string, audience: readonly string[]) => Promise<Identity | InvalidToken>;

export function jwtVerifier(rules: JwtRules): JwtVerifier {
  const keysByIssuer = new Map(rules.issuers.map((issuer) => [issuer, keysOf(issuer, rules)]));
  const clockTolerance = rules.clockToleranceMs / 1000;
  const common = { algorithms: [...rules.algorithms], clockTolerance, requiredClaims: ["exp"] };
  return async (token, audience) => {
    let issuer: string;
    try {
      const { typ } = jose.decodeProtectedHeader(token);
      if (!ACCEPTED_TYPES.has(typ?.toLowerCase())) return { fault: "The token is of a type that is not accepted" };
      // The issuer is not verified yet. It only selects the keys, which then verify the whole token.
      ({ iss: issuer = "" } = jose.decodeJwt(token));
    } catch {
      return { fault: "The token is not a JWT" };
    }
    const keys = keysByIssuer.get(issuer);
    if (keys === undefined) return { fault: "The issuer of the token is not accepted" };
    try {
      return identityOf(issuer, await verifyWith(keys, token, { ...common, issuer, audience: [...audience] }));
    } catch (error) {
      return { fault: faultOf(error) };
    }
  };
}

async function verifyWith(
  keys: jose.JWTVerifyGetKey,
  token: string,
  options: jose.JWTVerifyOptions,
): Promise<jose.JWTPayload> {
  try {
    return (await jose.jwtVerify(token, keys, options)).payload;
  } catch (error) {
    // A token need not name its key, and while an issuer rotates its keys, several may match.
    if (!(error instanceof jose.errors.JWKSMultipleMatchingKeys)) throw error;
    for await (const key of error) {
      try {
        return await verifyWith(() => key, token, options);
      } catch (other) {
        if (!(other instanceof jose.errors.JWSSignatureVerificationFailed)) throw other;
      }
    }
    throw new jose.errors.JWSSignatureVerificationFailed();
  }
}

/** The fault that the error reports. Rethrows an error that is not about the token. */
function faultOf(error: unknown): string {
  const { code, claim } = fieldsOf(error);
  const claimFault = code === "ERR_JWT_CLAIM_VALIDATION_FAILED" ? CLAIM_FAULTS.get(claim) : undefined;
  const fault = claimFault ?? FAULTS.get(code);
  if (fault === undefined) throw error;
  return fault;
}

function identityOf(issuer: string, claims: jose.JWTPayload): Identity | InvalidToken {
  const { sub, client_id: client } = claims;
  // A subject is unique only together with its issuer. The issuer contains no space, so no other pair gives the same
  // principal. The prefix `client` distinguishes a client that acts for itself from a user with the same name.
  if (isNonEmptyString(sub)) return { principal: `${issuer} ${sub}`, scopes: scopesOf(claims), claims };
  if (sub === undefined && isNonEmptyString(client)) {
    return { principal: `client ${issuer} ${client}`, scopes: scopesOf(claims), claims };
  }
  return { fault: "The token names no subject and no client" };
}

function isNonEmptyString(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function scopesOf({ scope, scp }: jose.JWTPayload): readonly string[] {
  const scopes = scope ?? scp;
  const list: readonly unknown[] = typeof scopes === "string" ? scopes.split(" ") : Array.isArray(scopes) ? scopes : [];
  return list.filter(isNonEmptyString);
}

const FETCH_TIMEOUT_MS = 5_000;
/** After a failed request, no other is made for this long. Otherwise every token that arrives would cause a request. */
const FAILURE_CACHE_MS = 5_000;

/** Issuers are in the options, so they may be in a private network. */
const FETCH: OAuthFetchOptions = { fetch: (url, init) => fetch(url, init), maxRedirects: 0 };

/**
 * Returns a function that finds the key for a token. The option `jwks` has the keys or their URL. Without it, the URL
 * in the issuer's metadata is used (RFC 8414, OpenID Connect Discovery). The function rejects with an error in `FAULTS`
 * if the issuer does not have the key, and with another error if the keys cannot be fetched.
 */
function keysOf(issuer: string, { jwks }: JwtRules): jose.JWTVerifyGetKey {
  if (typeof jwks === "function") return jwks;
  if (jwks instanceof URL) return remoteKeys(jwks);
  if (jwks !== undefined) return jose.createLocalJWKSet(jwks);
  const find = cachingFailures(() => discoverKeysUrl(issuer));
  let keys: Promise<jose.JWTVerifyGetKey> | undefined;
  return async (header, token) => {
    keys ??= find().then(remoteKeys, (error: unknown) => {
      keys = undefined;
      throw error;
    });
    return (await keys)(header, token);
  };
}

/** jose caches the keys, and tokens that wait for the keys share one request. */
function remoteKeys(url: URL): jose.JWTVerifyGetKey {
  const http = new OAuthFetch(url, FETCH);
  const fetchKeys = cachingFailures(async (address: string, { signal }: { readonly signal: AbortSignal }) => {
    const { document: response, reasons } = await http.document([address], signal, (response) => response);
    if (response === undefined) throw new Error(`The keys could not be fetched: ${reasons.join("; ")}`);
    return response;
  });
  return jose.createRemoteJWKSet(url, { timeoutDuration: FETCH_TIMEOUT_MS, [jose.customFetch]: fetchKeys });
}

/** Wraps a function so that, for a while after a failure, calls fail at once with the same error. */
function cachingFailures<Args extends unknown[], Value>(get: (...args: Args) => Promise<Value>): typeof get {
  let failed: { readonly at: number; readonly error: unknown } | undefined;
  return async (...args) => {
    if (failed !== undefined && performance.now() - failed.at < FAILURE_CACHE_MS) throw failed.error;
    try {
      return await get(...args);
    } catch (error) {
      failed = { at: performance.now(), error };
      throw error;
    }
  };
}

async function discoverKeysUrl(issuer: string): Promise<URL> {
  const url = new URL(issuer);
  const http = new OAuthFetch(url, FETCH);
  const signal = AbortSignal.timeout(FETCH_TIMEOUT_MS);
  const search = http.document(metadataUrls(url), signal, async (response) =>
    readKeysUrl(await response.json(), issuer, http),
  );
  const { document, reasons } = await search.catch((error: unknown) => ({
    document: undefined,
    reasons: [errorMessage(error)],
  }));
  if (document !== undefined) return document;
  throw new Error(`The metadata of ${issuer} does not say where its keys are: ${reasons.join("; ")}`);
}

function readKeysUrl(metadata: unknown, issuer: string, http: OAuthFetch): URL {
  // Metadata that names another issuer could make us trust the wrong keys.
  if (!isObject(metadata) || metadata["issuer"] !== issuer) throw new Error(`This is not the metadata of ${issuer}`);
  const url = new URL(String(metadata["jwks_uri"]));
  // A remote issuer must not make us send requests to this machine.
  if (http.allows(url)) return url;
  throw new Error(`The keys of ${issuer} are at ${url.href}, which is not an https URL`);
}
