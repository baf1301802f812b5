// A client's private key, however it is given, as the key that oauth4webapi signs with. The algorithm is what the key
// itself is made for; an RSA key is good for several, and takes one that the server lists. Loaded when a key is used.

import { importJWK } from "jose";
import type { JWK } from "jose";
import type { AuthorizationServer, CryptoKey, PrivateKey } from "oauth4webapi";
import { unauthorized } from "./failures.ts";

/** A key of WebCrypto, a JWK, or a text in PEM. */
export type PrivateKeySource = CryptoKey | JWK | string;

const BY_CURVE: Readonly<Record<string, string>> = {
  "P-256": "ES256",
  "P-384": "ES384",
  "P-521": "ES512",
  Ed25519: "Ed25519",
};
const FOR_RSA = ["RS256", "PS256", "RS384", "PS384", "RS512", "PS512"];

export async function signingKey(
  source: PrivateKeySource,
  server: AuthorizationServer,
  alg?: string,
): Promise<PrivateKey> {
  try {
    if (isCryptoKey(source)) return { key: source };
    const jwk = typeof source === "string" ? await jwkOf(source) : source;
    const key = await importJWK(jwk, alg ?? algorithmOf(jwk, server));
    if (!(key instanceof Uint8Array) && key.type === "private") {
      return { key, ...(jwk.kid === undefined ? {} : { kid: jwk.kid }) };
    }
  } catch {
    // What it says could quote the key.
  }
  const made = alg === undefined ? "" : ` made for ${alg}`;
  throw unauthorized(`The client's private key cannot be used: give a PEM text, a private JWK or a CryptoKey${made}`);
}

function isCryptoKey(source: PrivateKeySource): source is CryptoKey {
  return typeof source === "object" && "algorithm" in source;
}

/** Every form of PEM that Node reads, PKCS #8 and the older ones. */
async function jwkOf(pem: string): Promise<JWK> {
  const { createPrivateKey } = await import("node:crypto");
  return createPrivateKey(pem).export({ format: "jwk" });
}

function algorithmOf(jwk: JWK, server: AuthorizationServer): string | undefined {
  if (jwk.alg !== undefined) return jwk.alg;
  if (jwk.kty !== "RSA") return BY_CURVE[jwk.crv ?? ""];
  const listed = server.token_endpoint_auth_signing_alg_values_supported;
  return FOR_RSA.find((alg) => listed?.includes(alg)) ?? "RS256";
}
