// bearer(): challenges, required scopes, `verify`, and the published metadata. The verification of JWTs is tested in
// jwt.test.ts, the options in options.test.ts.

import { afterAll, beforeEach, expect, it, vi } from "vitest";
import {
  authenticate,
  credentialsFor,
  endpoint,
  metadata,
  openBearerFixture,
  refusalOf,
  resource,
} from "../../../test/support/auth/token-issuer.ts";
import { type Authenticator, AuthError, type Identity } from "../../core/authentication.ts";
import type { BearerOptions } from "./bearer.ts";
import { bearer } from "./bearer.ts";

const { issuer, options, sign } = await openBearerFixture();
let auth: Required<Authenticator>;

afterAll(() => issuer.close());
beforeEach(() => {
  auth = bearer(options);
  issuer.requests.length = 0;
});

it.each([[undefined], [""], ["Bearer"], ["Bearer "], ["bearer"], ["Basic YWRhOng="]])(
  "a request without a token gets the URL of the metadata: %j",
  async (authorization) => {
    const { status, challenge, message } = await refusalOf(auth, authorization);
    expect(status).toBe(401);
    expect(challenge).toBe(`Bearer resource_metadata="${metadata}"`);
    expect(message).toBe("A token is required");
    expect(issuer.requests).toEqual([]);
  },
);

it("a request without a token is refused even if the token is elsewhere in the request", async () => {
  const token = await sign();
  const headers = { "x-authorization": `Bearer ${token}`, cookie: `access_token=${token}`, access_token: token };
  const credentials = { headers, endpoint: `${endpoint}?access_token=${token}` };
  await expect(auth.authenticate(credentials)).rejects.toMatchObject({ status: 401 });
});

it("a request without a token gets the scopes that every call needs", async () => {
  const authenticator = bearer({ ...options, scopes: ["a", "b"], scopesSupported: ["a", "b", "c"] });
  expect((await refusalOf(authenticator, undefined)).challenge).toBe(
    `Bearer scope="a b", resource_metadata="${metadata}"`,
  );
});

it.each([["Bearer a b"], ["Bearer a, Bearer b"], ["Basic a, Bearer b"], ['Bearer "a"']])(
  "a malformed header is a bad request: %j",
  async (authorization) => {
    const { status, challenge, message } = await refusalOf(auth, authorization);
    expect(status).toBe(400);
    expect(challenge).toBe(
      `Bearer error="invalid_request", error_description="${message}", resource_metadata="${metadata}"`,
    );
  },
);

it("a malformed header is a bad request even if it has valid tokens", async () => {
  const token = await sign();
  expect((await refusalOf(auth, `Bearer ${token}, Bearer ${token}`)).status).toBe(400);
  expect((await refusalOf(auth, `Bearer ${token} ${token}`)).status).toBe(400);
});

it("a token that is too long is refused without verifying it", async () => {
  const verify = vi.fn(() => ({ principal: "ada" }));
  const authenticator = bearer({ verify, authorizationServers: [issuer.url], resource });
  const { status, challenge } = await refusalOf(authenticator, `Bearer ${"a".repeat(16 * 1024 + 1)}`);
  const params = 'error="invalid_token", error_description="The token is too long"';
  expect([status, challenge]).toEqual([401, `Bearer ${params}, resource_metadata="${metadata}"`]);
  expect(verify).not.toHaveBeenCalled();
  expect(await authenticate(authenticator, "a".repeat(16 * 1024))).toEqual({ principal: "ada" });
});

const insufficient = (scope: string): string =>
  `Bearer error="insufficient_scope", error_description="The token lacks a required scope", scope="${scope}", resource_metadata="${metadata}"`;

it("scopes that every call needs are required of every token", async () => {
  const authenticator = bearer({ ...options, scopes: ["a", "b"] });
  expect((await authenticate(authenticator, await sign({ scope: "b c a" }))).scopes).toEqual(["b", "c", "a"]);
  for (const scope of ["a", "b", "", "ab", "A B", undefined]) {
    const { status, challenge, message } = await refusalOf(authenticator, `Bearer ${await sign({ scope })}`);
    expect([status, challenge, message]).toEqual([403, insufficient("a b"), "The token lacks a required scope"]);
  }
});

it("scopes are in the challenge for an invalid token too", async () => {
  const { challenge } = await refusalOf(bearer({ ...options, scopes: ["a"] }), "Bearer x");
  expect(challenge).toContain('scope="a"');
});

