// The whole flow from a refusal to a token: one consent for all requests, one MCP server for each authorizer,
// cancellation, and options. Renewal, scopes, DPoP, discovery and registration have tests of their own.

import { afterEach, beforeEach, expect, it } from "vitest";
import {
  type AuthorizationServer,
  consentingUser,
  json,
  openAuthorizationServer,
} from "../../../test/support/auth/authorization-server.ts";
import { openProtectedServer, type ProtectedServer, send } from "../../../test/support/auth/protected-server.ts";
import { ConnectionError } from "../../core/errors.ts";
import { memoryTokens } from "./stored-tokens.ts";
import { oauth } from "./authorizers.ts";
import type { Redirect, TokenStore } from "./types.ts";

let server: AuthorizationServer;
let mcpServer: ProtectedServer;

beforeEach(async () => {
  server = await openAuthorizationServer();
  mcpServer = await openProtectedServer(server);
});

afterEach(async () => {
  await Promise.all([server.close(), mcpServer.close()]);
});

const failure = (promise: Promise<unknown>): Promise<ConnectionError> =>
  promise.then(
    () => expect.unreachable("it should have failed"),
    (error: unknown) => {
      expect(error).toBeInstanceOf(ConnectionError);
      return error as ConnectionError;
    },
  );

it("the flow registers, sends the user with PKCE and state, and names the resource in both requests", async () => {
  const redirect = consentingUser();
  expect(await send(oauth({ redirect }), mcpServer.url)).toBe(200);

  const [registration] = server.at("/register");
  expect(JSON.parse(registration?.text ?? "")).toEqual({
    client_name: "Catenary",
    application_type: "native",
    redirect_uris: [redirect.uri],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  });
  const request = redirect.visited[0]?.searchParams;
  expect(request?.get("resource")).toBe(mcpServer.url.href);
  expect(request?.get("code_challenge_method")).toBe("S256");
  expect(request?.get("state")).toMatch(/^[\w-]{20,}$/);
  expect(request?.has("scope")).toBe(false);
  const [exchange] = server.grantsOf("authorization_code");
  expect(exchange?.get("resource")).toBe(mcpServer.url.href);
  expect(mcpServer.authorizations).toEqual([undefined, expect.stringMatching(/^Bearer access-/)]);
});

it("the flow runs once for all requests", async () => {
  const redirect = consentingUser();
  const auth = oauth({ redirect });
  const all = await Promise.all([1, 2, 3, 4, 5].map(() => send(auth, mcpServer.url)));
  expect(all).toEqual([200, 200, 200, 200, 200]);
  expect(redirect.visited).toHaveLength(1);
  expect(server.at("/register")).toHaveLength(1);
  expect(server.at("/token")).toHaveLength(1);
});

it("the flow uses the tokens of the last run without a request", async () => {
  const store = memoryTokens();
  await send(oauth({ store, redirect: consentingUser() }), mcpServer.url);
  const before = server.requests.length;
  expect(await send(oauth({ store }), mcpServer.url)).toBe(200);
  expect(server.requests).toHaveLength(before);
  expect(mcpServer.authorizations).toHaveLength(3);
});

it("the flow does not use the tokens of another client in the same store", async () => {
  const store = memoryTokens();
  await send(oauth({ store, redirect: consentingUser() }), mcpServer.url);
  const redirect = consentingUser();
  expect(await send(oauth({ store, redirect, client: { id: "mine" } }), mcpServer.url)).toBe(200);
  expect(redirect.visited[0]?.searchParams.get("client_id")).toBe("mine");
});

it("the flow ignores a broken store entry", async () => {
  const kept = memoryTokens();
  const keys = new Set<string>();
  const set: TokenStore["set"] = (key, value) => kept.set(keys.add(key) && key, value);
  const store = { ...kept, set };
  expect(await send(oauth({ store, redirect: consentingUser() }), mcpServer.url)).toBe(200);
  for (const key of keys) await kept.set(key, '{"issuer":1');
  expect(await send(oauth({ store, redirect: consentingUser() }), mcpServer.url)).toBe(200);
  expect(server.at("/register")).toHaveLength(2);
});

it("the flow uses a token that cannot be stored, with a notice", async () => {
  const notices: string[] = [];
  const store = { ...memoryTokens(), set: () => Promise.reject(new Error("the disk is full")) };
  const auth = oauth({ store, redirect: consentingUser(), onNotice: (text) => notices.push(text) });
  expect(await send(auth, mcpServer.url)).toBe(200);
  expect(notices.join()).toContain("the disk is full");
});

it("the flow belongs to one MCP server, and fails for another origin", async () => {
  const auth = oauth({ redirect: consentingUser() });
  await send(auth, mcpServer.url);
  const other = await openProtectedServer(server);
  const error = await failure(send(auth, other.url));
  await other.close();
  expect(error.kind).toBe("unauthorized");
  expect(error.message).toContain("use one oauth() for each server");
  expect(other.requests).toEqual([]);
});

