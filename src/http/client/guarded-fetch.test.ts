// The guarded fetch: requests it sends, requests it refuses, and its responses.

import { createServer } from "node:http";
import type { RequestListener } from "node:http";
import * as oauth from "oauth4webapi";
import { afterEach, expect, it } from "vitest";
import { closeAll, failure, listen } from "../../../test/support/http/local-servers.ts";
import { fetchRequester } from "./fetch-requester.ts";
import { guardedFetch, type AllLookup } from "./network-guard.ts";

afterEach(closeAll);

const AFAR = new URL("https://mcp.example.com/mcp");

const server = async (listener: RequestListener): Promise<URL> => new URL("/", await listen(createServer(listener)));

/** Echoes the request. */
const mirror: RequestListener = (request, response) => {
  const { method, url, headers } = request;
  const chunks: Buffer[] = [];
  request
    .on("data", (chunk: Buffer) => chunks.push(chunk))
    .once("end", () => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ method, url, headers, body: Buffer.concat(chunks).toString() }));
    });
};

it("a guarded fetch sends requests and returns responses like fetch", async () => {
  const target = await server(mirror);
  const fetch = guardedFetch({ target });
  const response = await fetch(new URL("/a?b=c", target).href);
  expect(response).toBeInstanceOf(Response);
  expect([response.status, response.ok, response.headers.get("content-type")]).toEqual([200, true, "application/json"]);
  expect(await response.json()).toMatchObject({ method: "GET", url: "/a?b=c", body: "" });
});

it.each([
  ["a record", { Accept: "application/json", "X-One": "1" }],
  ["headers", new Headers({ accept: "application/json", "x-one": "1" })],
  ["a list", [["accept", "application/json"] as [string, string], ["x-one", "1"] as [string, string]]],
])("a guarded fetch sends headers that are %s", async (_what, headers) => {
  const target = await server(mirror);
  const seen = await (await guardedFetch({ target })(target, { headers })).json();
  expect(seen).toMatchObject({ headers: { accept: "application/json", "x-one": "1" } });
});

it("a guarded fetch sends only strings and forms", async () => {
  const target = await server(mirror);
  const fetch = guardedFetch({ target });
  const form = await fetch(target, { method: "post", body: new URLSearchParams({ a: "b c" }) });
  expect(await form.json()).toMatchObject({
    method: "POST",
    body: "a=b+c",
    headers: { "content-type": "application/x-www-form-urlencoded;charset=UTF-8" },
  });
  const text = await fetch(target, { method: "POST", body: "{}", headers: { "Content-Type": "application/json" } });
  expect(await text.json()).toMatchObject({ body: "{}", headers: { "content-type": "application/json" } });
  expect(await failure(fetch(target, { method: "POST", body: new Blob(["x"]) }))).toMatchObject({
    mayHaveRun: false,
  });
  expect(await failure(fetch(target, { method: "TRACE" }))).toMatchObject({ mayHaveRun: false });
});

it("a guarded fetch shows no header value in an error", async () => {
  const target = await server(mirror);
  const error = await failure(guardedFetch({ target })(target, { headers: { authorization: "Basic c2Vj\ncmV0" } }));
  expect(error).toMatchObject({ kind: "http", mayHaveRun: false });
  expect(JSON.stringify([error.message, error.stack, String(error.cause)])).not.toMatch(/c2Vj|cmV0/);
});

it("a guarded fetch never follows redirects", async () => {
  const target = await server((_request, response) => response.writeHead(302, { location: "/elsewhere" }).end("no"));
  for (const redirect of ["follow", "error", "manual"] as const) {
    const response = await guardedFetch({ target })(target, { redirect });
    expect([response.status, response.headers.get("location")]).toEqual([302, "/elsewhere"]);
  }
});

it.each([204, 304])("a guarded fetch returns a response with status %d, which has no body", async (status) => {
  const target = await server((_request, response) => response.writeHead(status).end());
  const response = await guardedFetch({ target })(target);
  expect([response.status, response.body]).toEqual([status, null]);
});

