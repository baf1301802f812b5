// Where the keys of an issuer come from: given, at an address, or at the address that the issuer's metadata names
// (RFC 8414, and OpenID Connect Discovery). What is fetched is bounded in time and size, no redirect is followed, and
// what failed is not tried again at once, because tokens come from anybody and each of them would ask. Keeping keys,
// and asking once for all who wait, is jose's. Loaded with the first token.

import type * as Jose from "jose";
import type { JWTVerifyGetKey } from "jose";
import { isObject } from "../../core/objects.ts";
import { isLoopback, type TokenRules } from "./bearer-options.ts";

const TIMEOUT_MS = 5_000;
/** How long a failure is the answer to whoever asks. */
const REST_MS = 5_000;
const MOST_BYTES = 1024 * 1024;

/** It rejects with an error of jose's where a token names no key of the issuer's, with any other where it cannot tell. */
export function keysOf(jose: typeof Jose, issuer: string, { jwks }: TokenRules): JWTVerifyGetKey {
  if (typeof jwks === "function") return jwks;
  if (jwks instanceof URL) return remote(jose, jwks);
  if (jwks !== undefined) return jose.createLocalJWKSet(jwks);
  const find = resting(() => discover(issuer));
  let found: Promise<JWTVerifyGetKey> | undefined;
  return async (header, token) => {
    found ??= find().then(
      (url) => remote(jose, url),
      (error: unknown) => {
        found = undefined;
        throw error;
      },
    );
    return (await found)(header, token);
  };
}

function remote(jose: typeof Jose, url: URL): JWTVerifyGetKey {
  const fetchKeys = resting(async (address: string, init: RequestInit) => new Response(await fetched(address, init)));
  return jose.createRemoteJWKSet(url, { timeoutDuration: TIMEOUT_MS, [jose.customFetch]: fetchKeys });
}

/** The same, but that a failure is repeated for a while without trying. */
function resting<Args extends unknown[], Value>(get: (...args: Args) => Promise<Value>): typeof get {
  let failed: { readonly at: number; readonly error: unknown } | undefined;
  return async (...args) => {
    if (failed !== undefined && performance.now() - failed.at < REST_MS) throw failed.error;
    try {
      return await get(...args);
    } catch (error) {
      failed = { at: performance.now(), error };
      throw error;
    }
  };
}

/** The address of the issuer's keys. */
async function discover(issuer: string): Promise<URL> {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, "");
  const places = new Set([
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]);
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  let cause: unknown;
  for (const place of places) {
    try {
      return keyAddress(JSON.parse(await fetched(place, { signal })), issuer);
    } catch (error) {
      cause = error;
    }
  }
  throw new Error(`The metadata of ${issuer} does not say where its keys are`, { cause });
}

function keyAddress(metadata: unknown, issuer: string): URL {
  // Whoever could answer for another issuer could sign for it.
  if (!isObject(metadata) || metadata["issuer"] !== issuer) throw new Error(`This is not the metadata of ${issuer}`);
  const url = new URL(String(metadata["jwks_uri"]));
  // An issuer elsewhere has no business on this machine.
  if (url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url) && isLoopback(new URL(issuer)))) {
    return url;
  }
  throw new Error(`The keys of ${issuer} are at ${url.href}, which is no https address`);
}

async function fetched(address: string, init: RequestInit): Promise<string> {
  const response = await fetch(address, { ...init, redirect: "manual" });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`${address} answered ${response.status}`);
  }
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) throw new Error(`${address} sends more than ${MOST_BYTES} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text;
}
