// The sources of keys: a set, a function, a URL, or the URL in an issuer's metadata. A failure to get them is never
// reported as an invalid token.

import type { IncomingMessage, ServerResponse } from "node:http";
import { createLocalJWKSet } from "jose";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type Issuer, newSigner, openIssuer, type Page, type Signer } from "../../../test/support/auth/token-issuer.ts";
import { type Authenticator, AuthError, type Identity } from "../../core/authentication.ts";
import { bearer } from "./bearer.ts";

const resource = "https://notes.example.com/mcp";
const OAUTH = "/.well-known/oauth-authorization-server";
const OPENID = "/.well-known/openid-configuration";

let issuer: Issuer;
let signer: Signer;

beforeEach(async () => {
  issuer = await openIssuer();
  signer = await newSigner("ES256", "one");
  issuer.pages.set("/keys", JSON.stringify({ keys: [signer.jwk] }));
});
afterEach(async () => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  await issuer.close();
});

const token = (iss = issuer.url, by = signer): Promise<string> =>
  by.sign({ iss, aud: resource, sub: "ada", exp: Math.floor(Date.now() / 1000) + 3600 });
const authenticate = async (authenticator: Authenticator, given?: string): Promise<Identity> =>
  authenticator.authenticate({ headers: { authorization: `Bearer ${given ?? (await token())}` }, endpoint: resource });
const metadata = (url = issuer.url, more?: object): string =>
  JSON.stringify({ issuer: url, jwks_uri: `${issuer.url}/keys`, ...more });
const withKeysUrl = (): Authenticator =>
  bearer({ authorizationServers: [issuer.url], jwks: `${issuer.url}/keys`, resource });
const withDiscovery = (url = issuer.url): Authenticator => bearer({ authorizationServers: [url], resource });
/** It rejects, but not with an AuthError, which would blame the token. */
const expectOtherError = async (attempt: Promise<unknown>, text: string | RegExp): Promise<void> => {
  await expect(attempt).rejects.toThrow(text);
  await expect(attempt).rejects.not.toBeInstanceOf(AuthError);
};
const invalid = { status: 401, challenge: expect.stringContaining('error="invalid_token"') as string };
/** Controls performance.now(). */
const mockClock = (): ((ms: number) => void) => {
  let time = Math.ceil(performance.now());
  vi.spyOn(performance, "now").mockImplementation(() => time);
  return (ms) => {
    time += ms;
  };
};

it("keys may be given", async () => {
  const authenticator = bearer({ authorizationServers: [issuer.url], jwks: { keys: [signer.jwk] }, resource });
  expect(await authenticate(authenticator)).toHaveProperty("principal");
  expect(issuer.requests).toEqual([]);
});

it("keys may come from a function", async () => {
  const keys = vi.fn(createLocalJWKSet({ keys: [signer.jwk] }));
  const authenticator = bearer({ authorizationServers: [issuer.url], jwks: keys, resource });
  expect(await authenticate(authenticator)).toHaveProperty("principal");
  expect(keys).toHaveBeenCalledWith(expect.objectContaining({ alg: "ES256", kid: "one" }), expect.anything());
  const other = await newSigner("ES256", "two");
  await expect(authenticate(authenticator, await token(issuer.url, other))).rejects.toMatchObject(invalid);
  const broken = bearer({
    authorizationServers: [issuer.url],
    jwks: () => Promise.reject(new Error("no keys today")),
    resource,
  });
  await expectOtherError(authenticate(broken), "no keys today");
});

