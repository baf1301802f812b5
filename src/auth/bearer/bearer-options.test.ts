// Options of bearer(): what is refused when it is said, and what comes of what is left out.

import { describe, expect, it } from "vitest";
import { newSigner } from "../../../test/support/issuer.ts";
import { type BearerOptions, settle } from "./bearer-options.ts";
import { bearer } from "./bearer.ts";

const authorizationServers = ["https://auth.example.com"];
const verify = () => ({ principal: "ada" });
const { jwk } = await newSigner();

type Row = readonly [name: string, options: unknown, text: string];

const address = "must be an http or https address without query, fragment and user";
const https = "must be an https address, but for this machine's own";
const list = 'must be a list of strings, as in ["notes:write"]';
const strings = "must be strings of visible ASCII, without blanks, quotes and backslashes";
const texts = "must be a string or a list of strings, none of them empty or with blanks";
const set = "jwks must be an address, a set of public keys and no others, or a function that gives a key";
const asymmetric =
  "algorithms must be of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, Ed25519, which need no shared secret";
const nobody = "authorizationServers must name who issues the tokens, or verify must be given";
const tolerance = "clockToleranceSec must be a number from 0 to 300";

const base = { authorizationServers };
const ROWS: readonly Row[] = [
  ["nothing", undefined, "the options must be an object"],
  ["null", null, "the options must be an object"],
  ["a text", "https://auth.example.com", "the options must be an object"],
  ["a list", [], "the options must be an object"],
  ["nobody who issues", {}, nobody],
  ["an empty list of issuers", { authorizationServers: [] }, nobody],
  ["nobody who issues, but keys", { jwks: { keys: [jwk] }, issuer: "me" }, nobody],
  ["one server", { authorizationServers: "https://a.b" }, "authorizationServers must be a list of addresses"],
  ["a server that is no address", { authorizationServers: ["a.b"] }, `authorizationServers ${address}; got a.b`],
  ["a server that is nothing", { authorizationServers: [undefined] }, `authorizationServers ${address}; got undefined`],
  ["a server that is an object", { authorizationServers: [new URL("https://a.b")] }, `authorizationServers ${address}`],
  ["a server of another scheme", { authorizationServers: ["ftp://a.b"] }, `authorizationServers ${address}`],
  ["a server with a query", { authorizationServers: ["https://a.b/?c"] }, `authorizationServers ${address}`],
  ["a server with a fragment", { authorizationServers: ["https://a.b/#c"] }, `authorizationServers ${address}`],
  ["a server with a user", { authorizationServers: ["https://u@a.b/"] }, `authorizationServers ${address}`],
  ["a server without TLS", { authorizationServers: ["http://a.b"] }, `authorizationServers ${https}; got http://a.b`],
  ["a second server without TLS", { authorizationServers: ["https://a.b", "http://a.b"] }, "authorizationServers"],
  ["a server beside verify, without TLS", { authorizationServers: ["http://a.b"], verify }, "authorizationServers"],
  ["a name that only looks local", { authorizationServers: ["http://127.0.0.1.a.b"] }, `authorizationServers ${https}`],
  ["another such name", { authorizationServers: ["http://localhost.a.b"] }, `authorizationServers ${https}`],
  ["a resource that is no address", { ...base, resource: "me" }, `resource ${address}; got me`],
  ["a resource with a fragment", { ...base, resource: "https://a.b/#c" }, `resource ${address}`],
  ["a resource with a query", { ...base, resource: "https://a.b/?c" }, `resource ${address}`],
  ["an empty issuer", { ...base, issuer: "" }, `issuer ${texts}`],
  ["an issuer with a blank", { ...base, issuer: "a b" }, `issuer ${texts}`],
  ["no issuers", { ...base, issuer: [] }, `issuer ${texts}`],
  ["an issuer that is a number", { ...base, issuer: [7] }, `issuer ${texts}`],
  ["null for an issuer", { ...base, issuer: null }, `issuer ${texts}`],
  ["an issuer nobody can ask", { ...base, issuer: "me" }, `issuer ${address}; got me`],
  ["an issuer that is asked without TLS", { ...base, issuer: "http://a.b" }, `issuer ${https}`],
  [
    "one set of keys for two issuers",
    { authorizationServers: ["https://a.b", "https://c.d"], jwks: { keys: [jwk] } },
    "jwks are the keys of one issuer",
  ],
  ["keys without TLS", { ...base, jwks: "http://a.b/keys" }, `jwks ${https}; got http://a.b/keys`],
  ["keys at a URL without TLS", { ...base, jwks: new URL("http://a.b/keys") }, `jwks ${https}`],
  ["keys at no address", { ...base, jwks: "keys" }, `jwks ${address}`],
  ["keys with a fragment", { ...base, jwks: "https://a.b/#c" }, `jwks ${address}`],
  ["no keys", { ...base, jwks: { keys: [] } }, set],
  ["keys that are no list", { ...base, jwks: { keys: { 0: jwk } } }, set],
  ["keys that are a text", { ...base, jwks: { keys: "abc" } }, set],
  ["keys that are nothing", { ...base, jwks: { keys: [null] } }, set],
  ["keys that are none", { ...base, jwks: { keys: [jwk, "a"] } }, set],
  ["a key without a type", { ...base, jwks: { keys: [{ ...jwk, kty: undefined }] } }, set],
  ["a shared secret", { ...base, jwks: { keys: [{ kty: "oct", k: "AAAA" }] } }, set],
  ["a private key", { ...base, jwks: { keys: [{ ...jwk, d: "AAAA" }] } }, set],
  ["a verify that is no function", { verify: true }, "verify must be a function"],
  ["keys beside verify", { verify, jwks: { keys: [jwk] } }, "jwks says nothing beside verify"],
  ["an issuer beside verify", { verify, issuer: "a" }, "issuer says nothing beside verify"],
  ["an audience beside verify", { verify, audience: "a" }, "audience says nothing beside verify"],
  ["algorithms beside verify", { verify, algorithms: ["ES256"] }, "algorithms says nothing beside verify"],
  ["a tolerance beside verify", { verify, clockToleranceSec: 1 }, "clockToleranceSec says nothing beside verify"],
  ["an empty audience", { ...base, audience: "" }, `audience ${texts}`],
  ["no audience", { ...base, audience: [] }, `audience ${texts}`],
  ["false for an audience", { ...base, audience: false }, `audience ${texts}`],
  ["null for an audience", { ...base, audience: null }, `audience ${texts}`],
  ["an audience with an empty text", { ...base, audience: ["a", ""] }, `audience ${texts}`],
  ["scopes that are a text", { ...base, scopes: "a b" }, `scopes ${list}`],
  ["a scope that is two", { ...base, scopes: ["a b"] }, `scopes ${strings}`],
  ["a scope that nobody can need", { ...base, scopes: ["offline_access"] }, "scopes must not have offline_access"],
  ["supported scopes that are a text", { ...base, scopesSupported: "a" }, `scopesSupported ${list}`],
  ["supported scopes with quotes", { ...base, scopesSupported: ['"'] }, `scopesSupported ${strings}`],
  ["implications in a list", { ...base, implies: [] }, "implies must say what holds what"],
  ["null for implications", { ...base, implies: null }, "implies must say what holds what"],
  ["an implication of a text", { ...base, implies: { a: "b" } }, `implies ${list}`],
  ["an implication of no scope", { ...base, implies: { a: [""] } }, `implies ${strings}`],
  ["an implication by no scope", { ...base, implies: { "a b": ["a"] } }, `implies ${strings}`],
  ["a shared secret's algorithm", { ...base, algorithms: ["HS256"] }, `${asymmetric}; HS256 is not`],
  ["no signature", { ...base, algorithms: ["ES256", "none"] }, `${asymmetric}; none is not`],
  ["no algorithms", { ...base, algorithms: [] }, `algorithms ${texts}`],
  ["a tolerance below zero", { ...base, clockToleranceSec: -1 }, tolerance],
  ["a tolerance without end", { ...base, clockToleranceSec: Infinity }, tolerance],
  ["a tolerance too large", { ...base, clockToleranceSec: 301 }, tolerance],
  ["a tolerance that is no number", { ...base, clockToleranceSec: Number.NaN }, tolerance],
  ["a tolerance that is a text", { ...base, clockToleranceSec: "5" }, tolerance],
  ["a name that is no text", { ...base, resourceName: 7 }, "resourceName must be a string"],
  ["documentation that is no text", { ...base, resourceDocumentation: {} }, "resourceDocumentation must be a string"],
];

