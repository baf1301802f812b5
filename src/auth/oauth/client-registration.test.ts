// Which client is used with an authorization server, in the order of the specification. Nothing of one server is ever
// sent to another.

import { afterEach, beforeEach, expect, it } from "vitest";
import {
  type AuthorizationServer,
  consentingUser,
  json,
  openAuthorizationServer,
} from "../../../test/support/auth/authorization-server.ts";
import { openProtectedServer, type ProtectedServer, send } from "../../../test/support/auth/protected-server.ts";
import { memoryTokens } from "./stored-tokens.ts";
import { oauth } from "./authorizers.ts";

let server: AuthorizationServer;
let mcpServer: ProtectedServer;

beforeEach(async () => {
  server = await openAuthorizationServer();
  mcpServer = await openProtectedServer(server);
});

afterEach(async () => {
  await Promise.all([server.close(), mcpServer.close()]);
});

const clientIds = (redirect: { visited: readonly URL[] }): (string | null)[] =>
  redirect.visited.map((url) => url.searchParams.get("client_id"));

it("a pre-registered client is preferred, and authenticates by a method that the server lists", async () => {
  server.metadata["client_id_metadata_document_supported"] = true;
  server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"];
  const redirect = consentingUser();
  const client = { id: "known-one", secret: "hush" };
  await send(oauth({ redirect, client, metadataUrl: "https://example.com/client.json" }), mcpServer.url);
  expect(clientIds(redirect)).toEqual(["known-one"]);
  expect(server.at("/register")).toEqual([]);
  expect(server.grantsOf("authorization_code")[0]?.get("client_secret")).toBe("hush");
});

it("a pre-registered client authenticates by HTTP Basic, escaped only where necessary", async () => {
  server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic"];
  const client = { id: "known-one_1.0", secret: "hush-hush" };
  await send(oauth({ redirect: consentingUser(), client }), mcpServer.url);
  const header = server.at("/token")[0]?.headers.authorization ?? "";
  expect(atob(header.slice("Basic ".length))).toBe("known-one_1.0:hush-hush");
});

it("a pre-registered client is sent to no other server than its own", async () => {
  const client = { id: "known-one", secret: "hush", issuer: "https://elsewhere.example" };
  const sent = send(oauth({ redirect: consentingUser(), client }), mcpServer.url);
  await expect(sent).rejects.toThrow("registered with https://elsewhere.example");
  expect(server.requests.map(({ path }) => path)).toEqual(["/.well-known/oauth-authorization-server"]);
});

it("a pre-registered client selects its own server if several are listed", async () => {
  const other = await openAuthorizationServer();
  mcpServer.metadata = { ...mcpServer.metadata, authorization_servers: [other.url, server.url] };
  const client = { id: "known-one", issuer: server.url };
  expect(await send(oauth({ redirect: consentingUser(), client }), mcpServer.url)).toBe(200);
  await other.close();
  expect(other.requests.map(({ path }) => path)).toEqual(["/.well-known/oauth-authorization-server"]);
});

it("a pre-registered client is not tried on a second server after a failure at the first", async () => {
  const auth = oauth({ redirect: consentingUser(), client: { id: "known-one", secret: "hush" } });
  server.pages.set("/token", (_request, response) => json(response, 503, {}));
  await expect(send(auth, mcpServer.url)).rejects.toThrow("HTTP 503");
  const other = await openAuthorizationServer();
  mcpServer.metadata = { ...mcpServer.metadata, authorization_servers: [other.url] };
  await expect(send(auth, mcpServer.url)).rejects.toThrow(`registered with ${server.url}`);
  await other.close();
  expect(other.at("/token")).toEqual([]);
});

it("a pre-registered client is not tried on a server that is named later, even without an issuer", async () => {
  const client = { id: "known-one", secret: "hush" };
  const auth = oauth({ redirect: consentingUser(), client });
  await send(auth, mcpServer.url);
  const other = await openAuthorizationServer();
  mcpServer.trusts = other;
  mcpServer.metadata = { ...mcpServer.metadata, authorization_servers: [other.url] };
  await expect(send(auth, mcpServer.url)).rejects.toThrow(`registered with ${server.url}`);
  await other.close();
  expect(other.at("/token")).toEqual([]);
  expect(other.at("/authorize")).toEqual([]);
});

const metadataUrl = "https://example.com/client.json";

it("a client ID metadata document is the client ID if the server reads such documents", async () => {
  server.metadata["client_id_metadata_document_supported"] = true;
  const redirect = consentingUser();
  await send(oauth({ redirect, metadataUrl }), mcpServer.url);
  expect(clientIds(redirect)).toEqual([metadataUrl]);
  expect(server.at("/register")).toEqual([]);
});

it("a client ID metadata document is replaced by registration if it does not", async () => {
  const redirect = consentingUser();
  await send(oauth({ redirect, metadataUrl }), mcpServer.url);
  expect(clientIds(redirect)).toEqual(["client-1"]);
});

it.each([
  [["none", "client_secret_basic"], "none"],
  [["client_secret_post", "client_secret_basic"], "client_secret_basic"],
  [["client_secret_post"], "client_secret_post"],
  [undefined, "client_secret_basic"],
])("registration requests a method that the server lists: %j", async (listed, method) => {
  server.metadata["token_endpoint_auth_methods_supported"] = listed;
  await send(oauth({ redirect: consentingUser() }), mcpServer.url);
  expect(JSON.parse(server.at("/register")[0]?.text ?? "")).toMatchObject({ token_endpoint_auth_method: method });
});

