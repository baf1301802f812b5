// From a first refusal to a token and on: one consent for all callers, one end for each authorizer, giving up, and what
// errors must not say. Renewal, scopes, DPoP, discovery and registration have tests of their own.

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type AuthorizationServer,
  consenting,
  json,
  openAuthorizationServer,
} from "../../../test/support/authorization-server.ts";
import { openServer, type ProtectedServer, send } from "../../../test/support/protected-end.ts";
import { ConnectionError } from "../../core/errors.ts";
import { memoryTokens } from "./memory-tokens.ts";
import { oauth } from "./oauth.ts";
import type { Redirect } from "./redirect.ts";

let server: AuthorizationServer;
let end: ProtectedServer;

beforeEach(async () => {
  server = await openAuthorizationServer();
  end = await openServer(server);
});

afterEach(async () => {
  await Promise.all([server.close(), end.close()]);
});

const failure = (promise: Promise<unknown>): Promise<ConnectionError> =>
  promise.then(
    () => expect.unreachable("it should have failed"),
    (error: unknown) => {
      expect(error).toBeInstanceOf(ConnectionError);
      return error as ConnectionError;
    },
  );

describe("from nothing to a token", () => {
  it("registers, asks for consent with PKCE and state, and names the resource in both requests", async () => {
    const redirect = consenting();
    expect(await send(oauth({ redirect }), end.url)).toBe(200);

    const [registration] = server.at("/register");
    expect(JSON.parse(registration?.text ?? "")).toEqual({
      client_name: "Catenary",
      application_type: "native",
      redirect_uris: [redirect.uri],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
    });
    const asked = redirect.visited[0]?.searchParams;
    expect(asked?.get("resource")).toBe(end.url.href);
    expect(asked?.get("code_challenge_method")).toBe("S256");
    expect(asked?.get("state")).toMatch(/^[\w-]{20,}$/);
    expect(asked?.has("scope")).toBe(false);
    const [exchange] = server.grantsOf("authorization_code");
    expect(exchange?.get("resource")).toBe(end.url.href);
    expect(end.shown).toEqual([undefined, expect.stringMatching(/^Bearer access-/)]);
  });

  it("is one flight for all callers", async () => {
    const redirect = consenting();
    const auth = oauth({ redirect });
    const all = await Promise.all([1, 2, 3, 4, 5].map(() => send(auth, end.url)));
    expect(all).toEqual([200, 200, 200, 200, 200]);
    expect(redirect.visited).toHaveLength(1);
    expect(server.at("/register")).toHaveLength(1);
    expect(server.at("/token")).toHaveLength(1);
  });

  it("goes on with what the last run left in the store, without asking anybody", async () => {
    const store = memoryTokens();
    await send(oauth({ store, redirect: consenting() }), end.url);
    const before = server.asked.length;
    expect(await send(oauth({ store }), end.url)).toBe(200);
    expect(server.asked).toHaveLength(before);
    expect(end.shown).toHaveLength(3);
  });

  it("does not find what another client left in the same store", async () => {
    const store = memoryTokens();
    await send(oauth({ store, redirect: consenting() }), end.url);
    const redirect = consenting();
    expect(await send(oauth({ store, redirect, client: { id: "mine" } }), end.url)).toBe(200);
    expect(redirect.visited[0]?.searchParams.get("client_id")).toBe("mine");
  });

  it("takes a broken store entry for none", async () => {
    const kept = memoryTokens();
    const store = { ...kept, get: async (key: string) => (await kept.get(key)) && '{"issuer":1' };
    expect(await send(oauth({ store, redirect: consenting() }), end.url)).toBe(200);
    expect(await send(oauth({ store, redirect: consenting() }), end.url)).toBe(200);
    expect(server.at("/register")).toHaveLength(2);
  });

  it("uses a token that cannot be kept, and says so", async () => {
    const notices: string[] = [];
    const store = { ...memoryTokens(), set: () => Promise.reject(new Error("the disk is full")) };
    const auth = oauth({ store, redirect: consenting(), onNotice: (text) => notices.push(text) });
    expect(await send(auth, end.url)).toBe(200);
    expect(notices.join()).toContain("the disk is full");
  });

  it("belongs to one end: another origin gets nothing, and an error says why", async () => {
    const auth = oauth({ redirect: consenting() });
    await send(auth, end.url);
    const other = await openServer(server);
    const error = await failure(send(auth, other.url));
    await other.close();
    expect(error.kind).toBe("unauthorized");
    expect(error.message).toContain("each end needs an oauth() of its own");
    expect(other.asked).toEqual([]);
  });

  it("leaves a 403 that is no matter of scopes to the caller", async () => {
    end.pages.set("/mcp", (_asked, response) => json(response, 403, {}));
    expect(await send(oauth({ redirect: consenting() }), end.url)).toBe(403);
    expect(server.asked).toEqual([]);
  });

  it("says what to configure where nobody can be asked for consent", async () => {
    const error = await failure(send(oauth(), end.url));
    expect(error.kind).toBe("unauthorized");
    expect(error.mayHaveRun).toBe(false);
    expect(error.message).toContain("give `redirect`");
    expect(server.at("/register")).toEqual([]);
  });
});