it("scopes that are missing are all named at once", () => {
  const credentials = credentialsFor(undefined);
  const identity = { principal: "ada" };
  const refusal = auth.insufficientScope(["c", "d"], identity, credentials);
  expect(refusal).toBeInstanceOf(AuthError);
  expect([refusal.status, refusal.challenge]).toEqual([403, insufficient("c d")]);
  const authenticator = bearer({ ...options, scopes: ["a", "c"] });
  expect(authenticator.insufficientScope(["c", "d"], identity, credentials).challenge).toBe(insufficient("a c d"));
});

it("scopes that are not valid, and offline_access, are not named", () => {
  const odd = ["a", "b c", 'd"', "offline_access", 7 as unknown as string, "e\r\nf", ""];
  expect(auth.insufficientScope(odd, { principal: "ada" }, credentialsFor(undefined)).challenge).toBe(
    insufficient("a"),
  );
});

it("scopes include the scopes that they imply", async () => {
  const authenticator = bearer({ ...options, scopes: ["read"], implies: { admin: ["write"], write: ["read"] } });
  expect((await authenticate(authenticator, await sign({ scope: "admin read x" }))).scopes).toEqual([
    "admin",
    "write",
    "read",
    "x",
  ]);
  expect((await authenticate(authenticator, await sign({ scope: "write" }))).scopes).toEqual(["write", "read"]);
  expect((await refusalOf(authenticator, `Bearer ${await sign({ scope: "x" })}`)).status).toBe(403);
});

const authenticator = (verify: BearerOptions["verify"] | (() => unknown), more?: BearerOptions): Authenticator =>
  bearer({ verify: verify as NonNullable<BearerOptions["verify"]>, ...more });

it("verify gets the token and the credentials, and returns the identity", async () => {
  const verify = vi.fn(async () => ({ principal: "ada", scopes: ["a"], claims: { age: 36 } }));
  expect(await authenticate(authenticator(verify), "opaque")).toStrictEqual({
    principal: "ada",
    scopes: ["a"],
    claims: { age: 36 },
  });
  expect(verify).toHaveBeenCalledExactlyOnceWith("opaque", credentialsFor("Bearer opaque"));
  expect(
    await authenticate(
      authenticator(() => ({ principal: "ada", token: "x", scopes: undefined })),
      "x",
    ),
  ).toStrictEqual({
    principal: "ada",
  });
});

it("verify is not called without a token", async () => {
  const verify = vi.fn(() => ({ principal: "ada" }));
  expect((await refusalOf(authenticator(verify), undefined)).challenge).toBe("Bearer");
  expect((await refusalOf(authenticator(verify), "Bearer a b")).status).toBe(400);
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
])("verify refuses the token by returning %j", async (given) => {
  const text = "The token is unknown";
  for (const verify of [() => given, () => Promise.resolve(given)]) {
    const { status, challenge } = await refusalOf(authenticator(verify), "Bearer x");
    expect(status).toBe(401);
    expect(challenge).toBe(`Bearer error="invalid_token", error_description="${text}"`);
  }
});

it("verify refuses the token by throwing, and the reason stays secret", async () => {
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
    const { status, challenge, message } = await refusalOf(authenticator(verify), "Bearer x");
    expect([status, message]).toEqual([401, "The token was refused"]);
    expect(challenge).toContain('error="invalid_token"');
    expect(challenge).not.toContain("secret");
  }
  const own = new AuthError(403, "not today", "Bearer");
  await expect(
    authenticate(
      authenticator(() => Promise.reject(own)),
      "x",
    ),
  ).rejects.toBe(own);
});

it("verify passes on the error if a service could not be reached", async () => {
  const named = (name: string): Error => Object.assign(new Error("late"), { name });
  const down = [
    Object.assign(new Error("connect"), { code: "ECONNREFUSED" }),
    new TypeError("fetch failed"),
    named("AbortError"),
    named("TimeoutError"),
  ];
  for (const error of down)
    await expect(
      authenticate(
        authenticator(() => Promise.reject(error)),
        "x",
      ),
    ).rejects.toBe(error);
  for (const scopes of ["a b", ["a", 7], {}, null]) {
    const attempt = authenticate(
      authenticator(() => ({ principal: "ada", scopes })),
      "x",
    );
    await expect(attempt).rejects.toThrow(
      new TypeError("bearer(): `verify` must return scopes as an array of strings"),
    );
  }
});

it("verify may throw an AuthError of its own", async () => {
  const own = new AuthError(403, "Not on Sundays", "Bearer");
  expect(
    await refusalOf(
      authenticator(() => Promise.reject(own)),
      "Bearer x",
    ),
  ).toBe(own);
});

