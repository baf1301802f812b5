// Which scopes are requested, and the step-up to more scopes.

import { afterEach, beforeEach, expect, it } from "vitest";
import {
  type AuthorizationServer,
  consentingUser,
  openAuthorizationServer,
} from "../../../test/support/auth/authorization-server.ts";
import { openProtectedServer, type ProtectedServer, send } from "../../../test/support/auth/protected-server.ts";
import { oauth } from "./authorizers.ts";
import { includesAll, scopesToRequest } from "./oauth-authorizer.ts";

let server: AuthorizationServer;
let mcpServer: ProtectedServer;

beforeEach(async () => {
  server = await openAuthorizationServer();
  mcpServer = await openProtectedServer(server);
});

afterEach(async () => {
  await Promise.all([server.close(), mcpServer.close()]);
});

const requestedScopes = (redirect: { visited: readonly URL[] }): (string | null)[] =>
  redirect.visited.map((url) => url.searchParams.get("scope"));

it("scopes are those of the challenge, not of the metadata", async () => {
  const redirect = consentingUser();
  mcpServer.metadata = { ...mcpServer.metadata, scopes_supported: ["listed"] };
  mcpServer.needs = () => ["named"];
  await send(oauth({ redirect }), mcpServer.url);
  expect(requestedScopes(redirect)).toEqual(["named"]);
});

it("scopes are those of the metadata if the challenge has none, and the configured ones", async () => {
  const redirect = consentingUser();
  mcpServer.metadata = { ...mcpServer.metadata, scopes_supported: ["one", "two"] };
  await send(oauth({ redirect, scopes: ["mine"] }), mcpServer.url);
  expect(requestedScopes(redirect)).toEqual(["one two mine"]);
});

it("scopes include offline_access, with prompt=consent, only if the server lists it", async () => {
  const redirect = consentingUser();
  mcpServer.needs = () => ["read"];
  await send(oauth({ redirect }), mcpServer.url);
  server.metadata["scopes_supported"] = ["read", "offline_access"];
  await send(oauth({ redirect }), mcpServer.url);
  expect(requestedScopes(redirect)).toEqual(["read", "read offline_access"]);
  expect(redirect.visited.map((url) => url.searchParams.get("prompt"))).toEqual([null, "consent"]);
});

it("scopes are added to those of the old token in a step-up", async () => {
  const redirect = consentingUser();
  const auth = oauth({ redirect });
  mcpServer.needs = ({ method }) => (method === "POST" ? ["write"] : ["read"]);
  expect(await send(auth, mcpServer.url, "GET")).toBe(200);
  expect(await send(auth, mcpServer.url, "POST")).toBe(200);
  expect(requestedScopes(redirect)).toEqual(["read", "read write"]);
  expect(server.at("/register")).toHaveLength(1);
});

it("scopes are not requested again if they were not granted", async () => {
  const redirect = consentingUser();
  server.grants = () => "read";
  mcpServer.needs = () => ["admin"];
  const sent = send(oauth({ redirect }), mcpServer.url);
  await expect(sent).rejects.toThrow(/requires the scope "admin": .* granted only "read"/);
  expect(redirect.visited).toHaveLength(1);
});

it("scopes are requested at most three times for one request", async () => {
  const redirect = consentingUser();
  let count = 0;
  mcpServer.needs = () => [`scope-${(count += 1)}`];
  await expect(send(oauth({ redirect }), mcpServer.url)).rejects.toThrow("giving up");
  expect(redirect.visited).toHaveLength(3);
});

it.each([
  ["the scopes of the challenge, not of the metadata", { challenged: ["a"], listed: ["b"] }, ["a"]],
  ["the scopes of the metadata if the challenge has none", { listed: ["b", "c"] }, ["b", "c"]],
  ["nothing if there are no scopes", {}, []],
  ["the scopes of the last request too", { requestedBefore: ["a", "b"], challenged: ["b", "c"] }, ["a", "b", "c"]],
  ["the configured scopes too", { challenged: ["a"], configured: ["z", "a"] }, ["a", "z"]],
  [
    "offline_access if the server lists it",
    { challenged: ["a"], serverSupports: ["offline_access"] },
    ["a", "offline_access"],
  ],
  [
    "no offline_access of the MCP server if the authorization server does not list it",
    { challenged: ["a", "offline_access"], serverSupports: ["a"] },
    ["a"],
  ],
  ["a configured offline_access in any case", { configured: ["offline_access"] }, ["offline_access"]],
  ["no offline_access alone, which would replace the default", { serverSupports: ["offline_access"] }, []],
  ["nothing that is not a valid scope", { challenged: ['a"b', "c\\d", "e\u0007", "fine"] }, ["fine"]],
])("requests %s", (_what, sources, expected) => {
  expect(scopesToRequest({ wantsRefreshToken: true, ...sources })).toEqual(expected);
});

it("requests no refresh token if it is not wanted", () => {
  expect(scopesToRequest({ wantsRefreshToken: false, challenged: ["a"], serverSupports: ["offline_access"] })).toEqual([
    "a",
  ]);
});

it("compares scopes", () => {
  expect(includesAll(["a", "b"], ["b"])).toBe(true);
  expect(includesAll(["a"], ["a", "b"])).toBe(false);
  expect(includesAll([], [])).toBe(true);
});
