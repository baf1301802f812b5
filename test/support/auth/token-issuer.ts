// A token issuer for tests of `bearer()`: documents on a local port, keys to sign tokens with, and options that accept its
// tokens. Documents can be changed while it runs, and every request is recorded.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";
import { type Authenticator, AuthError, type Credentials, type Identity } from "../../../src/core/authentication.ts";
import type { BearerOptions } from "../../../src/auth/bearer/bearer.ts";

export type Page = string | ((request: IncomingMessage, response: ServerResponse) => void);

export interface Signer {
  readonly jwk: JWK;
  /** Signs a token with these claims. Undefined claims are left out. */
  sign(claims: Record<string, unknown>, header?: Record<string, unknown>): Promise<string>;
}

export interface Issuer {
  readonly url: string;
  /** By path: a JSON string, or a function that answers. */
  readonly pages: Map<string, Page>;
  /** The paths of all requests. */
  readonly requests: string[];
  close(): Promise<void>;
}

export async function openIssuer(): Promise<Issuer> {
  const pages = new Map<string, Page>();
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    requests.push(path);
    const page = pages.get(path);
    if (typeof page === "function") page(request, response);
    else response.writeHead(page === undefined ? 404 : 200, { "content-type": "application/json" }).end(page);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    pages,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export async function newSigner(alg = "ES256", kid: string | undefined = alg): Promise<Signer> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const named = kid === "" ? {} : { kid };
  return {
    jwk: { ...(await exportJWK(publicKey)), ...named },
    sign: (claims, header) => new SignJWT(claims).setProtectedHeader({ alg, ...named, ...header }).sign(privateKey),
  };
}

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
