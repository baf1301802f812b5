// A token that is a JWT, judged by its bearer's words and its signature: every way in which one can be good or bad, with
// real keys, and a real set of them on a port of this machine. Where keys come from is in bearer-keys.test.ts.

import { createHmac } from "node:crypto";
import { calculateJwkThumbprint, type CryptoKey, exportSPKI, importJWK } from "jose";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import {
  at,
  type Claims,
  endpoint,
  enter,
  metadata,
  now,
  openStage,
  refused,
  resource,
} from "../../../test/support/bearer.ts";
import { newSigner, openIssuer } from "../../../test/support/issuer.ts";
import { type Authenticator, AuthError } from "../../core/authentication.ts";
import { bearer } from "./bearer.ts";

// The clock stands still, so that its edges can be tried.
vi.useFakeTimers({ toFake: ["Date"] });

const { issuer, signer, options, claims, sign } = await openStage();
let auth: Authenticator;

afterAll(() => issuer.close());
beforeEach(() => {
  auth = bearer(options);
  issuer.asked.length = 0;
});

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

describe("a good token", () => {
  it("lets its owner in", async () => {
    const all = claims({ scope: "a b", more: { deep: true } });
    const identity = await enter(auth, await signer.sign(all));
    expect(identity).toEqual({ principal: `${issuer.url} ada`, scopes: ["a", "b"], claims: all });
  });

  it("is brought by any spelling of the scheme", async () => {
    const token = await sign();
    for (const scheme of ["Bearer", "bearer", "BEARER"]) {
      expect((await auth.authenticate(at(`${scheme} ${token}`))).principal).toBe(`${issuer.url} ada`);
    }
  });

  it.each([["RS256"], ["PS384"], ["ES512"], ["EdDSA"]])("may be signed by %s", async (alg) => {
    const other = await newSigner(alg);
    const door = bearer({ ...options, jwks: { keys: [other.jwk] } });
    expect((await enter(door, await other.sign(claims()))).principal).toBe(`${issuer.url} ada`);
  });

  it("may be for several", async () => {
    expect((await enter(auth, await sign({ aud: ["https://other.example", resource] }))).principal).not.toBe("");
  });

  it.each([["JWT"], ["jwt"], ["at+jwt"], ["AT+JWT"], ["application/at+jwt"], [undefined]])(
    "may be of the type %s",
    async (typ) => {
      expect((await enter(auth, await sign({}, typ === undefined ? {} : { typ }))).principal).not.toBe("");
    },
  );

  it("may count by the tolerance alone", async () => {
    for (const nbf of [now() - 1, now() + 5])
      expect(await enter(auth, await sign({ nbf }))).toHaveProperty("principal");
    for (const exp of [now() + 1, now() - 4])
      expect(await enter(auth, await sign({ exp }))).toHaveProperty("principal");
    const strict = bearer({ ...options, clockToleranceSec: 0 });
    expect((await refused(strict, `Bearer ${await sign({ exp: now() })}`)).message).toBe("The token has expired");
    expect((await refused(strict, `Bearer ${await sign({ nbf: now() + 1 })}`)).status).toBe(401);
  });

  it.each<[string, Claims, readonly string[]]>([
    ["none", {}, []],
    ["scope, a text", { scope: "a  b " }, ["a", "b"]],
    ["scope, a list", { scope: ["a", "b"] }, ["a", "b"]],
    ["scp, a list", { scp: ["a", "b"] }, ["a", "b"]],
    ["scp, a text", { scp: "a b" }, ["a", "b"]],
    ["scope before scp", { scope: "a", scp: ["b"] }, ["a"]],
    ["an empty scope, before scp", { scope: "", scp: ["b"] }, []],
    ["what is no text", { scope: ["a", 7, null, "", { b: 1 }] }, ["a"]],
    ["an object", { scope: { a: true } }, []],
    ["a number", { scp: 7 }, []],
  ])("has the scopes of %s", async (_, more, scopes) => {
    expect((await enter(auth, await sign(more))).scopes).toEqual(scopes);
  });

  it("may be of a client that calls for itself, and is then no person of that name", async () => {
    const person = await enter(auth, await sign({ sub: "x", client_id: "y" }));
    const said = claims({ sub: undefined, client_id: "x", scope: "a" });
    const client = await enter(auth, await signer.sign(said));
    expect(person.principal).toBe(`${issuer.url} x`);
    expect(client).toEqual({ principal: `client ${issuer.url} x`, scopes: ["a"], claims: said });
  });

  it("never shows itself in the identity", async () => {
    const token = await sign();
    expect(JSON.stringify(await enter(auth, token))).not.toContain(token.split(".")[2]);
  });

  it("asks for keys once, however many come", async () => {
    const tokens = await Promise.all(["a", "b", "c", "d"].map((sub) => sign({ sub })));
    const identities = await Promise.all(tokens.map((token) => enter(auth, token)));
    expect(identities.map(({ principal }) => principal.split(" ")[1])).toEqual(["a", "b", "c", "d"]);
    await enter(auth, await sign());
    expect(issuer.asked).toEqual(["/keys"]);
  });

  it("of two issuers is told apart", async () => {
    const other = await openIssuer();
    const theirs = await newSigner("ES256", "one");
    for (const [{ url, pages }, { jwk }] of [
      [issuer, signer],
      [other, theirs],
    ] as const) {
      pages.set("/.well-known/oauth-authorization-server", JSON.stringify({ issuer: url, jwks_uri: `${url}/keys` }));
      pages.set("/keys", JSON.stringify({ keys: [jwk] }));
    }
    const door = bearer({ authorizationServers: [issuer.url, other.url], resource });
    const [ours, another] = [await sign(), await theirs.sign(claims({ iss: other.url }))];
    expect((await enter(door, ours)).principal).toBe(`${issuer.url} ada`);
    expect((await enter(door, another)).principal).toBe(`${other.url} ada`);
    // One's key under the other's name.
    const mixed = await refused(door, `Bearer ${await theirs.sign(claims())}`);
    expect(mixed.message).toBe("The signature of the token does not fit");
    await other.close();
  });

  it("need not name its key, while there are two of a kind", async () => {
    const [old, next, stranger] = await Promise.all([
      newSigner("ES256", ""),
      newSigner("ES256", ""),
      newSigner("ES256", ""),
    ]);
    const door = bearer({ ...options, jwks: { keys: [old.jwk, next.jwk] } });
    for (const one of [old, next]) expect(await enter(door, await one.sign(claims()))).toHaveProperty("principal");
    const strange = await refused(door, `Bearer ${await stranger.sign(claims())}`);
    expect(strange.message).toBe("The signature of the token does not fit");
    const expired = await refused(door, `Bearer ${await next.sign(claims({ exp: now() - 60 }))}`);
    expect(expired.message).toBe("The token has expired");
  });
});

