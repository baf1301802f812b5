// Verifies JWTs, valid and invalid in every way, with real keys on a local port. Where keys come from is tested in
// jwt-keys.test.ts.

import { createHmac } from "node:crypto";
import { calculateJwkThumbprint, type CryptoKey, exportSPKI, importJWK } from "jose";
import { afterAll, beforeEach, expect, it, vi } from "vitest";
import {
  authenticate,
  type Claims,
  credentialsFor,
  endpoint,
  metadata,
  now,
  openBearerFixture,
  refusalOf,
  resource,
  newSigner,
  openIssuer,
} from "../../../test/support/auth/token-issuer.ts";
import { type Authenticator, AuthError } from "../../core/authentication.ts";
import { bearer } from "./bearer.ts";
import { sampleOf } from "../../../test/support/thoroughness.ts";

// A frozen clock, to test the limits of the tolerance.
vi.useFakeTimers({ toFake: ["Date"] });

const { issuer, signer, options, claims, sign } = await openBearerFixture();
let auth: Authenticator;

afterAll(() => issuer.close());
beforeEach(() => {
  auth = bearer(options);
  issuer.requests.length = 0;
});

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

it("a valid token gives the identity of its owner", async () => {
  const all = claims({ scope: "a b", more: { deep: true } });
  const identity = await authenticate(auth, await signer.sign(all));
  expect(identity).toEqual({ principal: `${issuer.url} ada`, scopes: ["a", "b"], claims: all });
});

it("a valid token is accepted with any case of the scheme", async () => {
  const token = await sign();
  for (const scheme of ["Bearer", "bearer", "BEARER"]) {
    expect((await auth.authenticate(credentialsFor(`${scheme} ${token}`))).principal).toBe(`${issuer.url} ada`);
  }
});

it.each(sampleOf(2, [["ES512"], ["EdDSA"], ["RS256"], ["PS384"]]))("a valid token may be signed by %s", async (alg) => {
  const other = await newSigner(alg);
  const authenticator = bearer({ ...options, jwks: { keys: [other.jwk] } });
  expect((await authenticate(authenticator, await other.sign(claims()))).principal).toBe(`${issuer.url} ada`);
});

it("a valid token may have several audiences", async () => {
  expect((await authenticate(auth, await sign({ aud: ["https://other.example", resource] }))).principal).not.toBe("");
});

it.each([["JWT"], ["jwt"], ["at+jwt"], ["AT+JWT"], ["application/at+jwt"], [undefined]])(
  "a valid token may be of the type %s",
  async (typ) => {
    expect((await authenticate(auth, await sign({}, typ === undefined ? {} : { typ }))).principal).not.toBe("");
  },
);

it("a valid token may be outside its lifetime by the tolerance", async () => {
  for (const nbf of [now() - 1, now() + 5])
    expect(await authenticate(auth, await sign({ nbf }))).toHaveProperty("principal");
  for (const exp of [now() + 1, now() - 4])
    expect(await authenticate(auth, await sign({ exp }))).toHaveProperty("principal");
  const strict = bearer({ ...options, clockToleranceMs: 0 });
  expect((await refusalOf(strict, `Bearer ${await sign({ exp: now() })}`)).message).toBe("The token has expired");
  expect((await refusalOf(strict, `Bearer ${await sign({ nbf: now() + 1 })}`)).status).toBe(401);
});

it.each<[string, Claims, readonly string[]]>([
  ["none", {}, []],
  ["a scope string", { scope: "a  b " }, ["a", "b"]],
  ["a scope array", { scope: ["a", "b"] }, ["a", "b"]],
  ["an scp array", { scp: ["a", "b"] }, ["a", "b"]],
  ["an scp string", { scp: "a b" }, ["a", "b"]],
  ["scope before scp", { scope: "a", scp: ["b"] }, ["a"]],
  ["an empty scope, before scp", { scope: "", scp: ["b"] }, []],
  ["an array with other values", { scope: ["a", 7, null, "", { b: 1 }] }, ["a"]],
  ["an object", { scope: { a: true } }, []],
  ["a number", { scp: 7 }, []],
])("a valid token has the scopes of %s", async (_, more, scopes) => {
  expect((await authenticate(auth, await sign(more))).scopes).toEqual(scopes);
});

