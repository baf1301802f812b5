// A token that is a JWT, judged: whose it is, whether it was issued for us and counts now (RFC 9068, RFC 8725). What is
// wrong with a token is said in one sentence; whatever else goes wrong, such as keys that cannot be fetched, is an
// error, because it says nothing about the token. Loaded with the first token, and jose with it.

import * as jose from "jose";
import type { Identity } from "../../core/authentication.ts";
import { keysOf } from "./bearer-keys.ts";
import type { TokenRules } from "./bearer-options.ts";

/** What is wrong with a token. */
export interface TokenFault {
  readonly fault: string;
}

/** Other tokens that an issuer signs, such as those of logouts, are none that let anybody in. */
const TYPES: ReadonlySet<unknown> = new Set([undefined, "jwt", "at+jwt", "application/at+jwt"]);

/** By the codes of jose's errors. Codes that are not here say nothing about the token. */
const FAULTS: ReadonlyMap<unknown, string> = new Map([
  ["ERR_JOSE_ALG_NOT_ALLOWED", "The token is signed by an algorithm that does not count here"],
  ["ERR_JOSE_NOT_SUPPORTED", "The token asks for something that is not supported"],
  ["ERR_JWKS_NO_MATCHING_KEY", "The token is signed with a key that its issuer does not have"],
  ["ERR_JWS_INVALID", "The token is malformed"],
  ["ERR_JWS_SIGNATURE_VERIFICATION_FAILED", "The signature of the token does not fit"],
  ["ERR_JWT_CLAIM_VALIDATION_FAILED", "The token has a claim that does not count here"],
  ["ERR_JWT_EXPIRED", "The token has expired"],
  ["ERR_JWT_INVALID", "The token is malformed"],
]);

/** By the claims that an error may name. */
const CLAIM_FAULTS: ReadonlyMap<unknown, string> = new Map([
  ["aud", "The token was not issued for this server"],
  ["exp", "The token does not say when it expires"],
  ["nbf", "The token does not count yet"],
]);

export class Tokens {
  readonly #rules: TokenRules;
  readonly #keys: ReadonlyMap<string, jose.JWTVerifyGetKey>;

  constructor(rules: TokenRules) {
    this.#rules = rules;
    this.#keys = new Map(rules.issuers.map((issuer) => [issuer, keysOf(jose, issuer, rules)]));
  }

  /** Rejects where it cannot tell. */
  async judge(token: string, audience: readonly string[]): Promise<Identity | TokenFault> {
    let issuer: string;
    let payload: jose.JWTPayload;
    try {
      const { typ } = jose.decodeProtectedHeader(token);
      if (!TYPES.has(typ?.toLowerCase())) return { fault: "The token is of a type that does not let anybody in" };
      // Not proved yet: it only says whose keys must prove all of it, this included.
      ({ iss: issuer = "" } = jose.decodeJwt(token));
    } catch {
      return { fault: "The token is no JWT" };
    }
    const keys = this.#keys.get(issuer);
    if (keys === undefined) return { fault: "The token is of an issuer that does not count here" };
    try {
      payload = await this.#verified(token, keys, issuer, audience);
    } catch (error) {
      return { fault: faultOf(error) };
    }
    return identityOf(issuer, payload);
  }

  async #verified(
    token: string,
    keys: jose.JWTVerifyGetKey,
    issuer: string,
    audience: readonly string[],
  ): Promise<jose.JWTPayload> {
    const { algorithms, clockToleranceSec: clockTolerance } = this.#rules;
    const options: jose.JWTVerifyOptions = {
      issuer,
      audience: [...audience],
      algorithms: [...algorithms],
      clockTolerance,
      requiredClaims: ["exp"],
    };
    try {
      return (await jose.jwtVerify(token, keys, options)).payload;
    } catch (error) {
      // A token need not name its key, and an issuer that changes keys has two of a kind for a while.
      if (!(error instanceof jose.errors.JWKSMultipleMatchingKeys)) throw error;
      return firstFitting(error, (key) => jose.jwtVerify(token, key, options));
    }
  }
}

async function firstFitting(
  keys: AsyncIterable<jose.CryptoKey>,
  verify: (key: jose.CryptoKey) => Promise<jose.JWTVerifyResult>,
): Promise<jose.JWTPayload> {
  for await (const key of keys) {
    try {
      return (await verify(key)).payload;
    } catch (error) {
      if (!(error instanceof jose.errors.JWSSignatureVerificationFailed)) throw error;
    }
  }
  throw new jose.errors.JWSSignatureVerificationFailed();
}

/** Throws the error itself where it says nothing about the token. */
function faultOf(error: unknown): string {
  const { code, claim } = Object(error) as { code?: unknown; claim?: unknown };
  const fault = code === "ERR_JWT_CLAIM_VALIDATION_FAILED" ? CLAIM_FAULTS.get(claim) : undefined;
  const said = fault ?? FAULTS.get(code);
  if (said === undefined) throw error;
  return said;
}

function identityOf(issuer: string, claims: jose.JWTPayload): Identity | TokenFault {
  const { sub, client_id: client } = claims;
  // A subject is only unique with its issuer; an issuer has no blanks, so the first one ends it. A client that calls
  // for itself is never taken for a person of the same name.
  if (isText(sub)) return { principal: `${issuer} ${sub}`, scopes: scopesOf(claims), claims };
  if (sub === undefined && isText(client)) {
    return { principal: `client ${issuer} ${client}`, scopes: scopesOf(claims), claims };
  }
  return { fault: "The token does not say whose it is" };
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function scopesOf({ scope, scp }: jose.JWTPayload): readonly string[] {
  const said = scope ?? scp;
  const list: readonly unknown[] = typeof said === "string" ? said.split(" ") : Array.isArray(said) ? said : [];
  return list.filter(isText);
}
