// Where keys come from: a set, a function, an address, or what an issuer's metadata names. What breaks on the way is
// never called the token's fault.

import type { IncomingMessage, ServerResponse } from "node:http";
import { createLocalJWKSet } from "jose";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Issuer, newSigner, openIssuer, type Page, type Signer } from "../../../test/support/issuer.ts";
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
const enter = async (door: Authenticator, brought?: string): Promise<Identity> =>
  door.authenticate({ headers: { authorization: `Bearer ${brought ?? (await token())}` }, endpoint: resource });
const metadata = (url = issuer.url, more?: object): string =>
  JSON.stringify({ issuer: url, jwks_uri: `${issuer.url}/keys`, ...more });
const fromAddress = (): Authenticator =>
  bearer({ authorizationServers: [issuer.url], jwks: `${issuer.url}/keys`, resource });
const discovering = (url = issuer.url): Authenticator => bearer({ authorizationServers: [url], resource });
/** It cannot tell, and does not call the token bad. */
const cannotTell = async (attempt: Promise<unknown>, text: string | RegExp): Promise<void> => {
  await expect(attempt).rejects.toThrow(text);
  await expect(attempt).rejects.not.toBeInstanceOf(AuthError);
};
const invalid = { status: 401, challenge: expect.stringContaining('error="invalid_token"') as string };
/** The clock that nobody sets, in our hands. */
const holdClock = (): ((ms: number) => void) => {
  let time = Math.ceil(performance.now());
  vi.spyOn(performance, "now").mockImplementation(() => time);
  return (ms) => {
    time += ms;
  };
};

describe("keys", () => {
  it("may be given", async () => {
    const door = bearer({ authorizationServers: [issuer.url], jwks: { keys: [signer.jwk] }, resource });
    expect(await enter(door)).toHaveProperty("principal");
    expect(issuer.asked).toEqual([]);
  });

  it("may be given by a function", async () => {
    const keys = vi.fn(createLocalJWKSet({ keys: [signer.jwk] }));
    const door = bearer({ authorizationServers: [issuer.url], jwks: keys, resource });
    expect(await enter(door)).toHaveProperty("principal");
    expect(keys).toHaveBeenCalledWith(expect.objectContaining({ alg: "ES256", kid: "one" }), expect.anything());
    const stranger = await newSigner("ES256", "two");
    await expect(enter(door, await token(issuer.url, stranger))).rejects.toMatchObject(invalid);
    const broken = bearer({
      authorizationServers: [issuer.url],
      jwks: () => Promise.reject(new Error("no keys today")),
      resource,
    });
    await cannotTell(enter(broken), "no keys today");
  });

  it("may be at an address, and change there", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const door = fromAddress();
    expect(await enter(door)).toHaveProperty("principal");
    const next = await newSigner("ES256", "two");
    issuer.pages.set("/keys", JSON.stringify({ keys: [next.jwk] }));
    // For a while after it has asked, no token makes it ask again.
    await expect(enter(door, await token(issuer.url, next))).rejects.toMatchObject(invalid);
    expect(issuer.asked).toEqual(["/keys"]);
    vi.setSystemTime(Date.now() + 31_000);
    expect(await enter(door, await token(issuer.url, next))).toHaveProperty("principal");
    expect(issuer.asked).toEqual(["/keys", "/keys"]);
    // What the issuer has dropped no longer counts.
    await expect(enter(door)).rejects.toMatchObject(invalid);
  });

  it("at an address are asked for again when they are old", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    const door = fromAddress();
    await enter(door);
    vi.setSystemTime(Date.now() + 601_000);
    issuer.pages.set("/keys", JSON.stringify({ keys: [] }));
    await expect(enter(door)).rejects.toMatchObject(invalid);
  });

  it.each<[string, Page, string | RegExp]>([
    ["is an error", (_, response) => response.writeHead(500).end("{}"), /keys answered 500$/],
    ["is nothing", (_, response) => response.writeHead(204).end(), /keys answered 204$/],
    ["is no JSON", "<html>", "Failed to parse"],
    ["is empty", "", "Failed to parse"],
    ["is no set", JSON.stringify({ keys: 7 }), "malformed"],
    [
      "breaks off",
      (_, response) => void response.writeHead(200, { "content-length": "99" }).write("{", () => response.destroy()),
      "terminated",
    ],
    ["is cut", (request) => void request.socket.destroy(), "fetch failed"],
    ["does not end", endless, /keys sends more than 1048576 bytes$/],
  ])("whose answer %s say nothing about a token", async (_, page, text) => {
    issuer.pages.set("/keys", page);
    await cannotTell(enter(fromAddress()), text);
  });

  it.each([200, 500])("that do not end are hung up on: %d", async (status) => {
    vi.spyOn(AbortSignal, "timeout").mockReturnValue(new AbortController().signal);
    const over = new Promise<void>((resolve) => {
      issuer.pages.set("/keys", (request, response) => {
        response.on("close", resolve);
        response.statusCode = status;
        endless(request, response);
      });
    });
    await expect(enter(fromAddress())).rejects.toThrow(/answered 500|sends more than/);
    await over;
  });

  it("may be of a set as long as the limit", async () => {
    const set = JSON.stringify({ keys: [signer.jwk] });
    issuer.pages.set("/keys", set.padEnd(1024 * 1024));
    expect(await enter(fromAddress())).toHaveProperty("principal");
    issuer.pages.set("/keys", set.padEnd(1024 * 1024 + 1));
    await cannotTell(enter(fromAddress()), "sends more than 1048576 bytes");
  });

  it("may have names in any script, cut anywhere by the wire", async () => {
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
    const named = await signer.sign(
      { iss: issuer.url, aud: resource, sub: "ada", exp: 4_000_000_000 },
      { kid: "ключ" },
    );
    expect(await enter(fromAddress(), named)).toHaveProperty("principal");
  });

  it("are not looked for where a redirect leads", async () => {
    issuer.pages.set("/moved", JSON.stringify({ keys: [signer.jwk] }));
    issuer.pages.set("/keys", (_, response) => response.writeHead(302, { location: `${issuer.url}/moved` }).end());
    await cannotTell(enter(fromAddress()), "answered 302");
    expect(issuer.asked).toEqual(["/keys"]);
  });

  it("are not waited for without end", async () => {
    const patience = new AbortController();
    const timeout = vi.spyOn(AbortSignal, "timeout").mockReturnValue(patience.signal);
    const asked = new Promise<void>((resolve) => issuer.pages.set("/keys", () => resolve()));
    const entering = enter(fromAddress());
    await asked;
    patience.abort(new DOMException("late", "TimeoutError"));
    await cannotTell(entering, "timed out");
    expect(timeout.mock.calls).toEqual([[5_000]]);
  });

  it("that failed are asked for again after a rest, and not before", async () => {
    const pass = holdClock();
    issuer.pages.delete("/keys");
    const door = fromAddress();
    await cannotTell(enter(door), "answered 404");
    issuer.pages.set("/keys", JSON.stringify({ keys: [signer.jwk] }));
    pass(4_999);
    await cannotTell(enter(door), "answered 404");
    expect(issuer.asked).toEqual(["/keys"]);
    pass(1);
    expect(await enter(door)).toHaveProperty("principal");
    expect(issuer.asked).toEqual(["/keys", "/keys"]);
  });
});

