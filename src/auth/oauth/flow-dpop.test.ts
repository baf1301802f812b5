// Tokens that are bound to a key, from the first refusal to a refresh, with an authorization server and an end that
// check every proof.

import { calculateJwkThumbprint, EmbeddedJWK, jwtVerify } from "jose";
import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  type Asked,
  type AuthorizationServer,
  consenting,
  json,
  openAuthorizationServer,
} from "../../../test/support/authorization-server.ts";
import { openServer, type ProtectedServer, send } from "../../../test/support/protected-end.ts";
import { memoryTokens } from "./memory-tokens.ts";
import { oauth } from "./oauth.ts";

let server: AuthorizationServer;
let end: ProtectedServer;
/** The key that each token is bound to. */
let bound: Map<string, string>;
/** Wanted in proofs, where it is set. */
let nonces: { server?: string; end?: string };
let proofs: Set<string>;

beforeEach(async () => {
  server = await openAuthorizationServer();
  end = await openServer(server);
  bound = new Map();
  nonces = {};
  proofs = new Set();
  server.pages.set("/token", (asked, response) => void token(asked, response));
  end.pages.set("/mcp", (asked, response) => void judge(asked, response));
});

afterEach(async () => {
  await Promise.all([server.close(), end.close()]);
});

interface Proof {
  readonly key: string;
  readonly nonce: unknown;
  readonly ath: unknown;
}

/** Undefined where it is no proof for this request, or was seen before. */
async function proofOf({ headers, method }: Asked, url: string): Promise<Proof | undefined> {
  const text = String(headers["dpop"]);
  if (proofs.has(text)) return undefined;
  proofs.add(text);
  try {
    const { payload, protectedHeader } = await jwtVerify(text, EmbeddedJWK, { typ: "dpop+jwt" });
    if (payload["htm"] !== method || payload["htu"] !== url || protectedHeader.jwk === undefined) return undefined;
    return { key: await calculateJwkThumbprint(protectedHeader.jwk), nonce: payload["nonce"], ath: payload["ath"] };
  } catch {
    return undefined;
  }
}

async function token(asked: Asked, response: ServerResponse): Promise<void> {
  const proof = await proofOf(asked, `${server.url}/token`);
  if (proof === undefined) return json(response, 400, { error: "invalid_dpop_proof" });
  if (proof.nonce !== nonces.server) {
    return json(response, 400, { error: "use_dpop_nonce" }, { "dpop-nonce": nonces.server ?? "" });
  }
  const access = `bound-${bound.size + 1}`;
  bound.set(access, proof.key);
  const refresh = `refresh-${bound.size}`;
  json(response, 200, { access_token: access, token_type: "DPoP", expires_in: 3600, refresh_token: refresh });
}

async function judge(asked: Asked, response: ServerResponse): Promise<void> {
  const [scheme, access = ""] = (asked.headers.authorization ?? "").split(" ");
  const refuse = (error: string, headers: Record<string, string> = {}): void =>
    json(response, 401, {}, { "www-authenticate": `DPoP algs="ES256"${error}`, ...headers });
  if (scheme === "") return refuse("");
  const proof = await proofOf(asked, end.url.href);
  const hash = createHash("sha256").update(access).digest("base64url");
  if (scheme !== "DPoP" || proof === undefined || bound.get(access) !== proof.key || proof.ath !== hash) {
    return refuse(', error="invalid_token"');
  }
  if (proof.nonce !== nonces.end) return refuse(', error="use_dpop_nonce"', { "dpop-nonce": nonces.end ?? "" });
  json(response, 200, {});
}

it("binds the token to a key and proves it anew with every request, where the end offers nothing else", async () => {
  const auth = oauth({ redirect: consenting() });
  expect(await send(auth, end.url)).toBe(200);
  expect(await send(auth, end.url)).toBe(200);
  expect(proofs.size).toBe(3);
});

