// Private keys: the DPoP key that tokens are bound to (RFC 9449), and the key that a client signs assertions with.
// This is a module of its own because it loads jose, which most flows do not need.

import { base64url, importJWK, SignJWT } from "jose";
import type { JWK } from "jose";
import * as oauth from "oauth4webapi";
import { ExpiringMap } from "../../core/expiring-map.ts";
import { defined } from "../../core/values.ts";
import { unauthorized } from "./errors.ts";
import type { PrivateKeySource } from "./types.ts";

const DPOP_ALGORITHM = "ES256";
const DPOP_CURVE = { name: "ECDSA", namedCurve: "P-256" };
/** Enough for all origins that one MCP server uses. */
const MAX_NONCES = 100;
/** The syntax of RFC 9449 (8.1), limited to a length that fits in a header. */
const NONCE = /^[\x21\x23-\x5B\x5D-\x7E]{1,1024}$/;

type PublicJwk = Readonly<Record<"kty" | "crv" | "x" | "y", string>>;

/**
 * A key that tokens are bound to. oauth4webapi makes the proofs for token endpoints, through `handle`; `proof` makes
 * those for the MCP server. The two keep separate nonces, even for the same origin.
 */
export class DPoPKey {
  readonly handle: oauth.DPoPHandle;
  readonly #keys: oauth.CryptoKeyPair;
  readonly #public: PublicJwk;
  /** Nonces of MCP servers, by origin. */
  readonly #nonces = new ExpiringMap<string, string>({ maxEntries: MAX_NONCES });

  private constructor(keys: oauth.CryptoKeyPair, publicJwk: PublicJwk) {
    this.#keys = keys;
    this.#public = publicJwk;
    this.handle = oauth.DPoP({}, keys);
  }

  /** Makes a new key, or restores the one that `export` returned. */
  static async create(stored?: string): Promise<DPoPKey> {
    const newKeys = (): Promise<oauth.CryptoKeyPair> => crypto.subtle.generateKey(DPOP_CURVE, true, ["sign", "verify"]);
    const keys = stored === undefined ? await newKeys() : await restoreKeys(stored);
    const { kty = "", crv = "", x = "", y = "" } = await crypto.subtle.exportKey("jwk", keys.publicKey);
    return new DPoPKey(keys, { kty, crv, x, y });
  }

  /** The private key, to be stored with the tokens that are bound to it. It is as secret as they are. */
  async export(): Promise<string> {
    const { d } = await crypto.subtle.exportKey("jwk", this.#keys.privateKey);
    return JSON.stringify({ ...this.#public, d });
  }

  /** The value of the `DPoP` header for one request, bound to the token if there is one. */
  async proof(request: { readonly method: string; readonly url: URL }, token?: string): Promise<string> {
    const { method, url } = request;
    const claims = defined({
      jti: crypto.randomUUID(),
      htm: method,
      // Without query and fragment (RFC 9449, 4.2).
      htu: `${url.origin}${url.pathname}`,
      ath: token && (await sha256(token)),
      nonce: this.#nonces.get(url.origin),
    });
    return new SignJWT(claims)
      .setProtectedHeader({ typ: "dpop+jwt", alg: DPOP_ALGORITHM, jwk: this.#public })
      .setIssuedAt()
      .sign(this.#keys.privateKey);
  }

  /** Stores the nonce of a response for the next proof. Returns whether there was one. */
  storeNonce(url: URL, headers: Readonly<Record<string, string>>): boolean {
    const nonce = headers["dpop-nonce"];
    if (nonce === undefined || !NONCE.test(nonce)) return false;
    this.#nonces.set(url.origin, nonce);
    return true;
  }
}

async function restoreKeys(stored: string): Promise<oauth.CryptoKeyPair> {
  try {
    const { kty = "", crv = "", x = "", y = "", d = "" } = JSON.parse(stored) as Record<string, string>;
    const [privateKey, publicKey] = await Promise.all([
      crypto.subtle.importKey("jwk", { kty, crv, x, y, d }, DPOP_CURVE, true, ["sign"]),
      crypto.subtle.importKey("jwk", { kty, crv, x, y }, DPOP_CURVE, true, ["verify"]),
    ]);
    return { privateKey, publicKey };
  } catch {
    // The cause is left out, since it might quote the key.
    throw unauthorized("The stored DPoP key cannot be read, so the tokens bound to it cannot be used: sign in again");
  }
}

async function sha256(token: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token));
  return base64url.encode(new Uint8Array(digest));
}

const ALGORITHM_OF_CURVE: Readonly<Record<string, string>> = {
  "P-256": "ES256",
  "P-384": "ES384",
  "P-521": "ES512",
  Ed25519: "Ed25519",
};
const RSA_ALGORITHMS = ["RS256", "PS256", "RS384", "PS384", "RS512", "PS512"];

/** Imports a client's private key. For an RSA key, the server's metadata decides which algorithm is used. */
export async function importSigningKey(
  source: Exclude<PrivateKeySource, oauth.PrivateKey>,
  server: oauth.AuthorizationServer,
  alg?: string,
): Promise<oauth.PrivateKey> {
  try {
    if (isCryptoKey(source)) return { key: source };
    const jwk = typeof source === "string" ? await pemToJwk(source) : source;
    const key = await importJWK(jwk, alg ?? algorithmFor(jwk, server));
    if (!(key instanceof Uint8Array) && key.type === "private") {
      return { key, ...defined({ kid: jwk.kid }) };
    }
  } catch {
    // The cause is left out, since it might quote the key.
  }
  const kind = alg === undefined ? "" : ` for ${alg}`;
  throw unauthorized(`The client's private key cannot be used: pass a PEM string, a private JWK or a CryptoKey${kind}`);
}

function isCryptoKey(source: oauth.CryptoKey | JWK | string): source is oauth.CryptoKey {
  return typeof source === "object" && "algorithm" in source;
}

/** Uses node:crypto, because it reads all PEM formats: PKCS #8 and the older ones. */
async function pemToJwk(pem: string): Promise<JWK> {
  const { createPrivateKey } = await import("node:crypto");
  return createPrivateKey(pem).export({ format: "jwk" });
}

function algorithmFor(jwk: JWK, server: oauth.AuthorizationServer): string | undefined {
  if (jwk.alg !== undefined) return jwk.alg;
  if (jwk.kty !== "RSA") return ALGORITHM_OF_CURVE[jwk.crv ?? ""];
  const listed = server.token_endpoint_auth_signing_alg_values_supported;
  return RSA_ALGORITHMS.find((alg) => listed?.includes(alg)) ?? "RS256";
}
