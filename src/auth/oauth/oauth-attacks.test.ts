// Hostile and faulty servers: tokens over http, downgraded tokens, refusals with any code, endless sign-in pages, secrets
// repeated in errors. Over real HTTP.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  type AuthorizationServer,
  consentingUser,
  json,
  openAuthorizationServer,
} from "../../../test/support/auth/authorization-server.ts";
import { openProtectedServer, type ProtectedServer, send } from "../../../test/support/auth/protected-server.ts";
import type { Grant } from "./types.ts";
import { memoryTokens } from "./stored-tokens.ts";
import { oauth } from "./authorizers.ts";

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
const messageOf = (sent: Promise<unknown>): Promise<string> =>
  sent.then(
    () => expect.unreachable("it should have failed"),
    (error: Error) => error.message,
  );

const request = { method: "POST", url: new URL("http://mcp.example/mcp"), signal: new AbortController().signal };

it("a remote MCP server with http gets no token, even if the metadata is at an https URL", async () => {
  const fetch = vi.fn(() => Promise.resolve(Response.json({ resource: "http://mcp.example/mcp" })));
  const auth = oauth({ redirect: consentingUser(), fetch });
  const headers = { "www-authenticate": 'Bearer resource_metadata="https://evil.example/metadata"' };
  const refused = auth.refused({ ...request, status: 401, headers, sent: {}, attempt: 1 });
  await expect(refused).rejects.toMatchObject({ kind: "unauthorized", message: /its URL is http: .*; use https$/ });
  expect(fetch).not.toHaveBeenCalled();
});

it("a remote MCP server with http is usable without a token", async () => {
  expect(await oauth().authorize(request)).toEqual({});
});

const onRefresh = (status: number, body: object): void =>
  void server.pages.set("/token", (request, response) => {
    if (request.form.get("grant_type") === "refresh_token") return json(response, status, body);
    server.pages.delete("/token");
    return server.answer(request, response);
  });

it.each([
  [400, "invalid_grant"],
  [400, "invalid_request"],
  [400, "invalid_target"],
  [403, "access_denied"],
  [401, "invalid_token"],
  [200, "bad_refresh_token"],
])("a refresh that is refused with %i %s leads to a new sign-in", async (status, error) => {
  const redirect = consentingUser();
  const store = memoryTokens();
  await send(oauth({ store, redirect }), mcpServer.url);
  later(4000);
  onRefresh(status, { error });
  expect(await send(oauth({ store, redirect }), mcpServer.url)).toBe(200);
  expect(redirect.visited).toHaveLength(2);
});

it.each([
  [503, "temporarily_unavailable"],
  [429, "rate_limited"],
  [400, "temporarily_unavailable"],
])("a refresh that fails temporarily (%i %s) does not send the user away", async (status, error) => {
  const redirect = consentingUser();
  const auth = oauth({ redirect });
  await send(auth, mcpServer.url);
  later(4000);
  onRefresh(status, { error });
  expect(await messageOf(send(auth, mcpServer.url))).toContain("refreshing the access token");
  server.pages.delete("/token");
  later(11);
  expect(await send(auth, mcpServer.url)).toBe(200);
  expect(redirect.visited).toHaveLength(1);
});

it("a refresh uses the newest refresh token if the store is full", async () => {
  const kept = memoryTokens();
  let isFull = false;
  const set: typeof kept.set = (key, value) =>
    isFull ? Promise.reject(new Error("the disk is full")) : kept.set(key, value);
  const redirect = consentingUser();
  const auth = oauth({ store: { ...kept, set }, redirect });
  await send(auth, mcpServer.url);
  isFull = true;
  for (let times = 0; times < 3; times += 1) {
    later(3590);
    expect(await send(auth, mcpServer.url)).toBe(200);
  }
  expect(new Set(server.grantsOf("refresh_token").map((form) => form.get("refresh_token"))).size).toBe(3);
  expect(redirect.visited).toHaveLength(1);
});