it("the flow leaves a 403 without insufficient_scope to the caller", async () => {
  mcpServer.pages.set("/mcp", (_request, response) => json(response, 403, {}));
  expect(await send(oauth({ redirect: consentingUser() }), mcpServer.url)).toBe(403);
  expect(server.requests).toEqual([]);
});

it("the flow says what to configure if no user can be asked", async () => {
  const error = await failure(send(oauth(), mcpServer.url));
  expect(error.kind).toBe("unauthorized");
  expect(error.mayHaveRun).toBe(false);
  expect(error.message).toContain("set `redirect`");
  expect(server.at("/register")).toEqual([]);
});

it("a token that the MCP server refuses is not requested again if it is new", async () => {
  mcpServer.trusts = await openAuthorizationServer();
  const redirect = consentingUser();
  const error = await failure(send(oauth({ redirect }), mcpServer.url));
  await mcpServer.trusts.close();
  expect(error.message).toContain(`refused the access token that ${server.url} has just issued for it (invalid_token)`);
  expect(redirect.visited).toHaveLength(1);
});

it("a token that the MCP server refuses is replaced if it was accepted before and cannot be refreshed", async () => {
  server.givesRefresh = false;
  const redirect = consentingUser();
  const auth = oauth({ redirect });
  await send(auth, mcpServer.url);
  server.revoke();
  expect(await send(auth, mcpServer.url)).toBe(200);
  expect(redirect.visited).toHaveLength(2);
});

/** A user who opens the page and does nothing. */
const idleUser = (): Redirect & { began: Promise<void>; left: Promise<void>; hasLeft: boolean } => {
  const events = new EventTarget();
  const event = (name: string): Promise<void> =>
    new Promise((resolve) => events.addEventListener(name, () => resolve(), { once: true }));
  const user = {
    uri: "http://127.0.0.1:9/callback",
    began: event("began"),
    left: event("left"),
    hasLeft: false,
    visit: (_url: URL, { signal }: { signal: AbortSignal }): Promise<URL> =>
      new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          user.hasLeft = true;
          events.dispatchEvent(new Event("left"));
          reject(signal.reason as Error);
        });
        events.dispatchEvent(new Event("began"));
      }),
  };
  return user;
};

it("cancellation ends the visit when the last request is cancelled, and not before", async () => {
  const redirect = idleUser();
  const auth = oauth({ redirect });
  const [one, two] = [new AbortController(), new AbortController()];
  const first = failure(send(auth, mcpServer.url, "POST", one.signal));
  await redirect.began;
  // It joins the running flow before it sends anything.
  const second = failure(send(auth, mcpServer.url, "POST", two.signal));
  await new Promise((resolve) => setImmediate(resolve));
  one.abort();
  expect((await first).kind).toBe("cancelled");
  expect(redirect.hasLeft).toBe(false);
  expect(mcpServer.authorizations).toHaveLength(1);
  two.abort();
  expect((await second).kind).toBe("cancelled");
  await redirect.left;
});

it("cancellation does not affect a later request", async () => {
  const asleep = idleUser();
  const awake = consentingUser();
  let user: Redirect = asleep;
  const redirect: Redirect = { uri: awake.uri, visit: (url, options) => user.visit(url, options) };
  const auth = oauth({ redirect });
  const leaving = new AbortController();
  const first = failure(send(auth, mcpServer.url, "POST", leaving.signal));
  await asleep.began;
  user = awake;
  leaving.abort();
  await first;
  expect(await send(auth, mcpServer.url)).toBe(200);
});

it("an error never contains a code, a token, a verifier or a secret", async () => {
  const secret = "a-secret-of-the-client-that-must-not-leak";
  server.pages.set("/token", ({ form }, response) =>
    json(response, 400, { error: "invalid_request", error_description: `bad: ${form.toString()}` }),
  );
  const auth = oauth({ redirect: consentingUser(), client: { id: "mine", secret } });
  const error = await failure(send(auth, mcpServer.url));
  const [form] = server.grantsOf("authorization_code");
  const shown = `${error.message} ${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`;
  expect(error.message).toContain("invalid_request");
  expect(error.cause).toBeUndefined();
  expect(shown).not.toContain(secret);
  expect(shown).not.toContain(form?.get("code_verifier"));
});

it.each([
  [{ client: { id: "" } }, "`client.id` must be the ID"],
  [{ client: { id: "a", issuer: "nowhere" } }, "is not a valid URL"],
  [{ metadataUrl: "http://example.com/client.json" }, "must be an https URL with a path"],
  [{ metadataUrl: "https://example.com" }, "must be an https URL with a path"],
  [{ redirect: {} as Redirect }, "must have a method `visit`"],
])("options are refused if they are not valid: %j", (options, text) => {
  expect(() => oauth(options)).toThrow(text);
});

it("options are refused if they are unknown, with the nearest name", () => {
  const create = (options: object) => (): unknown => oauth(options);
  expect(create({ metadataURL: "https://a.b/c" })).toThrow(
    new TypeError("oauth() has no option `metadataURL`; did you mean `metadataUrl`?"),
  );
  expect(create({ client: { id: "a", secrets: "b" } })).toThrow(
    new TypeError("`client` of oauth() has no option `secrets`; did you mean `secret`?"),
  );
});
