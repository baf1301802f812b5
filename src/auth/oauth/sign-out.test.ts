// Signing out while authorizers with the same store run, as running gateways do: they stop using the tokens at once,
// write none back, and use those of the next sign-in. Tokens are revoked where the authorization server can.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  type AuthorizationServer,
  consentingUser,
  json,
  openAuthorizationServer,
} from "../../../test/support/auth/authorization-server.ts";
import { openProtectedServer, type ProtectedServer, send } from "../../../test/support/auth/protected-server.ts";
import { deferred } from "../../core/async.ts";
import type { Authorizer } from "../../core/authentication.ts";
import { oauth } from "./authorizers.ts";
import { signOut } from "./sign-out.ts";
import { storedServers } from "./stored-tokens.ts";
import { type FileTokenStore, fileTokens } from "./token-stores.ts";

let server: AuthorizationServer;
let mcpServer: ProtectedServer;
let folder = "";
let store: FileTokenStore;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  folder = mkdtempSync(join(tmpdir(), "catenary-sign-out-"));
  store = fileTokens(join(folder, "tokens.json"));
  server = await openAuthorizationServer();
  mcpServer = await openProtectedServer(server);
});

afterEach(async () => {
  vi.useRealTimers();
  await Promise.all([server.close(), mcpServer.close()]);
  rmSync(folder, { recursive: true, force: true });
});

const later = (seconds: number): void => void vi.setSystemTime(Date.now() + seconds * 1000);
const login = (): Promise<number> => send(oauth({ store, redirect: consentingUser() }), mcpServer.url);
/** Signs out with a store object of its own, as another process would. */
const logout = async (): Promise<(string | undefined)[]> => {
  const own = fileTokens(join(folder, "tokens.json"));
  return Promise.all((await storedServers(own)).map((one) => signOut(own, one)));
};
const entries = (): string[] =>
  Object.keys(JSON.parse(readFileSync(join(folder, "tokens.json"), "utf8")) as Record<string, string>);

/** An authorizer without a user, as in a gateway without a terminal. */
const gateway = (): Authorizer => oauth({ store: fileTokens(join(folder, "tokens.json")) });
const call = (auth: Authorizer): Promise<number | string> =>
  send(auth, mcpServer.url).catch((error: Error) => error.message);

it("a running authorizer, after a sign-out elsewhere uses the token no more, and uses that of the next sign-in", async () => {
  await login();
  const running = gateway();
  expect(await call(running)).toBe(200);
  await logout();
  const count = mcpServer.authorizations.length;
  expect(await call(running)).toContain("needs the user's consent");
  expect(mcpServer.authorizations.slice(count)).toEqual([undefined]);
  await login();
  expect(await call(running)).toBe(200);
});

it("a running authorizer, after a sign-out elsewhere renews nothing and writes nothing back when the token expires", async () => {
  await login();
  const running = gateway();
  expect(await call(running)).toBe(200);
  // Even if the server cannot revoke the tokens.
  server.metadata = { ...server.metadata, revocation_endpoint: undefined };
  expect(await logout()).toEqual(["it offers no revocation"]);
  later(3590);
  expect(await call(running)).not.toBe(200);
  later(100);
  expect(await call(running)).not.toBe(200);
  expect(server.grantsOf("refresh_token")).toEqual([]);
  expect(entries()).toEqual([]);
});

it("a running authorizer, after a sign-out elsewhere throws away the tokens of a refresh that was in flight, and revokes them", async () => {
  await login();
  const running = gateway();
  expect(await call(running)).toBe(200);
  const asked = deferred();
  const released = deferred();
  server.pages.set("/token", (_request, response) => {
    asked.resolve();
    void released.promise.then(() =>
      server.give(response, { client: "client-1", scope: "", resource: mcpServer.url.href }),
    );
  });
  later(3590);
  const calling = call(running);
  await asked.promise;
  // As a sign-out that no longer waits for the lock of the refresh.
  for (const key of entries()) await fileTokens(join(folder, "tokens.json")).set(key, undefined);
  released.resolve();
  expect(await calling).not.toBe(200);
  expect(entries()).toEqual([]);
  await expect.poll(() => server.at("/revoke").map(({ form }) => form.get("token"))).toEqual(["refresh-4", "access-4"]);
  expect([...server.issued.keys()]).not.toContain("access-4");
});

it("a running authorizer, after a sign-out elsewhere is waited for while it refreshes: the new tokens are revoked", async () => {
  await login();
  const running = gateway();
  const asked = deferred();
  const released = deferred();
  server.pages.set("/token", (_request, response) => {
    asked.resolve();
    void released.promise.then(() =>
      server.give(response, { client: "client-1", scope: "", resource: mcpServer.url.href }),
    );
  });
  later(3590);
  const calling = call(running);
  await asked.promise;
  const signingOut = logout();
  released.resolve();
  expect(await signingOut).toEqual([undefined]);
  await calling;
  expect(entries()).toEqual([]);
  expect(server.at("/revoke").map(({ form }) => form.get("token"))).toEqual(["refresh-4", "access-4"]);
  expect(await call(running)).not.toBe(200);
});

it("a running authorizer, after a sign-out elsewhere goes on with its token while the store cannot be read", async () => {
  let isBroken = false;
  const flaky = {
    ...store,
    get: (key: string) => (isBroken ? Promise.reject(new Error("locked")) : store.get(key)),
  };
  await login();
  const running = oauth({ store: flaky });
  expect(await call(running)).toBe(200);
  isBroken = true;
  expect(await call(running)).toBe(200);
});

it("signing out revokes the refresh token and the access token as the client that they were issued to", async () => {
  await login();
  expect(await logout()).toEqual([undefined]);
  const revocations = server.at("/revoke").map(({ form }) => Object.fromEntries(form));
  expect(revocations).toEqual([
    { token: "refresh-3", token_type_hint: "refresh_token", client_id: "client-1" },
    { token: "access-3", token_type_hint: "access_token", client_id: "client-1" },
  ]);
  expect(entries()).toEqual([]);
});

it.each<[string, number, object, string]>([
  ["refuses", 400, { error: "invalid_client", error_description: "who is refresh-3?" }, "invalid_client (who is ...?)"],
  ["fails", 503, {}, "it answered HTTP 503"],
  ["revokes no access tokens", 400, { error: "unsupported_token_type" }, "it does not revoke access tokens"],
])("signing out deletes the tokens also if the authorization server %s", async (_case, status, body, reason) => {
  await login();
  server.pages.set("/revoke", ({ form }, response) => {
    const isSupported = reason.includes("access tokens") && form.get("token_type_hint") === "refresh_token";
    json(response, isSupported ? 200 : status, isSupported ? {} : body);
  });
  expect(await logout()).toEqual([reason]);
  expect(entries()).toEqual([]);
});
