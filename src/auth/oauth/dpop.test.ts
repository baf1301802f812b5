// DPoP keys: proofs as in RFC 9449, verified with jose, and the nonces of an authorization server and an MCP server,
// which are kept apart.

import { createServer } from "node:http";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { calculateJwkThumbprint, decodeJwt, decodeProtectedHeader, EmbeddedJWK, jwtVerify } from "jose";
import type { JWK, JWTPayload } from "jose";
import { inspect } from "node:util";
import * as oauth from "oauth4webapi";
import { afterEach, describe, expect, it } from "vitest";
import { DPoPKey } from "./keys.ts";
import { withNonce } from "./token-request.ts";

const MCP_URL = new URL("https://mcp.example/mcp?session=1#part");

const claimsOf = async (proof: string): Promise<JWTPayload> => {
  const { payload } = await jwtVerify(proof, EmbeddedJWK, { typ: "dpop+jwt", algorithms: ["ES256"] });
  return payload;
};
const jwkOf = (proof: string): JWK => decodeProtectedHeader(proof).jwk as JWK;

it("a proof is signed by the key in it, for one method and one URL", async () => {
  const key = await DPoPKey.create();
  const before = Math.floor(Date.now() / 1000);
  const proof = await key.proof({ method: "POST", url: MCP_URL });
  expect(decodeProtectedHeader(proof)).toEqual({
    typ: "dpop+jwt",
    alg: "ES256",
    jwk: { kty: "EC", crv: "P-256", x: expect.any(String), y: expect.any(String) },
  });
  const claims = await claimsOf(proof);
  expect(claims).toEqual({
    jti: expect.any(String),
    htm: "POST",
    htu: "https://mcp.example/mcp",
    iat: expect.any(Number),
  });
  expect(claims.iat).toBeGreaterThanOrEqual(before);
  expect(claims.iat).toBeLessThanOrEqual(Math.ceil(Date.now() / 1000));
});

it("a proof names the normalized URL", async () => {
  const key = await DPoPKey.create();
  const url = new URL("HTTPS://user@MCP.example:443/a/../mcp/%7Ex?a#b");
  expect(decodeJwt(await key.proof({ method: "GET", url }))["htu"]).toBe("https://mcp.example/mcp/%7Ex");
});

it("a proof is bound to one token: the example of RFC 9449", async () => {
  const key = await DPoPKey.create();
  const proof = await key.proof({ method: "GET", url: MCP_URL }, "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU");
  expect((await claimsOf(proof))["ath"]).toBe("fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo");
});

it("a proof is different each time", async () => {
  const key = await DPoPKey.create();
  const proofs = await Promise.all(Array.from({ length: 100 }, () => key.proof({ method: "POST", url: MCP_URL }, "t")));
  expect(new Set(proofs.map((proof) => decodeJwt(proof).jti)).size).toBe(100);
});

it("a key is the same after it was stored", async () => {
  const key = await DPoPKey.create();
  const stored = await key.export();
  const again = await DPoPKey.create(stored);
  expect(await again.export()).toBe(stored);
  const proof = await again.proof({ method: "POST", url: MCP_URL });
  await claimsOf(proof);
  expect(jwkOf(proof)).toEqual(jwkOf(await key.proof({ method: "POST", url: MCP_URL })));
  expect(await again.handle.calculateThumbprint()).toBe(await calculateJwkThumbprint(jwkOf(proof)));
});

it("a key is new each time it is created", async () => {
  expect(await (await DPoPKey.create()).export()).not.toBe(await (await DPoPKey.create()).export());
});

it("a key that cannot be read is an error without its content", async () => {
  const good = JSON.parse(await (await DPoPKey.create()).export()) as Record<string, string>;
  const bad = [
    "",
    "null",
    "secret-text",
    JSON.stringify({ ...good, d: undefined }),
    JSON.stringify({ ...good, crv: "P-384" }),
    JSON.stringify({ ...good, d: "secret-text" }),
    JSON.stringify({ kty: "oct", k: "secret-text" }),
  ];
  for (const stored of bad) {
    const error: unknown = await DPoPKey.create(stored).then(
      () => expect.fail(`it was accepted: ${stored}`),
      (error: unknown) => error,
    );
    expect(error).toMatchObject({ name: "ConnectionError", kind: "unauthorized" });
    expect(inspect(error)).not.toContain("secret-text");
  }
});

