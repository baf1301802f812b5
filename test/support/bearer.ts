// A door that wants bearer tokens, and an issuer whose tokens open it. For tests of doors.

import { type Authenticator, AuthError, type Credentials, type Identity } from "../../src/core/authentication.ts";
import type { BearerOptions } from "../../src/auth/bearer/bearer-options.ts";
import { type Issuer, newSigner, openIssuer, type Signer } from "./issuer.ts";

export const resource = "https://notes.example.com/mcp";
export const metadata = "https://notes.example.com/.well-known/oauth-protected-resource/mcp";
export const endpoint = "http://127.0.0.1:3000/mcp";

export type Claims = Record<string, unknown>;

export interface Stage {
  readonly issuer: Issuer;
  readonly signer: Signer;
  /** Of a door that takes this issuer's tokens for the resource. */
  readonly options: BearerOptions;
  /** What opens the door, but for what is given; what is undefined is left out. */
  claims(more?: Claims): Claims;
  sign(more?: Claims, header?: Claims): Promise<string>;
}

export async function openStage(): Promise<Stage> {
  const issuer = await openIssuer();
  const signer = await newSigner("ES256", "one");
  issuer.pages.set("/keys", JSON.stringify({ keys: [signer.jwk] }));
  const claims: Stage["claims"] = (more) => ({ iss: issuer.url, aud: resource, sub: "ada", exp: now() + 60, ...more });
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

export function at(authorization: string | undefined, where: string = endpoint): Credentials {
  return { headers: authorization === undefined ? {} : { authorization }, endpoint: where };
}

export function enter(door: Authenticator, token: string, where?: string): Promise<Identity> {
  return door.authenticate(at(`Bearer ${token}`, where));
}

/** Fails where somebody is let in, or where the door cannot tell. */
export async function refused(
  door: Authenticator,
  authorization: string | undefined,
  where?: string,
): Promise<AuthError> {
  const error: unknown = await door.authenticate(at(authorization, where)).then(
    (identity) => new Error(`It was let in: ${JSON.stringify(identity)}`),
    (thrown: unknown) => thrown,
  );
  if (error instanceof AuthError) return error;
  throw error;
}
