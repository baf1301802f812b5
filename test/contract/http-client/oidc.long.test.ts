// The whole OAuth flow with a real authorization server (node-oidc-provider): our client, our server with `bearer()`,
// and the loopback redirect with a browser that follows it.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { loopbackRedirect, memoryTokens, oauth, type OAuthOptions } from "../../../src/auth/oauth/index.ts";
import { serve } from "../../../src/serve.ts";
import { bearer, createServer } from "../../../src/server/index.ts";
import { Browser, type OidcProvider, openOidcProvider } from "../../support/auth/oidc-provider.ts";

const TOKEN_SEC = 600;

let provider: OidcProvider;
let front: Awaited<ReturnType<typeof serve>>;
let browser: Browser;
let url: string;

async function open(more: { pushedOnly?: boolean } = {}): Promise<void> {
  provider = await openOidcProvider({ scope: "notes:read notes:write", accessTokenSec: TOKEN_SEC, ...more });
  const server = createServer({ name: "notes", version: "1.0.0" })
    .tool("read", {}, (_, { caller }) => `for ${String(caller.claims?.["sub"])}`)
    .tool("erase", { scopes: ["notes:write"] }, () => "erased");
  front = await serve(server, {
    http: { port: 0, auth: bearer({ authorizationServers: [provider.issuer], scopes: ["notes:read"] }) },
  });
  url = String(front.url);
  browser = new Browser();
}

beforeEach(() => {
  // The package prints warnings about its development settings.
  vi.spyOn(console, "info").mockReturnValue();
  vi.spyOn(console, "warn").mockReturnValue();
  vi.useFakeTimers({ toFake: ["Date"] });
});

afterEach(async () => {
  await front.close();
  await provider.close();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const auth = (more: OAuthOptions = {}): ReturnType<typeof oauth> =>
  oauth({ redirect: loopbackRedirect({ open: async (address) => void (await browser.open(address)) }), ...more });

const text = ({ content }: { content?: unknown }): unknown => (content as { text: string }[])[0]?.text;

/** The number of requests to each endpoint of the authorization server. */
const countRequests = (): Record<string, number> => {
  const count = (what: string): number => provider.requests.filter((request) => request === what).length;
  return { registrations: count("POST /reg"), consents: count("GET /auth"), tokens: count("POST /token") };
};

const later = (seconds: number): void => void vi.setSystemTime(Date.now() + seconds * 1000);

/** The scopes of each authorization request. */
const requestedScopes = (): (string | null)[] =>
  browser.history.filter(({ pathname }) => pathname === "/auth").map(({ searchParams }) => searchParams.get("scope"));

it("a client of node-oidc-provider registers, asks for consent, and calls a tool as the user who consented", async () => {
  await open();
  const client = await connect(url, { auth: auth() });
  expect(text(await client.callTool("read"))).toBe("for ada");
  await client.close();
  expect(countRequests()).toEqual({ registrations: 1, consents: 1, tokens: 1 });
  expect(requestedScopes()).toEqual(["notes:read offline_access"]);
  expect(browser.history.at(-1)?.searchParams.get("iss")).toBe(provider.issuer);
});

it("a client of node-oidc-provider refreshes the token each time before it expires", async () => {
  await open();
  const client = await connect(url, { auth: auth() });
  for (const round of [1, 2, 3]) {
    later(TOKEN_SEC - 30);
    expect(text(await client.callTool("read"))).toBe("for ada");
    expect(countRequests()).toEqual({ registrations: 1, consents: 1, tokens: 1 + round });
  }
  await client.close();
});

it("a client of node-oidc-provider refreshes a stored token of an earlier run", async () => {
  await open();
  const store = memoryTokens();
  const first = await connect(url, { auth: auth({ store }) });
  await first.close();
  later(TOKEN_SEC + 60);
  const second = await connect(url, { auth: oauth({ store }) });
  expect(text(await second.callTool("read"))).toBe("for ada");
  await second.close();
  expect(countRequests()).toEqual({ registrations: 1, consents: 1, tokens: 2 });
});

it("a client of node-oidc-provider requests more scopes if a tool needs them, and keeps the old ones", async () => {
  await open();
  const client = await connect(url, { auth: auth() });
  expect(text(await client.callTool("read"))).toBe("for ada");
  expect(text(await client.callTool("erase"))).toBe("erased");
  expect(text(await client.callTool("read"))).toBe("for ada");
  await client.close();
  expect(requestedScopes()).toEqual(["notes:read offline_access", "notes:read offline_access notes:write"]);
  expect(countRequests()).toEqual({ registrations: 1, consents: 2, tokens: 2 });
});

it("a client of node-oidc-provider serves concurrent calls with one consent and one refresh", async () => {
  await open();
  const client = await connect(url, { auth: auth() });
  const many = (): Promise<unknown[]> => Promise.all(Array.from({ length: 8 }, () => client.callTool("read")));
  expect(await many()).toHaveLength(8);
  later(TOKEN_SEC - 30);
  expect(await many()).toHaveLength(8);
  await client.close();
  expect(countRequests()).toEqual({ registrations: 1, consents: 1, tokens: 2 });
});

it("a client of node-oidc-provider works for a client with the session style", async () => {
  await open();
  const client = await connect(url, { auth: auth(), revision: "2025-11-25" });
  expect(text(await client.callTool("erase"))).toBe("erased");
  await client.close();
  expect(countRequests().consents).toBe(2);
});

it("a client of node-oidc-provider pushes the authorization request if the server requires it", async () => {
  await open({ pushedOnly: true });
  const client = await connect(url, { auth: auth() });
  expect(text(await client.callTool("erase"))).toBe("erased");
  await client.close();
  expect(requestedScopes()).toEqual([null, null]);
  expect(provider.requests.filter((one) => one === "POST /request")).toHaveLength(2);
});

it("a client of node-oidc-provider reports the user's refusal with the server's reason", async () => {
  await open();
  provider.consents = false;
  const connecting = connect(url, { auth: auth() });
  await expect(connecting).rejects.toMatchObject({
    kind: "unauthorized",
    message: expect.stringContaining("access_denied (Ada would rather not)"),
  });
  expect(countRequests().tokens).toBe(0);
});