it("a valid token may be of a client that acts for itself, which differs from a user of that name", async () => {
  const user = await authenticate(auth, await sign({ sub: "x", client_id: "y" }));
  const clientClaims = claims({ sub: undefined, client_id: "x", scope: "a" });
  const client = await authenticate(auth, await signer.sign(clientClaims));
  expect(user.principal).toBe(`${issuer.url} x`);
  expect(client).toEqual({ principal: `client ${issuer.url} x`, scopes: ["a"], claims: clientClaims });
});

it("a valid token is not part of the identity", async () => {
  const token = await sign();
  expect(JSON.stringify(await authenticate(auth, token))).not.toContain(token.split(".")[2]);
});

it("a valid token causes one request for keys, however many tokens there are", async () => {
  const tokens = await Promise.all(["a", "b", "c", "d"].map((sub) => sign({ sub })));
  const identities = await Promise.all(tokens.map((token) => authenticate(auth, token)));
  expect(identities.map(({ principal }) => principal.split(" ")[1])).toEqual(["a", "b", "c", "d"]);
  await authenticate(auth, await sign());
  expect(issuer.requests).toEqual(["/keys"]);
});

it("a valid token is verified with the keys of its own issuer", async () => {
  const other = await openIssuer();
  const theirs = await newSigner("ES256", "one");
  for (const [{ url, pages }, { jwk }] of [
    [issuer, signer],
    [other, theirs],
  ] as const) {
    pages.set("/.well-known/oauth-authorization-server", JSON.stringify({ issuer: url, jwks_uri: `${url}/keys` }));
    pages.set("/keys", JSON.stringify({ keys: [jwk] }));
  }
  const authenticator = bearer({ authorizationServers: [issuer.url, other.url], resource });
  const [ours, another] = [await sign(), await theirs.sign(claims({ iss: other.url }))];
  expect((await authenticate(authenticator, ours)).principal).toBe(`${issuer.url} ada`);
  expect((await authenticate(authenticator, another)).principal).toBe(`${other.url} ada`);
  // A key of one issuer under the name of the other.
  const mixed = await refusalOf(authenticator, `Bearer ${await theirs.sign(claims())}`);
  expect(mixed.message).toBe("The signature of the token is not valid");
  await other.close();
});

it("a valid token need not name its key, even if two keys fit", async () => {
  const [old, next, other] = await Promise.all([
    newSigner("ES256", ""),
    newSigner("ES256", ""),
    newSigner("ES256", ""),
  ]);
  const authenticator = bearer({ ...options, jwks: { keys: [old.jwk, next.jwk] } });
  for (const one of [old, next])
    expect(await authenticate(authenticator, await one.sign(claims()))).toHaveProperty("principal");
  const strange = await refusalOf(authenticator, `Bearer ${await other.sign(claims())}`);
  expect(strange.message).toBe("The signature of the token is not valid");
  const expired = await refusalOf(authenticator, `Bearer ${await next.sign(claims({ exp: now() - 60 }))}`);
  expect(expired.message).toBe("The token has expired");
});

const fails = async (token: string, text: string, authenticator = auth): Promise<void> => {
  const { status, challenge, message } = await refusalOf(authenticator, `Bearer ${token}`);
  expect(message).toBe(text);
  expect(status).toBe(401);
  expect(challenge).toBe(`Bearer error="invalid_token", error_description="${text}", resource_metadata="${metadata}"`);
};
const MALFORMED = "The token is malformed";
const NOT_A_JWT = "The token is not a JWT";
const BAD_SIGNATURE = "The signature of the token is not valid";
const NOT_FOR_US = "The token was not issued for this server";
const NO_SUBJECT = "The token names no subject and no client";

