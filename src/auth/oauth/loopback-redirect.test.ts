// The listener of a loopback redirect: which requests are accepted, where it listens and for how long.

import { connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import {
  authorize,
  closes,
  isClosed,
  never,
  send,
  startVisit,
  type RawResponse,
} from "../../../test/support/auth/loopback-redirect.ts";
import { loopbackRedirect } from "./loopback-redirect.ts";

/** A port that is free now. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

it("a loopback redirect returns the unchanged callback URL, and closes", async () => {
  const { uri, callback } = await startVisit();
  expect(uri).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/);
  const { status, headers, body } = await send(`${uri}?code=c%20d&state=s1&iss=https%3A%2F%2Flogin.example&code=2`);
  expect(status).toBe(200);
  expect(body).toContain("You can close this tab");
  expect(headers).toMatchObject({
    "content-type": "text/html; charset=utf-8",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
    connection: "close",
  });
  expect(headers["content-security-policy"]).toContain("default-src 'none'");
  expect(headers["content-security-policy"]).toContain("frame-ancestors 'none'");
  expect((await callback).href).toBe(`${uri}?code=c%20d&state=s1&iss=https%3A%2F%2Flogin.example&code=2`);
  await closes(uri);
});

it("a loopback redirect returns an error of the server too, and shows the user an error page", async () => {
  const { uri, callback } = await startVisit({ page: "<p>mine</p>" });
  const { body } = await send(`${uri}?error=access_denied&error_description=%3Cscript%3E&state=s1`);
  expect(body).toContain("Not signed in");
  expect(body).not.toContain("script");
  expect((await callback).searchParams.get("error")).toBe("access_denied");
});

it("a loopback redirect shows the configured page", async () => {
  const { uri, callback } = await startVisit({ page: "<p>mine</p>", path: "/" });
  expect((await send(`${uri}?code=1&state=s1`)).body).toBe("<p>mine</p>");
  await callback;
});

it.each<[string, number, (uri: string) => Promise<RawResponse>]>([
  ["another state", 400, (uri) => send(`${uri}?code=evil&state=s2`)],
  ["no state", 400, (uri) => send(`${uri}?code=evil`)],
  ["an empty state", 400, (uri) => send(`${uri}?code=evil&state=`)],
  ["two states", 400, (uri) => send(`${uri}?code=evil&state=s1&state=s2`)],
  ["a state that is a property name of objects", 400, (uri) => send(`${uri}?code=evil&state=constructor`)],
  ["neither code nor error", 400, (uri) => send(`${uri}?state=s1`)],
  ["another path", 404, (uri) => send(`${uri}/x?code=evil&state=s1`)],
  [
    "a path that looks like a host",
    404,
    (uri) => send(new URL(uri).origin, { path: "//evil.example/callback?code=evil&state=s1" }),
  ],
  ["a URL as its target", 400, (uri) => send(uri, { path: "http://evil.example/callback?code=evil&state=s1" })],
  ["a POST", 404, (uri) => send(`${uri}?code=evil&state=s1`, { method: "POST" })],
  ["a HEAD", 404, (uri) => send(`${uri}?code=evil&state=s1`, { method: "HEAD" })],
  ["an OPTIONS", 404, (uri) => send(`${uri}?code=evil&state=s1`, { method: "OPTIONS" })],
  ["another host", 400, (uri) => send(`${uri}?code=evil&state=s1`, { headers: { host: "evil.example" } })],
  [
    "another name of this host",
    400,
    (uri) => send(`${uri}?code=evil&state=s1`, { headers: { host: `localhost:${new URL(uri).port}` } }),
  ],
  ["a host without its port", 400, (uri) => send(`${uri}?code=evil&state=s1`, { headers: { host: "127.0.0.1" } })],
  ["the page's icon", 404, (uri) => send(`${new URL(uri).origin}/favicon.ico`)],
])("a loopback redirect refuses %s, and waits on", async (_what, status, request) => {
  const { uri, callback } = await startVisit();
  const answer = await request(uri);
  expect(answer.status).toBe(status);
  expect(answer.headers["x-content-type-options"]).toBe("nosniff");
  expect(answer.body).not.toContain("evil");
  expect((await send(`${uri}?code=good&state=s1`)).status).toBe(200);
  expect((await callback).searchParams.get("code")).toBe("good");
});

it("a loopback redirect refuses a target that is not a path", async () => {
  const { uri, callback } = await startVisit();
  expect((await send(uri, { path: "@evil.example/callback?code=evil&state=s1" })).status).toBe(400);
  await send(`${uri}?code=good&state=s1`);
  expect((await callback).host).toBe(new URL(uri).host);
});

it("a loopback redirect accepts each state once", async () => {
  const port = await freePort();
  const { redirect, uri, callback } = await startVisit({ port });
  const other = redirect.visit(authorize("s2"), { signal: never });
  await send(`${uri}?code=1&state=s1`);
  expect((await send(`${uri}?code=2&state=s1`)).status).toBe(400);
  expect((await callback).searchParams.get("code")).toBe("1");
  await send(`${uri}?code=3&state=s2`);
  expect((await other).searchParams.get("code")).toBe("3");
  await closes(uri);
});

it("a loopback redirect closes connections that send nothing", async () => {
  const { uri, callback } = await startVisit();
  const silent = connect(Number(new URL(uri).port), "127.0.0.1");
  await new Promise((resolve) => silent.once("connect", resolve));
  const ended = new Promise((resolve) => silent.once("close", resolve));
  silent.resume();
  await send(`${uri}?code=1&state=s1`);
  await callback;
  await ended;
  await closes(uri);
});

it("the URI of a loopback redirect is known at once with a fixed port, and nothing listens before a visit", async () => {
  const port = await freePort();
  const redirect = loopbackRedirect({ port, path: "/back/here" });
  expect(redirect.uri).toBe(`http://127.0.0.1:${port}/back/here`);
  expect(await isClosed(`http://127.0.0.1:${port}`)).toBe(true);
});

it("the URI of a loopback redirect stays the same for the next visit", async () => {
  const { redirect, uri, callback } = await startVisit();
  expect(await redirect.uri).toBe(uri);
  await send(`${uri}?code=1&state=s1`);
  await callback;
  await closes(uri);
  expect(await redirect.uri).toBe(uri);
  const again = redirect.visit(authorize("s2"), { signal: never });
  await send(`${uri}?code=2&state=s2`);
  expect((await again).searchParams.get("code")).toBe("2");
});

it("the URI of a loopback redirect changes if the port was taken meanwhile, unless it is fixed", async () => {
  const { redirect, uri, callback } = await startVisit();
  await send(`${uri}?code=1&state=s1`);
  await callback;
  await closes(uri);
  const blocker = createServer();
  const { port } = new URL(uri);
  await new Promise<void>((resolve) => blocker.listen(Number(port), "127.0.0.1", resolve));
  try {
    expect(await redirect.uri).not.toBe(uri);
    const fixed = loopbackRedirect({ port: Number(port), open: () => expect.fail("it must not open") });
    const visit = fixed.visit(authorize(), { signal: never });
    await expect(visit).rejects.toMatchObject({ kind: "refused", message: expect.stringContaining(uri) });
  } finally {
    await new Promise((resolve) => blocker.close(resolve));
  }
});

it.each(["::1", "localhost"] as const)("the URI of a loopback redirect may have the host %s", async (host) => {
  const { uri, callback } = await startVisit({ host });
  expect(new URL(uri).hostname).toBe(host === "::1" ? "[::1]" : host);
  await send(`${uri}?code=1&state=s1`);
  expect((await callback).href).toBe(`${uri}?code=1&state=s1`);
  await closes(uri);
});

it("the URI of a loopback redirect of localhost is reachable by IPv4 and IPv6", async () => {
  const { uri, callback } = await startVisit({ host: "localhost" });
  const { port, host } = new URL(uri);
  for (const address of ["127.0.0.1", "[::1]"]) {
    const answer = await send(`http://${address}:${port}/x`, { headers: { host } });
    expect(answer.status).toBe(404);
  }
  await send(`${uri}?code=1&state=s1`);
  await callback;
});

it("the URI of a loopback redirect has a loopback host and a plain path", () => {
  expect(() => loopbackRedirect({ host: "0.0.0.0" as "::1" })).toThrow("127.0.0.1, ::1 or localhost");
  expect(() => loopbackRedirect({ path: "callback" })).toThrow("/callback");
  expect(() => loopbackRedirect({ path: "/a?b" })).toThrow("/callback");
});

it("the URI of a loopback redirect comes from known options only", () => {
  const misspelt = { timeout: 5 } as Parameters<typeof loopbackRedirect>[0];
  expect(() => loopbackRedirect(misspelt)).toThrow(
    new TypeError("loopbackRedirect() has no option `timeout`; did you mean `timeoutMs`?"),
  );
});

it("the URI of a loopback redirect is closed after the timeout without a visit", async () => {
  const uri = await loopbackRedirect({ timeoutMs: 20 }).uri;
  await closes(uri);
});