it("says so when it registers, and binds the code to the key too", async () => {
  const redirect = consenting();
  await send(oauth({ redirect, dpop: true }), end.url);
  expect(JSON.parse(server.at("/register")[0]?.text ?? "")).toMatchObject({ dpop_bound_access_tokens: true });
  expect(redirect.visited[0]?.searchParams.get("dpop_jkt")).toBe(bound.get("bound-1"));
});

it("does so where the metadata demands it, though the refusal speaks of bearer tokens", async () => {
  end.metadata = { ...end.metadata, dpop_bound_access_tokens_required: true };
  end.pages.set("/mcp", (asked, response) => {
    if (asked.headers.authorization === undefined) return end.refuse(response, 401, [], []);
    void judge(asked, response);
  });
  expect(await send(oauth({ redirect: consenting() }), end.url)).toBe(200);
});

it("puts the server's nonce and the end's nonce into the proofs", async () => {
  nonces = { server: "of-the-server", end: "of-the-end" };
  const auth = oauth({ redirect: consenting() });
  expect(await send(auth, end.url)).toBe(200);
  expect(await send(auth, end.url)).toBe(200);
  // Refused: without a token, without a nonce. Not refused again, for the nonce is known now.
  expect(end.shown).toHaveLength(4);
  expect(server.at("/token")).toHaveLength(2);
});

it("goes by a nonce that came with a good answer", async () => {
  const auth = oauth({ redirect: consenting() });
  end.pages.set("/mcp", (asked, response) => {
    response.setHeader("dpop-nonce", "the-next");
    void judge(asked, response);
  });
  expect(await send(auth, end.url)).toBe(200);
  nonces = { end: "the-next" };
  expect(await send(auth, end.url)).toBe(200);
  expect(end.shown).toHaveLength(3);
});

it("gives up an end that is content with no nonce", async () => {
  let count = 0;
  end.pages.set("/mcp", (asked, response) => {
    nonces = { end: `nonce-${(count += 1)}` };
    void judge(asked, response);
  });
  await expect(send(oauth({ redirect: consenting() }), end.url)).rejects.toThrow("use_dpop_nonce");
  expect(end.shown.length).toBeLessThan(8);
});

it("keeps the key beside the tokens, and refreshes them with it", async () => {
  const store = memoryTokens();
  await send(oauth({ store, redirect: consenting() }), end.url);
  const auth = oauth({ store });
  expect(await send(auth, end.url)).toBe(200);
  const key = bound.get("bound-1");
  bound.delete("bound-1");
  bound.set("filler", "");
  expect(await send(auth, end.url)).toBe(200);
  expect(server.grantsOf("refresh_token")).toHaveLength(1);
  expect(bound.get("bound-2")).toBe(key);
});

it("refreshes what another process got with the key of that one", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const store = memoryTokens();
    const auth = oauth({ store, redirect: consenting() });
    await send(auth, end.url);
    const others = memoryTokens();
    const set: typeof store.set = async (key, value) => {
      await Promise.all([others.set(key, value), store.set(key, value)]);
    };
    await send(oauth({ store: { ...others, set }, redirect: consenting() }), end.url);
    expect(bound.get("bound-2")).not.toBe(bound.get("bound-1"));
    vi.setSystemTime(Date.now() + 3_590_000);
    expect(await send(auth, end.url)).toBe(200);
    expect(server.grantsOf("refresh_token").map((form) => form.get("refresh_token"))).toEqual(["refresh-2"]);
    expect(bound.get("bound-3")).toBe(bound.get("bound-2"));
  } finally {
    vi.useRealTimers();
  }
});

it("does not go on with a token that is not bound, though that was demanded", async () => {
  server.pages.set("/token", (_asked, response) => json(response, 200, { access_token: "a", token_type: "Bearer" }));
  await expect(send(oauth({ redirect: consenting(), dpop: true }), end.url)).rejects.toThrow("not bound to our key");
});

it("says where the program forbids what the end demands", async () => {
  end.metadata = { ...end.metadata, dpop_bound_access_tokens_required: true };
  const sent = send(oauth({ redirect: consenting(), dpop: false }), end.url);
  await expect(sent).rejects.toThrow("`dpop` is false");
});
