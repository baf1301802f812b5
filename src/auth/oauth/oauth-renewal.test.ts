// Tokens that expire or are refused are refreshed once for all requests and all processes; and grants without a user.
// With a fake clock and real HTTP.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  type AuthorizationServer,
  consentingUser,
  json,
  openAuthorizationServer,
} from "../../../test/support/auth/authorization-server.ts";
import { openProtectedServer, type ProtectedServer, send } from "../../../test/support/auth/protected-server.ts";
import { memoryTokens } from "./stored-tokens.ts";
import { oauth } from "./authorizers.ts";
import type { Grant, TokenStore } from "./types.ts";

let server: AuthorizationServer;
let mcpServer: ProtectedServer;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  server = await openAuthorizationServer();
  mcpServer = await openProtectedServer(server);
});

afterEach(async () => {
  vi.useRealTimers();
  await Promise.all([server.close(), mcpServer.close()]);
});

const later = (seconds: number): void => void vi.setSystemTime(Date.now() + seconds * 1000);

it("a token that is about to expire is refreshed early, with the resource, once for all requests", async () => {
  const redirect = consentingUser();
  const auth = oauth({ redirect });
  await send(auth, mcpServer.url);
  later(3600 - 59);
  await Promise.all([1, 2, 3, 4].map(() => send(auth, mcpServer.url)));
  const refreshes = server.grantsOf("refresh_token");
  expect(refreshes).toHaveLength(1);
  expect(refreshes[0]?.get("resource")).toBe(mcpServer.url.href);
  expect(redirect.visited).toHaveLength(1);
  // The MCP server never had to refuse one.
  expect(mcpServer.authorizations.filter((authorization) => authorization === undefined)).toHaveLength(1);
});

it("a token that is about to expire is not refreshed too early", async () => {
  const auth = oauth({ redirect: consentingUser() });
  await send(auth, mcpServer.url);
  later(3600 - 61);
  await send(auth, mcpServer.url);
  expect(server.grantsOf("refresh_token")).toEqual([]);
});

it("a token that is about to expire is refreshed once by many processes with one store", async () => {
  const store = memoryTokens();
  await send(oauth({ store, redirect: consentingUser() }), mcpServer.url);
  // Each authorizer represents a process: they share only the store.
  const processes = [1, 2, 3].map(() => oauth({ store }));
  await Promise.all(processes.map((auth) => send(auth, mcpServer.url)));
  later(3600 - 30);
  const all = await Promise.all(processes.map((auth) => send(auth, mcpServer.url)));
  expect(all).toEqual([200, 200, 200]);
  expect(server.grantsOf("refresh_token")).toHaveLength(1);
});

it("a token that is about to expire is refreshed by a process that finds it in the store, as the client that it was issued to", async () => {
  const store = memoryTokens();
  await send(oauth({ store, redirect: consentingUser() }), mcpServer.url);
  later(4000);
  expect(await send(oauth({ store }), mcpServer.url)).toBe(200);
  expect(server.grantsOf("refresh_token")[0]?.get("client_id")).toBe("client-1");
  expect(mcpServer.authorizations).toEqual([undefined, "Bearer access-3", "Bearer access-4"]);
});

it("a token that is about to expire is used until it expires if the server is unreachable, with a notice now and then", async () => {
  const notices: string[] = [];
  const auth = oauth({ redirect: consentingUser(), onNotice: (text) => notices.push(text) });
  await send(auth, mcpServer.url);
  server.pages.set("/token", (_request, response) => response.writeHead(503).end());
  later(3600 - 30);
  expect(await send(auth, mcpServer.url)).toBe(200);
  expect(await send(auth, mcpServer.url)).toBe(200);
  expect(notices).toEqual([expect.stringContaining("HTTP 503")]);
  later(11);
  expect(await send(auth, mcpServer.url)).toBe(200);
  expect(notices).toHaveLength(2);
  server.pages.delete("/token");
  later(11);
  expect(await send(auth, mcpServer.url)).toBe(200);
  expect(mcpServer.authorizations.at(-1)).not.toBe(mcpServer.authorizations.at(-2));
});

it("a token that is about to expire without an expiry is not refreshed", async () => {
  server.expiresIn = undefined;
  const auth = oauth({ redirect: consentingUser() });
  await send(auth, mcpServer.url);
  later(1_000_000);
  expect(await send(auth, mcpServer.url)).toBe(200);
  expect(server.grantsOf("refresh_token")).toEqual([]);
});

/** Revokes the access tokens, but not the refresh tokens. */
const expireEarly = (): void => {
  for (const [access, issued] of [...server.issued]) {
    server.issued.delete(access);
    server.issued.set(`gone-${access}`, issued);
  }
};

