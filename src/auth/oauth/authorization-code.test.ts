// The authorization code grant: which callbacks are refused, and the exchange of the code. The normal flow is tested in
// oauth-authorizer.test.ts.

import { afterEach, beforeEach, expect, it } from "vitest";
import {
  type AuthorizationServer,
  consentingUser,
  json,
  openAuthorizationServer,
} from "../../../test/support/auth/authorization-server.ts";
import { openProtectedServer, type ProtectedServer, send } from "../../../test/support/auth/protected-server.ts";
import { oauth } from "./authorizers.ts";
import type { Redirect } from "./types.ts";

let server: AuthorizationServer;
let mcpServer: ProtectedServer;

beforeEach(async () => {
  server = await openAuthorizationServer();
  mcpServer = await openProtectedServer(server);
});

afterEach(async () => {
  await Promise.all([server.close(), mcpServer.close()]);
});

/** Changes the callback URL. */
const withChangedCallback = (change: (callback: URLSearchParams) => void): Redirect => {
  const user = consentingUser();
  return {
    uri: user.uri,
    visit: async (url, options) => {
      const callback = await user.visit(url, options);
      change(callback.searchParams);
      return callback;
    },
  };
};

const attempt = (redirect: Redirect): Promise<number> => send(oauth({ redirect }), mcpServer.url);

it("the callback from the authorization server need not name an issuer unless the server announces it", async () => {
  server.iss = undefined;
  delete server.metadata["authorization_response_iss_parameter_supported"];
  expect(await attempt(consentingUser())).toBe(200);
});

it.each([
  ["missing though announced", true, undefined],
  ["another one", true, "https://evil.example"],
  ["another one, though not announced", false, "https://evil.example"],
  ["the same but for a slash", true, "slash"],
])("the callback from the authorization server is refused if its issuer is %s", async (_what, announced, iss) => {
  server.metadata["authorization_response_iss_parameter_supported"] = announced;
  server.iss = iss === "slash" ? `${server.url}/` : iss;
  await expect(attempt(consentingUser())).rejects.toThrow(/checking the callback .* "iss"/);
  expect(server.at("/token")).toEqual([]);
});

it.each([
  ["wrong", (callback: URLSearchParams) => callback.set("state", "another")],
  ["missing", (callback: URLSearchParams) => callback.delete("state")],
  ["there twice", (callback: URLSearchParams) => callback.append("state", "another")],
])("the callback from the authorization server is refused if its state is %s", async (_what, change) => {
  await expect(attempt(withChangedCallback(change))).rejects.toThrow(/checking the callback .* "state"/);
  expect(server.at("/token")).toEqual([]);
});

it("the callback from the authorization server is reported if it is an error", async () => {
  const denied = withChangedCallback((callback) => {
    callback.delete("code");
    callback.set("error", "access_denied");
    callback.set("error_description", "not today");
  });
  await expect(attempt(denied)).rejects.toThrow("access_denied (not today)");
});

it("the callback from the authorization server is not shown if it is an error of another issuer", async () => {
  const denied = withChangedCallback((callback) => {
    callback.delete("code");
    callback.set("iss", "https://evil.example");
    callback.set("error", "access_denied");
    callback.set("error_description", "call this number");
  });
  const sent = attempt(denied);
  await expect(sent).rejects.toThrow("iss");
  await expect(sent).rejects.not.toThrow("call this number");
});

it("the exchange of the code does not follow a redirect", async () => {
  server.pages.set("/token", (_request, response) =>
    response.writeHead(307, { location: `${server.url}/thief` }).end(),
  );
  await expect(attempt(consentingUser())).rejects.toThrow("a redirect, which is not followed here");
  expect(server.at("/thief")).toEqual([]);
});

it.each([
  ["no token", { token_type: "Bearer" }, "access_token"],
  ["a token with a line break", { access_token: "a\r\nx: y", token_type: "Bearer" }, "a header cannot carry"],
  ["a token of another type", { access_token: "a", token_type: "mac" }, "token_type"],
  ["a DPoP token without a key", { access_token: "a", token_type: "DPoP" }, "oauth({ dpop: true })"],
])("the exchange of the code refuses %s", async (_what, body, text) => {
  server.pages.set("/token", (_request, response) => json(response, 200, body));
  await expect(attempt(consentingUser())).rejects.toThrow(text);
});

it.each([
  ["the built-in fetch", {}],
  ["a given fetch", { fetch: globalThis.fetch }],
])("the exchange of the code limits the size of the response, with %s", async (_what, how) => {
  server.pages.set("/token", (_request, response) => json(response, 200, { access_token: "a".repeat(2_000_000) }));
  await expect(send(oauth({ redirect: consentingUser(), ...how }), mcpServer.url)).rejects.toThrow("1048576 bytes");
});

it("the authorization request keeps the query of the authorization endpoint", async () => {
  server.metadata["authorization_endpoint"] = `${server.url}/authorize?tenant=one`;
  const redirect = consentingUser();
  expect(await attempt(redirect)).toBe(200);
  expect(redirect.visited[0]?.searchParams.get("tenant")).toBe("one");
});

it("the authorization request is pushed beforehand if the server requires it", async () => {
  server.metadata["require_pushed_authorization_requests"] = true;
  server.metadata["pushed_authorization_request_endpoint"] = `${server.url}/par`;
  let pushed = new URLSearchParams();
  server.pages.set("/par", ({ form }, response) => {
    pushed = form;
    json(response, 201, { request_uri: "urn:request:1", expires_in: 60 });
  });
  server.pages.set("/authorize", (request, response) => {
    server.pages.delete("/authorize");
    server.answer({ ...request, query: pushed }, response);
  });
  const redirect = consentingUser();
  expect(await attempt(redirect)).toBe(200);
  expect([...(redirect.visited[0]?.searchParams.keys() ?? [])]).toEqual(["client_id", "request_uri", "state"]);
  expect(pushed.get("code_challenge_method")).toBe("S256");
});

it("the authorization request refuses a redirect URI with http over a network", async () => {
  const redirect = consentingUser("http://app.example/callback");
  await expect(attempt(redirect)).rejects.toThrow("must be https, or http on this machine");
  expect(server.at("/register")).toEqual([]);
});

it("the authorization request that fails is reported without its URL", async () => {
  const redirect: Redirect = {
    uri: "http://127.0.0.1:9/callback",
    visit: () => Promise.reject(new Error("no browser")),
  };
  await expect(attempt(redirect)).rejects.toThrow(`waiting for the user to come back from ${server.url}: no browser`);
});
