// A key that tokens are bound to (RFC 9449): whoever shows such a token also proves, for each request anew, to have
// the key. The proofs for token endpoints are made by oauth4webapi, through `handle`; those for the end are made here.
// Each side keeps its own nonces: what an authorization server gave is not for an end, even at the same origin.

import { base64url, SignJWT } from "jose";
import type { JWK } from "jose";
import * as oauth from "oauth4webapi";
import { ConnectionError } from "../../core/errors.ts";

const ALGORITHM = "ES256";
const CURVE = { name: "ECDSA", namedCurve: "P-256" };
/** As many origins as one end can lead us to; the oldest goes first. */
const MOST_NONCES = 100;
/** What RFC 9449 (8.1) allows in a nonce, and no more of it than a header should have. */
const NONCE = /^[\x21\x23-\x5B\x5D-\x7E]{1,1024}$/;

type KeyPair = oauth.CryptoKeyPair;
/** The parts of a key on P-256, `d` being the private one. */
type Point = Readonly<Record<"kty" | "crv" | "x" | "y", string>>;

export class DPoPKey {
  /** For the requests that oauth4webapi makes. */
  readonly handle: oauth.DPoPHandle;
  readonly #keys: KeyPair;
  readonly #public: Point;
  /** Of ends, by their origins. */
  readonly #nonces = new Map<string, string>();

  private constructor(keys: KeyPair, point: Point) {
    this.#keys = keys;
    this.#public = point;
    this.handle = oauth.DPoP({}, keys);
  }

  /** A new key, or the one that `export` gave. */
  static async create(stored?: string): Promise<DPoPKey> {
    const keys = stored === undefined ? await generate() : await restore(stored);
    const { kty = "", crv = "", x = "", y = "" } = (await crypto.subtle.exportKey("jwk", keys.publicKey)) as JWK;
    return new DPoPKey(keys, { kty, crv, x, y });
  }

  /** The private key, to be kept beside the tokens that are bound to it: as secret as they are. */
  async export(): Promise<string> {
    const { d } = (await crypto.subtle.exportKey("jwk", this.#keys.privateKey)) as JWK;
    return JSON.stringify({ ...this.#public, d });
  }

  /** The value of the `DPoP` header: good for one request, and with a token for this token only. */
  async proof(sending: { readonly method: string; readonly url: URL }, token?: string): Promise<string> {
    const { method, url } = sending;
    const nonce = this.#nonces.get(url.origin);
    const claims = {
      jti: crypto.randomUUID(),
      htm: method,
      // Neither query nor fragment (RFC 9449, 4.2).
      htu: `${url.origin}${url.pathname}`,
      ...(token === undefined ? {} : { ath: await hashOf(token) }),
      ...(nonce === undefined ? {} : { nonce }),
    };
    return new SignJWT(claims)
      .setProtectedHeader({ typ: "dpop+jwt", alg: ALGORITHM, jwk: this.#public })
      .setIssuedAt()
      .sign(this.#keys.privateKey);
  }

  /**
   * Notes the nonce that an end's answer brings, refusal or not, for the next proof. Whether there was one: then a
   * request that was refused for the lack of it is worth sending again, once.
   */
  heard(url: URL, headers: Readonly<Record<string, string>>): boolean {
    const nonce = headers["dpop-nonce"];
    if (nonce === undefined || !NONCE.test(nonce)) return false;
    this.#nonces.delete(url.origin);
    this.#nonces.set(url.origin, nonce);
    const [oldest] = this.#nonces.keys();
    if (this.#nonces.size > MOST_NONCES && oldest !== undefined) this.#nonces.delete(oldest);
    return true;
  }
}

async function generate(): Promise<KeyPair> {
  return crypto.subtle.generateKey(CURVE, true, ["sign", "verify"]);
}

async function restore(stored: string): Promise<KeyPair> {
  try {
    const { kty, crv, x, y, d } = JSON.parse(stored) as Record<string, string>;
    const [privateKey, publicKey] = await Promise.all([
      crypto.subtle.importKey("jwk", { kty, crv, x, y, d } as JWK, CURVE, true, ["sign"]),
      crypto.subtle.importKey("jwk", { kty, crv, x, y } as JWK, CURVE, true, ["verify"]),
    ]);
    return { privateKey, publicKey };
  } catch {
    // What was thrown might quote the key.
    const message = "The stored DPoP key cannot be read, so the tokens bound to it are of no use: sign in again";
    throw new ConnectionError("unauthorized", message, { mayHaveRun: false });
  }
}

async function hashOf(token: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(token));
  return base64url.encode(new Uint8Array(digest));
}
