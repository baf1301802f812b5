// A token issuer with options for `bearer()` that accept its tokens, and helpers to authenticate with them.

import { type Authenticator, AuthError, type Credentials, type Identity } from "../../src/core/authentication.ts";
import type { BearerOptions } from "../../src/auth/bearer/options.ts";
import { type Issuer, newSigner, openIssuer, type Signer } from "./token-issuer.ts";

export const resource = "https://notes.example.com/mcp";
export const metadata = "https://notes.example.com/.well-known/oauth-protected-resource/mcp";
export const endpoint = "http://127.0.0.1:3000/mcp";

export type Claims = Record<string, unknown>;

export interface BearerFixture {
  readonly issuer: Issuer;
  readonly signer: Signer;
  /** Options of `bearer()` that accept this issuer's tokens for the resource. */
  readonly options: BearerOptions;
  /** Valid claims, with the given changes. Undefined removes a claim. */
  claims(more?: Claims): Claims;
  sign(more?: Claims, header?: Claims): Promise<string>;
}

export async function openBearerFixture(): Promise<BearerFixture> {
  const issuer = await openIssuer();
  const signer = await newSigner("ES256", "one");
  issuer.pages.set("/keys", JSON.stringify({ keys: [signer.jwk] }));
  const claims: BearerFixture["claims"] = (more) => ({
    iss: issuer.url,
    aud: resource,
    sub: "ada",
    exp: now() + 60,
    ...more,
  });
  return {
    issuer,
    signer,
    options: { authorizationServers: [issuer.url], jwks: `${issuer.url}/keys`, resource },
    claims,
    sign: (more, header) => signer.sign(claims(more), header),
  };
}

export function now(): number {
  return Math.floor(Date.now() / 1000);
}

export function credentialsFor(authorization: string | undefined, where: string = endpoint): Credentials {
  return { headers: authorization === undefined ? {} : { authorization }, endpoint: where };
}

export function authenticate(authenticator: Authenticator, token: string, where?: string): Promise<Identity> {
  return authenticator.authenticate(credentialsFor(`Bearer ${token}`, where));
}

/** Fails if the request is accepted, or if the authenticator throws another error. */
export async function refusalOf(
  authenticator: Authenticator,
  authorization: string | undefined,
  where?: string,
): Promise<AuthError> {
  const error: unknown = await authenticator.authenticate(credentialsFor(authorization, where)).then(
    (identity) => new Error(`The request was accepted: ${JSON.stringify(identity)}`),
    (thrown: unknown) => thrown,
  );
  if (error instanceof AuthError) return error;
  throw error;
}