describe("a bad token", () => {
  const fails = async (token: string, text: string, door = auth): Promise<void> => {
    const { status, challenge, message } = await refused(door, `Bearer ${token}`);
    expect(message).toBe(text);
    expect(status).toBe(401);
    expect(challenge).toBe(
      `Bearer error="invalid_token", error_description="${text}", resource_metadata="${metadata}"`,
    );
  };
  const MALFORMED = "The token is malformed";
  const NO_JWT = "The token is no JWT";
  const NO_SIGNATURE = "The signature of the token does not fit";
  const NOT_FOR_US = "The token was not issued for this server";
  const NOBODY = "The token does not say whose it is";

  it.each<[string, Claims, string]>([
    ["for another", { aud: "https://other.example/mcp" }, NOT_FOR_US],
    ["for others", { aud: ["https://other.example/mcp", "x"] }, NOT_FOR_US],
    ["for nobody", { aud: undefined }, NOT_FOR_US],
    ["for an empty name", { aud: "" }, NOT_FOR_US],
    ["for an empty list", { aud: [] }, NOT_FOR_US],
    ["for our address with a slash", { aud: `${resource}/` }, NOT_FOR_US],
    ["for the beginning of our address", { aud: "https://notes.example.com" }, NOT_FOR_US],
    ["for more than our address", { aud: `${resource}/more` }, NOT_FOR_US],
    ["for the address of the call", { aud: endpoint }, NOT_FOR_US],
    ["that has expired", { exp: now() - 60 }, "The token has expired"],
    ["that has expired longer ago than is tolerated", { exp: now() - 5 }, "The token has expired"],
    ["that never expires", { exp: undefined }, "The token does not say when it expires"],
    ["that expires at no time", { exp: "never" }, "The token does not say when it expires"],
    ["that does not count yet", { nbf: now() + 60 }, "The token does not count yet"],
    ["that does not count for longer than is tolerated", { nbf: now() + 6 }, "The token does not count yet"],
    ["that begins at no time", { nbf: "soon" }, "The token does not count yet"],
    ["that was issued at no time", { iat: "once" }, "The token has a claim that does not count here"],
    ["of nobody", { sub: undefined }, NOBODY],
    ["of an empty name", { sub: "" }, NOBODY],
    ["of an empty name, and a client", { sub: "", client_id: "x" }, NOBODY],
    ["of a number", { sub: 7 }, NOBODY],
    ["of null, and a client", { sub: null, client_id: "x" }, NOBODY],
    ["of an empty client", { sub: undefined, client_id: "" }, NOBODY],
    ["of a client that is a number", { sub: undefined, client_id: 7 }, NOBODY],
  ])("%s", async (_, more, text) => {
    await fails(await sign(more), text);
  });

  it.each<[string, unknown]>([
    ["another issuer", "https://evil.example"],
    ["no issuer", undefined],
    ["an empty issuer", ""],
    ["an issuer in a list", ["x"]],
    ["our issuer, with a slash", "slash"],
  ])("of %s, without asking anybody", async (_, iss) => {
    const said = iss === "slash" ? `${issuer.url}/` : iss;
    await fails(await sign({ iss: said }), "The token is of an issuer that does not count here");
    expect(issuer.asked).toEqual([]);
  });

  it.each([["dpop+jwt"], ["logout+jwt"], ["secevent+jwt"], ["JOSE"], [""], ["application/jwt"]])(
    "of the type %j, without asking anybody",
    async (typ) => {
      await fails(await sign({}, { typ }), "The token is of a type that does not let anybody in");
      expect(issuer.asked).toEqual([]);
    },
  );

  it("of a type that is no text", async () => {
    await fails(`${part({ alg: "ES256", typ: 7 })}.${part(claims())}.AAAA`, NO_JWT);
  });

  it("signed with another key of the same name", async () => {
    const stranger = await newSigner("ES256", "one");
    await fails(await stranger.sign(claims()), NO_SIGNATURE);
  });

  it("signed with a key of another name", async () => {
    const stranger = await newSigner("ES256", "two");
    await fails(await stranger.sign(claims()), "The token is signed with a key that its issuer does not have");
  });

  it("that brings its own key", async () => {
    const stranger = await newSigner("ES256", "own");
    const header = {
      jwk: stranger.jwk,
      jku: "https://evil.example/keys",
      kid: await calculateJwkThumbprint(stranger.jwk),
    };
    const text = "The token is signed with a key that its issuer does not have";
    await fails(await stranger.sign(claims(), header), text);
    await fails(await stranger.sign(claims(), { ...header, kid: "one" }), NO_SIGNATURE);
  });

  it("signed by nobody", async () => {
    const text = "The token is signed by an algorithm that does not count here";
    for (const alg of ["none", "None", "NONE"]) {
      await fails(`${part({ alg, kid: "one" })}.${part(claims())}.`, text);
      await fails(`${part({ alg, kid: "one" })}.${part(claims())}.AAAA`, text);
    }
    await fails(`${part({ kid: "one" })}.${part(claims())}.AAAA`, MALFORMED);
    await fails(`${part({ alg: "ES256", kid: "one" })}.${part(claims())}.`, NO_SIGNATURE);
  });

  it("signed with the public key as if it were a secret", async () => {
    const key = (await importJWK(signer.jwk, "ES256")) as CryptoKey;
    const text = "The token is signed by an algorithm that does not count here";
    for (const secret of [await exportSPKI(key), JSON.stringify(signer.jwk)]) {
      const signed = `${part({ alg: "HS256", kid: "one" })}.${part(claims())}`;
      const mac = createHmac("sha256", secret).update(signed).digest("base64url");
      await fails(`${signed}.${mac}`, text);
    }
    expect(issuer.asked).toEqual([]);
  });

  it("signed by an algorithm that is not of those named", async () => {
    const door = bearer({ ...options, algorithms: ["RS256"] });
    await fails(await sign(), "The token is signed by an algorithm that does not count here", door);
  });

  it("altered in any part", async () => {
    const [header = "", payload = "", signature = ""] = (await sign()).split(".");
    await fails(`${header}.${part(claims({ sub: "eve" }))}.${signature}`, NO_SIGNATURE);
    await fails(`${part({ alg: "ES256", kid: "one", typ: "JWT" })}.${payload}.${signature}`, NO_SIGNATURE);
    const flipped = signature.startsWith("A") ? `B${signature.slice(1)}` : `A${signature.slice(1)}`;
    await fails(`${header}.${payload}.${flipped}`, NO_SIGNATURE);
  });

  it("cut off anywhere", async () => {
    const token = await sign();
    for (let length = 1; length < token.length; length += 7) {
      const { status, challenge } = await refused(auth, `Bearer ${token.slice(0, length)}`);
      expect([status, challenge]).toEqual([401, expect.stringContaining('error="invalid_token"')]);
    }
  });

  it("that is no JWT, without asking anybody", async () => {
    const [header = "", payload = "", signature = ""] = (await sign()).split(".");
    await fails("opaque", NO_JWT);
    await fails("..", NO_JWT);
    await fails(`${header}.${payload}`, NO_JWT);
    await fails(`${header}.${payload}.${signature}.${signature}`, NO_JWT);
    await fails(`${header}.${part([claims()])}.${signature}`, NO_JWT);
    await fails(`${header}.${part("ada")}.${signature}`, NO_JWT);
    await fails(`a.b.c.d.e`, NO_JWT);
    expect(issuer.asked).toEqual([]);
  });

  it("that wants what is not understood", async () => {
    await fails(
      `${part({ alg: "ES256", kid: "one", crit: ["x"], x: 1 })}.${part(claims())}.AAAA`,
      "The token asks for something that is not supported",
    );
    const unencoded = { alg: "ES256", kid: "one", crit: ["b64"], b64: false };
    const { status } = await refused(auth, `Bearer ${part(unencoded)}.${part(claims())}.AAAA`);
    expect(status).toBe(401);
  });
});