const nonceOf = async (key: DPoPKey, url: URL): Promise<unknown> =>
  decodeJwt(await key.proof({ method: "POST", url }))["nonce"];

it("a nonce of an MCP server is in the proofs for its origin until there is a newer one", async () => {
  const key = await DPoPKey.create();
  expect(key.storeNonce(MCP_URL, { "content-type": "text/plain" })).toBe(false);
  expect(await nonceOf(key, MCP_URL)).toBeUndefined();
  expect(key.storeNonce(MCP_URL, { "dpop-nonce": "n1" })).toBe(true);
  expect(await nonceOf(key, new URL("https://mcp.example/other"))).toBe("n1");
  expect(await nonceOf(key, new URL("https://other.example/mcp"))).toBeUndefined();
  expect(await nonceOf(key, new URL("https://mcp.example:8443/mcp"))).toBeUndefined();
  expect(key.storeNonce(MCP_URL, { "dpop-nonce": "n2" })).toBe(true);
  expect(key.storeNonce(MCP_URL, { "dpop-nonce": "n2" })).toBe(true);
  expect(key.storeNonce(MCP_URL, {})).toBe(false);
  expect(await nonceOf(key, MCP_URL)).toBe("n2");
});

it.each(["", "two, of them", 'a "quote"', "a\\b", "ü", "x".repeat(1_025)])(
  "a nonce of an MCP server is ignored if it is %j",
  async (nonce) => {
    const key = await DPoPKey.create();
    expect(key.storeNonce(MCP_URL, { "dpop-nonce": nonce })).toBe(false);
    expect(await nonceOf(key, MCP_URL)).toBeUndefined();
  },
);

it("a nonce of an MCP server is dropped if there are too many", async () => {
  const key = await DPoPKey.create();
  const origins = Array.from({ length: 101 }, (_one, at) => new URL(`https://end${at}.example/`));
  for (const url of origins) key.storeNonce(url, { "dpop-nonce": `of ${url.host}`.replace(" ", "-") });
  expect(await nonceOf(key, origins[0] ?? MCP_URL)).toBeUndefined();
  expect(await nonceOf(key, origins[1] ?? MCP_URL)).toBe("of-end1.example");
  expect(await nonceOf(key, origins[100] ?? MCP_URL)).toBe("of-end100.example");
});

describe("at a token endpoint", () => {
  let listening: Server | undefined;
  afterEach(async () => {
    await new Promise((resolve) => listening?.close(resolve));
  });

  it("at a token endpoint, the nonce of the authorization server is used, even if the MCP server has the same origin", async () => {
    const proofs: JWTPayload[] = [];
    listening = createServer((request, response) => {
      const claims = decodeJwt(String(request.headers["dpop"]));
      proofs.push(claims);
      response.setHeader("content-type", "application/json");
      if (claims["nonce"] === "of-server") {
        response.end(JSON.stringify({ access_token: "t", token_type: "DPoP" }));
      } else {
        response.writeHead(400, { "dpop-nonce": "of-server" }).end(JSON.stringify({ error: "use_dpop_nonce" }));
      }
    });
    await new Promise<void>((resolve) => listening?.listen(0, "127.0.0.1", resolve));
    const issuer = `http://127.0.0.1:${(listening.address() as AddressInfo).port}`;
    const server = { issuer, token_endpoint: `${issuer}/token` };
    const client = { client_id: "c" };

    const key = await DPoPKey.create();
    key.storeNonce(new URL(issuer), { "dpop-nonce": "of-mcp" });
    const options = { DPoP: key.handle, [oauth.allowInsecureRequests]: true };
    const tokens = await withNonce(async () =>
      oauth.processClientCredentialsResponse(
        server,
        client,
        await oauth.clientCredentialsGrantRequest(server, client, oauth.None(), {}, options),
      ),
    );
    expect(tokens.token_type).toBe("dpop");
    expect(proofs.map(({ nonce }) => nonce)).toEqual([undefined, "of-server"]);
    expect(new Set(proofs.map(({ jti }) => jti)).size).toBe(2);
    expect(proofs[0]).toMatchObject({ htm: "POST", htu: `${issuer}/token` });
    expect(decodeJwt(await key.proof({ method: "POST", url: new URL(`${issuer}/mcp`) }, "t"))["nonce"]).toBe("of-mcp");
  });
});