describe("a token that the end does not take", () => {
  it("is not asked for again where it was new: the error names both sides", async () => {
    end.trusts = await openAuthorizationServer();
    const redirect = consenting();
    const error = await failure(send(oauth({ redirect }), end.url));
    await end.trusts.close();
    expect(error.message).toContain(
      `refused the access token that ${server.url} issued for it just now (invalid_token)`,
    );
    expect(redirect.visited).toHaveLength(1);
  });

  it("is replaced where it was good before and cannot be refreshed", async () => {
    server.givesRefresh = false;
    const redirect = consenting();
    const auth = oauth({ redirect });
    await send(auth, end.url);
    server.revoke();
    expect(await send(auth, end.url)).toBe(200);
    expect(redirect.visited).toHaveLength(2);
  });
});

describe("giving up", () => {
  /** A person who looks at the page and does nothing. */
  const idle = (): Redirect & { began: Promise<void>; left: Promise<void>; hasLeft: boolean } => {
    const events = new EventTarget();
    const event = (name: string): Promise<void> =>
      new Promise((resolve) => events.addEventListener(name, () => resolve(), { once: true }));
    const person = {
      uri: "http://127.0.0.1:9/callback",
      began: event("began"),
      left: event("left"),
      hasLeft: false,
      visit: (_url: URL, { signal }: { signal: AbortSignal }): Promise<URL> =>
        new Promise((_resolve, reject) => {
          signal.addEventListener("abort", () => {
            person.hasLeft = true;
            events.dispatchEvent(new Event("left"));
            reject(signal.reason as Error);
          });
          events.dispatchEvent(new Event("began"));
        }),
    };
    return person;
  };

  it("ends the visit when the last caller has gone, and not before", async () => {
    const redirect = idle();
    const auth = oauth({ redirect });
    const [one, two] = [new AbortController(), new AbortController()];
    const first = failure(send(auth, end.url, "POST", one.signal));
    await redirect.began;
    // It finds the flight under way, and waits with it before it sends anything.
    const second = failure(send(auth, end.url, "POST", two.signal));
    await new Promise((resolve) => setImmediate(resolve));
    one.abort();
    expect((await first).kind).toBe("cancelled");
    expect(redirect.hasLeft).toBe(false);
    expect(end.shown).toHaveLength(1);
    two.abort();
    expect((await second).kind).toBe("cancelled");
    await redirect.left;
  });

  it("does not let a later caller inherit that", async () => {
    const asleep = idle();
    const awake = consenting();
    let person: Redirect = asleep;
    const redirect: Redirect = { uri: awake.uri, visit: (url, options) => person.visit(url, options) };
    const auth = oauth({ redirect });
    const leaving = new AbortController();
    const first = failure(send(auth, end.url, "POST", leaving.signal));
    await asleep.began;
    person = awake;
    leaving.abort();
    await first;
    expect(await send(auth, end.url)).toBe(200);
  });
});

describe("what an error says", () => {
  it("never holds a code, a token, a verifier or a secret", async () => {
    const secret = "a-secret-of-the-client-that-nobody-may-read";
    server.pages.set("/token", ({ form }, response) =>
      json(response, 400, { error: "invalid_request", error_description: `bad: ${form.toString()}` }),
    );
    const auth = oauth({ redirect: consenting(), client: { id: "mine", secret } });
    const error = await failure(send(auth, end.url));
    const [form] = server.grantsOf("authorization_code");
    const shown = `${error.message} ${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`;
    expect(error.message).toContain("invalid_request");
    expect(error.cause).toBeUndefined();
    expect(shown).not.toContain(secret);
    expect(shown).not.toContain(form?.get("code_verifier"));
  });
});

describe("options", () => {
  it.each([
    [{ client: { id: "" } }, "needs an `id`"],
    [{ client: { id: "a", issuer: "nowhere" } }, "is no URL"],
    [{ metadataUrl: "http://example.com/client.json" }, "must be an https URL with a path"],
    [{ metadataUrl: "https://example.com" }, "must be an https URL with a path"],
    [{ maxStepUps: 0 }, "1 or more"],
    [{ redirect: {} as Redirect }, "needs a function `visit`"],
  ])("that are wrong are told when they are said: %j", (options, text) => {
    expect(() => oauth(options)).toThrow(text);
  });
});