it("a guarded fetch adds no content type", async () => {
  const target = await server((_request, response) => response.end("{}"));
  expect((await guardedFetch({ target })(target)).headers.get("content-type")).toBeNull();
});

it("a guarded fetch reads at most one mebibyte", async () => {
  const target = await server((request, response) =>
    response.end("x".repeat(1024 * 1024 + Number(request.url?.slice(1)))),
  );
  const fetch = guardedFetch({ target });
  expect(await (await fetch(new URL("/0", target))).text()).toHaveLength(1024 * 1024);
  expect(await failure(fetch(new URL("/1", target)))).toMatchObject({ kind: "http" });
});

it.each(["head", "body"])("a guarded fetch waits no longer than totalMs for the %s", async (what) => {
  const target = await server((_request, response) => {
    if (what === "body") response.write("x");
  });
  const error = await failure(guardedFetch({ target, totalMs: 50 })(target));
  expect(error).toMatchObject({ kind: "timeout" });
  expect(error.message).toContain("did not respond within 50 ms");
});

it("a guarded fetch obeys the signal", async () => {
  const ending = new AbortController();
  const target = await server(() => ending.abort(new Error("enough")));
  const fetch = guardedFetch({ target });
  const error = await failure(fetch(target, { signal: ending.signal }));
  expect(error).toMatchObject({ kind: "cancelled", cause: { message: "enough" } });
  expect(await failure(fetch(target, { signal: ending.signal }))).toMatchObject({
    kind: "cancelled",
    mayHaveRun: false,
  });
});

it("a guarded fetch works with oauth4webapi", async () => {
  const target = await server((_request, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ issuer: target.href, token_endpoint: `${target.href}token` }));
  });
  const fetch = guardedFetch({ target });
  const response = await oauth.discoveryRequest(target, {
    algorithm: "oauth2",
    [oauth.customFetch]: (url, init) => fetch(url, init as object),
    [oauth.allowInsecureRequests]: true,
  });
  const metadata = await oauth.processDiscoveryResponse(target, response);
  expect(metadata.token_endpoint).toBe(`${target.href}token`);
});

it.each([
  "http://127.0.0.1/",
  "https://10.0.0.1/",
  "https://169.254.169.254/latest",
  "http://example.com/",
  "no address",
])("a guarded fetch refuses: %s for a remote server", async (url) => {
  let isAsked = false;
  const requester = fetchRequester(async () => {
    isAsked = true;
    return new Response();
  });
  expect(await failure(guardedFetch({ target: AFAR, requester })(url))).toMatchObject({
    kind: "refused",
    mayHaveRun: false,
  });
  expect(isAsked).toBe(false);
});

it("a guarded fetch refuses: a name that resolves to a private address", async () => {
  const lookup: AllLookup = (_name, _options, callback) => callback(null, [{ address: "10.0.0.1", family: 4 }]);
  const error = await failure(guardedFetch({ target: AFAR, lookup })("https://inside.test/"));
  expect(error).toMatchObject({ kind: "refused", mayHaveRun: false });
  expect(error.message).toContain("inside.test (10.0.0.1): it is a private address");
});

it("a guarded fetch refuses: a name that changes its address: the checked address is the one connected to", async () => {
  let isReached = false;
  const inside = createServer();
  inside.on("connection", (socket) => {
    isReached = true;
    socket.destroy();
  });
  const { port } = await listen(inside);
  // The first lookup returns a dead address, the second a live one, the third a private one.
  const addresses = ["127.0.0.2", "127.0.0.1", "10.0.0.1"];
  let looks = 0;
  const lookup: AllLookup = (_name, _options, callback) => {
    callback(null, [{ address: addresses[looks] ?? "", family: 4 }]);
    looks += 1;
  };
  const fetch = guardedFetch({ target: new URL("http://localhost/mcp"), lookup });
  const url = `https://rebinding.test:${port}/`;
  await failure(fetch(url));
  expect([looks, isReached]).toEqual([1, false]);
  await failure(fetch(url));
  expect([looks, isReached]).toEqual([2, true]);
  const error = await failure(fetch(url));
  expect(error.message).toContain("rebinding.test (10.0.0.1): it is a private address");
  expect(looks).toBe(3);
});
