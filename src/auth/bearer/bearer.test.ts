// The door that wants bearer tokens: what it says to whom, what it asks of everybody, and what anybody may read there.
// What a token must be is in bearer-token.test.ts, the options in bearer-options.test.ts.

import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { at, endpoint, enter, metadata, openStage, refused, resource } from "../../../test/support/bearer.ts";
import { type Authenticator, AuthError, type Identity } from "../../core/authentication.ts";
import type { BearerOptions } from "./bearer-options.ts";
import { bearer } from "./bearer.ts";

const { issuer, options, sign } = await openStage();
let auth: Required<Authenticator>;

afterAll(() => issuer.close());
beforeEach(() => {
  auth = bearer(options);
  issuer.asked.length = 0;
});

describe("no token", () => {
  it.each([[undefined], [""], ["Bearer"], ["Bearer "], ["bearer"], ["Basic YWRhOng="]])(
    "is told where to get one: %j",
    async (authorization) => {
      const { status, challenge, message } = await refused(auth, authorization);
      expect(status).toBe(401);
      expect(challenge).toBe(`Bearer resource_metadata="${metadata}"`);
      expect(message).toBe("A token is needed to call this");
      expect(issuer.asked).toEqual([]);
    },
  );

  it("is read from nowhere but the header", async () => {
    const token = await sign();
    const headers = { "x-authorization": `Bearer ${token}`, cookie: `access_token=${token}`, access_token: token };
    const credentials = { headers, endpoint: `${endpoint}?access_token=${token}` };
    await expect(auth.authenticate(credentials)).rejects.toMatchObject({ status: 401 });
  });

  it("is told which scopes every call needs", async () => {
    const door = bearer({ ...options, scopes: ["a", "b"], scopesSupported: ["a", "b", "c"] });
    expect((await refused(door, undefined)).challenge).toBe(`Bearer scope="a b", resource_metadata="${metadata}"`);
  });
});

describe("a malformed header", () => {
  it.each([["Bearer a b"], ["Bearer a, Bearer b"], ["Basic a, Bearer b"], ['Bearer "a"']])(
    "is a bad request: %j",
    async (authorization) => {
      const { status, challenge, message } = await refused(auth, authorization);
      expect(status).toBe(400);
      expect(challenge).toBe(
        `Bearer error="invalid_request", error_description="${message}", resource_metadata="${metadata}"`,
      );
    },
  );

  it("may have good tokens in it", async () => {
    const token = await sign();
    expect((await refused(auth, `Bearer ${token}, Bearer ${token}`)).status).toBe(400);
    expect((await refused(auth, `Bearer ${token} ${token}`)).status).toBe(400);
  });
});

describe("a token", () => {
  it("that is too long, unread", async () => {
    const verify = vi.fn(() => ({ principal: "ada" }));
    const door = bearer({ verify, authorizationServers: [issuer.url], resource });
    const { status, challenge } = await refused(door, `Bearer ${"a".repeat(16 * 1024 + 1)}`);
    const said = 'error="invalid_token", error_description="The token is too long"';
    expect([status, challenge]).toEqual([401, `Bearer ${said}, resource_metadata="${metadata}"`]);
    expect(verify).not.toHaveBeenCalled();
    expect(await enter(door, "a".repeat(16 * 1024))).toEqual({ principal: "ada" });
  });
});

describe("scopes", () => {
  const insufficient = (scope: string): string =>
    `Bearer error="insufficient_scope", error_description="The token does not allow this", scope="${scope}", resource_metadata="${metadata}"`;

  it("that every call needs are asked of every token", async () => {
    const door = bearer({ ...options, scopes: ["a", "b"] });
    expect((await enter(door, await sign({ scope: "b c a" }))).scopes).toEqual(["b", "c", "a"]);
    for (const scope of ["a", "b", "", "ab", "A B", undefined]) {
      const { status, challenge, message } = await refused(door, `Bearer ${await sign({ scope })}`);
      expect([status, challenge, message]).toEqual([403, insufficient("a b"), "The token does not allow this"]);
    }
  });

  it("are in the refusal of a bad token too", async () => {
    const { challenge } = await refused(bearer({ ...options, scopes: ["a"] }), "Bearer x");
    expect(challenge).toContain('scope="a"');
  });

  it("that are lacking are all named at once", () => {
    const credentials = at(undefined);
    const identity = { principal: "ada" };
    const refusal = auth.lacking(["c", "d"], identity, credentials);
    expect(refusal).toBeInstanceOf(AuthError);
    expect([refusal.status, refusal.challenge]).toEqual([403, insufficient("c d")]);
    const door = bearer({ ...options, scopes: ["a", "c"] });
    expect(door.lacking(["c", "d"], identity, credentials).challenge).toBe(insufficient("a c d"));
  });

  it("that are none, or that nobody can need, are not named", () => {
    const odd = ["a", "b c", 'd"', "offline_access", 7 as unknown as string, "e\r\nf", ""];
    expect(auth.lacking(odd, { principal: "ada" }, at(undefined)).challenge).toBe(insufficient("a"));
  });

  it("hold what they imply", async () => {
    const door = bearer({ ...options, scopes: ["read"], implies: { admin: ["write"], write: ["read"] } });
    expect((await enter(door, await sign({ scope: "admin read x" }))).scopes).toEqual(["admin", "write", "read", "x"]);
    expect((await enter(door, await sign({ scope: "write" }))).scopes).toEqual(["write", "read"]);
    expect((await refused(door, `Bearer ${await sign({ scope: "x" })}`)).status).toBe(403);
  });
});

