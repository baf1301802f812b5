// Tokens that are bound to a key, from the first refusal to a refresh. Both servers check every proof.

import { calculateJwkThumbprint, EmbeddedJWK, jwtVerify } from "jose";
import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  type ReceivedRequest,
  type AuthorizationServer,
  consentingUser,
  json,
  openAuthorizationServer,
} from "../../../test/support/auth/authorization-server.ts";
import { openProtectedServer, type ProtectedServer, send } from "../../../test/support/auth/protected-server.ts";
import { memoryTokens } from "./stored-tokens.ts";
import { oauth } from "./authorizers.ts";

let server: AuthorizationServer;
let mcpServer: ProtectedServer;
/** The key that each token is bound to. */
let bound: Map<string, string>;
/** The nonces that are required in proofs, if any. */
let nonces: { server?: string; mcp?: string };
let proofs: Set<string>;

beforeEach(async () => {
  server = await openAuthorizationServer();
  mcpServer = await openProtectedServer(server);
  bound = new Map();
  nonces = {};
  proofs = new Set();
  server.pages.set("/token", (request, response) => void issueToken(request, response));
  mcpServer.pages.set("/mcp", (request, response) => void checkRequest(request, response));
});

afterEach(async () => {
  await Promise.all([server.close(), mcpServer.close()]);
});

interface Proof {
  readonly key: string;
  readonly nonce: unknown;
  readonly ath: unknown;
}