it.each<[string, Claims, string]>([
  ["for another server", { aud: "https://other.example/mcp" }, NOT_FOR_US],
  ["for other servers", { aud: ["https://other.example/mcp", "x"] }, NOT_FOR_US],
  ["without an audience", { aud: undefined }, NOT_FOR_US],
  ["with an empty audience", { aud: "" }, NOT_FOR_US],
  ["with an empty list of audiences", { aud: [] }, NOT_FOR_US],
  ["for our URL with a slash", { aud: `${resource}/` }, NOT_FOR_US],
  ["for the beginning of our URL", { aud: "https://notes.example.com" }, NOT_FOR_US],
  ["for a longer URL", { aud: `${resource}/more` }, NOT_FOR_US],
  ["for the URL of the request", { aud: endpoint }, NOT_FOR_US],
  ["that has expired", { exp: now() - 60 }, "The token has expired"],
  ["that has expired longer ago than is tolerated", { exp: now() - 5 }, "The token has expired"],
  ["that never expires", { exp: undefined }, "The token does not say when it expires"],
  ["whose expiry is not a number", { exp: "never" }, "The token does not say when it expires"],
  ["that is not valid yet", { nbf: now() + 60 }, "The token is not valid yet"],
  ["that is not valid yet, beyond the tolerance", { nbf: now() + 6 }, "The token is not valid yet"],
  ["whose start is not a number", { nbf: "soon" }, "The token is not valid yet"],
  ["whose issue time is not a number", { iat: "once" }, "The token has a claim that is not valid"],
  ["without a subject", { sub: undefined }, NO_SUBJECT],
  ["with an empty subject", { sub: "" }, NO_SUBJECT],
  ["with an empty subject and a client", { sub: "", client_id: "x" }, NO_SUBJECT],
  ["whose subject is a number", { sub: 7 }, NO_SUBJECT],
  ["whose subject is null, with a client", { sub: null, client_id: "x" }, NO_SUBJECT],
  ["with an empty client", { sub: undefined, client_id: "" }, NO_SUBJECT],
  ["whose client is a number", { sub: undefined, client_id: 7 }, NO_SUBJECT],
])("an invalid token: %s", async (_, more, text) => {
  await fails(await sign(more), text);
});

it.each<[string, unknown]>([
  ["another issuer", "https://evil.example"],
  ["no issuer", undefined],
  ["an empty issuer", ""],
  ["an issuer in a list", ["x"]],
  ["our issuer, with a slash", "slash"],
])("an invalid token of %s, without a request for keys", async (_, iss) => {
  const actual = iss === "slash" ? `${issuer.url}/` : iss;
  await fails(await sign({ iss: actual }), "The issuer of the token is not accepted");
  expect(issuer.requests).toEqual([]);
});

it.each([["dpop+jwt"], ["logout+jwt"], ["secevent+jwt"], ["JOSE"], [""], ["application/jwt"]])(
  "an invalid token of the type %j, without a request for keys",
  async (typ) => {
    await fails(await sign({}, { typ }), "The token is of a type that is not accepted");
    expect(issuer.requests).toEqual([]);
  },
);

it("an invalid token whose type is not a string", async () => {
  await fails(`${part({ alg: "ES256", typ: 7 })}.${part(claims())}.AAAA`, NOT_A_JWT);
});

it("an invalid token: signed with another key of the same ID", async () => {
  const other = await newSigner("ES256", "one");
  await fails(await other.sign(claims()), BAD_SIGNATURE);
});

it("an invalid token: signed with a key of another ID", async () => {
  const other = await newSigner("ES256", "two");
  await fails(await other.sign(claims()), "The token is signed with a key that its issuer does not have");
});

it("an invalid token that contains its own key", async () => {
  const other = await newSigner("ES256", "own");
  const header = {
    jwk: other.jwk,
    jku: "https://evil.example/keys",
    kid: await calculateJwkThumbprint(other.jwk),
  };
  const text = "The token is signed with a key that its issuer does not have";
  await fails(await other.sign(claims(), header), text);
  await fails(await other.sign(claims(), { ...header, kid: "one" }), BAD_SIGNATURE);
});

it("an invalid token without a signature", async () => {
  const text = "The token is signed with an algorithm that is not accepted";
  for (const alg of ["none", "None", "NONE"]) {
    await fails(`${part({ alg, kid: "one" })}.${part(claims())}.`, text);
    await fails(`${part({ alg, kid: "one" })}.${part(claims())}.AAAA`, text);
  }
  await fails(`${part({ kid: "one" })}.${part(claims())}.AAAA`, MALFORMED);
  await fails(`${part({ alg: "ES256", kid: "one" })}.${part(claims())}.`, BAD_SIGNATURE);
});

it("an invalid token: signed with the public key as if it were a secret", async () => {
  const key = (await importJWK(signer.jwk, "ES256")) as CryptoKey;
  const text = "The token is signed with an algorithm that is not accepted";
  for (const secret of [await exportSPKI(key), JSON.stringify(signer.jwk)]) {
    const signed = `${part({ alg: "HS256", kid: "one" })}.${part(claims())}`;
    const mac = createHmac("sha256", secret).update(signed).digest("base64url");
    await fails(`${signed}.${mac}`, text);
  }
  expect(issuer.requests).toEqual([]);
});