describe("verify", () => {
  const door = (verify: BearerOptions["verify"] | (() => unknown), more?: BearerOptions): Authenticator =>
    bearer({ verify: verify as NonNullable<BearerOptions["verify"]>, ...more });

  it("gets the token and where it came, and says who brings it", async () => {
    const verify = vi.fn(async () => ({ principal: "ada", scopes: ["a"], claims: { age: 36 } }));
    expect(await enter(door(verify), "opaque")).toStrictEqual({ principal: "ada", scopes: ["a"], claims: { age: 36 } });
    expect(verify).toHaveBeenCalledExactlyOnceWith("opaque", at("Bearer opaque"));
    expect(
      await enter(
        door(() => ({ principal: "ada", token: "x", scopes: undefined })),
        "x",
      ),
    ).toStrictEqual({
      principal: "ada",
    });
  });

  it("is not asked where there is no token", async () => {
    const verify = vi.fn(() => ({ principal: "ada" }));
    expect((await refused(door(verify), undefined)).challenge).toBe("Bearer");
    expect((await refused(door(verify), "Bearer a b")).status).toBe(400);
    expect(verify).not.toHaveBeenCalled();
  });

  it.each<[unknown]>([
    [undefined],
    [null],
    [false],
    [true],
    ["ada"],
    [0],
    [{}],
    [[]],
    [{ principal: "" }],
    [{ principal: 7 }],
    [{ principal: null, scopes: ["a"] }],
    [{ principal: ["ada"] }],
  ])("lets nobody in by giving %j", async (given) => {
    const text = "The token is not known here";
    for (const verify of [() => given, () => Promise.resolve(given)]) {
      const { status, challenge } = await refused(door(verify), "Bearer x");
      expect(status).toBe(401);
      expect(challenge).toBe(`Bearer error="invalid_token", error_description="${text}"`);
    }
  });

  it("may throw, which refuses the token without a word of why", async () => {
    const wrong = new Error("secret detail");
    const odd: readonly unknown[] = ["text", null, { code: "ECONNREFUSED" }, { name: "TimeoutError" }];
    const throws = [
      () => Promise.reject(wrong),
      () => {
        throw wrong;
      },
      () => Promise.reject(Object.assign(new Error("expired"), { code: "ERR_JWT_EXPIRED" })),
      () => Promise.reject(new TypeError("key is undefined")),
      ...odd.map((thrown) => () => Promise.reject(thrown)),
    ];
    for (const verify of throws) {
      const { status, challenge, message } = await refused(door(verify), "Bearer x");
      expect([status, message]).toEqual([401, "The token was refused"]);
      expect(challenge).toContain('error="invalid_token"');
      expect(challenge).not.toContain("secret");
    }
    const own = new AuthError(403, "not today", "Bearer");
    await expect(
      enter(
        door(() => Promise.reject(own)),
        "x",
      ),
    ).rejects.toBe(own);
  });

  it("may be out of reach of what it asks, which says nothing about the token", async () => {
    const named = (name: string): Error => Object.assign(new Error("late"), { name });
    const down = [
      Object.assign(new Error("connect"), { code: "ECONNREFUSED" }),
      new TypeError("fetch failed"),
      named("AbortError"),
      named("TimeoutError"),
    ];
    for (const error of down)
      await expect(
        enter(
          door(() => Promise.reject(error)),
          "x",
        ),
      ).rejects.toBe(error);
    for (const scopes of ["a b", ["a", 7], {}, null]) {
      const attempt = enter(
        door(() => ({ principal: "ada", scopes })),
        "x",
      );
      await expect(attempt).rejects.toThrow(new TypeError("bearer(): verify must give scopes as a list of strings"));
    }
  });

  it("may refuse in its own words", async () => {
    const own = new AuthError(403, "Not on Sundays", "Bearer");
    expect(
      await refused(
        door(() => Promise.reject(own)),
        "Bearer x",
      ),
    ).toBe(own);
  });

  it("is held to scopes too, which nobody has who does not say so", async () => {
    const needs = (identity: Identity): Authenticator => door(() => identity, { scopes: ["a"] });
    expect((await refused(needs({ principal: "ada" }), "Bearer x")).status).toBe(403);
    expect((await refused(needs({ principal: "ada", scopes: [] }), "Bearer x")).status).toBe(403);
    expect(await enter(needs({ principal: "ada", scopes: ["a"] }), "x")).toStrictEqual({
      principal: "ada",
      scopes: ["a"],
    });
    const implied = door(() => ({ principal: "ada", scopes: ["b"] }), { scopes: ["a"], implies: { b: ["a"] } });
    expect(await enter(implied, "x")).toStrictEqual({ principal: "ada", scopes: ["b", "a"] });
    const silent = door(() => ({ principal: "ada" }), { implies: { b: ["a"] } });
    expect(await enter(silent, "x")).toStrictEqual({ principal: "ada" });
  });

  it("is called wherever we are called, and shows the way to a token where somebody issues them", async () => {
    const elsewhere = "https://other.example/mcp";
    expect(await door(() => ({ principal: "ada" })).authenticate(at("Bearer x", elsewhere))).toHaveProperty(
      "principal",
    );
    const { challenge } = await refused(
      door(() => undefined, { authorizationServers: ["https://a.b"] }),
      undefined,
    );
    expect(challenge).toBe('Bearer resource_metadata="http://127.0.0.1:3000/.well-known/oauth-protected-resource/mcp"');
  });
});