describe("bearer()", () => {
  it.each(ROWS)("does not begin with %s", (_, options, text) => {
    const begin = (): unknown => bearer(options as BearerOptions);
    expect(begin).toThrow(TypeError);
    expect(begin).toThrow(`bearer(): ${text}`);
  });

  it.each<[string, BearerOptions]>([
    ["https", base],
    ["localhost", { authorizationServers: ["http://localhost:9000"] }],
    ["127.0.0.1", { authorizationServers: ["http://127.0.0.1:9000/a"] }],
    ["another address of this machine", { authorizationServers: ["http://127.12.255.3"] }],
    ["[::1]", { authorizationServers: ["http://[::1]:9000"] }],
    ["an issuer that is a name, with its keys", { ...base, issuer: "me", jwks: { keys: [jwk] } }],
    ["keys at an address with a query", { ...base, jwks: "https://a.b/keys?p=1" }],
    ["keys at a URL of this machine", { ...base, jwks: new URL("http://localhost/keys") }],
    ["a function for keys", { ...base, jwks: async () => jwk }],
    ["verify alone", { verify }],
    ["verify and who issues", { ...base, verify }],
    ["a resource without TLS", { ...base, resource: "http://inside:3000/mcp" }],
    ["the least tolerance", { ...base, clockToleranceSec: 0 }],
    ["the most tolerance", { ...base, clockToleranceSec: 300 }],
  ])("begins with %s", (_, options) => {
    expect(bearer(options)).toHaveProperty("authenticate");
  });

  it("has defaults", () => {
    expect(settle(base)).toEqual({
      judge: {
        issuers: authorizationServers,
        jwks: undefined,
        algorithms: [
          "RS256",
          "RS384",
          "RS512",
          "PS256",
          "PS384",
          "PS512",
          "ES256",
          "ES384",
          "ES512",
          "EdDSA",
          "Ed25519",
        ],
        clockToleranceSec: 5,
      },
      resource: undefined,
      audience: undefined,
      scopes: [],
      implied: new Map(),
      metadata: { authorization_servers: authorizationServers, bearer_methods_supported: ["header"] },
    });
    expect(settle({ verify })).toMatchObject({ judge: verify, metadata: undefined, audience: [] });
    expect(settle({ verify, resource: "https://a.b" })).toMatchObject({ resource: "https://a.b", audience: [] });
  });

  it("takes what is given", () => {
    const given = settle({
      ...base,
      issuer: ["https://a.b", "https://c.d"],
      audience: ["one", "two"],
      resource: "https://a.b/mcp",
      algorithms: ["ES256"],
      clockToleranceSec: 7,
      scopes: ["a"],
    });
    expect(given).toMatchObject({
      judge: { issuers: ["https://a.b", "https://c.d"], algorithms: ["ES256"], clockToleranceSec: 7 },
      audience: ["one", "two"],
      resource: "https://a.b/mcp",
      scopes: ["a"],
    });
    expect(settle({ ...base, issuer: "https://a.b", audience: "one" })).toMatchObject({
      judge: { issuers: ["https://a.b"] },
      audience: ["one"],
    });
    expect(settle({ ...base, jwks: "https://a.b/c" })).toMatchObject({ judge: { jwks: new URL("https://a.b/c") } });
    const keys = async () => jwk;
    expect(settle({ ...base, jwks: keys })).toMatchObject({ judge: { jwks: keys } });
    expect(settle({ ...base, jwks: { keys: [jwk] } })).toMatchObject({ judge: { jwks: { keys: [jwk] } } });
  });

  it.each([
    ["https://a.b/mcp", ["https://a.b/mcp"]],
    ["https://a.b/mcp/", ["https://a.b/mcp/"]],
    ["https://A.b/mcp", ["https://A.b/mcp", "https://a.b/mcp"]],
    ["https://a.b", ["https://a.b", "https://a.b/"]],
    ["https://a.b/", ["https://a.b/", "https://a.b"]],
    ["HTTPS://A.b", ["HTTPS://A.b", "https://a.b/", "https://a.b"]],
  ])("takes tokens for %s in all its spellings", (resource, audience) => {
    expect(settle({ ...base, resource }).audience).toEqual(audience);
  });

  it("follows what holds what to the end, and around", () => {
    const implies = { admin: ["write"], write: ["read"], a: ["b"], b: ["a", "b"] };
    expect(settle({ ...base, implies }).implied).toEqual(
      new Map([
        ["admin", ["admin", "write", "read"]],
        ["write", ["write", "read"]],
        ["a", ["a", "b"]],
        ["b", ["b", "a"]],
      ]),
    );
  });

  it("keeps nothing that can still be changed from outside", () => {
    const [servers, scopes, algorithms] = [["https://a.b"], ["a"], ["ES256"]];
    const settings = settle({ authorizationServers: servers, scopes, algorithms });
    servers.push("https://evil.example");
    scopes.pop();
    algorithms.push("none");
    expect(settings).toMatchObject({
      judge: { issuers: ["https://a.b"], algorithms: ["ES256"] },
      scopes: ["a"],
      metadata: { authorization_servers: ["https://a.b"], scopes_supported: ["a"] },
    });
  });
});