it("keys may be at a URL, and change there", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const authenticator = withKeysUrl();
  expect(await authenticate(authenticator)).toHaveProperty("principal");
  const next = await newSigner("ES256", "two");
  issuer.pages.set("/keys", JSON.stringify({ keys: [next.jwk] }));
  // For a while after a request, no token causes another one.
  await expect(authenticate(authenticator, await token(issuer.url, next))).rejects.toMatchObject(invalid);
  expect(issuer.requests).toEqual(["/keys"]);
  vi.setSystemTime(Date.now() + 31_000);
  expect(await authenticate(authenticator, await token(issuer.url, next))).toHaveProperty("principal");
  expect(issuer.requests).toEqual(["/keys", "/keys"]);
  // A key that the issuer has removed is not accepted any more.
  await expect(authenticate(authenticator)).rejects.toMatchObject(invalid);
});

it("keys at a URL are fetched again when they are old", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const authenticator = withKeysUrl();
  await authenticate(authenticator);
  vi.setSystemTime(Date.now() + 601_000);
  issuer.pages.set("/keys", JSON.stringify({ keys: [] }));
  await expect(authenticate(authenticator)).rejects.toMatchObject(invalid);
});

it.each<[string, Page, string | RegExp]>([
  ["is an error", (_, response) => response.writeHead(500).end("{}"), /keys: it answered HTTP 500$/],
  ["is 204", (_, response) => response.writeHead(204).end(), /keys: it answered HTTP 204$/],
  ["is not JSON", "<html>", "Failed to parse"],
  ["is empty", "", "Failed to parse"],
  ["is not a key set", JSON.stringify({ keys: 7 }), "malformed"],
  [
    "breaks off",
    (_, response) => void response.writeHead(200, { "content-length": "99" }).write("{", () => response.destroy()),
    "terminated",
  ],
  ["is a closed connection", (request) => void request.socket.destroy(), "fetch failed"],
  ["does not end", endless, /answers with more than 1048576 bytes$/],
])("keys whose response %s do not blame the token", async (_, page, text) => {
  issuer.pages.set("/keys", page);
  await expectOtherError(authenticate(withKeysUrl()), text);
});

it.each([200, 500])("keys in an endless response close the connection: %d", async (status) => {
  vi.spyOn(AbortSignal, "timeout").mockReturnValue(new AbortController().signal);
  const over = new Promise<void>((resolve) => {
    issuer.pages.set("/keys", (request, response) => {
      response.on("close", resolve);
      response.statusCode = status;
      endless(request, response);
    });
  });
  await expect(authenticate(withKeysUrl())).rejects.toThrow(/answers with more than/);
  await over;
});

it("keys may be in a set as large as the limit", async () => {
  const set = JSON.stringify({ keys: [signer.jwk] });
  issuer.pages.set("/keys", set.padEnd(1024 * 1024));
  expect(await authenticate(withKeysUrl())).toHaveProperty("principal");
  issuer.pages.set("/keys", set.padEnd(1024 * 1024 + 1));
  await expectOtherError(authenticate(withKeysUrl()), "answers with more than 1048576 bytes");
});

it("keys may have non-ASCII IDs, split anywhere by the network", async () => {
  const set = Buffer.from(JSON.stringify({ keys: [{ ...signer.jwk, kid: "ключ" }] }));
  const half = set.indexOf("ключ") + 1;
  const body = new ReadableStream<Uint8Array>({
    start(stream) {
      stream.enqueue(set.subarray(0, half));
      stream.enqueue(set.subarray(half));
      stream.close();
    },
  });
  vi.spyOn(globalThis, "fetch").mockResolvedValue(new Response(body));
  const named = await signer.sign({ iss: issuer.url, aud: resource, sub: "ada", exp: 4_000_000_000 }, { kid: "ключ" });
  expect(await authenticate(withKeysUrl(), named)).toHaveProperty("principal");
});

it("keys are not fetched through a redirect", async () => {
  issuer.pages.set("/moved", JSON.stringify({ keys: [signer.jwk] }));
  issuer.pages.set("/keys", (_, response) => response.writeHead(302, { location: `${issuer.url}/moved` }).end());
  await expectOtherError(authenticate(withKeysUrl()), "answered HTTP 302");
  expect(issuer.requests).toEqual(["/keys"]);
});