describe("what anybody may read", () => {
  const known = "/.well-known/oauth-protected-resource";

  it("is who we are and who issues tokens for us", () => {
    const door = bearer({
      authorizationServers: ["https://a.b", "https://c.d"],
      resource,
      scopes: ["a"],
      scopesSupported: ["a", "b", "offline_access"],
      resourceName: "Notes",
      resourceDocumentation: "https://notes.example.com/help",
    });
    expect(door.document(known, endpoint)).toStrictEqual({
      resource,
      authorization_servers: ["https://a.b", "https://c.d"],
      scopes_supported: ["a", "b"],
      bearer_methods_supported: ["header"],
      resource_name: "Notes",
      resource_documentation: "https://notes.example.com/help",
    });
  });

  it("says no more than it was told", () => {
    const authorizationServers = ["https://a.b"];
    const least = {
      resource: endpoint,
      authorization_servers: authorizationServers,
      bearer_methods_supported: ["header"],
    };
    expect(bearer({ authorizationServers }).document(known, endpoint)).toStrictEqual(least);
    expect(
      bearer({ authorizationServers, scopesSupported: ["offline_access"] }).document(known, endpoint),
    ).toStrictEqual(least);
    expect(bearer({ authorizationServers, scopes: ["a"] }).document(known, endpoint)).toStrictEqual({
      ...least,
      scopes_supported: ["a"],
    });
  });

  it("stands where the address of the server leads, from without and from within", () => {
    const door = bearer({ authorizationServers: ["https://a.b"], resource: "https://a.b/outside" });
    for (const path of [known, `${known}/outside`, `${known}/mcp`]) {
      expect(door.document(path, endpoint)).toMatchObject({ resource: "https://a.b/outside" });
    }
    const others = [
      "/",
      "/mcp",
      `${known}/`,
      `${known}/other`,
      `${known}/mcp/`,
      `${known}x`,
      "/.well-known",
      `/x${known}`,
    ];
    for (const path of others) expect(door.document(path, endpoint)).toBeUndefined();
    expect(door.document(known, "no address")).toBeDefined();
    expect(door.document("no address", "no address")).toBeUndefined();
  });

  it("stands at the root of a server without a path", async () => {
    const door = bearer({ authorizationServers: ["https://a.b"], resource: "https://a.b", audience: "x" });
    expect(door.document(known, "http://localhost/")).toMatchObject({ resource: "https://a.b" });
    expect(door.document(`${known}/`, "http://localhost/")).toBeUndefined();
    expect((await refused(door, undefined)).challenge).toBe(`Bearer resource_metadata="https://a.b${known}"`);
    expect((await refused(bearer({ ...options, resource: "https://a.b/" }), undefined)).challenge).toBe(
      `Bearer resource_metadata="https://a.b${known}"`,
    );
  });

  it("is nothing where nobody issues tokens", () => {
    expect(bearer({ verify: () => undefined }).document(known, endpoint)).toBeUndefined();
  });

  it("is not promised at an address that is none", async () => {
    const { resource: _, ...rest } = options;
    const door = bearer({ ...rest, audience: "x" });
    expect((await refused(door, undefined, "no address")).challenge).toBe("Bearer");
  });
});
