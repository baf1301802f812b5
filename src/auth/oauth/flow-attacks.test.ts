// What ends and authorization servers do that mean ill, or do not know better: tokens in the open, tokens that were
// downgraded, refusals under every name, pages opened without end, secrets said back. The HTTP is real.

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
const messageOf = (sent: Promise<unknown>): Promise<string> =>
  sent.then(
    () => expect.unreachable("it should have failed"),
    (error: Error) => error.message,
  );

describe("an end that is reached by http, elsewhere", () => {
  const sending = { method: "POST", url: new URL("http://end.example/mcp"), signal: new AbortController().signal };

  it("gets no token, whoever says by https where there are some", async () => {
    const fetch = vi.fn(() => Promise.resolve(Response.json({ resource: "http://end.example/mcp" })));
    const auth = oauth({ redirect: consenting(), fetch });
    const headers = { "www-authenticate": 'Bearer resource_metadata="https://evil.example/metadata"' };
    const refused = auth.refused({ ...sending, status: 401, headers, sent: {}, attempt: 1 });
    await expect(refused).rejects.toMatchObject({ kind: "unauthorized", message: /reached by http.*connect by https/ });
    expect(fetch).not.toHaveBeenCalled();
  });

  it("is spoken with where it wants none", async () => {
    expect(await oauth().authorize(sending)).toEqual({});
  });
});

describe("a refresh", () => {
  const onRefresh = (status: number, body: object): void =>
    void server.pages.set("/token", (asked, response) => {
      if (asked.form.get("grant_type") === "refresh_token") return json(response, status, body);
      server.pages.delete("/token");
      return server.answer(asked, response);
    });

  it.each([
    [400, "invalid_grant"],
    [400, "invalid_request"],
    [400, "invalid_target"],
    [403, "access_denied"],
    [401, "invalid_token"],
    [200, "bad_refresh_token"],
  ])("that is refused with %i %s leads to a new consent", async (status, error) => {
    const redirect = consenting();
    const store = memoryTokens();
    await send(oauth({ store, redirect }), end.url);
    later(4000);
    onRefresh(status, { error });
    expect(await send(oauth({ store, redirect }), end.url)).toBe(200);
    expect(redirect.visited).toHaveLength(2);
  });

  it.each([
    [503, "temporarily_unavailable"],
    [429, "rate_limited"],
    [400, "temporarily_unavailable"],
  ])("that cannot be had now (%i %s) troubles nobody", async (status, error) => {
    const redirect = consenting();
    const auth = oauth({ redirect });
    await send(auth, end.url);
    later(4000);
    onRefresh(status, { error });
    expect(await messageOf(send(auth, end.url))).toContain("refreshing the access token");
    server.pages.delete("/token");
    later(11);
    expect(await send(auth, end.url)).toBe(200);
    expect(redirect.visited).toHaveLength(1);
  });

  it("is made with the newest refresh token where the store takes no more", async () => {
    const kept = memoryTokens();
    let isFull = false;
    const set: typeof kept.set = (key, value) =>
      isFull ? Promise.reject(new Error("the disk is full")) : kept.set(key, value);
    const redirect = consenting();
    const auth = oauth({ store: { ...kept, set }, redirect });
    await send(auth, end.url);
    isFull = true;
    for (let times = 0; times < 3; times += 1) {
      later(3590);
      expect(await send(auth, end.url)).toBe(200);
    }
    expect(new Set(server.grantsOf("refresh_token").map((form) => form.get("refresh_token"))).size).toBe(3);
    expect(redirect.visited).toHaveLength(1);
  });

  it("that brings a token which is not bound to the key, or fits in no header, is not used", async () => {
    const give = (access: string, type: string): void =>
      void server.pages.set("/token", (_asked, response) =>
        json(response, 200, { access_token: access, token_type: type, expires_in: 1000, refresh_token: "more" }),
      );
    end.pages.set("/mcp", ({ headers }, response) =>
      headers.authorization === undefined ? end.refuse(response, 401, [], []) : json(response, 200, {}),
    );
    const notices: string[] = [];
    const auth = oauth({ redirect: consenting(), dpop: true, onNotice: (text) => notices.push(text) });
    give("bound", "DPoP");
    await send(auth, end.url);
    give("free", "Bearer");
    later(945);
    expect(await send(auth, end.url)).toBe(200);
    give("two\r\nlines", "DPoP");
    later(15);
    expect(await send(auth, end.url)).toBe(200);
    expect(end.shown).toEqual([undefined, "DPoP bound", "DPoP bound", "DPoP bound"]);
    expect(notices).toEqual([
      expect.stringContaining("not bound to our key"),
      expect.stringContaining("cannot stand in a header"),
    ]);
  });
});