it("registration accepts a secret without an expiry, and status 200", async () => {
  server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"];
  server.pages.set("/register", (_request, response) =>
    json(response, 200, { client_id: "given", client_secret: "hush" }),
  );
  await send(oauth({ redirect: consentingUser() }), mcpServer.url);
  const [form] = server.grantsOf("authorization_code");
  expect([form?.get("client_id"), form?.get("client_secret")]).toEqual(["given", "hush"]);
});

it("registration does not send a secret if the server requires none", async () => {
  server.pages.set("/register", (_request, response) =>
    json(response, 201, { client_id: "given", client_secret: "hush" }),
  );
  await send(oauth({ redirect: consentingUser() }), mcpServer.url);
  expect(server.grantsOf("authorization_code")[0]?.has("client_secret")).toBe(false);
});

it.each([
  ["http://localhost:7777/callback", "native"],
  ["com.example.app:/callback", "native"],
  ["https://app.example.com/callback", "web"],
])("registration names the application type for %s: %s", async (uri, kind) => {
  await send(oauth({ redirect: consentingUser(uri), clientName: "Mine" }), mcpServer.url);
  expect(JSON.parse(server.at("/register")[0]?.text ?? "")).toMatchObject({
    application_type: kind,
    client_name: "Mine",
    redirect_uris: [uri],
  });
});

it("registration is reused by later runs, until the redirect URI changes", async () => {
  const store = memoryTokens();
  server.givesRefresh = false;
  await send(oauth({ store, redirect: consentingUser() }), mcpServer.url);
  server.revoke();
  await send(oauth({ store, redirect: consentingUser() }), mcpServer.url);
  expect(server.at("/register")).toHaveLength(1);
  server.revoke();
  await send(oauth({ store, redirect: consentingUser("http://127.0.0.1:10/callback") }), mcpServer.url);
  expect(server.at("/register")).toHaveLength(2);
});

it("registration is repeated once if the server no longer knows the client", async () => {
  const redirect = consentingUser();
  const store = memoryTokens();
  server.givesRefresh = false;
  await send(oauth({ store, redirect }), mcpServer.url);
  server.revoke();
  let count = 0;
  server.pages.set("/token", (request, response) => {
    if (count++ === 0) return json(response, 401, { error: "invalid_client" }, { "www-authenticate": "Basic" });
    server.pages.delete("/token");
    server.answer(request, response);
  });
  expect(await send(oauth({ store, redirect }), mcpServer.url)).toBe(200);
  expect(clientIds(redirect)).toEqual(["client-1", "client-1", expect.not.stringMatching(/^client-1$/)]);
});

it("registration is kept while a newer one has no tokens, so that its tokens are still renewed", async () => {
  const store = memoryTokens();
  await send(oauth({ store, redirect: consentingUser("http://127.0.0.1:1001/callback") }), mcpServer.url);
  mcpServer.needs = () => ["more"];
  for (const port of [1002, 1003]) {
    const uri = `http://127.0.0.1:${port}/callback`;
    const redirect = { uri, visit: () => Promise.reject(new Error("the tab was closed")) };
    await expect(send(oauth({ store, redirect }), mcpServer.url)).rejects.toThrow("the tab was closed");
  }
  mcpServer.needs = () => [];
  expect(server.at("/register")).toHaveLength(3);
  for (const [access, issued] of [...server.issued]) {
    server.issued.delete(access);
    server.issued.set(`gone-${access}`, issued);
  }
  expect(await send(oauth({ store }), mcpServer.url)).toBe(200);
  expect(server.grantsOf("refresh_token").map((form) => form.get("client_id"))).toEqual(["client-1"]);
});

it("registration that is refused is an error with the server's reason and advice", async () => {
  server.pages.set("/register", (_request, response) =>
    json(response, 400, { error: "invalid_redirect_uri", error_description: "no\u001b[31m loopback" }),
  );
  const sent = send(oauth({ redirect: consentingUser() }), mcpServer.url);
  await expect(sent).rejects.toThrow(/invalid_redirect_uri \(no \[31m loopback\)/);
  await expect(sent).rejects.toThrow("configure `client` with one that it knows");
});

it("registration that is not supported is an error with advice", async () => {
  delete server.metadata["registration_endpoint"];
  const sent = send(
    oauth({ redirect: consentingUser(), metadataUrl: "https://example.com/client.json" }),
    mcpServer.url,
  );
  await expect(sent).rejects.toThrow("oauth({ client: { id, secret } })");
});

it("an MCP server that moves to another authorization server leads to a registration there, and nothing of the old server is sent to the new one", async () => {
  const other = await openAuthorizationServer();
  const store = memoryTokens();
  const auth = oauth({ store, redirect: consentingUser() });
  await send(auth, mcpServer.url);
  const old = server.grantsOf("authorization_code")[0]?.get("client_id") ?? "";
  mcpServer.trusts = other;
  mcpServer.metadata = { ...mcpServer.metadata, authorization_servers: [other.url] };
  other.pages.set("/register", (_request, response) => json(response, 201, { client_id: "of-the-other" }));

  expect(await send(auth, mcpServer.url)).toBe(200);
  await other.close();
  const seen = other.requests.map(({ query, text, headers }) => `${query.toString()} ${text} ${headers.authorization}`);
  expect(seen.join()).not.toContain(`client_id=${old}&`);
  expect(seen.join()).not.toContain("access-3");
  expect(seen.join()).not.toContain("refresh-");
  expect(other.grantsOf("authorization_code")[0]?.get("client_id")).toBe("of-the-other");
  expect(server.grantsOf("refresh_token")).toEqual([]);
});