it("keys are waited for with a timeout", async () => {
  const timeoutController = new AbortController();
  const timeout = vi.spyOn(AbortSignal, "timeout").mockReturnValue(timeoutController.signal);
  const requested = new Promise<void>((resolve) => issuer.pages.set("/keys", () => resolve()));
  const attempt = authenticate(withKeysUrl());
  await requested;
  timeoutController.abort(new DOMException("late", "TimeoutError"));
  await expectOtherError(attempt, "timed out");
  expect(timeout).toHaveBeenCalledWith(5_000);
});

it("keys that failed are fetched again after a pause, and not before", async () => {
  const advance = mockClock();
  issuer.pages.delete("/keys");
  const authenticator = withKeysUrl();
  await expectOtherError(authenticate(authenticator), "answered HTTP 404");
  issuer.pages.set("/keys", JSON.stringify({ keys: [signer.jwk] }));
  advance(4_999);
  await expectOtherError(authenticate(authenticator), "answered HTTP 404");
  expect(issuer.requests).toEqual(["/keys"]);
  advance(1);
  expect(await authenticate(authenticator)).toHaveProperty("principal");
  expect(issuer.requests).toEqual(["/keys", "/keys"]);
});

/** Writes until the other side closes the connection. */
function endless(_request: IncomingMessage, response: ServerResponse): void {
  const more = (): void => {
    while (!response.destroyed && response.write(" ".repeat(64 * 1024)));
  };
  response.on("drain", more);
  more();
}

it.each<[string, string, readonly string[]]>([
  ["", OAUTH, [OAUTH]],
  ["", OPENID, [OAUTH, OPENID]],
  ["/", OAUTH, [OAUTH]],
  ["/tenant", `${OAUTH}/tenant`, [`${OAUTH}/tenant`]],
  ["/tenant", `${OPENID}/tenant`, [`${OAUTH}/tenant`, `${OPENID}/tenant`]],
  ["/tenant", `/tenant${OPENID}`, [`${OAUTH}/tenant`, `${OPENID}/tenant`, `/tenant${OPENID}`]],
  ["/tenant/", `/tenant${OPENID}`, [`${OAUTH}/tenant`, `${OPENID}/tenant`, `/tenant${OPENID}`]],
])("an issuer's metadata of %j is found at %s", async (path, place, asked) => {
  const url = `${issuer.url}${path}`;
  issuer.pages.set(place, metadata(url));
  const { principal } = await authenticate(withDiscovery(url), await token(url));
  expect(principal).toBe(`${url} ada`);
  expect(issuer.requests).toEqual([...asked, "/keys"]);
});

it("an issuer's metadata is fetched once, however many tokens there are", async () => {
  issuer.pages.set(OAUTH, metadata());
  const authenticator = withDiscovery();
  await Promise.all([authenticate(authenticator), authenticate(authenticator), authenticate(authenticator)]);
  await authenticate(authenticator);
  expect(issuer.requests).toEqual([OAUTH, "/keys"]);
});

it("an issuer's metadata without the URL of the keys is skipped for one that has it", async () => {
  issuer.pages.set(OAUTH, metadata(issuer.url, { jwks_uri: undefined }));
  issuer.pages.set(OPENID, metadata());
  expect(await authenticate(withDiscovery())).toHaveProperty("principal");
});

const nowhere = /^The metadata of http:\/\/127\.0\.0\.1:\d+ does not say where its keys are: /;