/** More than anybody wants, until the other side hangs up. */
function endless(_request: IncomingMessage, response: ServerResponse): void {
  const more = (): void => {
    while (!response.destroyed && response.write(" ".repeat(64 * 1024)));
  };
  response.on("drain", more);
  more();
}

describe("an issuer's metadata", () => {
  it.each<[string, string, readonly string[]]>([
    ["", OAUTH, [OAUTH]],
    ["", OPENID, [OAUTH, OPENID]],
    ["/", OAUTH, [OAUTH]],
    ["/tenant", `${OAUTH}/tenant`, [`${OAUTH}/tenant`]],
    ["/tenant", `${OPENID}/tenant`, [`${OAUTH}/tenant`, `${OPENID}/tenant`]],
    ["/tenant", `/tenant${OPENID}`, [`${OAUTH}/tenant`, `${OPENID}/tenant`, `/tenant${OPENID}`]],
    ["/tenant/", `/tenant${OPENID}`, [`${OAUTH}/tenant`, `${OPENID}/tenant`, `/tenant${OPENID}`]],
  ])("of %j is found at %s", async (path, place, asked) => {
    const url = `${issuer.url}${path}`;
    issuer.pages.set(place, metadata(url));
    const { principal } = await enter(discovering(url), await token(url));
    expect(principal).toBe(`${url} ada`);
    expect(issuer.asked).toEqual([...asked, "/keys"]);
  });

  it("is asked for once, however many come", async () => {
    issuer.pages.set(OAUTH, metadata());
    const door = discovering();
    await Promise.all([enter(door), enter(door), enter(door)]);
    await enter(door);
    expect(issuer.asked).toEqual([OAUTH, "/keys"]);
  });

  it("that does not say where the keys are gives way to one that does", async () => {
    issuer.pages.set(OAUTH, metadata(issuer.url, { jwks_uri: undefined }));
    issuer.pages.set(OPENID, metadata());
    expect(await enter(discovering())).toHaveProperty("principal");
  });

  const nowhere = /^The metadata of http:\/\/127\.0\.0\.1:\d+ does not say where its keys are$/;

  it.each<[string, () => string, string | RegExp]>([
    ["of another issuer", () => metadata("https://honest.example"), "This is not the metadata of"],
    ["of the issuer with a slash", () => metadata(`${issuer.url}/`), "This is not the metadata of"],
    ["of nobody", () => metadata(issuer.url, { issuer: undefined }), "This is not the metadata of"],
    ["that is a list", () => "[]", "This is not the metadata of"],
    ["that is null", () => "null", "This is not the metadata of"],
    ["that is no JSON", () => "{", "JSON"],
    ["without keys", () => metadata(issuer.url, { jwks_uri: undefined }), "Invalid URL"],
    [
      "with keys without TLS",
      () => metadata(issuer.url, { jwks_uri: "http://a.example/keys" }),
      "which is no https address",
    ],
    ["with keys in a file", () => metadata(issuer.url, { jwks_uri: "file:///etc/keys" }), "which is no https address"],
    [
      "with keys by another scheme here",
      () => metadata(issuer.url, { jwks_uri: "ftp://localhost/keys" }),
      "which is no https address",
    ],
  ])("%s leads to no keys", async (_, page, cause) => {
    issuer.pages.set(OAUTH, metadata());
    issuer.pages.set(OAUTH, page());
    issuer.pages.set(OPENID, page());
    const attempt = enter(discovering());
    await cannotTell(attempt, nowhere);
    await expect(attempt.catch((error: unknown) => (error as Error).cause)).resolves.toMatchObject({
      message: expect.stringMatching(cause) as string,
    });
    expect(issuer.asked).toEqual([OAUTH, OPENID]);
  });

  it("of an issuer elsewhere may not name this machine, and may name any other by https", async () => {
    const asked: string[] = [];
    const elsewhere = "https://auth.example.com";
    let keys = `${issuer.url}/keys`;
    vi.spyOn(globalThis, "fetch").mockImplementation(async (input) => {
      const place = new Request(input).url;
      asked.push(place);
      const body = place.includes("well-known") ? { issuer: elsewhere, jwks_uri: keys } : { keys: [signer.jwk] };
      return new Response(JSON.stringify(body));
    });
    await cannotTell(enter(discovering(elsewhere), await token(elsewhere)), "does not say where its keys are");
    expect(asked).toEqual([`${elsewhere}${OAUTH}`, `${elsewhere}${OPENID}`]);
    keys = "https://keys.example.com/k";
    expect(await enter(discovering(elsewhere), await token(elsewhere))).toHaveProperty("principal");
    expect(asked.slice(2)).toEqual([`${elsewhere}${OAUTH}`, keys]);
  });

  it("is not looked for where a redirect leads", async () => {
    issuer.pages.set("/moved", metadata());
    issuer.pages.set(OAUTH, (_, response) => response.writeHead(307, { location: `${issuer.url}/moved` }).end());
    await cannotTell(enter(discovering()), nowhere);
    expect(issuer.asked).toEqual([OAUTH, OPENID]);
  });

  it("is not waited for without end", async () => {
    const patience = new AbortController();
    const timeout = vi.spyOn(AbortSignal, "timeout").mockReturnValue(patience.signal);
    const asked = new Promise<void>((resolve) => issuer.pages.set(OAUTH, () => resolve()));
    const entering = enter(discovering());
    await asked;
    patience.abort(new DOMException("late", "TimeoutError"));
    await cannotTell(entering, nowhere);
    expect(timeout.mock.calls).toEqual([[5_000]]);
    expect(issuer.asked).toEqual([OAUTH]);
  });

  it("that failed is asked for again after a rest, and not before", async () => {
    const pass = holdClock();
    const door = discovering();
    await Promise.all([cannotTell(enter(door), nowhere), cannotTell(enter(door), nowhere)]);
    expect(issuer.asked).toEqual([OAUTH, OPENID]);
    issuer.pages.set(OAUTH, metadata());
    await cannotTell(enter(door), nowhere);
    expect(issuer.asked).toEqual([OAUTH, OPENID]);
    pass(5_000);
    expect(await enter(door)).toHaveProperty("principal");
    expect(await enter(door)).toHaveProperty("principal");
    expect(issuer.asked).toEqual([OAUTH, OPENID, OAUTH, "/keys"]);
  });
});