/** Undefined if it is not a proof for this request, or was used before. */
async function proofOf({ headers, method }: ReceivedRequest, url: string): Promise<Proof | undefined> {
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

async function issueToken(request: ReceivedRequest, response: ServerResponse): Promise<void> {
  const proof = await proofOf(request, `${server.url}/token`);
  if (proof === undefined) return json(response, 400, { error: "invalid_dpop_proof" });
  if (proof.nonce !== nonces.server) {
    return json(response, 400, { error: "use_dpop_nonce" }, { "dpop-nonce": nonces.server ?? "" });
  }
  const access = `bound-${bound.size + 1}`;
  bound.set(access, proof.key);
  const refresh = `refresh-${bound.size}`;
  json(response, 200, { access_token: access, token_type: "DPoP", expires_in: 3600, refresh_token: refresh });
}

async function checkRequest(request: ReceivedRequest, response: ServerResponse): Promise<void> {
  const [scheme, access = ""] = (request.headers.authorization ?? "").split(" ");
  const refuse = (error: string, headers: Record<string, string> = {}): void =>
    json(response, 401, {}, { "www-authenticate": `DPoP algs="ES256"${error}`, ...headers });
  if (scheme === "") return refuse("");
  const proof = await proofOf(request, mcpServer.url.href);
  const hash = createHash("sha256").update(access).digest("base64url");
  if (scheme !== "DPoP" || proof === undefined || bound.get(access) !== proof.key || proof.ath !== hash) {
    return refuse(', error="invalid_token"');
  }
  if (proof.nonce !== nonces.mcp) return refuse(', error="use_dpop_nonce"', { "dpop-nonce": nonces.mcp ?? "" });
  json(response, 200, {});
}

it("binds the token to a key, with a new proof for every request, if the server offers only DPoP", async () => {
  const auth = oauth({ redirect: consentingUser() });
  expect(await send(auth, mcpServer.url)).toBe(200);
  expect(await send(auth, mcpServer.url)).toBe(200);
  expect(proofs.size).toBe(3);
});

it("registers for DPoP, and binds the code to the key too", async () => {
  const redirect = consentingUser();
  await send(oauth({ redirect, dpop: true }), mcpServer.url);
  expect(JSON.parse(server.at("/register")[0]?.text ?? "")).toMatchObject({ dpop_bound_access_tokens: true });
  expect(redirect.visited[0]?.searchParams.get("dpop_jkt")).toBe(bound.get("bound-1"));
});

it("uses DPoP if the metadata requires it, though the challenge names Bearer", async () => {
  mcpServer.metadata = { ...mcpServer.metadata, dpop_bound_access_tokens_required: true };
  mcpServer.pages.set("/mcp", (request, response) => {
    if (request.headers.authorization === undefined) return mcpServer.refuse(response, 401, [], []);
    void checkRequest(request, response);
  });
  expect(await send(oauth({ redirect: consentingUser() }), mcpServer.url)).toBe(200);
});

it("puts the nonces of both servers into the proofs", async () => {
  nonces = { server: "of-the-server", mcp: "of-the-mcp-server" };
  const auth = oauth({ redirect: consentingUser() });
  expect(await send(auth, mcpServer.url)).toBe(200);
  expect(await send(auth, mcpServer.url)).toBe(200);
  // Refused without a token and without a nonce; not again, since the nonce is known then.
  expect(mcpServer.authorizations).toHaveLength(4);
  expect(server.at("/token")).toHaveLength(2);
});

it("uses a nonce that came with a successful response", async () => {
  const auth = oauth({ redirect: consentingUser() });
  mcpServer.pages.set("/mcp", (request, response) => {
    response.setHeader("dpop-nonce", "the-next");
    void checkRequest(request, response);
  });
  expect(await send(auth, mcpServer.url)).toBe(200);
  nonces = { mcp: "the-next" };
  expect(await send(auth, mcpServer.url)).toBe(200);
  expect(mcpServer.authorizations).toHaveLength(3);
});

it("gives up if every nonce is refused", async () => {
  let count = 0;
  mcpServer.pages.set("/mcp", (request, response) => {
    nonces = { mcp: `nonce-${(count += 1)}` };
    void checkRequest(request, response);
  });
  await expect(send(oauth({ redirect: consentingUser() }), mcpServer.url)).rejects.toThrow("use_dpop_nonce");
  expect(mcpServer.authorizations.length).toBeLessThan(8);
});

it("stores the key with the tokens, and refreshes them with it", async () => {
  const store = memoryTokens();
  await send(oauth({ store, redirect: consentingUser() }), mcpServer.url);
  const auth = oauth({ store });
  expect(await send(auth, mcpServer.url)).toBe(200);
  const key = bound.get("bound-1");
  bound.delete("bound-1");
  bound.set("filler", "");
  expect(await send(auth, mcpServer.url)).toBe(200);
  expect(server.grantsOf("refresh_token")).toHaveLength(1);
  expect(bound.get("bound-2")).toBe(key);
});

it("refreshes the tokens of another process with the key of that process", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  try {
    const store = memoryTokens();
    const auth = oauth({ store, redirect: consentingUser() });
    await send(auth, mcpServer.url);
    const others = memoryTokens();
    const set: typeof store.set = async (key, value) => {
      await Promise.all([others.set(key, value), store.set(key, value)]);
    };
    await send(oauth({ store: { ...others, set }, redirect: consentingUser() }), mcpServer.url);
    expect(bound.get("bound-2")).not.toBe(bound.get("bound-1"));
    vi.setSystemTime(Date.now() + 3_590_000);
    expect(await send(auth, mcpServer.url)).toBe(200);
    expect(server.grantsOf("refresh_token").map((form) => form.get("refresh_token"))).toEqual(["refresh-2"]);
    expect(bound.get("bound-3")).toBe(bound.get("bound-2"));
  } finally {
    vi.useRealTimers();
  }
});

it("refuses a token that is not bound to the key", async () => {
  server.pages.set("/token", (_request, response) => json(response, 200, { access_token: "a", token_type: "Bearer" }));
  await expect(send(oauth({ redirect: consentingUser(), dpop: true }), mcpServer.url)).rejects.toThrow(
    "not bound to our key",
  );
});

it("fails if DPoP is required and `dpop` is false", async () => {
  mcpServer.metadata = { ...mcpServer.metadata, dpop_bound_access_tokens_required: true };
  const sent = send(oauth({ redirect: consentingUser(), dpop: false }), mcpServer.url);
  await expect(sent).rejects.toThrow("`dpop` is false");
});