describe("a token that lives for no time", () => {
  it("is used all the same, and asked for once", async () => {
    server.expiresIn = 0;
    const redirect = consenting();
    expect(await send(oauth({ redirect }), end.url)).toBe(200);
    expect(redirect.visited).toHaveLength(1);
  });
});

describe("a person", () => {
  it("is not sent away again and again by an end that takes no token for long", async () => {
    server.givesRefresh = false;
    let count = 0;
    end.pages.set("/mcp", ({ headers }, response) => {
      count += 1;
      if (headers.authorization === undefined || count % 2 === 1) return end.refuse(response, 401, [], []);
      return json(response, 200, {});
    });
    const redirect = consenting();
    const auth = oauth({ redirect });
    for (let times = 0; times < 10; times += 1) expect(await send(auth, end.url)).toBe(200);
    expect(await messageOf(send(auth, end.url))).toContain("10 times within 10 minutes");
    expect(redirect.visited).toHaveLength(10);
  });

  it("does not find what somebody else got, where nobody says whose it is", async () => {
    const store = memoryTokens();
    const grantOf = (who: string): Grant => ({
      kind: "some",
      interactive: false,
      isNameless: true,
      obtain: ({ resource }) => {
        server.issued.set(who, { client: who, scope: "", resource, refresh: undefined });
        return Promise.resolve({ access_token: who, token_type: "bearer" });
      },
    });
    await send(oauth({ store, grant: grantOf("ann") }), end.url);
    await send(oauth({ store, grant: grantOf("bob") }), end.url);
    expect(end.shown).toEqual([undefined, "Bearer ann", undefined, "Bearer bob"]);
  });
});

describe("an error", () => {
  it("has no secret in it that the server says back, however short", async () => {
    server.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_post"];
    server.pages.set("/token", ({ form }, response) =>
      json(response, 400, { error: "invalid_grant", error_description: [...form.values()].join(" ") }),
    );
    const client = { id: "me", secret: "pass+wo/rd" };
    const message = await messageOf(send(oauth({ redirect: consenting(), client }), end.url));
    const [{ form } = { form: new URLSearchParams() }] = server.at("/token");
    expect(message).toContain("invalid_grant");
    for (const name of ["code", "code_verifier", "client_secret"]) expect(message).not.toContain(form.get(name));
  });

  it("has no token in it that the end says back", async () => {
    end.pages.set("/mcp", ({ headers }, response) =>
      end.refuse(response, 401, [`error_description="no ${headers.authorization}"`], []),
    );
    const message = await messageOf(send(oauth({ redirect: consenting() }), end.url));
    expect(message).toContain("no Bearer ...");
    expect(message).not.toContain(end.shown.at(-1)?.slice("Bearer ".length));
  });

  it("has nothing in it that writes on terminals, though an issuer may be written so", async () => {
    const odd = `${server.url}/a\u001B]0;b\u0007`;
    server.metadata["issuer"] = odd;
    server.metadataPath = new URL(odd).pathname.replace(/^/, "/.well-known/oauth-authorization-server");
    end.metadata = { ...end.metadata, authorization_servers: [odd] };
    const message = await messageOf(send(oauth({ redirect: consenting() }), end.url));
    expect(message).toContain("its issuer has what no address has");
    expect(message).not.toMatch(/\p{Cc}/u);
  });
});
