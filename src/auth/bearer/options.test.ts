// Options of bearer(): which are refused, and the defaults.

import { expect, it } from "vitest";
import { newSigner } from "../../../test/support/auth/token-issuer.ts";
import { type BearerOptions, readBearerOptions } from "./bearer.ts";
import { bearer } from "./bearer.ts";

const authorizationServers = ["https://auth.example.com"];
const verify = () => ({ principal: "ada" });
const { jwk } = await newSigner();

type Row = readonly [name: string, options: unknown, text: string];

const url = "must be an http or https URL without query, fragment and user";
const https = "must be an https URL, except on this machine";
const list = 'must be an array of strings, such as ["notes:write"]';
const strings = "must be strings of visible ASCII, without spaces, quotes and backslashes";
const names = "must be a string or an array of strings, none of them empty or with spaces";
const set = "`jwks` must be a URL, a set of public keys, or a function that returns a key";
const asymmetric =
  "`algorithms` may contain only RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519, which need no shared secret";
const noIssuer = "`authorizationServers` must name the issuers of the tokens, unless `verify` is given";
const tolerance = "`clockToleranceMs` must be a number from 0 to 300000";

const base = { authorizationServers };
const ROWS: readonly Row[] = [
  ["nothing", undefined, "the options must be an object"],
  ["null", null, "the options must be an object"],
  ["a string", "https://auth.example.com", "the options must be an object"],
  ["an array", [], "the options must be an object"],
  ["no authorization server", {}, noIssuer],
  ["an empty array of authorization servers", { authorizationServers: [] }, noIssuer],
  ["keys but no authorization server", { jwks: { keys: [jwk] }, issuer: "me" }, noIssuer],
  ["a server as a string", { authorizationServers: "https://a.b" }, "`authorizationServers` must be an array of URLs"],
  ["a server that is not a URL", { authorizationServers: ["a.b"] }, `\`authorizationServers\` ${url}; got a.b`],
  [
    "a server that is undefined",
    { authorizationServers: [undefined] },
    `\`authorizationServers\` ${url}; got undefined`,
  ],
  ["a server that is an object", { authorizationServers: [new URL("https://a.b")] }, `\`authorizationServers\` ${url}`],
  ["a server of another scheme", { authorizationServers: ["ftp://a.b"] }, `\`authorizationServers\` ${url}`],
  ["a server with a query", { authorizationServers: ["https://a.b/?c"] }, `\`authorizationServers\` ${url}`],
  ["a server with a fragment", { authorizationServers: ["https://a.b/#c"] }, `\`authorizationServers\` ${url}`],
  ["a server with a user", { authorizationServers: ["https://u@a.b/"] }, `\`authorizationServers\` ${url}`],
  [
    "a server without TLS",
    { authorizationServers: ["http://a.b"] },
    `\`authorizationServers\` ${https}; got http://a.b`,
  ],
  ["a second server without TLS", { authorizationServers: ["https://a.b", "http://a.b"] }, "`authorizationServers`"],
  ["a server with verify, without TLS", { authorizationServers: ["http://a.b"], verify }, "`authorizationServers`"],
  [
    "a name that only looks local",
    { authorizationServers: ["http://127.0.0.1.a.b"] },
    `\`authorizationServers\` ${https}`,
  ],
  [
    "another name that only looks local",
    { authorizationServers: ["http://localhost.a.b"] },
    `\`authorizationServers\` ${https}`,
  ],
  ["a resource that is not a URL", { ...base, resource: "me" }, `\`resource\` ${url}; got me`],
  ["a resource with a fragment", { ...base, resource: "https://a.b/#c" }, `\`resource\` ${url}`],
  ["a resource with a query", { ...base, resource: "https://a.b/?c" }, `\`resource\` ${url}`],
  ["an empty issuer", { ...base, issuer: "" }, `\`issuer\` ${names}`],
  ["an issuer with a space", { ...base, issuer: "a b" }, `\`issuer\` ${names}`],
  ["no issuers", { ...base, issuer: [] }, `\`issuer\` ${names}`],
  ["an issuer that is a number", { ...base, issuer: [7] }, `\`issuer\` ${names}`],
  ["null for an issuer", { ...base, issuer: null }, `\`issuer\` ${names}`],
  ["an issuer that is not a URL, without keys", { ...base, issuer: "me" }, `\`issuer\` ${url}; got me`],
  ["an issuer without TLS, without keys", { ...base, issuer: "http://a.b" }, `\`issuer\` ${https}`],
  [
    "one set of keys for two issuers",
    { authorizationServers: ["https://a.b", "https://c.d"], jwks: { keys: [jwk] } },
    "`jwks` may be set only for a single issuer",
  ],
  ["keys without TLS", { ...base, jwks: "http://a.b/keys" }, `\`jwks\` ${https}; got http://a.b/keys`],
  ["keys at a URL without TLS", { ...base, jwks: new URL("http://a.b/keys") }, `\`jwks\` ${https}`],
  ["keys at something else than a URL", { ...base, jwks: "keys" }, `\`jwks\` ${url}`],
  ["keys with a fragment", { ...base, jwks: "https://a.b/#c" }, `\`jwks\` ${url}`],
  ["no keys", { ...base, jwks: { keys: [] } }, set],
  ["keys that are not an array", { ...base, jwks: { keys: { 0: jwk } } }, set],
  ["keys that are a string", { ...base, jwks: { keys: "abc" } }, set],
  ["a key that is null", { ...base, jwks: { keys: [null] } }, set],
  ["a key that is a string", { ...base, jwks: { keys: [jwk, "a"] } }, set],
  ["a key without a type", { ...base, jwks: { keys: [{ ...jwk, kty: undefined }] } }, set],
  ["a shared secret", { ...base, jwks: { keys: [{ kty: "oct", k: "AAAA" }] } }, set],
  ["a private key", { ...base, jwks: { keys: [{ ...jwk, d: "AAAA" }] } }, set],
  ["a verify that is not a function", { verify: true }, "`verify` must be a function"],
  ["keys with verify", { verify, jwks: { keys: [jwk] } }, "`jwks` has no effect with `verify`"],
  ["an issuer with verify", { verify, issuer: "a" }, "`issuer` has no effect with `verify`"],
  ["an audience with verify", { verify, audience: "a" }, "`audience` has no effect with `verify`"],
  ["algorithms with verify", { verify, algorithms: ["ES256"] }, "`algorithms` has no effect with `verify`"],
  ["a tolerance with verify", { verify, clockToleranceMs: 1_000 }, "`clockToleranceMs` has no effect with `verify`"],
  ["an empty audience", { ...base, audience: "" }, `\`audience\` ${names}`],
  ["no audience", { ...base, audience: [] }, `\`audience\` ${names}`],
  ["false for an audience", { ...base, audience: false }, `\`audience\` ${names}`],
  ["null for an audience", { ...base, audience: null }, `\`audience\` ${names}`],
  ["an audience with an empty string", { ...base, audience: ["a", ""] }, `\`audience\` ${names}`],
  ["scopes that are a string", { ...base, scopes: "a b" }, `\`scopes\` ${list}`],
  ["a scope with a space", { ...base, scopes: ["a b"] }, `\`scopes\` ${strings}`],
  ["offline_access as a scope", { ...base, scopes: ["offline_access"] }, "`scopes` must not contain offline_access"],
  ["supported scopes that are a string", { ...base, scopesSupported: "a" }, `\`scopesSupported\` ${list}`],
  ["supported scopes with quotes", { ...base, scopesSupported: ['"'] }, `\`scopesSupported\` ${strings}`],
  ["implies as an array", { ...base, implies: [] }, "`implies` must be an object of arrays"],
  ["null for implies", { ...base, implies: null }, "`implies` must be an object of arrays"],
  ["implied scopes that are a string", { ...base, implies: { a: "b" } }, `\`implies\` ${list}`],
  ["an implied scope that is not valid", { ...base, implies: { a: [""] } }, `\`implies\` ${strings}`],
  ["an implying scope that is not valid", { ...base, implies: { "a b": ["a"] } }, `\`implies\` ${strings}`],
  ["a shared secret's algorithm", { ...base, algorithms: ["HS256"] }, `${asymmetric}; got HS256`],
  ["no signature", { ...base, algorithms: ["ES256", "none"] }, `${asymmetric}; got none`],
  ["no algorithms", { ...base, algorithms: [] }, `\`algorithms\` ${names}`],
  ["a tolerance below zero", { ...base, clockToleranceMs: -1 }, tolerance],
  ["an infinite tolerance", { ...base, clockToleranceMs: Infinity }, tolerance],
  ["a tolerance too large", { ...base, clockToleranceMs: 300_001 }, tolerance],
  ["a tolerance that is NaN", { ...base, clockToleranceMs: Number.NaN }, tolerance],
  ["a tolerance that is a string", { ...base, clockToleranceMs: "5" }, tolerance],
  ["a name that is not a string", { ...base, resourceName: 7 }, "`resourceName` must be a string"],
  [
    "documentation that is not a string",
    { ...base, resourceDocumentation: {} },
    "`resourceDocumentation` must be a string",
  ],
];