it("verify must return the required scopes, and has none by default", async () => {
  const needs = (identity: Identity): Authenticator => authenticator(() => identity, { scopes: ["a"] });
  expect((await refusalOf(needs({ principal: "ada" }), "Bearer x")).status).toBe(403);
  expect((await refusalOf(needs({ principal: "ada", scopes: [] }), "Bearer x")).status).toBe(403);
  expect(await authenticate(needs({ principal: "ada", scopes: ["a"] }), "x")).toStrictEqual({
    principal: "ada",
    scopes: ["a"],
  });
  const implied = authenticator(() => ({ principal: "ada", scopes: ["b"] }), {
    scopes: ["a"],
    implies: { b: ["a"] },
  });
  expect(await authenticate(implied, "x")).toStrictEqual({ principal: "ada", scopes: ["b", "a"] });
  const silent = authenticator(() => ({ principal: "ada" }), { implies: { b: ["a"] } });
  expect(await authenticate(silent, "x")).toStrictEqual({ principal: "ada" });
});

it("verify is called at any URL, and a challenge names the metadata if there is an authorization server", async () => {
  const elsewhere = "https://other.example/mcp";
  expect(
    await authenticator(() => ({ principal: "ada" })).authenticate(credentialsFor("Bearer x", elsewhere)),
  ).toHaveProperty("principal");
  const { challenge } = await refusalOf(
    authenticator(() => undefined, { authorizationServers: ["https://a.b"] }),
    undefined,
  );
  expect(challenge).toBe('Bearer resource_metadata="http://127.0.0.1:3000/.well-known/oauth-protected-resource/mcp"');
});

const known = "/.well-known/oauth-protected-resource";

it("the published metadata names the resource and its authorization servers", () => {
  const authenticator = bearer({
    authorizationServers: ["https://a.b", "https://c.d"],
    resource,
    scopes: ["a"],
    scopesSupported: ["a", "b", "offline_access"],
    resourceName: "Notes",
    resourceDocumentation: "https://notes.example.com/help",
  });
  expect(authenticator.document(known, endpoint)).toStrictEqual({
    resource,
    authorization_servers: ["https://a.b", "https://c.d"],
    scopes_supported: ["a", "b"],
    bearer_methods_supported: ["header"],
    resource_name: "Notes",
    resource_documentation: "https://notes.example.com/help",
  });
});

it("the published metadata contains only what was configured", () => {
  const authorizationServers = ["https://a.b"];
  const minimal = {
    resource: endpoint,
    authorization_servers: authorizationServers,
    bearer_methods_supported: ["header"],
  };
  expect(bearer({ authorizationServers }).document(known, endpoint)).toStrictEqual(minimal);
  expect(bearer({ authorizationServers, scopesSupported: ["offline_access"] }).document(known, endpoint)).toStrictEqual(
    minimal,
  );
  expect(bearer({ authorizationServers, scopes: ["a"] }).document(known, endpoint)).toStrictEqual({
    ...minimal,
    scopes_supported: ["a"],
  });
});

it("the published metadata is at the paths of the public URL and of the local endpoint", () => {
  const authenticator = bearer({ authorizationServers: ["https://a.b"], resource: "https://a.b/outside" });
  for (const path of [known, `${known}/outside`, `${known}/mcp`]) {
    expect(authenticator.document(path, endpoint)).toMatchObject({ resource: "https://a.b/outside" });
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
  for (const path of others) expect(authenticator.document(path, endpoint)).toBeUndefined();
  expect(authenticator.document(known, "not a URL")).toBeDefined();
  expect(authenticator.document("not a URL", "not a URL")).toBeUndefined();
});

it("the published metadata is at the root for a resource without a path", async () => {
  const authenticator = bearer({ authorizationServers: ["https://a.b"], resource: "https://a.b", audience: "x" });
  expect(authenticator.document(known, "http://localhost/")).toMatchObject({ resource: "https://a.b" });
  expect(authenticator.document(`${known}/`, "http://localhost/")).toBeUndefined();
  expect((await refusalOf(authenticator, undefined)).challenge).toBe(`Bearer resource_metadata="https://a.b${known}"`);
  expect((await refusalOf(bearer({ ...options, resource: "https://a.b/" }), undefined)).challenge).toBe(
    `Bearer resource_metadata="https://a.b${known}"`,
  );
});

it("the published metadata is missing without an authorization server", () => {
  expect(bearer({ verify: () => undefined }).document(known, endpoint)).toBeUndefined();
});

it("the published metadata is not named if the endpoint is not a URL", async () => {
  const { resource: _, ...rest } = options;
  const authenticator = bearer({ ...rest, audience: "x" });
  expect((await refusalOf(authenticator, undefined, "not a URL")).challenge).toBe("Bearer");
});