it("a refresh with a token that is not bound to the key, or not valid in a header, is not used", async () => {
  const give = (access: string, type: string): void =>
    void server.pages.set("/token", (_request, response) =>
      json(response, 200, { access_token: access, token_type: type, expires_in: 1000, refresh_token: "more" }),
    );
  mcpServer.pages.set("/mcp", ({ headers }, response) =>
    headers.authorization === undefined ? mcpServer.refuse(response, 401, [], []) : json(response, 200, {}),
  );
  const notices: string[] = [];
  const auth = oauth({ redirect: consentingUser(), dpop: true, onNotice: (text) => notices.push(text) });
  give("bound", "DPoP");
  await send(auth, mcpServer.url);
  give("free", "Bearer");
  later(945);
  expect(await send(auth, mcpServer.url)).toBe(200);
  give("two\r\nlines", "DPoP");
  later(15);
  expect(await send(auth, mcpServer.url)).toBe(200);
  expect(mcpServer.authorizations).toEqual([undefined, "DPoP bound", "DPoP bound", "DPoP bound"]);
  expect(notices).toEqual([
    expect.stringContaining("not bound to our key"),
    expect.stringContaining("a header cannot carry"),
  ]);
});

it("a token with a lifetime of 0 is used, and requested once", async () => {
  server.expiresIn = 0;
  const redirect = consentingUser();
  expect(await send(oauth({ redirect }), mcpServer.url)).toBe(200);
  expect(redirect.visited).toHaveLength(1);
});

it("the user is not sent to sign in again and again", async () => {
  server.givesRefresh = false;
  let count = 0;
  mcpServer.pages.set("/mcp", ({ headers }, response) => {
    count += 1;
    if (headers.authorization === undefined || count % 2 === 1) return mcpServer.refuse(response, 401, [], []);
    return json(response, 200, {});
  });
  const redirect = consentingUser();
  const auth = oauth({ redirect });
  for (let times = 0; times < 10; times += 1) expect(await send(auth, mcpServer.url)).toBe(200);
  expect(await messageOf(send(auth, mcpServer.url))).toContain("10 times within 10 minutes");
  expect(redirect.visited).toHaveLength(10);
});

it("the user does not get the tokens of another unknown user", async () => {
  const store = memoryTokens();
  const grantOf = (user: string): Grant => ({
    grantType: "some",
    interactive: false,
    memoryOnly: true,
    obtain: ({ resource }) => {
      server.issued.set(user, { client: user, scope: "", resource, refresh: undefined });
      return Promise.resolve({ access_token: user, token_type: "bearer" });
    },
  });
  await send(oauth({ store, grant: grantOf("ann") }), mcpServer.url);
  await send(oauth({ store, grant: grantOf("bob") }), mcpServer.url);
  expect(mcpServer.authorizations).toEqual([undefined, "Bearer ann", undefined, "Bearer bob"]);
});

it("an error contains no secret that the authorization server repeats, however short", async () => {
  server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"];
  server.pages.set("/token", ({ form }, response) =>
    json(response, 400, { error: "invalid_grant", error_description: [...form.values()].join(" ") }),
  );
  const client = { id: "me", secret: "pass+wo/rd" };
  const message = await messageOf(send(oauth({ redirect: consentingUser(), client }), mcpServer.url));
  const [{ form } = { form: new URLSearchParams() }] = server.at("/token");
  expect(message).toContain("invalid_grant");
  for (const name of ["code", "code_verifier", "client_secret"]) expect(message).not.toContain(form.get(name));
});

it("an error contains no token that the MCP server repeats", async () => {
  mcpServer.pages.set("/mcp", ({ headers }, response) =>
    mcpServer.refuse(response, 401, [`error_description="no ${headers.authorization}"`], []),
  );
  const message = await messageOf(send(oauth({ redirect: consentingUser() }), mcpServer.url));
  expect(message).toContain("no Bearer ...");
  expect(message).not.toContain(mcpServer.authorizations.at(-1)?.slice("Bearer ".length));
});

it("an error contains no control characters of an issuer", async () => {
  const odd = `${server.url}/a\u001B]0;b\u0007`;
  server.metadata["issuer"] = odd;
  server.metadataPath = new URL(odd).pathname.replace(/^/, "/.well-known/oauth-authorization-server");
  mcpServer.metadata = { ...mcpServer.metadata, authorization_servers: [odd] };
  const message = await messageOf(send(oauth({ redirect: consentingUser() }), mcpServer.url));
  expect(message).toContain("its issuer has characters that a URL cannot have");
  expect(message).not.toMatch(/\p{Cc}/u);
});