it.each(ROWS)("bearer() refuses %s", (_, options, text) => {
  const create = (): unknown => bearer(options as BearerOptions);
  expect(create).toThrow(TypeError);
  expect(create).toThrow(`bearer(): ${text}`);
});

it("bearer() refuses an unknown option and names the nearest one", () => {
  const create = (options: object): unknown => bearer(options);
  expect(() => create({ ...base, clockTolerance: 5 })).toThrow(
    new TypeError("bearer() has no option `clockTolerance`; did you mean `clockToleranceMs`?"),
  );
  expect(() => create({ ...base, authorizationServer: "https://a.b" })).toThrow("`authorizationServers`?");
  expect(create({ ...base, somethingElse: undefined })).toHaveProperty("authenticate");
});

it.each<[string, BearerOptions]>([
  ["https", base],
  ["localhost", { authorizationServers: ["http://localhost:9000"] }],
  ["127.0.0.1", { authorizationServers: ["http://127.0.0.1:9000/a"] }],
  ["another loopback address", { authorizationServers: ["http://127.12.255.3"] }],
  ["[::1]", { authorizationServers: ["http://[::1]:9000"] }],
  ["an issuer that is a name, with its keys", { ...base, issuer: "me", jwks: { keys: [jwk] } }],
  ["keys at a URL with a query", { ...base, jwks: "https://a.b/keys?p=1" }],
  ["keys at a loopback URL", { ...base, jwks: new URL("http://localhost/keys") }],
  ["a function for keys", { ...base, jwks: async () => jwk }],
  ["verify alone", { verify }],
  ["verify and an authorization server", { ...base, verify }],
  ["a resource without TLS", { ...base, resource: "http://inside:3000/mcp" }],
  ["the smallest tolerance", { ...base, clockToleranceMs: 0 }],
  ["the largest tolerance", { ...base, clockToleranceMs: 300_000 }],
])("bearer() accepts %s", (_, options) => {
  expect(bearer(options)).toHaveProperty("authenticate");
});