it("an invalid token: signed with an algorithm that is not configured", async () => {
  const authenticator = bearer({ ...options, algorithms: ["RS256"] });
  await fails(await sign(), "The token is signed with an algorithm that is not accepted", authenticator);
});

it("an invalid token altered in any part", async () => {
  const [header = "", payload = "", signature = ""] = (await sign()).split(".");
  await fails(`${header}.${part(claims({ sub: "eve" }))}.${signature}`, BAD_SIGNATURE);
  await fails(`${part({ alg: "ES256", kid: "one", typ: "JWT" })}.${payload}.${signature}`, BAD_SIGNATURE);
  const flipped = signature.startsWith("A") ? `B${signature.slice(1)}` : `A${signature.slice(1)}`;
  await fails(`${header}.${payload}.${flipped}`, BAD_SIGNATURE);
});

it("an invalid token cut off anywhere", async () => {
  const token = await sign();
  for (let length = 1; length < token.length; length += 7) {
    const { status, challenge } = await refusalOf(auth, `Bearer ${token.slice(0, length)}`);
    expect([status, challenge]).toEqual([401, expect.stringContaining('error="invalid_token"')]);
  }
});

it("an invalid token that is not a JWT, without a request for keys", async () => {
  const [header = "", payload = "", signature = ""] = (await sign()).split(".");
  await fails("opaque", NOT_A_JWT);
  await fails("..", NOT_A_JWT);
  await fails(`${header}.${payload}`, NOT_A_JWT);
  await fails(`${header}.${payload}.${signature}.${signature}`, NOT_A_JWT);
  await fails(`${header}.${part([claims()])}.${signature}`, NOT_A_JWT);
  await fails(`${header}.${part("ada")}.${signature}`, NOT_A_JWT);
  await fails(`a.b.c.d.e`, NOT_A_JWT);
  expect(issuer.requests).toEqual([]);
});

it("an invalid token with a critical header that is not supported", async () => {
  await fails(
    `${part({ alg: "ES256", kid: "one", crit: ["x"], x: 1 })}.${part(claims())}.AAAA`,
    "The token needs a feature that is not supported",
  );
  const unencoded = { alg: "ES256", kid: "one", crit: ["b64"], b64: false };
  const { status } = await refusalOf(auth, `Bearer ${part(unencoded)}.${part(claims())}.AAAA`);
  expect(status).toBe(401);
});

it("the audience is the option `audience` if it is given", async () => {
  const authenticator = bearer({ ...options, audience: ["one", "two"] });
  for (const aud of ["one", "two"])
    expect(await authenticate(authenticator, await sign({ aud }))).toHaveProperty("principal");
  expect((await refusalOf(authenticator, `Bearer ${await sign()}`)).message).toBe(
    "The token was not issued for this server",
  );
});

it("the audience is the URL of the request by default, but only on this machine", async () => {
  const { resource: _, ...rest } = options;
  const authenticator = bearer(rest);
  const token = `Bearer ${await sign({ aud: endpoint })}`;
  expect(await authenticator.authenticate(credentialsFor(token))).toHaveProperty("principal");
  expect((await refusalOf(authenticator, token, "http://localhost:3000/mcp")).status).toBe(401);
  const bare = `Bearer ${await sign({ aud: "http://localhost:3000" })}`;
  expect(await authenticator.authenticate(credentialsFor(bare, "http://localhost:3000/"))).toHaveProperty("principal");
  const elsewhere = `Bearer ${await sign({ aud: "https://other.example/mcp" })}`;
  for (const where of ["https://other.example/mcp", "http://[::1].other.example/mcp", "not a URL"]) {
    const attempt = authenticator.authenticate(credentialsFor(elsewhere, where));
    await expect(attempt).rejects.toThrow("set `resource`");
    await expect(attempt).rejects.not.toBeInstanceOf(AuthError);
    await expect(authenticator.authenticate(credentialsFor(undefined, where))).rejects.not.toBeInstanceOf(AuthError);
  }
});

it("the audience may be the option `audience` alone, at any URL", async () => {
  const { resource: _, ...rest } = options;
  const authenticator = bearer({ ...rest, audience: "notes" });
  const token = `Bearer ${await sign({ aud: "notes" })}`;
  expect(await authenticator.authenticate(credentialsFor(token, "https://other.example/mcp"))).toHaveProperty(
    "principal",
  );
});
