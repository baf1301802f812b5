// Tokens that expire, or are refused: refreshed once, by one of all callers and of all processes; and grants without a
// person. The clock is ours, the HTTP is real.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  type AuthorizationServer,
  consenting,
  json,
  openAuthorizationServer,
} from "../../../test/support/authorization-server.ts";
import { openServer, type ProtectedServer, send } from "../../../test/support/protected-end.ts";
import type { Grant } from "./grant.ts";
import { memoryTokens } from "./memory-tokens.ts";
import { oauth } from "./oauth.ts";
import type { TokenStore } from "./token-store.ts";

let server: AuthorizationServer;
let end: ProtectedServer;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  server = await openAuthorizationServer();
  end = await openServer(server);
});

afterEach(async () => {
  vi.useRealTimers();
  await Promise.all([server.close(), end.close()]);
});

const later = (seconds: number): void => void vi.setSystemTime(Date.now() + seconds * 1000);

describe("a token that is about to expire", () => {
  it("is refreshed before, with the resource named, by one flight for all callers", async () => {
    const redirect = consenting();
    const auth = oauth({ redirect });
    await send(auth, end.url);
    later(3600 - 59);
    await Promise.all([1, 2, 3, 4].map(() => send(auth, end.url)));
    const refreshes = server.grantsOf("refresh_token");
    expect(refreshes).toHaveLength(1);
    expect(refreshes[0]?.get("resource")).toBe(end.url.href);
    expect(redirect.visited).toHaveLength(1);
    // The end never had to refuse one.
    expect(end.shown.filter((shown) => shown === undefined)).toHaveLength(1);
  });

  it("is not refreshed while it has time", async () => {
    const auth = oauth({ redirect: consenting() });
    await send(auth, end.url);
    later(3600 - 61);
    await send(auth, end.url);
    expect(server.grantsOf("refresh_token")).toEqual([]);
  });

  it("is refreshed once by many processes with one store", async () => {
    const store = memoryTokens();
    await send(oauth({ store, redirect: consenting() }), end.url);
    // Each authorizer is a process: they share nothing but the store.
    const processes = [1, 2, 3].map(() => oauth({ store }));
    await Promise.all(processes.map((auth) => send(auth, end.url)));
    later(3600 - 30);
    const all = await Promise.all(processes.map((auth) => send(auth, end.url)));
    expect(all).toEqual([200, 200, 200]);
    expect(server.grantsOf("refresh_token")).toHaveLength(1);
  });

  it("is refreshed by a process that only finds it in the store, as the client that it was given to", async () => {
    const store = memoryTokens();
    await send(oauth({ store, redirect: consenting() }), end.url);
    later(4000);
    expect(await send(oauth({ store }), end.url)).toBe(200);
    expect(server.grantsOf("refresh_token")[0]?.get("client_id")).toBe("client-1");
    expect(end.shown).toEqual([undefined, "Bearer access-3", "Bearer access-4"]);
  });

  it("is used for as long as it is good where the server cannot be reached, and that is said once in a while", async () => {
    const notices: string[] = [];
    const auth = oauth({ redirect: consenting(), onNotice: (text) => notices.push(text) });
    await send(auth, end.url);
    server.pages.set("/token", (_asked, response) => response.writeHead(503).end());
    later(3600 - 30);
    expect(await send(auth, end.url)).toBe(200);
    expect(await send(auth, end.url)).toBe(200);
    expect(notices).toEqual([expect.stringContaining("HTTP 503")]);
    later(11);
    expect(await send(auth, end.url)).toBe(200);
    expect(notices).toHaveLength(2);
    server.pages.delete("/token");
    later(11);
    expect(await send(auth, end.url)).toBe(200);
    expect(end.shown.at(-1)).not.toBe(end.shown.at(-2));
  });

  it("that has no end is not refreshed by the clock", async () => {
    server.expiresIn = undefined;
    const auth = oauth({ redirect: consenting() });
    await send(auth, end.url);
    later(1_000_000);
    expect(await send(auth, end.url)).toBe(200);
    expect(server.grantsOf("refresh_token")).toEqual([]);
  });
});