it("bearer() has defaults", () => {
  expect(readBearerOptions(base)).toEqual({
    verifier: {
      issuers: authorizationServers,
      jwks: undefined,
      algorithms: ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
      clockToleranceMs: 5_000,
    },
    resource: undefined,
    audience: undefined,
    scopes: [],
    implied: new Map(),
    metadata: { authorization_servers: authorizationServers, bearer_methods_supported: ["header"] },
  });
  expect(readBearerOptions({ verify })).toMatchObject({ verifier: verify, metadata: undefined, audience: [] });
  expect(readBearerOptions({ verify, resource: "https://a.b" })).toMatchObject({
    resource: "https://a.b",
    audience: [],
  });
});

it("bearer() uses the given options", () => {
  const given = readBearerOptions({
    ...base,
    issuer: ["https://a.b", "https://c.d"],
    audience: ["one", "two"],
    resource: "https://a.b/mcp",
    algorithms: ["ES256"],
    clockToleranceMs: 7_000,
    scopes: ["a"],
  });
  expect(given).toMatchObject({
    verifier: { issuers: ["https://a.b", "https://c.d"], algorithms: ["ES256"], clockToleranceMs: 7_000 },
    audience: ["one", "two"],
    resource: "https://a.b/mcp",
    scopes: ["a"],
  });
  expect(readBearerOptions({ ...base, issuer: "https://a.b", audience: "one" })).toMatchObject({
    verifier: { issuers: ["https://a.b"] },
    audience: ["one"],
  });
  expect(readBearerOptions({ ...base, jwks: "https://a.b/c" })).toMatchObject({
    verifier: { jwks: new URL("https://a.b/c") },
  });
  const keys = async () => jwk;
  expect(readBearerOptions({ ...base, jwks: keys })).toMatchObject({ verifier: { jwks: keys } });
  expect(readBearerOptions({ ...base, jwks: { keys: [jwk] } })).toMatchObject({
    verifier: { jwks: { keys: [jwk] } },
  });
});

it.each([
  ["https://a.b/mcp", ["https://a.b/mcp"]],
  ["https://a.b/mcp/", ["https://a.b/mcp/"]],
  ["https://A.b/mcp", ["https://A.b/mcp", "https://a.b/mcp"]],
  ["https://a.b", ["https://a.b", "https://a.b/"]],
  ["https://a.b/", ["https://a.b/", "https://a.b"]],
  ["HTTPS://A.b", ["HTTPS://A.b", "https://a.b/", "https://a.b"]],
])("bearer() accepts tokens for %s in all its spellings", (resource, audience) => {
  expect(readBearerOptions({ ...base, resource }).audience).toEqual(audience);
});

it("bearer() expands implied scopes transitively, also in cycles", () => {
  const implies = { admin: ["write"], write: ["read"], a: ["b"], b: ["a", "b"] };
  expect(readBearerOptions({ ...base, implies }).implied).toEqual(
    new Map([
      ["admin", ["admin", "write", "read"]],
      ["write", ["write", "read"]],
      ["a", ["a", "b"]],
      ["b", ["b", "a"]],
    ]),
  );
});

it("bearer() copies the given arrays", () => {
  const [servers, scopes, algorithms] = [["https://a.b"], ["a"], ["ES256"]];
  const settings = readBearerOptions({ authorizationServers: servers, scopes, algorithms });
  servers.push("https://evil.example");
  scopes.pop();
  algorithms.push("none");
  expect(settings).toMatchObject({
    verifier: { issuers: ["https://a.b"], algorithms: ["ES256"] },
    scopes: ["a"],
    metadata: { authorization_servers: ["https://a.b"], scopes_supported: ["a"] },
  });
});