it.each<[string, () => string, string | RegExp]>([
  ["of another issuer", () => metadata("https://honest.example"), "This is not the metadata of"],
  ["of the issuer with a slash", () => metadata(`${issuer.url}/`), "This is not the metadata of"],
  ["without an issuer", () => metadata(issuer.url, { issuer: undefined }), "This is not the metadata of"],
  ["that is an array", () => "[]", "This is not the metadata of"],
  ["that is null", () => "null", "This is not the metadata of"],
  ["that is not JSON", () => "{", "JSON"],
  ["without the URL of the keys", () => metadata(issuer.url, { jwks_uri: undefined }), "Invalid URL"],
  [
    "with keys without TLS",
    () => metadata(issuer.url, { jwks_uri: "http://a.example/keys" }),
    "which is not an https URL",
  ],
  ["with keys in a file", () => metadata(issuer.url, { jwks_uri: "file:///etc/keys" }), "which is not an https URL"],
  [
    "with keys at another scheme on this machine",
    () => metadata(issuer.url, { jwks_uri: "ftp://localhost/keys" }),
    "which is not an https URL",
  ],
])("an issuer's metadata: %s is refused", async (_, page, cause) => {
  issuer.pages.set(OAUTH, metadata());
  issuer.pages.set(OAUTH, page());
  issuer.pages.set(OPENID, page());
  const attempt = authenticate(withDiscovery());
  await expectOtherError(attempt, nowhere);
  await expectOtherError(attempt, cause);
  expect(issuer.requests).toEqual([OAUTH, OPENID]);
});

it("an issuer's metadata of a remote issuer may not name this machine, and may name any other by https", async () => {
  const asked: string[] = [];
  const elsewhere = "https://auth.example.com";
  let keys = `${issuer.url}/keys`;
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input) => {
    const place = new Request(input).url;
    asked.push(place);
    const body = place.includes("well-known") ? { issuer: elsewhere, jwks_uri: keys } : { keys: [signer.jwk] };
    return new Response(JSON.stringify(body));
  });
  await expectOtherError(
    authenticate(withDiscovery(elsewhere), await token(elsewhere)),
    "does not say where its keys are",
  );
  expect(asked).toEqual([`${elsewhere}${OAUTH}`, `${elsewhere}${OPENID}`]);
  keys = "https://keys.example.com/k";
  expect(await authenticate(withDiscovery(elsewhere), await token(elsewhere))).toHaveProperty("principal");
  expect(asked.slice(2)).toEqual([`${elsewhere}${OAUTH}`, keys]);
});

it("an issuer's metadata is not fetched through a redirect", async () => {
  issuer.pages.set("/moved", metadata());
  issuer.pages.set(OAUTH, (_, response) => response.writeHead(307, { location: `${issuer.url}/moved` }).end());
  await expectOtherError(authenticate(withDiscovery()), nowhere);
  expect(issuer.requests).toEqual([OAUTH, OPENID]);
});

it("an issuer's metadata is waited for with a timeout", async () => {
  const timeoutController = new AbortController();
  const timeout = vi.spyOn(AbortSignal, "timeout").mockReturnValue(timeoutController.signal);
  const requested = new Promise<void>((resolve) => issuer.pages.set(OAUTH, () => resolve()));
  const attempt = authenticate(withDiscovery());
  await requested;
  timeoutController.abort(new DOMException("late", "TimeoutError"));
  await expectOtherError(attempt, nowhere);
  expect(timeout).toHaveBeenCalledWith(5_000);
  expect(issuer.requests).toEqual([OAUTH]);
});

it("an issuer's metadata that failed is fetched again after a pause, and not before", async () => {
  const advance = mockClock();
  const authenticator = withDiscovery();
  await Promise.all([
    expectOtherError(authenticate(authenticator), nowhere),
    expectOtherError(authenticate(authenticator), nowhere),
  ]);
  expect(issuer.requests).toEqual([OAUTH, OPENID]);
  issuer.pages.set(OAUTH, metadata());
  await expectOtherError(authenticate(authenticator), nowhere);
  expect(issuer.requests).toEqual([OAUTH, OPENID]);
  advance(5_000);
  expect(await authenticate(authenticator)).toHaveProperty("principal");
  expect(await authenticate(authenticator)).toHaveProperty("principal");
  expect(issuer.requests).toEqual([OAUTH, OPENID, OAUTH, "/keys"]);
});