describe("a token that the end refuses", () => {
  /** The server forgets the access tokens, but honours the refresh tokens. */
  const expireEarly = (): void => {
    for (const [access, issued] of [...server.issued]) {
      server.issued.delete(access);
      server.issued.set(`gone-${access}`, issued);
    }
  };

  it("is refreshed rather than asked for again, once for all callers", async () => {
    const redirect = consenting();
    const auth = oauth({ redirect });
    await send(auth, end.url);
    expireEarly();
    const all = await Promise.all([1, 2, 3].map(() => send(auth, end.url)));
    expect(all).toEqual([200, 200, 200]);
    expect(server.grantsOf("refresh_token")).toHaveLength(1);
    expect(redirect.visited).toHaveLength(1);
  });

  it("is refreshed once by two processes at the same time", async () => {
    const store = memoryTokens();
    await send(oauth({ store, redirect: consenting() }), end.url);
    const processes = [oauth({ store }), oauth({ store })];
    await Promise.all(processes.map((auth) => send(auth, end.url)));
    expireEarly();
    const all = await Promise.all(processes.map((auth) => send(auth, end.url)));
    expect(all).toEqual([200, 200]);
    expect(server.grantsOf("refresh_token")).toHaveLength(1);
  });

  it("is asked for anew where its refresh token is good no more, with the scopes that it had", async () => {
    const redirect = consenting();
    const auth = oauth({ redirect, scopes: ["mine"] });
    await send(auth, end.url);
    server.revoke();
    expect(await send(auth, end.url)).toBe(200);
    expect(server.grantsOf("refresh_token")).toHaveLength(1);
    expect(redirect.visited.map((url) => url.searchParams.get("scope"))).toEqual(["mine", "mine"]);
  });

  it("is asked for anew where what the refresh brought is refused too", async () => {
    const redirect = consenting();
    const auth = oauth({ redirect });
    await send(auth, end.url);
    expireEarly();
    server.pages.set("/token", ({ form }, response) => {
      if (form.get("grant_type") === "refresh_token") {
        return json(response, 200, { access_token: "nobody-knows-it", token_type: "Bearer", refresh_token: "more" });
      }
      server.pages.delete("/token");
      server.answer({ ...(server.asked.at(-1) as (typeof server.asked)[0]) }, response);
    });
    expect(await send(auth, end.url)).toBe(200);
    expect(redirect.visited).toHaveLength(2);
  });

  it("leads to a new registration, and to one consent, where the server has forgotten the client", async () => {
    const redirect = consenting();
    const auth = oauth({ redirect });
    await send(auth, end.url);
    server.revoke();
    server.pages.set("/token", (asked, response) => {
      if (asked.form.get("client_id") === "client-1") return json(response, 401, { error: "invalid_client" });
      server.pages.delete("/token");
      server.answer(asked, response);
    });
    expect(await send(auth, end.url)).toBe(200);
    expect(redirect.visited).toHaveLength(2);
    expect(server.at("/register")).toHaveLength(2);
  });

  it("keeps its refresh token where the answer brings no other", async () => {
    const auth = oauth({ redirect: consenting() });
    await send(auth, end.url);
    const [issued] = server.issued.values();
    const refresh = issued?.refresh;
    server.givesRefresh = false;
    expireEarly();
    await send(auth, end.url);
    expireEarly();
    await send(auth, end.url).catch(() => undefined);
    expect(server.grantsOf("refresh_token").map((form) => form.get("refresh_token"))).toEqual([refresh, refresh]);
  });
});

describe("a grant without a person", () => {
  const machine = (log: string[]): Grant => ({
    kind: "client_credentials",
    interactive: false,
    identity: "robot",
    obtain: ({ scope = "", resource }) => {
      log.push(scope);
      const access = `machine-${log.length}`;
      server.issued.set(access, { client: "robot", scope, resource, refresh: undefined });
      return Promise.resolve({ access_token: access, token_type: "bearer", expires_in: 100, scope });
    },
  });

  it("needs no registration and no redirect, and is repeated before the token expires", async () => {
    const log: string[] = [];
    end.needs = () => ["work"];
    const auth = oauth({ grant: machine(log) });
    expect(await send(auth, end.url)).toBe(200);
    later(95);
    expect(await send(auth, end.url)).toBe(200);
    expect(log).toEqual(["work", "work"]);
    expect(server.at("/register")).toEqual([]);
    expect(end.shown).toEqual([undefined, "Bearer machine-1", "Bearer machine-2"]);
  });

  it("is repeated by one of many processes", async () => {
    const log: string[] = [];
    const store: TokenStore = memoryTokens();
    const processes = [1, 2, 3].map(() => oauth({ store, grant: machine(log) }));
    await Promise.all(processes.map((auth) => send(auth, end.url)));
    expect(log).toHaveLength(1);
    later(95);
    await Promise.all(processes.map((auth) => send(auth, end.url)));
    expect(log).toHaveLength(2);
  });

  it("does not need a server that supports PKCE", async () => {
    delete server.metadata["code_challenge_methods_supported"];
    expect(await send(oauth({ grant: machine([]) }), end.url)).toBe(200);
  });
});