describe("what a token is for", () => {
  it("is the audience, where one is named", async () => {
    const door = bearer({ ...options, audience: ["one", "two"] });
    for (const aud of ["one", "two"]) expect(await enter(door, await sign({ aud }))).toHaveProperty("principal");
    expect((await refused(door, `Bearer ${await sign()}`)).message).toBe("The token was not issued for this server");
  });

  it("is the address of the call, where none is named, on this machine alone", async () => {
    const { resource: _, ...rest } = options;
    const door = bearer(rest);
    const token = `Bearer ${await sign({ aud: endpoint })}`;
    expect(await door.authenticate(at(token))).toHaveProperty("principal");
    expect((await refused(door, token, "http://localhost:3000/mcp")).status).toBe(401);
    const bare = `Bearer ${await sign({ aud: "http://localhost:3000" })}`;
    expect(await door.authenticate(at(bare, "http://localhost:3000/"))).toHaveProperty("principal");
    const elsewhere = `Bearer ${await sign({ aud: "https://other.example/mcp" })}`;
    for (const where of ["https://other.example/mcp", "http://[::1].other.example/mcp", "no address"]) {
      const attempt = door.authenticate(at(elsewhere, where));
      await expect(attempt).rejects.toThrow("needs the option resource");
      await expect(attempt).rejects.not.toBeInstanceOf(AuthError);
      await expect(door.authenticate(at(undefined, where))).rejects.not.toBeInstanceOf(AuthError);
    }
  });

  it("may be named by the audience alone, wherever we are called", async () => {
    const { resource: _, ...rest } = options;
    const door = bearer({ ...rest, audience: "notes" });
    const token = `Bearer ${await sign({ aud: "notes" })}`;
    expect(await door.authenticate(at(token, "https://other.example/mcp"))).toHaveProperty("principal");
  });
});