it("a refused token is refreshed without a new sign-in, once for all requests", async () => {
  const redirect = consentingUser();
  const auth = oauth({ redirect });
  await send(auth, mcpServer.url);
  expireEarly();
  const all = await Promise.all([1, 2, 3].map(() => send(auth, mcpServer.url)));
  expect(all).toEqual([200, 200, 200]);
  expect(server.grantsOf("refresh_token")).toHaveLength(1);
  expect(redirect.visited).toHaveLength(1);
});

it("a refused token is refreshed once by two processes at the same time", async () => {
  const store = memoryTokens();
  await send(oauth({ store, redirect: consentingUser() }), mcpServer.url);
  const processes = [oauth({ store }), oauth({ store })];
  await Promise.all(processes.map((auth) => send(auth, mcpServer.url)));
  expireEarly();
  const all = await Promise.all(processes.map((auth) => send(auth, mcpServer.url)));
  expect(all).toEqual([200, 200]);
  expect(server.grantsOf("refresh_token")).toHaveLength(1);
});

it("a refused token is replaced by a new sign-in with the same scopes if the refresh token is not valid any more", async () => {
  const redirect = consentingUser();
  const auth = oauth({ redirect, scopes: ["mine"] });
  await send(auth, mcpServer.url);
  server.revoke();
  expect(await send(auth, mcpServer.url)).toBe(200);
  expect(server.grantsOf("refresh_token")).toHaveLength(1);
  expect(redirect.visited.map((url) => url.searchParams.get("scope"))).toEqual(["mine", "mine"]);
});

it("a refused token is replaced by a new sign-in if the refreshed token is refused too", async () => {
  const redirect = consentingUser();
  const auth = oauth({ redirect });
  await send(auth, mcpServer.url);
  expireEarly();
  server.pages.set("/token", ({ form }, response) => {
    if (form.get("grant_type") === "refresh_token") {
      return json(response, 200, { access_token: "unknown-token", token_type: "Bearer", refresh_token: "more" });
    }
    server.pages.delete("/token");
    server.answer({ ...(server.requests.at(-1) as (typeof server.requests)[0]) }, response);
  });
  expect(await send(auth, mcpServer.url)).toBe(200);
  expect(redirect.visited).toHaveLength(2);
});

it("a refused token leads to a new registration and one sign-in if the server has forgotten the client", async () => {
  const redirect = consentingUser();
  const auth = oauth({ redirect });
  await send(auth, mcpServer.url);
  server.revoke();
  server.pages.set("/token", (request, response) => {
    if (request.form.get("client_id") === "client-1") return json(response, 401, { error: "invalid_client" });
    server.pages.delete("/token");
    server.answer(request, response);
  });
  expect(await send(auth, mcpServer.url)).toBe(200);
  expect(redirect.visited).toHaveLength(2);
  expect(server.at("/register")).toHaveLength(2);
});

it("a refused token keeps its refresh token if the response has no new one", async () => {
  const auth = oauth({ redirect: consentingUser() });
  await send(auth, mcpServer.url);
  const [issued] = server.issued.values();
  const refresh = issued?.refresh;
  server.givesRefresh = false;
  expireEarly();
  await send(auth, mcpServer.url);
  expireEarly();
  await send(auth, mcpServer.url).catch(() => undefined);
  expect(server.grantsOf("refresh_token").map((form) => form.get("refresh_token"))).toEqual([refresh, refresh]);
});

const machine = (log: string[]): Grant => ({
  grantType: "client_credentials",
  interactive: false,
  identity: "robot",
  obtain: ({ scope = "", resource }) => {
    log.push(scope);
    const access = `machine-${log.length}`;
    server.issued.set(access, { client: "robot", scope, resource, refresh: undefined });
    return Promise.resolve({ access_token: access, token_type: "bearer", expires_in: 100, scope });
  },
});

it("a grant without a user needs no registration and no redirect, and is repeated before the token expires", async () => {
  const log: string[] = [];
  mcpServer.needs = () => ["work"];
  const auth = oauth({ grant: machine(log) });
  expect(await send(auth, mcpServer.url)).toBe(200);
  later(95);
  expect(await send(auth, mcpServer.url)).toBe(200);
  expect(log).toEqual(["work", "work"]);
  expect(server.at("/register")).toEqual([]);
  expect(mcpServer.authorizations).toEqual([undefined, "Bearer machine-1", "Bearer machine-2"]);
});

it("a grant without a user is repeated by one of many processes", async () => {
  const log: string[] = [];
  const store: TokenStore = memoryTokens();
  const processes = [1, 2, 3].map(() => oauth({ store, grant: machine(log) }));
  await Promise.all(processes.map((auth) => send(auth, mcpServer.url)));
  expect(log).toHaveLength(1);
  later(95);
  await Promise.all(processes.map((auth) => send(auth, mcpServer.url)));
  expect(log).toHaveLength(2);
});

it("a grant without a user does not need a server that supports PKCE", async () => {
  delete server.metadata["code_challenge_methods_supported"];
  expect(await send(oauth({ grant: machine([]) }), mcpServer.url)).toBe(200);
});
